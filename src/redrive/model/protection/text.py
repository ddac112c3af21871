r"""A text as detectors see it, and without what they found.

A text that is JSON is looked at as its reader will see it, with its escapes resolved: in `"\n4539…"` no letter stands
before the number. And it stays JSON: of strings only what is inside changes; a number that is masked becomes a string,
and one that is cut out becomes null; braces, commas and quotes between them stay, whoever found what across them.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple, NoReturn

from redrive.model.protection.detector import Finder, Found

_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_ESCAPED: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_SCALAR: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|-?[0-9][0-9eE.+-]*+|true|false|null')
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Cut(NamedTuple):
    """A part of a text to mask or to remove."""

    start: int  # Start in the text as detectors see it
    end: int  # End in that text
    character: str  # Replacement for each character; empty: it is removed


class Text:
    """One text.

    Attributes:
        source: As it was given.
    """

    __slots__ = ("_is_json", "_places", "_visible", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self._is_json = _is_json(source)
        self._places: Sequence[int] = range(len(source) + 1)
        visible = source
        if self._is_json and "\\" in source:
            visible, self._places = _without_escapes(source)
        self._visible = visible if visible.isascii() else _SURROGATE.sub("\ufffd", visible)

    def search(self, finders: Mapping[str, Finder]) -> Found:
        """The finds of each of these, as spans of characters of the text that detectors see; finders tell bytes."""
        encoded = self._visible.encode()
        finds = {name: finder.find(encoded) for name, finder in finders.items()}
        spans_by_name = {name: spans for name, spans in finds.items() if spans}
        if not spans_by_name or len(encoded) == len(self._visible):
            return spans_by_name
        lengths = [0, *accumulate(len(each.encode()) for each in self._visible)]
        return {
            name: [(bisect_left(lengths, start), bisect_left(lengths, end)) for start, end in spans]
            for name, spans in spans_by_name.items()
        }

    def source_index(self, index: int) -> int:
        """The position in the source of a position in the text that is seen."""
        return self._places[index]

    def without(self, cuts: Iterable[Cut]) -> str:
        """The source without these; cuts that overlap become one, with the character of the first in `cuts`."""
        merged = [
            Cut(self._places[each.start], self._places[each.end], each.character) for each in _merge(cuts)
        ]
        return "".join(self._as_json(merged) if self._is_json else self._as_text(merged))

    def _as_text(self, cuts: Sequence[Cut]) -> Iterator[str]:
        """The pieces of the source, with each cut masked by its character, or removed where that is empty."""
        at = 0
        for start, end, character in cuts:
            yield self.source[at:start]
            yield character * (end - start)
            at = end
        yield self.source[at:]

    def _as_json(self, cuts: Sequence[Cut]) -> Iterator[str]:
        """The pieces of the source, with the scalars that cuts overlap cut so that it remains JSON."""
        at = 0  # the pieces yielded reach so far
        first = 0  # the first cut that ends behind the scalar's start
        for match in _SCALAR.finditer(self.source):
            start, end = match.span()
            while first < len(cuts) and cuts[first].end <= start:
                first += 1
            if first == len(cuts):
                break
            if cuts[first].start >= end:
                continue
            yield self.source[at:start]
            last = first
            while last < len(cuts) and cuts[last].start < end:
                last += 1
            overlapping = cuts[first:last]
            if match[0].startswith('"'):
                yield from self._cut_string(start, end, overlapping)
            else:
                yield _scalar_replacement(end - start, overlapping[0].character)
            at = end
        yield self.source[at:]

    def _cut_string(self, start: int, end: int, cuts: Sequence[Cut]) -> Iterator[str]:
        """The pieces of a JSON string, whose quotes stay."""
        at, stop = start, end - 1
        for cut in cuts:
            begin, over = max(cut.start, start + 1), min(cut.end, stop)
            if begin < over:
                yield self.source[at:begin]
                yield _in_string(cut.character) * self._width(begin, over)
                at = over
        yield self.source[at:end]

    def _width(self, start: int, end: int) -> int:
        """The number of characters that detectors see there."""
        return bisect_left(self._places, end) - bisect_left(self._places, start)


def _merge(cuts: Iterable[Cut]) -> list[Cut]:
    """Cuts in order of their starts, those that overlap as one, with the character of the first in `cuts`."""
    ranks: list[int] = []  # the place in `cuts` that each of `merged` has its character from
    merged: list[Cut] = []
    for rank, cut in sorted(enumerate(cuts), key=lambda ranked: (ranked[1].start, ranked[0])):
        if merged and cut.start < merged[-1].end:
            last = merged[-1]
            character = last.character if ranks[-1] < rank else cut.character
            merged[-1] = Cut(last.start, max(cut.end, last.end), character)
            ranks[-1] = min(ranks[-1], rank)
        else:
            merged.append(cut)
            ranks.append(rank)
    return merged


def _in_string(character: str) -> str:
    return character if character not in ('"', "\\") else f"\\{character}"


def _scalar_replacement(width: int, character: str) -> str:
    return f'"{_in_string(character) * width}"' if character else "null"


def _is_json(text: str) -> bool:
    """True if it is an array, an object or a string; a bare number is a text like any other."""
    if not text.lstrip().startswith(("{", "[", '"')):
        return False
    try:
        json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return False
    return True


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _without_escapes(source: str) -> tuple[str, list[int]]:
    """The text without escapes, and for each of its characters, and its end, the place in the source."""
    pieces: list[str] = []
    places: list[int] = []
    at = 0
    for match in _ESCAPE.finditer(source):
        start, end = match.span()
        pieces.append(source[at:start])
        places.extend(range(at, start))
        digits, other = match.groups()
        pieces.append(chr(int(digits, 16)) if digits else _ESCAPED.get(other, other))
        places.append(start)
        at = end
    pieces.append(source[at:])
    places.extend(range(at, len(source) + 1))
    return "".join(pieces), places
