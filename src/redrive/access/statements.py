"""Statements of policies, read and ready to be asked."""

from dataclasses import dataclass
from typing import NamedTuple

from redrive.access.conditions import PolicyCondition
from redrive.access.patterns import Lookup, Patterns


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
    is_exclusion: bool  # It is NotPrincipal: it is about everybody but those it lists

    def match(self, identities: frozenset[Identity]) -> bool:
        """True if the element reaches a principal that is known by these names."""
        is_listed = (
            self.everyone
            or not self.identities.isdisjoint(identities)
            or (bool(self.whole_kinds) and any(identity.kind in self.whole_kinds for identity in identities))
        )
        return is_listed is not self.is_exclusion

    def named(self, identities: frozenset[Identity]) -> frozenset[Identity] | None:
        """The names among these that stand in the element; None where it reaches whoever it reaches by none of them."""
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
    principals: Principals  # Whom it is about; everybody in a policy that has no such element
    actions: Patterns  # What it is about, in lower case
    actions_excepted: bool  # It is NotAction
    resources: Patterns  # Which ARNs it is about
    resources_excepted: bool  # It is NotResource
    conditions: tuple[PolicyCondition, ...]  # What must hold besides
    keys: frozenset[str]  # The condition keys that it asks about, in lower case
    services: frozenset[str]  # The services its actions name, `sns`, `sqs`; `*` where an action names any

    def applies(self, identities: frozenset[Identity], action: str, resource: str, lookup: Lookup) -> bool:
        """True if all its elements match a request.

        Args:
            identities: The names of the principal.
            action: In lower case.
            resource: The ARN.
            lookup: Finds the request's condition keys.
        """
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

        Args:
            action: In lower case.
            beginning: Of the ARNs.
            lookup: Finds the request's condition keys.
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
