"""Clauses by the keys they need, so that a message meets only those it could satisfy."""

from collections.abc import Iterator, Mapping

from redrive.model.filtering.condition import Scalar
from redrive.model.filtering.policy import Clause
from redrive.model.filtering.postings import Postings


class Groups:
    """Clauses by number, in one group for each set of keys that must be there.

    A group hangs from one of its keys, its anchor, and a message looks only at groups whose anchor it has. The
    anchor is the key that the fewest groups hang from so far: where filters share a key and differ in another,
    it is the other one.
    """

    def __init__(self) -> None:
        self._by_keys: dict[frozenset[str], _Group] = {}
        self._anchored: dict[str | None, list[_Group]] = {}

    def add(self, number: int, clause: Clause) -> None:
        """Add a clause under a number of its own."""
        keys = clause.required
        group = self._by_keys.get(keys)
        if group is None:
            anchor = min(sorted(keys), key=lambda key: len(self._anchored.get(key, ())), default=None)
            group = self._by_keys[keys] = _Group(keys, anchor)
            self._anchored.setdefault(anchor, []).append(group)
        group.add(number, clause)

    def remove(self, number: int, clause: Clause) -> None:
        """Remove the clause of that number."""
        group = self._by_keys[clause.required]
        group.remove(number, clause)
        if group.clauses:
            return
        del self._by_keys[clause.required]
        self._anchored[group.anchor].remove(group)
        if not self._anchored[group.anchor]:
            del self._anchored[group.anchor]

    def candidates(self, values: Mapping[str, list[Scalar]]) -> Iterator[int]:
        """The clauses that the buckets do not rule out for a message with these values."""
        for anchor in (None, *values):
            for group in self._anchored.get(anchor, ()):
                yield from group.candidates(values)


class _Group:
    """Clauses that need the same keys."""

    def __init__(self, keys: frozenset[str], anchor: str | None) -> None:
        self.anchor = anchor
        self.clauses: set[int] = set()
        self._postings = {key: Postings() for key in keys}

    def add(self, number: int, clause: Clause) -> None:
        self.clauses.add(number)
        for test in clause.tests:
            if not test.absent:
                self._postings[test.key].add(number, test)

    def remove(self, number: int, clause: Clause) -> None:
        self.clauses.discard(number)
        for test in clause.tests:
            if not test.absent:
                self._postings[test.key].discard(number, test)

    def candidates(self, values: Mapping[str, list[Scalar]]) -> set[int]:
        if any(key not in values for key in self._postings):
            return set()
        hits = [postings.hits(values[key]) for key, postings in self._postings.items()]
        if not hits:
            return self.clauses
        hits.sort(key=lambda sets: sum(map(len, sets)))  # a value that many clauses want is met last
        found = set[int]().union(*hits[0])
        for sets in hits[1:]:
            found = set[int]().union(*(found & clauses for clauses in sets))
        return found
