"""Identities as callers: the users and roles that requests come from, with all the policies that count for each.

Sessions are temporary credentials for roles, users and accounts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import Final

from redrive.access.identities import (
    GROUP,
    MANAGED_POLICY,
    ROLE,
    USER,
    ManagedPolicy,
    PolicyHolder,
    Role,
    User,
    aws_managed,
    key_of,
)
from redrive.access.policy import AccessRequest, evaluate, moment_text, request_keys, resource_keys
from redrive.access.policy_document import Form, stored_policy
from redrive.access.principals import (
    Permissions,
    Principal,
    account_root,
    federated_user,
    permissions_of,
    principal_without_rights,
    role_session,
    service_principal,
    user_principal,
)
from redrive.access.secret import Credentials, Session, SessionTokens, temporary_key_id
from redrive.access.statements import Policy
from redrive.engine.ports import Runtime
from redrive.engine.resources import Documents

_REMEMBERED_MAX: Final = 4096
_ARN_PARTS: Final = 6
_ROLE: Final = "role/"
#: Of a managed policy that is there no more.
_NOTHING: Final = Policy("", "", (), frozenset())


def account_of(arn: str) -> str:
    """The account in an ARN; empty in a text that is none."""
    parts = arn.split(":", _ARN_PARTS - 1)
    return parts[4] if len(parts) == _ARN_PARTS else ""


def session_of(principal: Principal) -> Session | None:
    """The session by which a service finds a principal again that it acts for later; None of an account's root."""
    if principal.session is not None or principal.permissions is None:
        return principal.session
    name, unique_id = principal.name.rpartition("/")[2], principal.keys["aws:userid"]
    return Session(principal.account, user=name, unique_id=unique_id)


@dataclass(frozen=True, slots=True)
class _CachedPermissions:
    """The permissions of a holder of policies, and the documents that they were made from."""

    parts: Sequence[object]
    permissions: Permissions


class Identities:
    """Finds users and roles, and makes callers of them."""

    def __init__(self, documents: Documents, *, restricts: bool) -> None:
        """Find them among these documents.

        Args:
            documents: What is configured.
            restricts: Whether policies apply; otherwise every identity may do what its account may.
        """
        self._documents = documents
        self.restricts = restricts
        self._cache: dict[tuple[str, str], _CachedPermissions] = {}

    async def user(self, account: str, name: str, unique_id: str | None = None) -> Principal | None:
        """The user of a name; None: there is none, or not the one of that id."""
        user = await self._documents.get(USER, key_of(account, name))
        if user is None or unique_id not in (None, user.id):
            return None
        permissions = await self.permissions(user) if self.restricts else None
        return user_principal(user.arn, user.id, user.tags, permissions)

    async def session(self, session: Session) -> Principal | None:
        """The principal that a session belongs to; None: the user or the role is there no more."""
        if session.federated:
            return await self._federated_user(session)
        if session.user:
            user = await self.user(session.account, session.user, session.unique_id or None)
            return None if user is None else replace(user, session=session)
        if not session.role:
            # A service's session, which alone has a name, stands for the account as long as that has no users or roles.
            if session.name and self.restricts and await self.has_any(session.account):
                return None
            return replace(account_root(session.account), session=session)
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
        return role_session(session.role, session.unique_id, session.name, tags, permissions, keys, session)

    async def _federated_user(self, session: Session) -> Principal | None:
        """A federated user: its session policies restrict the permissions of the user who created the session."""
        user: User | None = None
        if session.user:
            user = await self._documents.get(USER, key_of(session.account, session.user))
            if user is None or user.id != session.unique_id:
                return None
        permissions = await self._federated_permissions(user, session) if self.restricts else None
        return federated_user(session, permissions, {"aws:tokenissuetime": moment_text(session.issued_at)})

    async def _federated_permissions(self, user: User | None, session: Session) -> Permissions:
        """The permissions of a federated user: none without session policies; with a user, what both allow."""
        if not session.policies and not session.policy_arns:
            return permissions_of([])
        if user is not None:
            return await self.permissions(user, session)
        managed = [await self.managed_policy(arn) for arn in session.policy_arns]
        texts = (*session.policies, *(policy.text for policy in managed if policy is not None))
        return permissions_of([stored_policy(text, Form.IDENTITY) for text in texts])

    async def current_principal(self, account: str, arn: str, session: Session | None) -> Principal:
        """The principal that asked for something a while ago, with its rights of now: none, if it was deleted.

        Args:
            account: For which the service acts.
            arn: The principal's.
            session: Of `session_of`; None in documents of releases that did not keep it.
        """
        if not self.restricts or (session is None and arn == account_root(account).name):
            return account_root(account)
        if session is None and ":assumed-role/" in arn:
            _, role_name, session_name = arn.split("/", 2)
            role = await self.role(f"arn:aws:iam::{account}:role/{role_name}")
            if role is not None:
                session = Session(account, role=role.arn, unique_id=role.id, name=session_name)
        elif session is None and ":user/" in arn:
            session = Session(account, user=arn.rpartition("/")[2])
        principal = None
        if session is not None and session.account == account:
            principal = await self.session(session)
        return principal or principal_without_rights(arn, account)

    async def role_principal(
        self, service: str, account: str, role: str, region: str, session: str
    ) -> Principal:
        """The principal by which a service acts as a role for an account; one without rights where it may not.

        Args:
            service: Its name in host names.
            account: For which it acts.
            role: The role's ARN.
            region: Where it acts.
            session: The name of the session.
        """
        if not self.restricts:
            return account_root(account)
        assumed_session = await self.service_session(service, account, role, region)
        if assumed_session is not None and not assumed_session.role:
            return account_root(account)
        principal = (
            None if assumed_session is None else await self.session(replace(assumed_session, name=session))
        )
        return principal or principal_without_rights(role, account)

    async def service_session(self, service: str, account: str, role: str, region: str) -> Session | None:
        """The session in which a service may act as a role for an account, without a name; None: it may not.

        The role is one of that account, and trusts the service. A role that does not exist stands for the account itself
        as long as that has neither users nor roles. Arguments as of `role_principal`.
        """
        stored_role = await self.role(role)
        if stored_role is None:
            is_own = account_of(role) == account and not await self.has_any(account)
            return Session(account) if is_own else None
        if stored_role.account != account or not self.trusts(stored_role, service, region):
            return None
        return Session(account, role=stored_role.arn, unique_id=stored_role.id)

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
        keys = {**resource_keys(region=region, account=role.account), "aws:sourceaccount": role.account}
        access_request = AccessRequest(principal, "sts:AssumeRole", role.arn, request_keys(keys))
        trust = stored_policy(role.trust, Form.TRUST)
        return evaluate(trust, access_request, role.account, policy_decides=True).allowed

    async def has_any(self, account: str) -> bool:
        """True if an account has users or roles."""
        prefix = f"{account}/"
        roles = await self._documents.find(ROLE, prefix, limit=1)
        return bool(roles or await self._documents.find(USER, prefix, limit=1))

    async def managed_policy(self, arn: str) -> ManagedPolicy | None:
        """The managed policy of an ARN."""
        if arn in aws_managed():
            return aws_managed()[arn]
        policy = await self._documents.get(MANAGED_POLICY, key_of(account_of(arn), arn.rpartition("/")[2]))
        return policy if policy is not None and policy.arn == arn else None

    async def permissions(self, holder: User | Role, session: Session | None = None) -> Permissions:
        """All that counts for a user or a role; remembered until a part of it changes."""
        holders: list[PolicyHolder] = [holder]
        if isinstance(holder, User):
            for name in holder.groups:
                group = await self._documents.get(GROUP, key_of(holder.account, name))
                if group is not None:
                    holders.append(group)
        arns = {arn for each in holders for arn in each.attached} | {holder.boundary}
        if session is not None:
            arns |= set(session.policy_arns)
        managed = {arn: await self.managed_policy(arn) for arn in sorted(arns) if arn}
        parts = [*holders, *managed.values()]
        key = holder.arn, "" if session is None else session.access_key_id
        cached = self._cache.get(key)
        if cached is not None and len(cached.parts) == len(parts) and all(map(is_, cached.parts, parts)):
            return cached.permissions
        if len(self._cache) >= _REMEMBERED_MAX:
            self._cache.clear()
        permissions = _permissions(holders, managed, session)
        self._cache[key] = _CachedPermissions(parts, permissions)
        return permissions


