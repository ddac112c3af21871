"""Build the documentation's site: `make docs` runs this with the Python that has Sphinx.

Sphinx gets a copy of the pages and of what they link to. The first page has the table of contents besides, in the
order in which the indexes of the sections name their pages.
"""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from sphinx.cmd.build import main

ROOT = Path(__file__).parents[2]
SITE = ROOT / ".site"
# A section, the page that introduces it, and the folder of its other pages.
SECTIONS = (
    ("Start", "docs/README.md", "docs/tutorial"),
    ("How to", "docs/how-to/README.md", "docs/how-to"),
    ("Reference", "docs/reference/README.md", "docs/reference"),
    ("Explanation", "docs/explanation/README.md", "docs/explanation"),
    ("Decisions", "docs/decisions/README.md", "docs/decisions"),
    ("Examples", "examples/README.md", "examples"),
)
PROJECT = ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "tests/attack/README.md", "CHANGELOG.md")


def pages(index: str, folder: str) -> Iterator[str]:
    """The index of a section and its pages: first those that the index names, in its order, then the others."""
    targets = [path.resolve() for path in linked(ROOT / index)]
    files = sorted((ROOT / folder).rglob("*.md"))
    ordered = [path for path in targets if path in files]
    for path in dict.fromkeys((ROOT / index, *ordered, *files)):
        yield str(path.relative_to(ROOT))


def contents() -> str:
    """The table of contents, which shows at the side of each page."""
    sections = [(title, list(pages(index, folder))) for title, index, folder in SECTIONS]
    trees = [
        "\n".join(("```{toctree}", ":hidden:", f":caption: {title}", "", *names, "```"))
        for title, names in (*sections, ("Project", PROJECT))
    ]
    return "\n\n".join(trees)


def copy_to(source: Path) -> None:
    """Copy the pages, and the files and the names of the folders that they link to."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    targets = {path.resolve() for page in pages for path in linked(page)}
    for path in sorted({*pages, *targets}):
        copy = source / path.relative_to(ROOT)
        if path.is_dir():
            copy.mkdir(parents=True, exist_ok=True)
        else:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    with (source / "README.md").open("a") as first:
        first.write(f"\n{contents()}\n")


def linked(page: Path) -> Iterator[Path]:
    """The files and folders that a page links to."""
    for link in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        path = page.parent / link
        if path.exists():
            yield path


def build() -> int:
    """Build it anew; the exit status is not 0 if a link leads nowhere."""
    source, html = SITE / "source", SITE / "html"
    shutil.rmtree(SITE, ignore_errors=True)
    copy_to(source)
    options = ["-q", "-W", "--keep-going", "-d", str(SITE / "doctrees"), "-c", str(Path(__file__).parent)]
    status = main([*options, str(source), str(html), *sys.argv[1:]])
    if not status:
        shutil.copyfile(html / "README.html", html / "index.html")
        for page in html.rglob("*.html"):
            page.write_text(without_styles(page.read_text()))
    return status


def without_styles(page: str) -> str:
    """A page whose elements carry no styles of their own, which the server's policy would not apply."""
    return re.sub(r' style="[^"]*"', "", page.replace(' style="display: none;"', " hidden"))


if __name__ == "__main__":
    sys.exit(build())
