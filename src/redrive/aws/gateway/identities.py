"""Identities as callers: the users and roles that requests come from, with all the policies that count for each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Final

from redrive.access.aws_managed import AWS_MANAGED
from redrive.access.identities import (
    GROUP,
    MANAGED_POLICY,
    ROLE,
    USER,
    Holder,
    ManagedPolicy,
    Role,
    User,
    key_of,
)
from redrive.access.policy import AccessRequest, evaluate, moment_text, request_keys, resource_keys
from redrive.access.policy_document import Form, stored_policy
from redrive.access.principals import (
    Permissions,
    Principal,
    account_root,
    permissions_of,
    role_session,
    service_principal,
    user_principal,
)
from redrive.access.session_tokens import Session
from redrive.access.statements import Policy
from redrive.engine.resources import Documents

_REMEMBERED_MAX: Final = 4096
_ARN_PARTS: Final = 6
_ROLE: Final = "role/"
#: Of a managed policy that is there no more.
_NOTHING: Final = Policy("", "", (), frozenset())


@dataclass(frozen=True, slots=True)
class _Gathered:
    """A holder of policies, and what was made of all that belongs to it."""

    parts: Sequence[object]
    permissions: Permissions


class Identities:
    """Finds users and roles, and makes callers of them."""

    def __init__(self, documents: Documents, *, restricts: bool) -> None:
        """Find them among these documents.

        Args:
            documents: What is configured.
            restricts: Whether policies count; else whoever it is may do all that its account may.
        """
        self._documents = documents
        self.restricts = restricts
        self._gathered: dict[tuple[str, str], _Gathered] = {}

    async def user(self, account: str, name: str, unique_id: str | None = None) -> Principal | None:
        """The user of a name; None: there is none, or not the one of that id."""
        user = await self._documents.get(USER, key_of(account, name))
        if user is None or unique_id not in (None, user.id):
            return None
        permissions = await self.permissions(user) if self.restricts else None
        return user_principal(user.arn, user.id, user.tags, permissions)

    async def session(self, session: Session) -> Principal | None:
        """The principal that a session belongs to; None: the user or the role is there no more."""
        if session.user:
            return await self.user(session.account, session.user, session.unique_id)
        if not session.role:
            return account_root(session.account)
        role = await self.role(session.role)
        if role is None and self.restricts:
            return None
        if role is not None and self.restricts and role.id != session.unique_id:
            return None
        permissions = None
        if role is not None and self.restricts:
            permissions = await self.permissions(role, session)
        tags = {**({} if role is None else role.tags), **session.tags}
        keys = {"aws:tokenissuetime": moment_text(session.issued_at)}
        if session.source_identity:
            keys["aws:sourceidentity"] = session.source_identity
        return role_session(session.role, session.unique_id, session.name, tags, permissions, keys)

    async def acting(
        self, account: str, caller: str, role: str, session: str = "AWSCloudFormation"
    ) -> Principal:
        """The principal that a service acts for, long after somebody asked it to.

        Args:
            account: Whose it is.
            caller: The ARN of whoever asked; who is there no more may do nothing.
            role: The ARN of a role to act with instead; empty: none was given.
            session: The name of the session that acts as the role.
        """
        if not self.restricts or (not role and caller.endswith(":root")):
            return account_root(account)
        found: Principal | None = None
        if role or ":assumed-role/" in caller:
            arn = role or f"arn:aws:iam::{account}:role/{caller.split('/')[1]}"
            known = await self.role(arn)
            if known is not None:
                found = await self.session(
                    Session(account=account, role=arn, unique_id=known.id, name=session)
                )
        elif ":user/" in caller:
            found = await self.user(account, caller.rpartition("/")[2])
        return found or user_principal(caller, "", {}, permissions_of([], None, []))

    async def role(self, arn: str) -> Role | None:
        """The role of an ARN."""
        parts = arn.split(":", _ARN_PARTS - 1)
        if len(parts) < _ARN_PARTS or not parts[5].startswith(_ROLE):
            return None
        role = await self._documents.get(ROLE, key_of(parts[4], arn.rpartition("/")[2]))
        return role if role is not None and role.arn == arn else None

    def trusts(self, role: Role, service: str, region: str) -> bool:
        """True if a service may act as a role."""
        principal = service_principal(service, region)
        keys = resource_keys(region=region, account=role.account)
        asked = AccessRequest(principal, "sts:AssumeRole", role.arn, request_keys(keys))
        trust = stored_policy(role.trust, Form.TRUST)
        return evaluate(trust, asked, role.account, policy_decides=True).allowed

    async def has_any(self, account: str) -> bool:
        """True if an account has users or roles."""
        beginning = f"{account}/"
        found = await self._documents.find(ROLE, beginning, limit=1)
        return bool(found or await self._documents.find(USER, beginning, limit=1))

    async def managed(self, arn: str) -> ManagedPolicy | None:
        """The managed policy of an ARN."""
        if arn in AWS_MANAGED:
            return AWS_MANAGED[arn]
        account, name = arn.split(":")[4] if arn.count(":") >= _ARN_PARTS - 1 else "", arn.rpartition("/")[2]
        policy = await self._documents.get(MANAGED_POLICY, key_of(account, name))
        return policy if policy is not None and policy.arn == arn else None

    async def permissions(self, holder: User | Role, session: Session | None = None) -> Permissions:
        """All that counts for a user or a role; remembered until a part of it changes."""
        holders: list[Holder] = [holder]
        if isinstance(holder, User):
            for name in holder.groups:
                group = await self._documents.get(GROUP, key_of(holder.account, name))
                holders += [] if group is None else [group]
        arns = {arn for each in holders for arn in each.attached} | {holder.boundary}
        arns |= set() if session is None else set(session.policy_arns)
        managed = {arn: await self.managed(arn) for arn in sorted(arns) if arn}
        parts = [*holders, *managed.values()]
        at = holder.arn, "" if session is None else session.access_key_id
        known = self._gathered.get(at)
        if known is not None and len(known.parts) == len(parts) and all(map(is_, known.parts, parts)):
            return known.permissions
        if len(self._gathered) >= _REMEMBERED_MAX:
            self._gathered.clear()
        permissions = _permissions(holders, managed, session)
        self._gathered[at] = _Gathered(parts, permissions)
        return permissions


def _permissions(
    holders: Sequence[Holder], managed: Mapping[str, ManagedPolicy | None], session: Session | None
) -> Permissions:
    """The permissions of the first holder, to whom the others' policies count as well."""

    def read(arn: str) -> Policy:
        policy = managed[arn]
        return _NOTHING if policy is None else stored_policy(policy.text, Form.IDENTITY)

    identity = [
        policy
        for holder in holders
        for policy in (
            *(stored_policy(text, Form.IDENTITY) for text in holder.inline.values()),
            *map(read, holder.attached),
        )
    ]
    boundary = holders[0].boundary
    of_session: list[Policy] = []
    if session is not None:
        of_session = [stored_policy(text, Form.IDENTITY) for text in session.policies]
        of_session += map(read, session.policy_arns)
    return permissions_of(identity, read(boundary) if boundary else None, of_session)
