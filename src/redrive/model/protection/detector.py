"""Detectors: a pattern, what its finds must satisfy besides, and the keywords that must be near."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from redrive.model.protection.keywords import Keywords
from redrive.model.protection.pattern import Pattern, Span

Check = Callable[[str], bool]
"""True if a find is what its pattern only looks like: its check digit, most often."""


class Finder(Protocol):
    """Something that can be found in a text."""

    def find(self, text: bytes) -> list[Span]:
        """The matches in a text in UTF-8, in order; no two overlap."""
        ...


@dataclass(frozen=True, slots=True)
class Detector:
    """One kind of sensitive text.

    Attributes:
        pattern: What it looks like: group 1, what is around it must be there and is none of it. It has to be compiled
            by an engine that does not backtrack, since whoever publishes chooses the text.
        check: What a find must satisfy besides; None: nothing.
        keywords: One of them must be near a find; None: none has to.
    """

    pattern: Pattern
    check: Check | None = None
    keywords: Keywords | None = None

    def find(self, text: bytes) -> list[Span]:
        """See `Finder.find`."""
        places = None if self.keywords is None else self.keywords.places(text)
        if places is not None and not places:
            return []
        finds: list[Span] = []
        at = 0
        while (match := self.pattern.search(text, at)) is not None:
            start, end = match.span(1)
            if (places is None or places.near(start, end)) and self._holds(text, start, end):
                finds.append((start, end))
                at = end
            else:  # what is looked for may begin inside of what was not it
                at = match.span(0)[0] + 1
        return finds

    def _holds(self, text: bytes, start: int, end: int) -> bool:
        return self.check is None or self.check(text[start:end].decode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Either:
    """Several detectors of one kind."""

    finders: Sequence[Finder]

    def find(self, text: bytes) -> list[Span]:
        """See `Finder.find`; what several found stands once, as far as any of them saw it."""
        finds: list[Span] = []
        for start, end in sorted(span for finder in self.finders for span in finder.find(text)):
            if finds and start < finds[-1][1]:
                finds[-1] = (finds[-1][0], max(end, finds[-1][1]))
            else:
                finds.append((start, end))
        return finds


Found = Mapping[str, Sequence[Span]]
"""What was found, by what it is called; nothing stands there that was not found."""
