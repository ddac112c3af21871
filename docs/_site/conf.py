"""The documentation as a web site: Sphinx reads the pages as they are, with the links that they have."""

import re
from pathlib import Path

from sphinx.application import Sphinx

project = "Redrive"
extensions = ["myst_parser"]
myst_heading_anchors = 4
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "examples/**.md", "tests/**.md"]
html_theme = "furo"
html_title = "Redrive"
html_favicon = "../../src/redrive/console/static/icon.svg"
html_theme_options = {"top_of_page_buttons": []}
html_show_sphinx = html_show_sourcelink = html_copy_source = False
# Shortened JSON and the marks of pages that tests run are no code that a highlighter knows.
suppress_warnings = ["misc.highlighting_failure"]

_LINK = re.compile(r"\[([^\]\n]+)\]\(([^)\s:#]+)\)")


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _name_folders)


def _name_folders(app: Sphinx, page: str, source: list[str]) -> None:
    """A link to a folder of the repository leads to its page, where it has one, or is only the folder's name."""
    here = Path(app.srcdir, page).parent

    def written(link: re.Match[str]) -> str:
        folder = here / link[2]
        if not folder.is_dir():
            return link[0]
        readme = folder / "README.md"
        return f"[{link[1]}]({link[2].rstrip('/')}/README.md)" if readme.exists() else link[1]

    source[0] = _LINK.sub(written, source[0])
