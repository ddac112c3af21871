"""An index over many filters: which of them a message passes, without trying each.

A message's values lead to the clauses that want them, key by key, and the clauses found under all their keys
are the answer. Only a clause with a condition that no bucket answers (a network, a wildcard, anything-but), or
any clause for a message with arrays of objects, has its own tests run, and only when the buckets could not rule
it out; and within the steps that a message may take, of which each filter has its share (`MessageBudget`).
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from redrive.model.budget import MessageBudget, OverBudgetError
from redrive.model.filtering.arrays import Elements
from redrive.model.filtering.policy import Clause, FilterPolicy, Scope, read_fields, refusal
from redrive.model.filtering.postings import Postings, Values, is_indexed
from redrive.model.filtering.subject import FilterKeys, FilterVerdict, Subject, SubjectFields

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Filtered(Generic[K]):
    """The result of many filters for one message."""

    passed: set[K]  # The keys of the filters that it passes
    # How many filters it does not pass, by reason; only reasons that occurred.
    refused: Mapping[FilterVerdict, int]


class FilterIndex(Generic[K]):
    """Filters, each under a key that the caller chooses, such as a subscription's id."""

    def __init__(self) -> None:
        self._scopes: dict[Scope, _ScopeIndex[K]] = {scope: _ScopeIndex(scope) for scope in Scope}

    def __len__(self) -> int:
        """The number of filters."""
        return sum(len(index.policies) for index in self._scopes.values())

    def add(self, key: K, policy: FilterPolicy) -> None:
        """Add a filter, in place of the one that the key had."""
        self.remove(key)
        self._scopes[policy.scope].add(key, policy)

    def remove(self, key: K) -> None:
        """Remove the filter that the key has, if any."""
        for index in self._scopes.values():
            index.remove(key)

    def matches(self, subject: Subject) -> set[K]:
        """The keys of the filters that the message passes."""
        return self.filter(subject).passed

    def filter(self, subject: Subject, budget: MessageBudget | None = None) -> Filtered[K]:
        """The keys of the filters that the message passes, and why it does not pass the others.

        Args:
            subject: The message.
            budget: The steps it may take; None for as many as a message has.
        """
        passed: set[K] = set()
        refused: Counter[FilterVerdict] = Counter()
        budget = budget or MessageBudget()
        for index in self._scopes.values():
            if index.policies:  # an index without filters must not have the body parsed
                hits = index.filter(subject, budget)
                passed |= hits.passed
                refused.update(hits.refused)
        return Filtered(passed, refused)


@dataclass(frozen=True, slots=True)
class _IndexedClause(Generic[K]):
    """A clause, the filter it is of, and whether the postings decide on it alone."""

    key: K
    clause: Clause
    postings_decide: bool


class _ScopeIndex(Generic[K]):
    """The filters that look at the same part of a message."""

    def __init__(self, scope: Scope) -> None:
        self.policies: dict[K, FilterPolicy] = {}
        self._scope = scope
        self._groups = Groups()
        self._entries: dict[int, _IndexedClause[K]] = {}  # by the clause's number
        self._numbers: dict[K, range] = {}  # of each policy's clauses
        self._next = 0  # the next clause's number
        self._filter_keys = FilterKeys()

    def add(self, key: K, policy: FilterPolicy) -> None:
        """Add a filter under a key; its clauses get the next numbers."""
        numbers = range(self._next, self._next + len(policy.clauses))
        self._next = numbers.stop
        for number, clause in zip(numbers, policy.clauses, strict=True):
            self._entries[number] = _IndexedClause(key, clause, _is_indexed(clause))
            self._groups.add(number, clause)
        self.policies[key] = policy
        self._numbers[key] = numbers
        for policy_key in policy.keys:
            self._filter_keys.add(policy_key)

    def remove(self, key: K) -> None:
        """Remove the filter of a key, if there is one."""
        policy = self.policies.pop(key, None)
        if policy is None:
            return
        for number in self._numbers.pop(key):
            self._groups.remove(number, self._entries.pop(number).clause)
        for policy_key in policy.keys:
            self._filter_keys.discard(policy_key)

    def filter(self, subject: Subject, budget: MessageBudget) -> Filtered[K]:
        """The keys of the filters that a message passes in this scope, and the numbers of others by verdict."""
        fields = read_fields(subject, self._scope, self._filter_keys)
        if fields is None:
            return Filtered(set(), {FilterVerdict.INVALID_BODY: len(self.policies)})
        passed: set[K] = set()
        undecided: dict[K, list[Clause]] = {}
        for number in self._groups.candidates(fields):
            entry = self._entries[number]
            # Of arrays of objects (`places`) one element has to have all values, which postings do not know.
            if entry.postings_decide and fields.places is None:
                passed.add(entry.key)
            else:
                undecided.setdefault(entry.key, []).append(entry.clause)
        costly = _decide(undecided, fields, passed, budget) if undecided else set()
        unreadable = self._policies_with(fields.invalid)
        passed -= unreadable
        costly -= unreadable
        refused = {
            FilterVerdict.INVALID_ATTRIBUTES: len(unreadable),
            FilterVerdict.TOO_COSTLY: len(costly),
            refusal(self._scope, subject): len(self.policies) - len(passed) - len(unreadable) - len(costly),
        }
        return Filtered(passed, {verdict: count for verdict, count in refused.items() if count})

    def _policies_with(self, keys: frozenset[str]) -> set[K]:
        """The filters with one of these keys; looks at all, but only for a message with an attribute that is invalid."""
        if not keys:
            return set()
        return {key for key, policy in self.policies.items() if not policy.keys.isdisjoint(keys)}


