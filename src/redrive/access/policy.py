"""May they? One pure decision over a resource's policy and the caller's own.

A Deny wins, then an Allow counts, then whose resource it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NewType

from redrive.access.patterns import Values
from redrive.access.principals import Permissions, Principal, Source
from redrive.access.statements import Identity, Policy, Statement

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
    return {"aws:currenttime": moment_text(now), "aws:epochtime": str(now // 1000)}


def moment_text(moment: int) -> str:
    """A moment (ms) as condition keys have it."""
    return datetime.fromtimestamp(moment // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


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
    """An action that a principal asks to be allowed."""

    principal: Principal  # Who
    action: str  # `sqs:SendMessage`; case does not matter
    resource: str  # To what, as its ARN
    # What else is known, beyond what follows from the principal.
    keys: RequestKeys = field(default_factory=lambda: _NO_KEYS)

    def lookup(self, key: str) -> Values | None:
        """A condition key's value; what follows from the principal cannot be overruled by the request."""
        value = self.principal.keys.get(key)
        return self.keys.get(key) if value is None else value


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer, and why."""

    allowed: bool  # Whether they may
    # The statement that says so; None: none applies, and it follows from whose resource it is.
    statement: Statement | None = None
    # The kind of policy that the statement is of, or that has none which allows it.
    source: Source = Source.RESOURCE

    @property
    def explicit(self) -> bool:
        """True if a statement says so."""
        return self.statement is not None

    def reason(self, action: str) -> str:
        """The end of a refusal, in Amazon's words (recorded): the kind of policy that refuses an action."""
        if self.explicit and not self.allowed:
            article = "an" if self.source is Source.IDENTITY else "a"
            return f"with an explicit deny in {article} {self.source.value}"
        return f"because no {self.source.value} allows the {action} action"


_NONE: Final[frozenset[Source]] = frozenset()
_BOUNDS: Final = frozenset({Source.BOUNDARY, Source.SESSION})
_OWNER_MAY: Final = Decision(allowed=True)
#: The answer where nothing allows it.
NOT_ALLOWED: Final = Decision(allowed=False)


def evaluate(
    policy: Policy | None, request: AccessRequest, owner_account: str, *, policy_decides: bool = False
) -> Decision:
    """Say whether one request may be carried out ("Policy evaluation logic", IAM user guide).

    Args:
        policy: Of the resource; None if it has none.
        request: Who asks for what.
        owner_account: Whose the resource is. Its own callers need no statement of its policy, unless they are users or
            roles: those need one of that policy or of their own. Another account's callers need one of both. Services
            and anonymous callers need one of the resource's.
        policy_decides: Nobody may without the resource's policy, the owner included: keys, and roles that are assumed.
    """
    principal, identities = request.principal, request.principal.identities
    lookup, action = request.lookup, request.action.lower()
    statements: list[Statement] = []
    if policy is not None:
        for statement in policy.statements:  # those that deny come first
            if statement.applies(identities, action, request.resource, lookup):
                if not statement.allows or principal.permissions is None:
                    return Decision(statement.allows, statement)
                statements.append(statement)
    is_own = bool(principal.account) and principal.account == owner_account
    if principal.permissions is not None:
        return _decide_for_user(
            principal.permissions, request, statements, is_own=is_own, policy_decides=policy_decides
        )
    return _OWNER_MAY if is_own and not policy_decides else NOT_ALLOWED


def denial(request: AccessRequest) -> Decision | None:
    """The Deny of a caller's own policies that holds for a request; None: there is none.

    Args:
        request: Who asks for what. A resource that ends in `*` stands for whatever begins so, and `*` for whatever the
            action's service has.
    """
    principal, action, lookup = request.principal, request.action.lower(), request.lookup
    beginning = request.resource.removesuffix("*") or f"arn:aws:{action.partition(':')[0]}:"
    if principal.permissions is None:
        return None
    for source, statements in principal.permissions.by_source.items():
        for statement in statements:
            if statement.allows:
                break  # those that deny come first
            if request.resource.endswith("*"):
                holds = statement.reaches(action, beginning, lookup)
            else:
                holds = statement.applies(principal.identities, action, request.resource, lookup)
            if holds:
                return Decision(allowed=False, statement=statement, source=source)
    return None


def _decide_for_user(
    permissions: Permissions,
    request: AccessRequest,
    allowances: Sequence[Statement],
    *,
    is_own: bool,
    policy_decides: bool,
) -> Decision:
    """The answer to a user or a role whom the resource's policy does not deny, but allows by `allowances`."""
    by_source: dict[Source, Statement] = {}
    for source, statements in permissions.by_source.items():
        statement = _first_applying(statements, request)
        if statement is None:
            continue
        if not statement.allows:
            return Decision(allowed=False, statement=statement, source=source)
        by_source[source] = statement
    if not allowances and (policy_decides or not is_own):
        return NOT_ALLOWED
    needed = frozenset(Source) if not is_own else _needed_sources(request.principal, allowances)
    for source in permissions.by_source:
        if source in needed and source not in by_source:
            return Decision(allowed=False, source=source)
    if allowances:
        return Decision(allowed=True, statement=allowances[0])
    return Decision(allowed=True, statement=by_source[Source.IDENTITY], source=Source.IDENTITY)


def _first_applying(statements: Sequence[Statement], request: AccessRequest) -> Statement | None:
    """The first that applies, where those that deny come first."""
    action, identities, lookup = request.action.lower(), request.principal.identities, request.lookup
    for statement in statements:
        if statement.applies(identities, action, request.resource, lookup):
            return statement
    return None


def _needed_sources(principal: Principal, statements: Sequence[Statement]) -> frozenset[Source]:
    """The principal's own policies that must also allow what the policy of a resource in its account allows.

    None must if that policy names the user or the session, or everybody; those that bound it if it names the role; all
    of them if it names the account.
    """
    needed = frozenset(Source)
    for statement in statements:
        names = statement.principals.listed_identities(principal.identities)
        if names is None:
            return _NONE
        others = names - {Identity("AWS", principal.account)}
        if others - principal.bounded:
            return _NONE
        if others:
            needed = _BOUNDS
    return needed
