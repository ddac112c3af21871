"""Statements of policies, read and ready to be asked.

All conditions of a statement must hold, and each says what it makes of a key that the request does not have.
"""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from redrive.access.operators import OPERATORS, Test, truth
from redrive.access.patterns import Lookup, Patterns, PolicyInvalid, variable_keys

_IF_EXISTS: Final = "ifexists"
_NULL: Final = "null"


class Quantifier(enum.Enum):
    """The share of a key's several values that must pass."""

    NONE = ""  # The operator has no quantifier
    ANY = "foranyvalue"
    ALL = "forallvalues"


class PolicyCondition(Protocol):
    """Something that must be so for a statement to apply."""

    @property
    def keys(self) -> frozenset[str]:
        """The condition keys that it asks about, in lower case, those of variables included."""
        ...

    def holds(self, lookup: Lookup) -> bool:
        """True if it is so for the request whose keys `lookup` finds."""
        ...


@dataclass(frozen=True, slots=True)
class KeyComparison:
    """A key compared with the policy's values."""

    key: str  # In lower case
    variables: frozenset[str]  # The keys of variables in the policy's values
    test: Test  # Whether a value fits any of the policy's
    negated: bool  # A value passes where it fits none of them
    quantifier: Quantifier  # How many values must pass
    when_missing: bool  # Result for a request without the key

    @property
    def keys(self) -> frozenset[str]:
        """See `PolicyCondition.keys`."""
        return self.variables | {self.key}

    def holds(self, lookup: Lookup) -> bool:
        """True if the request's value under the key passes the test; of several values all or any have to."""
        values = lookup(self.key)
        if isinstance(values, str):
            return self.test(values, lookup) is not self.negated
        if not values:
            return self.when_missing
        passes = (self.test(value, lookup) is not self.negated for value in values)
        # Without a quantifier one value that fits is enough, and for a negated operator none may fit.
        needs_all = self.negated if self.quantifier is Quantifier.NONE else self.quantifier is Quantifier.ALL
        return all(passes) if needs_all else any(passes)


@dataclass(frozen=True, slots=True)
class Presence:
    """`Null`: whether a key is there at all."""

    key: str  # In lower case
    accepted: frozenset[bool]  # Results that satisfy it; True means that the key is missing

    @property
    def keys(self) -> frozenset[str]:
        """See `PolicyCondition.keys`."""
        return frozenset({self.key})

    def holds(self, lookup: Lookup) -> bool:
        """Look."""
        return (not lookup(self.key)) in self.accepted


@dataclass(frozen=True, slots=True)
class Undecidable:
    """A condition about a key that this server does not know the value of."""

    keys: frozenset[str]  # Which
    assumed: bool  # True for a statement that denies

    def holds(self, lookup: Lookup) -> bool:  # noqa: ARG002 - as Condition
        """Assume the answer that keeps the resource closed."""
        return self.assumed


def parse_conditions(block: object, *, variables: bool) -> tuple[PolicyCondition, ...]:
    """Read a Condition element: `{operator: {key: value or values}}`.

    Raises:
        PolicyInvalid: It is not of that form, or an operator is unknown.
    """
    if not isinstance(block, Mapping):
        raise PolicyInvalid("Condition must be an object")
    conditions: list[PolicyCondition] = []
    for name, keys in block.items():
        if not isinstance(keys, Mapping) or not keys:
            raise PolicyInvalid(f"Condition operator '{name}' must hold an object of condition keys")
        for key, values in keys.items():
            try:
                conditions.append(
                    _condition(str(name), str(key).lower(), _texts(values), variables=variables)
                )
            except PolicyInvalid as invalid:
                raise PolicyInvalid(f"Condition {name} of '{key}': {invalid.reason}") from invalid
    return tuple(conditions)


def _condition(name: str, key: str, values: Sequence[str], *, variables: bool) -> PolicyCondition:
    """Read the values of one key under one operator."""
    if not key:
        raise PolicyInvalid("a condition key must have a name")
    if name.lower() == _NULL:
        return Presence(key, _truths(values))
    quantifier, operator_name, if_exists = _split_operator(name)
    operator = OPERATORS.get(operator_name)
    if operator is None:
        raise PolicyInvalid("no such operator")
    return KeyComparison(
        key=key,
        variables=frozenset().union(*map(variable_keys, values)) if variables else frozenset(),
        test=operator.build(values, variables),
        negated=operator.negated,
        quantifier=quantifier,
        when_missing=_when_missing(quantifier, lenient=if_exists or operator.negated),
    )


def _truths(values: Sequence[str]) -> frozenset[bool]:
    try:
        return frozenset(truth(value) for value in values)
    except ValueError as error:
        raise PolicyInvalid(f"'{error}' must be true or false") from None


