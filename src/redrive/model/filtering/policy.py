"""A compiled filter: which messages a subscription wants, and why one was left out."""

import enum
from collections.abc import Collection, Iterable

from redrive.model.filtering.arrays import consistent
from redrive.model.filtering.condition import KeyTest
from redrive.model.filtering.subject import Fields, Subject, path_and_above


class Scope(enum.StrEnum):
    """What of a message a filter looks at."""

    ATTRIBUTES = "attributes"
    BODY = "body"


class Verdict(enum.StrEnum):
    """Whether a message passes, and if not, why: the reasons that the filtering metrics tell apart."""

    MATCHED = "matched"
    NO_ATTRIBUTES = "no attributes"  # the message has none at all
    ATTRIBUTES = "attributes"
    INVALID_ATTRIBUTES = "invalid attributes"  # an attribute the filter names cannot be read
    BODY = "body"
    INVALID_BODY = "invalid body"  # the body is no JSON object
    EVENT = "event"  # a filter on events


class Clause:
    """Tests that must all hold, within the same elements of the arrays they share; no key twice.

    Attributes:
        tests: Sorted by key.
        required: The keys that must be there.
        optional: The keys that may be absent.
    """

    __slots__ = ("optional", "required", "tests")

    def __init__(self, tests: Iterable[KeyTest]) -> None:
        self.tests = tuple(sorted(tests, key=lambda test: test.key))
        self.required = frozenset(test.key for test in self.tests if not test.absent)
        self.optional = frozenset(test.key for test in self.tests if test.absent)

    def matches(self, fields: Fields) -> bool:
        """Whether all tests hold."""
        if not all(test.holds(fields.values.get(test.key)) for test in self.tests if not test.absent):
            return False
        if fields.places is None:
            return all(test.holds(fields.values.get(test.key)) for test in self.tests if test.absent)
        return consistent(self.tests, fields)


class FilterPolicy:
    """A filter in disjunctive form: a message passes when all tests of some clause hold.

    Attributes:
        scope: What of the message is looked at.
        clauses: Alternatives; a filter that lets everything pass has one without tests.
        keys: Every key that is asked about.
        wanted: What must be read of a message: the keys, and for a body every path that leads to one.
    """

    __slots__ = ("clauses", "keys", "scope", "wanted")

    def __init__(self, scope: Scope, clauses: Iterable[Clause]) -> None:
        self.scope = scope
        self.clauses = tuple(clauses)
        self.keys = frozenset(test.key for clause in self.clauses for test in clause.tests)
        self.wanted = self.keys if scope is Scope.ATTRIBUTES else _with_paths_above(self.keys)

    def match(self, subject: Subject) -> Verdict:
        """Whether the message passes, or why not. An index over many filters answers the same."""
        fields = read_fields(subject, self.scope, self.wanted)
        if fields is None:
            return Verdict.INVALID_BODY
        if not fields.invalid and any(clause.matches(fields) for clause in self.clauses):
            return Verdict.MATCHED
        if fields.invalid:
            return Verdict.INVALID_ATTRIBUTES
        return refusal(self.scope, subject)


def read_fields(subject: Subject, scope: Scope, wanted: Collection[str]) -> Fields | None:
    """The fields that a scope shows; None where the body is no JSON object."""
    return subject.body_fields(wanted) if scope is Scope.BODY else subject.attribute_fields(wanted)


def refusal(scope: Scope, subject: Subject) -> Verdict:
    """Why a message that could be read did not match."""
    if scope is Scope.BODY:
        return Verdict.BODY
    return Verdict.ATTRIBUTES if subject.attributes else Verdict.NO_ATTRIBUTES


def _with_paths_above(keys: frozenset[str]) -> frozenset[str]:
    return frozenset(path for key in keys for path in path_and_above(key))
