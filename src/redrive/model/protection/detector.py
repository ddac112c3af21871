"""Detectors: a pattern, what its finds must satisfy besides, and the keywords that must be near."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

# The interface of a compiled regular expression, which Python's and RE2's both have.

Span = tuple[int, int]
"""From where to where, as slices count."""


class Match(Protocol):
    """One match in a text."""

    def span(self, group: Any = 0, /) -> Span:
        """The span of a group; (-1, -1) where it did not match."""
        ...


class Pattern(Protocol):
    """A compiled expression, for texts in UTF-8."""

    def search(self, text: bytes, pos: int, /) -> Match | None:
        """The first find that begins there or later; what stands before is seen."""
        ...


# Keywords: words that say what a number near them is.

PROXIMITY: Final = 30  # characters between a keyword and what it speaks of, as in Amazon Macie
_BYTES_MAX: Final = 4  # of a character in UTF-8
_NONE: Final = (-1, -1)

_GAP: Final = "[ _-]?"
_NEVER: Final = r"[^\s\S]"
# A word ends at anything but a letter, and in `cardSecurityCode` where the next one begins.
_BEFORE: Final = "(?:^|[^A-Za-z]|(?-i:[a-z]))"
_AFTER: Final = "(?:[^A-Za-z]|(?-i:[A-Z])|$)"


def keyword_expression(words: Iterable[str]) -> str:
    """An expression for any of these words, whatever its case; a blank may be missing, a hyphen or an underscore.

    Group 1 is a word that ends in a letter, group 2 one that does not (`dl#`), which may stand before anything.
    """
    longest_first = sorted(set(words), key=lambda word: (-len(word), word))
    plain = "|".join(_word_expression(word) for word in longest_first if word[-1].isalpha())
    other = "|".join(_word_expression(word) for word in longest_first if not word[-1].isalpha())
    return f"(?i){_BEFORE}(?:({plain or _NEVER}){_AFTER}|({other or _NEVER}))"


def _word_expression(word: str) -> str:
    return re.sub("\\\\? ", _GAP, re.sub(r"([.+#()])", r"\\\1", word))


class Keywords:
    """Keywords that are searched for together."""

    def __init__(self, pattern: Pattern) -> None:
        """Look for what this matches, which is compiled from what `keyword_expression` says."""
        self._pattern = pattern

    def places(self, text: bytes) -> "KeywordSpans":
        """The positions."""
        spans: list[Span] = []
        at = 0
        while (match := self._pattern.search(text, at)) is not None:
            start, end = match.span(1)
            if (start, end) == _NONE:  # see `keyword_expression` for the two groups
                start, end = match.span(2)
            if _is_word(text, start, end):
                spans.append((start, end))
                at = end
            else:
                at = match.span(0)[0] + 1
        return KeywordSpans(text, spans)


def _is_word(text: bytes, start: int, end: int) -> bool:
    """True if it begins and ends where words do; two letters are parted if the second alone is a capital."""
    before, after = text[start - 1 : start + 1], text[end - 1 : end + 1]
    if start and before.isalpha() and not (before[:1].islower() and before[1:].isupper()):
        return False
    return len(after) == 1 or not after.isalpha() or (after[:1].islower() and after[1:].isupper())


class KeywordSpans:
    """The positions of keywords in one text."""

    def __init__(self, text: bytes, spans: Sequence[Span]) -> None:
        self._text = text
        self._starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]

    def __bool__(self) -> bool:
        return bool(self._starts)

    def near(self, start: int, end: int) -> bool:
        """True if there is a keyword before or after what stands there, PROXIMITY characters away at most."""
        before = bisect_right(self._ends, start) - 1
        if before >= 0 and self._is_close(self._ends[before], start):
            return True
        after = bisect_left(self._starts, end)
        return after < len(self._starts) and self._is_close(end, self._starts[after])

    def _is_close(self, start: int, end: int) -> bool:
        """True if at most PROXIMITY characters, of up to `_BYTES_MAX` bytes each, lie between these places."""
        if end - start <= PROXIMITY:
            return True
        if end - start > PROXIMITY * _BYTES_MAX:
            return False
        return len(self._text[start:end].decode("utf-8", "replace")) <= PROXIMITY


# Detectors.

Check = Callable[[str], bool]
"""True if a find is what its pattern only looks like: its check digit, most often."""


class Finder(Protocol):
    """Anything that finds matches in a text."""

    def find(self, text: bytes) -> list[Span]:
        """The matches in a text in UTF-8, in order; no two overlap."""
        ...


@dataclass(frozen=True, slots=True)
class Detector:
    """One kind of sensitive text."""

    # What it looks like: group 1, what is around it must be there and is none of it. It has to be compiled by
    # an engine that does not backtrack, since whoever publishes chooses the text.
    pattern: Pattern
    check: Check | None = None  # Additional check of a match; None: there is none
    keywords: Keywords | None = None  # One of them must be near a find; None: none has to

    def find(self, text: bytes) -> list[Span]:
        """The finds near a keyword, if this kind of text has keywords; see `Finder.find`."""
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
    """Several detectors of the same kind of text."""

    finders: Sequence[Finder]

    def find(self, text: bytes) -> list[Span]:
        """See `Finder.find`; overlapping finds become one, from the first start to the last end."""
        finds: list[Span] = []
        for start, end in sorted(span for finder in self.finders for span in finder.find(text)):
            last_start, last_end = finds[-1] if finds else (0, 0)
            if start < last_end:
                finds[-1] = (last_start, max(end, last_end))
            else:
                finds.append((start, end))
        return finds


Found = Mapping[str, Sequence[Span]]
"""What was found, by what it is called; nothing stands there that was not found."""