def _split_operator(name: str) -> tuple[Quantifier, str, bool]:
    """The quantifier before an operator's name, the name, and whether `IfExists` stands behind it."""
    prefix, colon, rest = name.lower().rpartition(":")
    try:
        quantifier = Quantifier(prefix) if colon else Quantifier.NONE
    except ValueError:
        raise PolicyInvalid("no such set operator") from None
    operator_name = rest.removesuffix(_IF_EXISTS)
    return quantifier, operator_name, operator_name != rest


def _when_missing(quantifier: Quantifier, *, lenient: bool) -> bool:
    """The answer where the key is missing; ForAnyValue needs a value, even with an …IfExists operator (seen at IAM)."""
    if quantifier is Quantifier.NONE:
        return lenient
    return quantifier is Quantifier.ALL


def _texts(values: object) -> list[str]:
    """The values of a key: JSON's strings, numbers and booleans mean their text."""
    items = values if isinstance(values, list) else [values]
    if not items:
        raise PolicyInvalid("needs a value")
    return [_text(value) for value in items]


def _text(value: object) -> str:
    """A value of a condition as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise PolicyInvalid("a value must be a string, a number or a boolean")


class Identity(NamedTuple):
    """One of the names a policy may know a principal by."""

    kind: str  # The key in a policy's Principal element: `AWS`, `Service`, `Federated` or `CanonicalUser`
    name: str  # The value there; an account stands as its twelve digits, however the policy spelled it


@dataclass(frozen=True, slots=True)
class Principals:
    """A statement's Principal or NotPrincipal element."""

    everyone: bool  # It is `*`, which reaches services and anonymous callers too
    whole_kinds: frozenset[str]  # Kinds of principals, all of which it lists: `{"Service": "*"}`
    identities: frozenset[Identity]  # The principals that it lists one by one
    is_exclusion: bool  # It is NotPrincipal: it applies to everyone except those listed

    def match(self, identities: frozenset[Identity]) -> bool:
        """True if the element reaches a principal that is known by these names."""
        is_listed = (
            self.everyone
            or not self.identities.isdisjoint(identities)
            or (bool(self.whole_kinds) and any(identity.kind in self.whole_kinds for identity in identities))
        )
        return is_listed is not self.is_exclusion

    def listed_identities(self, identities: frozenset[Identity]) -> frozenset[Identity] | None:
        """Those of a principal's identities that the element lists; None: it reaches them without listing them.

        It does so as `*`, as all principals of a kind, or as NotPrincipal.
        """
        if (
            self.everyone
            or self.is_exclusion
            or any(identity.kind in self.whole_kinds for identity in identities)
        ):
            return None
        return self.identities & identities


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a policy."""

    sid: str  # Its own name, or empty
    allows: bool  # Its effect is Allow; otherwise Deny
    principals: Principals  # Principals that it applies to; everyone if the policy has no such element
    actions: Patterns  # Actions that it applies to, in lower case
    actions_excepted: bool  # It is NotAction
    resources: Patterns  # ARNs that it applies to
    resources_excepted: bool  # It is NotResource
    conditions: tuple[PolicyCondition, ...]  # Further conditions
    keys: frozenset[str]  # The condition keys that it asks about, in lower case
    services: frozenset[str]  # The services its actions name, `sns`, `sqs`; `*` where an action names any

    def applies(self, identities: frozenset[Identity], action: str, resource: str, lookup: Lookup) -> bool:
        """True if all elements match a request: its principal's names, its action (in lower case), its resource's ARN."""
        if self.actions.match(action, lookup) is self.actions_excepted:
            return False
        if not self.principals.match(identities):
            return False
        for condition in self.conditions:
            if not condition.holds(lookup):
                return False
        # Last, because a resource's own policy hardly ever speaks of another.
        return self.resources.match(resource, lookup) is not self.resources_excepted

    def reaches(self, action: str, beginning: str, lookup: Lookup) -> bool:
        """True if a statement of a caller's own policy may match a request about some resource whose ARN begins so.

        The action is in lower case.
        """
        if self.resources_excepted:
            is_about = not self.resources.cover(beginning)
        else:
            is_about = self.resources.may_match_below(beginning)
        return (
            is_about
            and self.actions.match(action, lookup) is not self.actions_excepted
            and all(condition.holds(lookup) for condition in self.conditions)
        )


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy, read and ready."""

    id: str  # Its own name, or empty
    version: str  # `2008-10-17` or `2012-10-17`
    statements: tuple[Statement, ...]  # Those that deny come first
    keys: frozenset[str]  # The condition keys that any of them asks about, in lower case

    @property
    def services(self) -> frozenset[str]:
        """The services that any statement's actions name, for facades that take their own alone."""
        return frozenset().union(*(statement.services for statement in self.statements))
