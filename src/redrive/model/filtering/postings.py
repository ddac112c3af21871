"""Which clauses a value may satisfy: the conditions of many clauses on one key, in buckets that values lead to."""

from collections import Counter
from collections.abc import Iterable, Iterator

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

_Slot = tuple[str, Scalar]


def is_indexed(condition: Condition) -> bool:
    """Whether the buckets answer for the condition; of any other they only say that its key is there."""
    return isinstance(condition, Exactly | Prefix | Suffix | EqualsIgnoringCase | NumberRange | Present)


class Postings:
    """The conditions on one key, and the numbers of the clauses that have them."""

    def __init__(self) -> None:
        self._buckets: dict[_Slot, set[int]] = {}
        self._ranges = RangeTable()
        # How many conditions there are of each length: a value is cut once for each length, not for each prefix.
        self._prefix_lengths: Counter[int] = Counter()
        self._suffix_lengths: Counter[int] = Counter()

    def add(self, clause: int, test: KeyTest) -> None:
        """Enter a clause's conditions."""
        for condition in test.conditions:
            self._count_lengths(condition, 1)
            if isinstance(condition, NumberRange):
                self._ranges.add(clause, condition)
            else:
                self._buckets.setdefault(_slot(condition), set()).add(clause)

    def discard(self, clause: int, test: KeyTest) -> None:
        """Take a clause's conditions out again."""
        self._ranges.discard(clause)
        for condition in test.conditions:
            self._count_lengths(condition, -1)
            bucket = self._buckets.get(_slot(condition))
            if bucket is not None:
                bucket.discard(clause)
                if not bucket:
                    del self._buckets[_slot(condition)]

    def hits(self, values: Iterable[Scalar]) -> "Hits":
        """The clauses whose condition some value may satisfy."""
        slots = {_PRESENT, *(slot for value in values for slot in self._slots_of(value))}
        buckets = [self._buckets[slot] for slot in slots if slot in self._buckets]
        numbers = [value for value in values if is_number(value)] if self._ranges else []
        return Hits(buckets, self._ranges, numbers)

    def _slots_of(self, value: Scalar) -> Iterator[_Slot]:
        yield _exact(value)
        if isinstance(value, str):
            yield "any case", value.lower()
            for length in self._prefix_lengths:
                if length <= len(value):
                    yield "prefix", value[:length]
            for length in self._suffix_lengths:
                if length <= len(value):
                    yield "suffix", value[len(value) - length :]

    def _count_lengths(self, condition: Condition, change: int) -> None:
        if isinstance(condition, Prefix | Suffix):
            lengths = self._prefix_lengths if isinstance(condition, Prefix) else self._suffix_lengths
            lengths[len(condition.text)] += change
            if not lengths[len(condition.text)]:
                del lengths[len(condition.text)]


class Hits:
    """The clauses that one key's values lead to, not yet brought together: often only few of them matter.

    Attributes:
        size: At most how many there are.
    """

    __slots__ = ("_buckets", "_numbers", "_ranges", "size")

    def __init__(self, buckets: list[set[int]], ranges: RangeTable, numbers: list[int | float]) -> None:
        self._buckets = buckets
        self._ranges = ranges
        self._numbers = numbers
        self.size = sum(map(len, buckets)) + (len(ranges) if numbers else 0)

    def all(self) -> set[int]:
        """All of them."""
        return set[int]().union(*self._buckets, *map(self._ranges.around, self._numbers))

    def among(self, clauses: set[int]) -> set[int]:
        """Those of them that are among `clauses`; costs what `clauses` has, however many there are."""
        found = set[int]().union(*(clauses & bucket for bucket in self._buckets))
        if self._numbers:
            rest = clauses - found
            found.update(clause for clause in rest if self._ranges.holds(clause, self._numbers))
        return found


_PRESENT: _Slot = ("present", None)


def _exact(value: Scalar) -> _Slot:
    # Apart: to Python, True and 1 are the same key.
    return ("truth" if isinstance(value, bool) else "exact", value)


def _slot(condition: Condition) -> _Slot:
    match condition:
        case Exactly(value):
            return _exact(value)
        case EqualsIgnoringCase(text):
            return ("any case", text.lower())
        case Prefix(text):
            return ("prefix", text)
        case Suffix(text):
            return ("suffix", text)
    return _PRESENT