def _permissions(
    holders: Sequence[PolicyHolder], managed: Mapping[str, ManagedPolicy | None], session: Session | None
) -> Permissions:
    """The permissions of the first holder, to whom the others' policies count as well."""

    def read(arn: str) -> Policy:
        policy = managed[arn]
        return _NOTHING if policy is None else stored_policy(policy.text, Form.IDENTITY)

    identity: list[Policy] = []
    for holder in holders:
        identity += [stored_policy(text, Form.IDENTITY) for text in holder.inline.values()]
        identity += map(read, holder.attached)
    boundary = holders[0].boundary
    session_policies: list[Policy] = []
    if session is not None:
        session_policies = [stored_policy(text, Form.IDENTITY) for text in session.policies]
        session_policies += map(read, session.policy_arns)
    return permissions_of(identity, read(boundary) if boundary else None, session_policies)


#: Of credentials that a service hands to a process which it starts for a role. No process lives as long
#: (`environment.RENEWED_MS`); they end with the role, too, and what they may do is asked on each call.
SERVICE_SECONDS: Final = 36 * 60 * 60
_NO_ROLE_ID: Final = "AROA" + "A" * 17  # the id of a role that is not there


@dataclass(frozen=True, slots=True)
class Sessions:
    """Begins sessions."""

    tokens: SessionTokens  # Seals what there is to know of them
    identities: Identities  # Finds roles
    runtime: Runtime  # Clock, by which sessions expire, and random numbers

    def begin(self, session: Session, seconds: int) -> Credentials:
        """The credentials of a session that begins now.

        Args:
            session: Its key and its times are set here.
            seconds: For how long.
        """
        now = self.runtime.clock.now()
        new_session = replace(
            session,
            access_key_id=temporary_key_id(session.account, self.runtime.rng),
            issued_at=now,
            expires_at=now + seconds * 1000,
        )
        return self.tokens.issue(new_session)

    async def for_function(
        self, role: str, function: str, account: str, region: str, seconds: int = SERVICE_SECONDS
    ) -> Credentials:
        """The temporary credentials of a function's role, for a process that runs the function.

        Where policies count, a role that Lambda may not act as for the account may do nothing; see `Identities.assumed`.

        Args:
            role: The role's ARN.
            function: The function's name, which the session has as well.
            account: Whose the function is.
            region: Where it is.
            seconds: For how long, on the engine's clock.
        """
        session = None
        if self.identities.restricts:
            session = await self.identities.service_session("lambda", account, role, region)
        elif (stored_role := await self.identities.role(role)) is not None:
            session = Session(account, role=role, unique_id=stored_role.id)
        session = session or Session(account, role=role, unique_id=_NO_ROLE_ID)
        return self.begin(replace(session, name=function), seconds)
