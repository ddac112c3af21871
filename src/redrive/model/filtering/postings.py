"""Postings: the conditions of many clauses on one key, in buckets that a value leads to.

A message may have as many values under a key as its size allows, and a key as many conditions as filters have. So each
view of the values is made once for a message, and where buckets and values meet, the fewer of the two are looked through.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

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

# A bound and its side: -1 just below the number, 0 at it, 1 just above. So open bounds compare like closed ones.
_Bound = tuple[float, int]
_UNSORTED_MAX: Final = 128
#: Numbers of a message that are looked up one by one; of more, each range looks whether it has one.
_NUMBERS_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class _Interval:
    low: _Bound
    high: _Bound
    clause: int

    def holds(self, numbers: Sequence[float]) -> bool:
        """True if one of the numbers, which are in order, lies in it."""
        (low, above), (high, below) = self.low, self.high
        first = (bisect_right if above else bisect_left)(numbers, low)
        return first < len(numbers) and (numbers[first] < high or (numbers[first] == high and not below))


class _Node:
    """The intervals around a middle, by both ends, and trees of those that lie wholly beside it."""

    __slots__ = ("above", "below", "by_high", "by_low", "middle")

    def __init__(self, intervals: list[_Interval]) -> None:
        ends = sorted(interval.low for interval in intervals)
        self.middle = ends[len(ends) // 2]
        around = [interval for interval in intervals if interval.low <= self.middle <= interval.high]
        self.by_low = sorted(around, key=lambda interval: interval.low)
        self.by_high = sorted(around, key=lambda interval: interval.high, reverse=True)
        self.below = _tree([interval for interval in intervals if interval.high < self.middle])
        self.above = _tree([interval for interval in intervals if interval.low > self.middle])

    def around(self, point: _Bound) -> Iterator[int]:
        """The clauses whose intervals the point lies in; costs their number and the tree's depth."""
        node: _Node | None = self
        while node is not None:
            below = point < node.middle
            yield from node.reaching(point, below=below)
            node = node.below if below else node.above

    def reaching(self, point: _Bound, *, below: bool) -> Iterator[int]:
        """The clauses of the intervals around the middle that reach to a point, which lies below or above it."""
        nearest_first = self.by_low if below else self.by_high
        for interval in nearest_first:
            if not interval.low <= point <= interval.high:
                return
            yield interval.clause


def _tree(intervals: list[_Interval]) -> _Node | None:
    return _Node(intervals) if intervals else None


class RangeTable:
    """Ranges, by the clause that contains them.

    A change costs nothing much at once: new ranges wait unsorted, and the tree is made anew when more than 128
    wait or are gone. So a subscription that comes or goes between two publishes does not make the second slow.
    """

    def __init__(self) -> None:
        self._live: dict[int, list[_Interval]] = {}
        self._unsorted: list[_Interval] = []
        self._removed_count = 0
        self._tree: _Node | None = None

    def __len__(self) -> int:
        """The number of clauses with a range."""
        return len(self._live)

    def add(self, clause: int, condition: NumberRange) -> None:
        """Add a range of a clause."""
        low = condition.low, 1 if condition.above else 0
        high = condition.high, -1 if condition.below else 0
        if low > high:  # holds no number, and would lie on neither side of its own middle
            return
        interval = _Interval(low, high, clause)
        self._live.setdefault(clause, []).append(interval)
        self._unsorted.append(interval)

    def discard(self, clause: int) -> None:
        """Forget every range of a clause."""
        self._removed_count += len(self._live.pop(clause, ()))

    def around(self, numbers: Sequence[float]) -> set[int]:
        """The clauses with a range that one of the numbers lies in; the numbers are in order."""
        if len(numbers) > _NUMBERS_MAX:  # a look-up of each would cost more than one look at each clause
            return {clause for clause in self._live if self.holds(clause, numbers)}
        if len(self._unsorted) + self._removed_count > _UNSORTED_MAX:
            self._sort()
        points = [(number, 0) for number in numbers]  # at each number, and not just beside it
        return set[int]().union(*map(self._clauses_at, points))

    def _clauses_at(self, point: _Bound) -> set[int]:
        """The clauses whose intervals have the point, without those removed since the tree was built."""
        hits = {interval.clause for interval in self._unsorted if interval.low <= point <= interval.high}
        if self._tree is not None:
            hits.update(self._tree.around(point))
        if self._removed_count:
            hits.intersection_update(self._live)
        return hits

    def holds(self, clause: int, numbers: Sequence[float]) -> bool:
        """True if the clause has a range that one of the numbers lies in; the numbers are in order."""
        return any(interval.holds(numbers) for interval in self._live.get(clause, ()))

    def _sort(self) -> None:
        self._tree = _tree([interval for intervals in self._live.values() for interval in intervals])
        self._unsorted, self._removed_count = [], 0


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
        """The first `length` characters of each text that has so many."""
        if length not in self._beginnings:
            self._beginnings[length] = {text[:length] for text in self._at_least(length)}
        return self._beginnings[length]

    def ends(self, length: int) -> set[str]:
        """The last `length` characters of each text that has so many."""
        if length not in self._ends:
            self._ends[length] = {text[len(text) - length :] for text in self._at_least(length)}
        return self._ends[length]

    def _at_least(self, length: int) -> Sequence[str]:
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

    def intersection(self, clauses: set[int]) -> set[int]:
        """Those of them that are in `clauses`; the cost grows with `clauses`, not with their own number."""
        numbers = set[int]().union(*(clauses & bucket for bucket in self._buckets))
        if self._numbers:
            rest = clauses - numbers
            numbers.update(clause for clause in rest if self._ranges.holds(clause, self._numbers))
        return numbers
