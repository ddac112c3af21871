"""The interface of a compiled regular expression, which Python's and RE2's both have."""

from typing import Any, Protocol

Span = tuple[int, int]
"""From where to where, as slices count."""


class Match(Protocol):
    """One find."""

    def span(self, group: Any = 0, /) -> Span:
        """The span of a group; (-1, -1) where it did not match."""
        ...


class Pattern(Protocol):
    """A compiled expression, for texts in UTF-8."""

    def search(self, text: bytes, pos: int, /) -> Match | None:
        """The first find that begins there or later; what stands before is seen."""
        ...
