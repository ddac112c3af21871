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

    def hits(self, values: Iterable[Scalar]) -> list[set[int]]:
        """Sets that together hold every clause whose condition some value may satisfy. Not to be changed."""
        slots = {_PRESENT, *(slot for value in values for slot in self._slots_of(value))}
        found = [self._buckets[slot] for slot in slots if slot in self._buckets]
        if self._ranges:
            found += [self._ranges.around(value) for value in values if is_number(value)]
        return found

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
