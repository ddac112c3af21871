"""Finds of custom identifiers, within a budget; what makes a finder is in `identifiers.custom`."""

from dataclasses import dataclass
from typing import Any, Final

from redrive.model.protection import Span

#: Bytes times instructions. RE2 takes 5 ns for each where an expression has more states than it keeps, as
#: `[ab]*a[ab]{300}c|b` has, so this is 5 s. It is 340 finds of `ORDER-[0-9]+` in the largest message, where each is
#: counted as if it had been looked for up to the end, and 1,400 in one of 64 KiB.
_BUDGET: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class CustomFinder:
    """Finds what a compiled expression of RE2's matches."""

    pattern: Any  # The expression
    reach: int | None  # How many bytes behind a find it may have looked at; None: all

    def find(self, text: bytes) -> list[Span]:
        """See `Finder.find`."""
        finds: list[Span] = []
        left, at = _BUDGET, 0
        for match in self.pattern.finditer(text):
            start, end = match.span()
            seen = len(text) if self.reach is None else end + self.reach
            left -= (seen - at) * self.pattern.programsize
            if left < 0:
                finds.append((start, len(text)))
                break
            if end > start:
                finds.append((start, end))
            at = end
        return finds
