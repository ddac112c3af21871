"""Clauses by the keys they ask about, so that a message meets only those it could satisfy."""

from collections.abc import Iterator, Mapping

from redrive.model.filtering.policy import Clause
from redrive.model.filtering.postings import Postings, Values
from redrive.model.filtering.subject import Fields


class Groups:
    """Clauses by number, in one group for each set of keys that they ask about.

    A group hangs from one of the keys that must be there, its anchor, and a message looks only at groups whose
    anchor it has. The anchor is the key that the fewest groups hang from so far: where filters share a key and
    differ in another, it is the other one.
    """

    def __init__(self) -> None:
        self._by_keys: dict[tuple[frozenset[str], frozenset[str]], _Group] = {}
        self._anchored: dict[str | None, list[_Group]] = {}

    def add(self, number: int, clause: Clause) -> None:
        """Add a clause under a number of its own."""
        keys = clause.required, clause.optional
        group = self._by_keys.get(keys)
        if group is None:
            anchor = min(sorted(keys[0]), key=lambda key: len(self._anchored.get(key, ())), default=None)
            group = self._by_keys[keys] = _Group(*keys, anchor)
            self._anchored.setdefault(anchor, []).append(group)
        group.add(number, clause)

    def remove(self, number: int, clause: Clause) -> None:
        """Remove the clause of that number."""
        keys = clause.required, clause.optional
        group = self._by_keys[keys]
        group.remove(number, clause)
        if group.clauses:
            return
        del self._by_keys[keys]
        self._anchored[group.anchor].remove(group)
        if not self._anchored[group.anchor]:
            del self._anchored[group.anchor]

    def candidates(self, fields: Fields) -> Iterator[int]:
        """The clauses that the buckets do not rule out for a message with these fields."""
        seen: dict[str, Values] = {}
        for anchor in (None, *fields.values):
            for group in self._anchored.get(anchor, ()):
                yield from group.candidates(fields, seen)


class _Group:
    """Clauses that ask about the same keys."""

    def __init__(self, required: frozenset[str], optional: frozenset[str], anchor: str | None) -> None:
        self.anchor = anchor
        self.clauses: set[int] = set()
        self._required = {key: Postings() for key in required}
        self._optional = {key: Postings() for key in optional}

    def add(self, number: int, clause: Clause) -> None:
        self.clauses.add(number)
        for test in clause.tests:
            self._postings(test.key).add(number, test)

    def remove(self, number: int, clause: Clause) -> None:
        self.clauses.discard(number)
        for test in clause.tests:
            self._postings(test.key).discard(number, test)

    def candidates(self, fields: Fields, seen: dict[str, Values]) -> set[int]:
        values = fields.values
        if any(key not in values for key in self._required):
            return set()
        hits = []
        for key, postings in self._asked(fields).items():
            if key not in seen:
                seen[key] = Values(values[key])
            hits.append(postings.hits(seen[key]))
        if not hits:
            return self.clauses
        hits.sort(key=lambda hit: hit.size)  # a value that many clauses want is met last
        numbers = hits[0].all()
        for hit in hits[1:]:
            numbers = hit.among(numbers)
        return numbers

    def _asked(self, fields: Fields) -> Mapping[str, Postings]:
        """The keys that restrict a message with these fields; all those required are there."""
        if fields.places is not None:
            # A key may be there and still be absent from the array elements that the other keys were found in.
            return self._required
        present = {key: postings for key, postings in self._optional.items() if key in fields.values}
        return {**self._required, **present} if present else self._required

    def _postings(self, key: str) -> Postings:
        return self._required.get(key) or self._optional[key]
