"""Principals: an account's root, its users and roles, another service, or nobody in particular."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from redrive.access.condition_keys import PRINCIPAL_TAG
from redrive.access.secret import Session
from redrive.access.statements import Identity, Policy, Statement

_NO_KEYS: Final[Mapping[str, str]] = {}


class Source(enum.Enum):
    """The kinds of policies, as Amazon's refusals call them."""

    IDENTITY = "identity-based policy"
    RESOURCE = "resource-based policy"
    BOUNDARY = "permissions boundary"
    SESSION = "session policy"


@dataclass(frozen=True, slots=True)
class Permissions:
    """The policies of a user, a role or a session."""

    # The statements of each kind that there is, those that deny first; an identity always has its own, be it
    # none.
    by_source: Mapping[Source, tuple[Statement, ...]]
    keys: frozenset[str]  # The condition keys that any of them asks about, in lower case


def permissions_of(
    identity: Sequence[Policy], boundary: Policy | None = None, session: Sequence[Policy] = ()
) -> Permissions:
    """The permissions that policies give together.

    Args:
        identity: A user's or a role's own: what any of them allows is allowed.
        boundary: Limits that; None: nothing does.
        session: Limit it further; empty: nothing does.
    """
    policies: dict[Source, Sequence[Policy]] = {Source.IDENTITY: identity}
    if boundary is not None:
        policies[Source.BOUNDARY] = [boundary]
    if session:
        policies[Source.SESSION] = session
    by_source = {
        source: tuple(
            sorted(
                (statement for policy in policies_of_source for statement in policy.statements),
                key=lambda statement: statement.allows,
            )
        )
        for source, policies_of_source in policies.items()
    }
    keys = frozenset().union(
        *(policy.keys for policies_of_source in policies.values() for policy in policies_of_source)
    )
    return Permissions(by_source, keys)


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller."""

    name: str  # For people: an ARN, a service's host name, or `anonymous`
    account: str  # Twelve digits; empty for a service and for anonymous callers, whom no account vouches for
    identities: frozenset[Identity]  # Everything a policy may know it by
    # The condition keys that follow from who it is, names in lower case.
    keys: Mapping[str, str] = field(compare=False, repr=False)
    # Of a user or a role; None: its account is all it needs, or nothing is its own.
    permissions: Permissions | None = field(default=None, compare=False, repr=False)
    # Those of its names, a role's, whose mention in a resource's policy does not lift boundaries.
    bounded: frozenset[Identity] = frozenset()
    # The session that it calls in, with its session policies; None: it calls by a lasting key.
    session: Session | None = field(default=None, compare=False, repr=False)

    @property
    def is_restricted(self) -> bool:
        """True if its account alone allows it nothing: it is a user, a role, or a service, which has none."""
        return self.permissions is not None or (not self.account and self is not ANONYMOUS)


# Every request needs its caller's principal; 1,024 accounts at one node make the cache a dictionary look-up.
@lru_cache(maxsize=1024)
def account_root(account: str) -> Principal:
    """The account itself, which is whose an access key is."""
    arn = f"arn:aws:iam::{account}:root"
    return Principal(
        name=arn,
        account=account,
        identities=_names(account, arn),
        # The last is SNS's own key, in every topic's default policy: "calls by the owning account".
        keys={**_keys(arn, account, "Account", account, {}), "aws:sourceowner": account},
    )


def user_principal(
    arn: str, unique_id: str, tags: Mapping[str, str], permissions: Permissions | None
) -> Principal:
    """A user (its unique id is `AIDA…`) that policies were attached to; without any, all that the account may."""
    account = arn.split(":")[4]
    return Principal(
        name=arn,
        account=account,
        identities=_names(account, arn, unique_id),
        keys={**_keys(arn, account, "User", unique_id, tags), "aws:username": arn.rpartition("/")[2]},
        permissions=permissions,
    )


def principal_without_rights(arn: str, account: str) -> Principal:
    """A principal of an account that no policy names and nothing is allowed to, such as a user who was deleted."""
    keys = _keys(arn, account, "Unknown", "", {})
    return Principal(arn, account, frozenset(), keys, permissions_of([]))


def role_session(
    role: str,
    unique_id: str,
    session: str,
    tags: Mapping[str, str],
    permissions: Permissions | None,
    keys: Mapping[str, str] = _NO_KEYS,
    origin: Session | None = None,
) -> Principal:
    """The session of an assumed role (`AROA…`); policies may name the role's ARN, or the session's own.

    Args:
        role: The role's ARN.
        unique_id: The role's.
        session: The name that was given.
        tags: Of the role, and over them those of the session.
        permissions: None: all that the account may.
        keys: Further condition keys, names in lower case.
        origin: The session itself; None if nothing will act for it later.
    """
    account, name = role.split(":")[4], role.rpartition("/")[2]
    arn = f"arn:aws:sts::{account}:assumed-role/{name}/{session}"
    return Principal(
        name=arn,
        account=account,
        identities=_names(account, arn, role, unique_id),
        keys={**_keys(role, account, "AssumedRole", f"{unique_id}:{session}", tags), **keys},
        permissions=permissions,
        bounded=_names(role, unique_id),
        session=origin,
    )


def federated_user(session: Session, permissions: Permissions | None, keys: Mapping[str, str]) -> Principal:
    """A federated user, admitted under a name by a user or the account; without permissions, all that the account may.

    `keys` are further condition keys, their names in lower case.
    """
    account, unique_id = session.account, f"{session.account}:{session.federated}"
    arn = f"arn:aws:sts::{account}:federated-user/{session.federated}"
    return Principal(
        name=arn,
        account=account,
        identities=_names(account, arn, unique_id),
        keys={**_keys(arn, account, "FederatedUser", unique_id, session.tags), **keys},
        permissions=permissions,
        session=session,
    )


def _names(*names: str) -> frozenset[Identity]:
    return frozenset(Identity("AWS", name) for name in names)


def _keys(arn: str, account: str, kind: str, unique_id: str, tags: Mapping[str, str]) -> dict[str, str]:
    """The condition keys that describe a principal."""
    return {
        "aws:principalarn": arn,
        "aws:principalaccount": account,
        "aws:principalisawsservice": "false",
        "aws:principaltype": kind,
        "aws:userid": unique_id,
        **{f"{PRINCIPAL_TAG}{name.lower()}": value for name, value in tags.items()},
    }


@lru_cache(maxsize=1024)
def service_principal(service: str, region: str) -> Principal:
    """A service (`sns`, `cloudwatch`) that acts for an account, such as SNS delivering to a queue.

    Policies in opt-in regions name it with the region that it acts from: `sns.<region>.amazonaws.com`.
    """
    name = f"{service}.amazonaws.com"
    return Principal(
        name=name,
        account="",
        identities=frozenset(
            {Identity("Service", name), Identity("Service", f"{service}.{region}.amazonaws.com")}
        ),
        keys={"aws:principalisawsservice": "true", "aws:principalservicename": name},
    )


def service_acting_for(service: str, region: str, arn: str, account: str, *, for_owner: bool) -> Principal:
    """Another service that acts for one resource, such as CloudWatch for an alarm.

    Args:
        service: Its name in host names.
        region: Where it acts from.
        arn: The resource that it acts for.
        account: The resource's account.
        for_owner: Whether what is that account's and has no policy of its own lets it in, as a topic's default policy
            does.
    """
    principal = service_principal(service, region)
    keys = {**principal.keys, "aws:sourcearn": arn, "aws:sourceaccount": account}
    return replace(principal, keys={**keys, "aws:sourceowner": account} if for_owner else keys)


ANONYMOUS: Final = Principal(
    name="anonymous",
    account="",
    identities=frozenset(),
    keys={"aws:principalisawsservice": "false", "aws:principaltype": "Anonymous"},
)
