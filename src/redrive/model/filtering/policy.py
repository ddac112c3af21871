"""A compiled filter: which messages a subscription wants, and why one was left out."""

import enum
from collections.abc import Iterable

from redrive.model.budget import Budget, MessageBudget, OverBudgetError
from redrive.model.filtering.arrays import Elements
from redrive.model.filtering.condition import KeyTest
from redrive.model.filtering.subject import FilterKeys, FilterVerdict, Subject, SubjectFields


class Scope(enum.StrEnum):
    """The part of a message that a filter applies to."""

    ATTRIBUTES = "attributes"
    BODY = "body"


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

    def matches(self, fields: SubjectFields, elements: Elements | None, budget: Budget) -> bool:
        """True if all tests hold.

        Args:
            fields: The message's.
            elements: Its elements, if it has arrays of objects; they decide then.
            budget: What it may take.

        Raises:
            OverBudgetError: That was not enough.
        """
        if elements is not None:
            return elements.consistent(self.tests, budget)
        for test in self.tests:
            values = fields.values.get(test.key)
            if values is None:
                if not test.absent:
                    return False
                continue
            budget.spend(test.steps * fields.weight(test.key))
            if not any(map(test.accepts, values)):
                return False
        return True


class FilterPolicy:
    """A filter in disjunctive form: a message matches when all tests of some clause hold.

    Attributes:
        scope: What of the message is looked at.
        clauses: Alternatives; a filter that lets everything pass has one without tests.
        keys: Every key that is asked about.
    """

    __slots__ = ("_filter_keys", "clauses", "keys", "scope")

    def __init__(self, scope: Scope, clauses: Iterable[Clause]) -> None:
        self.scope = scope
        self.clauses = tuple(clauses)
        self.keys = frozenset(test.key for clause in self.clauses for test in clause.tests)
        self._filter_keys: FilterKeys | None = None

    def match(self, subject: Subject) -> FilterVerdict:
        """The verdict on one message; an index over many filters comes to the same."""
        if self._filter_keys is None:
            self._filter_keys = FilterKeys(self.keys)
        fields = read_fields(subject, self.scope, self._filter_keys)
        if fields is None:
            return FilterVerdict.INVALID_BODY
        if fields.invalid:
            return FilterVerdict.INVALID_ATTRIBUTES
        elements, budget = Elements.of(fields), MessageBudget()
        try:
            if any(clause.matches(fields, elements, budget) for clause in self.clauses):
                return FilterVerdict.MATCHED
        except OverBudgetError:
            return FilterVerdict.TOO_COSTLY
        return refusal(self.scope, subject)


def read_fields(subject: Subject, scope: Scope, paths: FilterKeys) -> SubjectFields | None:
    """The fields that a scope shows; None if the body is not a JSON object."""
    return subject.body_fields(paths) if scope is Scope.BODY else subject.attribute_fields(paths.keys)


def refusal(scope: Scope, subject: Subject) -> FilterVerdict:
    """The reason that a message that could be read did not match."""
    if scope is Scope.BODY:
        return FilterVerdict.BODY
    return FilterVerdict.ATTRIBUTES if subject.attributes else FilterVerdict.NO_ATTRIBUTES