def _is_indexed(clause: Clause) -> bool:
    return all(is_indexed(condition) for test in clause.tests for condition in test.conditions)


def _decide(
    undecided: dict[K, list[Clause]], fields: SubjectFields, passed: set[K], budget: MessageBudget
) -> set[K]:
    """Run the tests of the undecided filters and add those that hold to `passed`; returns those with too many steps."""
    elements = Elements.of(fields)
    costly: set[K] = set()
    remaining = len(undecided)
    for key, clauses in undecided.items():
        if key not in passed:
            budget.share(remaining)
            try:
                if any(clause.matches(fields, elements, budget) for clause in clauses):
                    passed.add(key)
            except OverBudgetError:
                costly.add(key)
        remaining -= 1
    return costly


# Clauses by the keys they ask about, so that a message meets only those it could satisfy.


class Groups:
    """Clauses by number, in one group for each set of keys that they test.

    A group hangs from one of the keys that must be there, its anchor, and a message looks only at groups whose
    anchor it has. The anchor is the key that the fewest groups hang from so far: where filters share a key and
    differ in another, it is the other one.
    """

    def __init__(self) -> None:
        self._by_keys: dict[tuple[frozenset[str], frozenset[str]], _Group] = {}
        self._anchored: dict[str | None, list[_Group]] = {}

    def add(self, number: int, clause: Clause) -> None:
        """Add a clause under its own number."""
        keys = clause.required, clause.optional
        group = self._by_keys.get(keys)
        if group is None:
            groups_on = {key: len(self._anchored.get(key, ())) for key in sorted(clause.required)}
            anchor = min(groups_on, key=lambda key: groups_on[key], default=None)
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

    def candidates(self, fields: SubjectFields) -> Iterator[int]:
        """The clauses that the buckets do not rule out for a message with these fields."""
        values_by_key: dict[str, Values] = {}
        for anchor in (None, *fields.values):
            for group in self._anchored.get(anchor, ()):
                yield from group.candidates(fields, values_by_key)


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

    def candidates(self, fields: SubjectFields, values_by_key: dict[str, Values]) -> set[int]:
        """See `Groups.candidates`; adds to `values_by_key`, which all groups share for one message."""
        values = fields.values
        if any(key not in values for key in self._required):
            return set()
        hits = []
        for key, postings in self._restrictions(fields).items():
            if key not in values_by_key:
                values_by_key[key] = Values(values[key])
            hits.append(postings.hits(values_by_key[key]))
        if not hits:
            return self.clauses
        hits.sort(key=lambda hit: hit.size)  # a value that many clauses want is met last
        numbers = hits[0].all()
        for hit in hits[1:]:
            numbers = hit.intersection(numbers)
        return numbers

    def _restrictions(self, fields: SubjectFields) -> Mapping[str, Postings]:
        """The keys that restrict a message with these fields; all those required are there."""
        if fields.places is not None:
            # A key may be there and still be absent from the array elements that the other keys were found in.
            return self._required
        present = {key: postings for key, postings in self._optional.items() if key in fields.values}
        return {**self._required, **present} if present else self._required

    def _postings(self, key: str) -> Postings:
        return self._required.get(key) or self._optional[key]
