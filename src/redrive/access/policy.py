"""May they? One pure decision over a resource's policy: a Deny wins, then an Allow, then whose resource it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NewType

from redrive.access.conditions import Condition
from redrive.access.patterns import Lookup, Patterns, Values
from redrive.access.principals import Identity, Principal

# Condition keys of one request; only `request_keys` makes them, so that every name is in lower case.
RequestKeys = NewType("RequestKeys", dict[str, Values])

_NO_KEYS: Final = RequestKeys({})
_NO_HEADERS: Final[Mapping[str, str]] = {}
_OF_HEADERS: Final = (("user-agent", "aws:useragent"), ("referer", "aws:referer"))


def request_keys(*sources: Mapping[str, Values]) -> RequestKeys:
    """Put a request's condition keys together; a later source wins over an earlier one."""
    return RequestKeys({name.lower(): value for source in sources for name, value in source.items()})


def connection_keys(
    *, client_host: str, secure: bool, now: int, headers: Mapping[str, str] = _NO_HEADERS
) -> dict[str, Values]:
    """The keys that follow from how a request came: its peer's address, TLS, when (ms), and what its client says."""
    keys: dict[str, Values] = {
        "aws:sourceip": client_host,
        "aws:securetransport": "true" if secure else "false",
        **time_keys(now),
    }
    for header, key in _OF_HEADERS:
        if header in headers:
            keys[key] = headers[header]
    return keys


def time_keys(now: int) -> dict[str, Values]:
    """The keys of a moment (ms)."""
    seconds = now // 1000
    return {
        "aws:currenttime": datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "aws:epochtime": str(seconds),
    }


def resource_keys(*, region: str, account: str) -> dict[str, Values]:
    """The keys of a resource that is asked for: the region that the call goes to, and the resource's owner."""
    return {"aws:requestedregion": region, "aws:resourceaccount": account, "aws:viaawsservice": "false"}


def source_keys(*, arn: str, account: str) -> dict[str, Values]:
    """The keys of a service's call: the resource it acts for and that resource's owner; it crosses no network."""
    return {
        "aws:sourcearn": arn,
        "aws:sourceaccount": account,
        "aws:sourceowner": account,
        "aws:securetransport": "true",
    }


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """An action that a principal asks to be allowed.

    Attributes:
        principal: Who.
        action: `sqs:SendMessage`; case does not matter.
        resource: To what, as its ARN.
        keys: What else is known, beyond what follows from the principal.
    """

    principal: Principal
    action: str
    resource: str
    keys: RequestKeys = field(default_factory=lambda: _NO_KEYS)

    def lookup(self, key: str) -> Values | None:
        """A condition key's value; what follows from the principal cannot be overruled by the request."""
        value = self.principal.keys.get(key)
        return self.keys.get(key) if value is None else value


@dataclass(frozen=True, slots=True)
class Principals:
    """A statement's Principal or NotPrincipal element.

    Attributes:
        everyone: It is `*`, which reaches services and anonymous callers too.
        kinds: Kinds of whom it names all, `{"Service": "*"}`.
        identities: Whom it names.
        excepted: It is NotPrincipal: everybody else.
    """

    everyone: bool
    kinds: frozenset[str]
    identities: frozenset[Identity]
    excepted: bool

    def match(self, principal: Principal) -> bool:
        """True if the element reaches a principal."""
        named = (
            self.everyone
            or not self.identities.isdisjoint(principal.identities)
            or (bool(self.kinds) and any(identity.kind in self.kinds for identity in principal.identities))
        )
        return named is not self.excepted


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a policy.

    Attributes:
        sid: Its own name, or empty.
        allows: Its effect is Allow; otherwise Deny.
        principals: Whom it is about.
        actions: What it is about, in lower case.
        actions_excepted: It is NotAction.
        resources: Which ARNs it is about.
        resources_excepted: It is NotResource.
        conditions: What must hold besides.
        keys: The condition keys that it asks about, in lower case.
        services: The services its actions name, `sns`, `sqs`; `*` where an action names any.
    """

    sid: str
    allows: bool
    principals: Principals
    actions: Patterns
    actions_excepted: bool
    resources: Patterns
    resources_excepted: bool
    conditions: tuple[Condition, ...]
    keys: frozenset[str]
    services: frozenset[str]

    def applies(self, request: AccessRequest, action: str, lookup: Lookup) -> bool:
        """True if all its elements match the request, whose action is given in lower case."""
        if self.actions.match(action, lookup) is self.actions_excepted:
            return False
        if not self.principals.match(request.principal):
            return False
        for condition in self.conditions:
            if not condition.holds(lookup):
                return False
        # Last, because a resource's own policy hardly ever speaks of another.
        return self.resources.match(request.resource, lookup) is not self.resources_excepted


@dataclass(frozen=True, slots=True)
class Policy:
    """A resource's policy, read and ready.

    Attributes:
        id: Its own name, or empty.
        version: `2008-10-17` or `2012-10-17`.
        statements: Those that deny come first.
        keys: The condition keys that any of them asks about, in lower case.
    """

    id: str
    version: str
    statements: tuple[Statement, ...]
    keys: frozenset[str]

    @property
    def services(self) -> frozenset[str]:
        """The services that any statement's actions name, for facades that take their own alone."""
        return frozenset().union(*(statement.services for statement in self.statements))


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer, and why.

    Attributes:
        allowed: Whether they may.
        statement: The statement that says so; None: none applies, and it follows from whose resource it is.
    """

    allowed: bool
    statement: Statement | None = None

    @property
    def explicit(self) -> bool:
        """True if a statement says so."""
        return self.statement is not None


_OWNER_MAY: Final = Decision(allowed=True)
_NOBODY_SAID_SO: Final = Decision(allowed=False)


def evaluate(policy: Policy | None, request: AccessRequest, owner_account: str) -> Decision:
    """Say whether one request may be carried out.

    Args:
        policy: Of the resource; None where it has none.
        request: Who asks for what.
        owner_account: Whose the resource is. Its own callers need no policy; another account's, services and
            anonymous callers need a statement that allows them.
    """
    if policy is not None:
        lookup = request.lookup
        action = request.action.lower()
        for statement in policy.statements:
            if statement.applies(request, action, lookup):
                return Decision(statement.allows, statement)
    return _OWNER_MAY if request.principal.account == owner_account else _NOBODY_SAID_SO
