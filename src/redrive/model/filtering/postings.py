"""Postings: the conditions of many clauses on one key, in buckets that a value leads to.

A message may have as many values under a key as its size allows, and a key as many conditions as filters have. So each
view of the values is made once for a message, and where buckets and values meet, the fewer of the two are looked through.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from typing import TypeVar

from redrive.model.filtering.condition import (
    Condition,
    EqualsIgnoringCase,
    Exactly,
    KeyTest,
    NumberRange,
    Prefix,
    Present,
    Scalar,
    Suffix,
    is_number,
)
from redrive.model.filtering.ranges import RangeTable

# Whether it is a boolean, and the value: to Python, True and 1 are the same key.
_Exact = tuple[bool, Scalar]
_Slot = TypeVar("_Slot")


def is_indexed(condition: Condition) -> bool:
    """True if the buckets answer for the condition; of any other they only say that its key is there."""
    return isinstance(condition, Exactly | Prefix | Suffix | EqualsIgnoringCase | NumberRange | Present)


class Values:
    """The values that a message has under one key, in the form in which they are looked up."""

    __slots__ = ("_beginnings", "_ends", "_exact", "_folded", "_numbers", "_texts", "_values")

    def __init__(self, values: Sequence[Scalar]) -> None:
        self._values = values
        self._exact: set[_Exact] | None = None
        self._numbers: list[int | float] | None = None
        self._texts: list[str] | None = None
        self._folded: set[str] | None = None
        self._beginnings: dict[int, set[str]] = {}
        self._ends: dict[int, set[str]] = {}

    @property
    def exact(self) -> set[_Exact]:
        """All of them."""
        if self._exact is None:
            self._exact = {(isinstance(value, bool), value) for value in self._values}
        return self._exact

    @property
    def numbers(self) -> list[int | float]:
        """The numbers, in order."""
        if self._numbers is None:
            self._numbers = sorted(value for value in self._values if is_number(value))
        return self._numbers

    @property
    def texts(self) -> list[str]:
        """The texts, the shortest first."""
        if self._texts is None:
            self._texts = sorted({value for value in self._values if isinstance(value, str)}, key=len)
        return self._texts

    @property
    def folded(self) -> set[str]:
        """The texts in lower case."""
        if self._folded is None:
            self._folded = {text.lower() for text in self.texts}
        return self._folded

    def beginnings(self, length: int) -> set[str]:
        """The beginnings of that length; of texts that are as long."""
        if length not in self._beginnings:
            self._beginnings[length] = {text[:length] for text in self._as_long_as(length)}
        return self._beginnings[length]

    def ends(self, length: int) -> set[str]:
        """The ends of that length."""
        if length not in self._ends:
            self._ends[length] = {text[len(text) - length :] for text in self._as_long_as(length)}
        return self._ends[length]

    def _as_long_as(self, length: int) -> Sequence[str]:
        texts = self.texts
        return texts[bisect_left(texts, length, key=len) :]


class Postings:
    """The conditions on one key, and the numbers of the clauses that contain them."""

    def __init__(self) -> None:
        self._present: set[int] = set()  # also of conditions that no bucket answers for
        self._exact: defaultdict[_Exact, set[int]] = defaultdict(set)
        self._folded: defaultdict[str, set[int]] = defaultdict(set)
        self._prefixes: defaultdict[int, defaultdict[str, set[int]]] = defaultdict(_texts)  # by length
        self._suffixes: defaultdict[int, defaultdict[str, set[int]]] = defaultdict(_texts)
        self._ranges = RangeTable()

    def add(self, clause: int, test: KeyTest) -> None:
        """Enter a clause's conditions."""
        for condition in test.conditions:
            match condition:
                case Exactly(value):
                    self._exact[isinstance(value, bool), value].add(clause)
                case EqualsIgnoringCase(text):
                    self._folded[text.lower()].add(clause)
                case Prefix(text):
                    self._prefixes[len(text)][text].add(clause)
                case Suffix(text):
                    self._suffixes[len(text)][text].add(clause)
                case NumberRange():
                    self._ranges.add(clause, condition)
                case _:
                    self._present.add(clause)

    def discard(self, clause: int, test: KeyTest) -> None:
        """Take a clause's conditions out again."""
        self._ranges.discard(clause)
        self._present.discard(clause)
        for condition in test.conditions:
            match condition:
                case Exactly(value):
                    _discard(self._exact, (isinstance(value, bool), value), clause)
                case EqualsIgnoringCase(text):
                    _discard(self._folded, text.lower(), clause)
                case Prefix(text):
                    _discard_text(self._prefixes, text, clause)
                case Suffix(text):
                    _discard_text(self._suffixes, text, clause)

    def hits(self, values: Values) -> "Hits":
        """The clauses whose condition some value may satisfy."""
        buckets = [self._present] if self._present else []
        if self._exact:
            buckets += [self._exact[slot] for slot in values.exact & self._exact.keys()]
        if self._folded:
            buckets += [self._folded[text] for text in values.folded & self._folded.keys()]
        if (self._prefixes or self._suffixes) and values.texts:
            longest = len(values.texts[-1])
            for length, prefixes in self._prefixes.items():
                if length <= longest:
                    buckets += [prefixes[text] for text in values.beginnings(length) & prefixes.keys()]
            for length, suffixes in self._suffixes.items():
                if length <= longest:
                    buckets += [suffixes[text] for text in values.ends(length) & suffixes.keys()]
        return Hits(buckets, self._ranges, values.numbers if self._ranges else ())


def _texts() -> defaultdict[str, set[int]]:
    return defaultdict(set)


def _discard(buckets: defaultdict[_Slot, set[int]], slot: _Slot, clause: int) -> None:
    if (bucket := buckets.get(slot)) is not None:
        bucket.discard(clause)
        if not bucket:
            del buckets[slot]


def _discard_text(lengths: defaultdict[int, defaultdict[str, set[int]]], text: str, clause: int) -> None:
    if (buckets := lengths.get(len(text))) is not None:
        _discard(buckets, text, clause)
        if not buckets:
            del lengths[len(text)]


class Hits:
    """The clauses that one key's values lead to, not yet merged: often only a few of them matter.

    Attributes:
        size: At most how many there are.
    """

    __slots__ = ("_buckets", "_numbers", "_ranges", "size")

    def __init__(self, buckets: list[set[int]], ranges: RangeTable, numbers: Sequence[int | float]) -> None:
        self._buckets = buckets
        self._ranges = ranges
        self._numbers = numbers
        self.size = sum(map(len, buckets)) + (len(ranges) if numbers else 0)

    def all(self) -> set[int]:
        """All of them."""
        numbers = set[int]().union(*self._buckets)
        return numbers | self._ranges.around(self._numbers) if self._numbers else numbers

    def among(self, clauses: set[int]) -> set[int]:
        """Those of them that are among `clauses`; costs what `clauses` has, however many there are."""
        numbers = set[int]().union(*(clauses & bucket for bucket in self._buckets))
        if self._numbers:
            rest = clauses - numbers
            numbers.update(clause for clause in rest if self._ranges.holds(clause, self._numbers))
        return numbers
