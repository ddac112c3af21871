"""What a compiled regular expression has to offer; Python's does, and so does RE2's."""

from typing import Any, Protocol

Span = tuple[int, int]
"""From where to where, as slices count."""


class Match(Protocol):
    """One find."""

    def span(self, group: Any = 0, /) -> Span:
        """Where a group of it is; (-1, -1): nowhere."""
        ...


class Pattern(Protocol):
    """A compiled expression, for texts in UTF-8."""

    def search(self, text: bytes, pos: int, /) -> Match | None:
        """The first find that begins there or later; what stands before is seen."""
        ...
