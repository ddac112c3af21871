"""Pages of the documentation: their fences, headings and links."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Self

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"

_FENCE: Final = re.compile(
    r"^```(?P<language>\w*)[ ]?(?P<mark>\S*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
_HEADING: Final = re.compile(r"^(?P<level>#+) (?P<text>.+)$", re.MULTILINE)
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Fence:
    """One fenced block.

    Attributes:
        language: The first word after the backticks.
        mark: The second word, or nothing.
        line: The line of its first line of text, from 1.
    """

    language: str
    mark: str
    text: str
    line: int


@dataclass(frozen=True)
class Page:
    """One file of Markdown."""

    path: Path
    text: str

    @classmethod
    def at(cls, path: Path) -> Self:
        return cls(path, path.read_text())

    def __str__(self) -> str:
        return str(self.path.relative_to(ROOT))

    @cached_property
    def fences(self) -> list[Fence]:
        return [
            Fence(
                found["language"],
                found["mark"],
                found["text"],
                self.text[: found.start("text")].count("\n") + 1,
            )
            for found in _FENCE.finditer(self.text)
        ]

    @cached_property
    def prose(self) -> str:
        """The page without its fences, whose lines are no headings and no links."""
        return _FENCE.sub("", self.text)

    @cached_property
    def sections(self) -> dict[str, str]:
        """The text under each heading up to the next one, whatever their levels; backticks are left out."""
        headings = list(_HEADING.finditer(self.prose))
        ends = [heading.start() for heading in headings[1:]] + [len(self.prose)]
        return {
            heading["text"].replace("`", ""): self.prose[heading.end() : end]
            for heading, end in zip(headings, ends, strict=True)
        }

    @cached_property
    def anchors(self) -> set[str]:
        """The anchors (`#…`) that a link to this page may have."""
        return {anchor_of(heading) for heading in self.sections}

    @cached_property
    def links(self) -> list[str]:
        """The targets of links that stay in the repository."""
        return [link for link in _LINK.findall(self.prose) if not re.match(r"[a-z]+:", link)]


def anchor_of(heading: str) -> str:
    """The name that GitHub gives a heading: lower case, hyphens for blanks, no other punctuation."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def all_pages() -> list[Page]:
    """Every page: those in the root, and those under docs/ and examples/."""
    paths = (*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "examples").rglob("*.md"))
    return [Page.at(path) for path in sorted(paths)]
