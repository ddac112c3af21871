"""Number ranges of many filters, and at once those of them that a number lies in."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from redrive.model.filtering.condition import NumberRange

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
            yield from node.crossing(point, below=below)
            node = node.below if below else node.above

    def crossing(self, point: _Bound, *, below: bool) -> Iterator[int]:
        """Those around the middle that reach to a point on one side of it."""
        for interval in self.by_low if below else self.by_high:
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
        self._gone = 0
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
        self._gone += len(self._live.pop(clause, ()))

    def around(self, numbers: Sequence[float]) -> set[int]:
        """The clauses with a range that one of the numbers lies in; the numbers are in order."""
        if len(numbers) > _NUMBERS_MAX:
            return {clause for clause in self._live if self.holds(clause, numbers)}
        if len(self._unsorted) + self._gone > _UNSORTED_MAX:
            self._sort()
        return set[int]().union(*[self._around((number, 0)) for number in numbers])

    def _around(self, point: _Bound) -> set[int]:
        hits = {interval.clause for interval in self._unsorted if interval.low <= point <= interval.high}
        if self._tree is not None:
            hits.update(self._tree.around(point))
        if self._gone:
            hits.intersection_update(self._live)
        return hits

    def holds(self, clause: int, numbers: Sequence[float]) -> bool:
        """True if the clause has a range that one of the numbers lies in; the numbers are in order."""
        return any(interval.holds(numbers) for interval in self._live.get(clause, ()))

    def _sort(self) -> None:
        self._tree = _tree([interval for intervals in self._live.values() for interval in intervals])
        self._unsorted, self._gone = [], 0
