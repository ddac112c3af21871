"""Access to keys: the key that a request names, and whether its caller may use it, by policy or by grant."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from redrive.access.patterns import Values
from redrive.access.policy import Decision
from redrive.aws.kit.call import Call
from redrive.aws.kms.errors import denied, disabled, not_found, wrong_state
from redrive.aws.kms.keyring import KeyRing
from redrive.aws.kms.records import (
    DISABLED,
    ENABLED,
    GRANT,
    KEY,
    PENDING_DELETION,
    PENDING_IMPORT,
    Grant,
    KmsKey,
    alias_arn,
    key_arn,
)
from redrive.aws.wire.arn import read_arn
from redrive.aws.wire.errors import common
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Documents
from redrive.model.names import ResourceName

#: Operations of a grant that have no encryption context, so that its constraints do not concern them.
_WITHOUT_CONTEXT: Final = frozenset({"CreateGrant", "DescribeKey", "RetireGrant"})
_ROOT: Final = re.compile(r"arn:[a-z-]+:iam::([0-9]{12}):root")
_KEY_ID: Final = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}|mrk-[0-9a-f]{32}")
_NOT_ITS_OWN: Final = Decision(allowed=False)
_THROTTLED: Final = (
    "You have exceeded the rate at which you may call KMS. Reduce the frequency of your calls."
)
_STATE_TEXTS: Final = {PENDING_DELETION: "pending deletion", PENDING_IMPORT: "pending import"}
_NO_CONTEXT: Final[Mapping[str, str]] = {}


async def allowing_grants(
    documents: Documents, call: Call, key: KmsKey, operation: str, context: Mapping[str, str]
) -> list[Grant]:
    """The grants that allow the caller an operation on a key, under an encryption context."""
    return [
        grant
        for grant in await documents.find(GRANT, f"{key.name.key}/")
        if operation in grant.operations
        and may_as(grant.grantee, call, key, operation, context)
        and (operation in _WITHOUT_CONTEXT or _allows_context(grant, context))
    ]


def covers(grant: Grant, other: Grant) -> bool:
    """Returns whether a grant permits its grantee to create another one by its operation `CreateGrant`.

    The operations of the other have to be a subset, and its constraints equally strict or stricter ("Granting
    CreateGrant permission", developer guide).
    """
    if not set(other.operations) <= set(grant.operations):
        return False
    if grant.context_equals is not None and grant.context_equals != other.context_equals:
        return False
    required = (grant.context_subset or {}).items()
    contexts = (each for each in (other.context_equals, other.context_subset) if each is not None)
    return not required or any(required <= context.items() for context in contexts)


def may_as(
    principal: str, call: Call, key: KmsKey, operation: str, context: Mapping[str, str] = _NO_CONTEXT
) -> bool:
    """Returns whether what a grant gives its principal is the caller's.

    The principal is the caller's own ARN, its account's, or a service's name. As with a statement of a key policy that
    names it, an account leaves the decision to its policies, and those that bound a role's session do so here as well.
    """
    root = _ROOT.fullmatch(principal)
    name = principal if root is None else root[1]
    if not any(identity.name == name for identity in call.principal.identities):
        return False
    if call.principal.permissions is None:
        return True
    action = f"kms:{operation}"
    statement = {"Effect": "Allow", "Principal": {"AWS": principal}, "Action": action, "Resource": "*"}
    keys = {**_condition_keys(call, key, context), "aws:ResourceAccount": key.name.account}
    # As the caller's own: a grant reaches into other accounts without a word of theirs.
    policy = json.dumps({"Version": "2012-10-17", "Statement": statement})
    return call.decide(action, key.arn, call.account, policy, keys, policy_decides=True).allowed


def _allows_context(grant: Grant, context: Mapping[str, str]) -> bool:
    if grant.context_equals is not None and grant.context_equals != context:
        return False
    return grant.context_subset is None or grant.context_subset.items() <= context.items()


def _never(_: str) -> bool:
    return False


class CallScope(Protocol):
    """An account, a region and a moment (ms), such as those of a call."""

    @property
    def account(self) -> str:
        """Twelve digits."""
        ...

    @property
    def region(self) -> str:
        """The region."""
        ...

    @property
    def now(self) -> int:
        """The moment."""
        ...


class KeyAccess:
    """Finds keys for callers, and checks their permissions."""

    def __init__(
        self, keyring: KeyRing, documents: Documents, is_throttled: Callable[[str], bool] = _never
    ) -> None:
        """Find keys in a ring, and grants among documents; `is_throttled`: says of a key's ARN that calls fail."""
        self._is_throttled = is_throttled
        self._keyring = keyring
        self._documents = documents

    # ---- finding ----------------------------------------------------------------------------------------

    async def find_key(self, call: CallScope, key_id: str) -> KmsKey:
        """The key of an id, an alias, or the ARN of one; raises AwsError (`NotFoundException`)."""
        account, region, rest = call.account, call.region, key_id
        if key_id.startswith("arn:"):
            account, region, rest = _in_arn(call, key_id)
        if rest.startswith("alias/"):
            return await self._of_alias(call, ResourceName(account, region, rest))
        if not _KEY_ID.fullmatch(rest):
            raise not_found(f"Invalid keyId '{rest}'")
        name = ResourceName(account, region, rest)
        key = await self._keyring.get(name, call.now)
        if key is None:
            raise not_found(f"Key '{key_arn(name)}' does not exist")
        return key

    async def _of_alias(self, call: CallScope, name: ResourceName) -> KmsKey:
        key = await self._keyring.of_alias(name, call.now)
        if key is None:
            raise not_found(f"Alias {alias_arn(name)} is not found.")
        return key

    # ---- permission -------------------------------------------------------------------------------------

    async def managed_key(self, call: Call, key_id: str, operation: str) -> KmsKey:
        """A key of the caller's own account, for an operation that is closed to other accounts.

        Raises:
            AwsError: There is no such key, or the caller has no permission.
        """
        key = await self.find_key(call, key_id)
        if key.name.account != call.account:
            raise denied(call.principal.name, f"kms:{operation}", key.arn, _NOT_ITS_OWN)
        # Read from the store: another node may have changed the state of the key.
        stored = await self._documents.get_stored(KEY, key.name.key)
        if stored is None:
            raise not_found(f"Key '{key.arn}' does not exist")
        await self.check(call, stored, operation)
        return stored

    async def changeable_key(self, call: Call, key_id: str, operation: str) -> KmsKey:
        """A key as of `managed_key` that is not pending deletion.

        Raises:
            AwsError: There is no such key, the caller has no permission, or the key is pending deletion.
        """
        key = await self.managed_key(call, key_id, operation)
        if key.deletion_at is not None:
            raise wrong_state(key, _STATE_TEXTS[PENDING_DELETION])
        return key

    @staticmethod
    def check_creation(call: Call, params: Structure, region: str) -> None:
        """Refuse a caller whose own policies do not allow a new key in a region, with the tags of a request.

        Raises:
            AwsError: `AccessDeniedException`.
        """
        keys: dict[str, Values] = {"aws:RequestedRegion": region}
        for action in ("kms:CreateKey", *(["kms:TagResource"] if params.get("Tags") else [])):
            decision = call.decide(action, "*", call.account, keys=keys)
            if not decision.allowed:
                raise denied(call.principal.name, action, "*", decision)

    async def usable_key(
        self, call: Call, key_id: str, operation: str, context: Mapping[str, str] = _NO_CONTEXT
    ) -> KmsKey:
        """A key that the caller may use now.

        Raises:
            AwsError: There is no such key, the caller has no permission, or the key's state forbids its use.
        """
        key = await self.find_key(call, key_id)
        await self.check(call, key, operation, context)
        check_enabled(key, call.now)
        return key

    async def check(
        self, call: Call, key: KmsKey, operation: str, context: Mapping[str, str] = _NO_CONTEXT
    ) -> Sequence[Grant]:
        """Refuse an operation that neither the key policy nor a grant allows.

        A grant has an effect at once, at Amazon after some minutes: grant tokens are not needed.

        Returns:
            The grants that allow it; empty: the policy does.

        Raises:
            AwsError: `AccessDeniedException`.
        """
        if self._is_throttled(key.arn):
            raise common("ThrottlingException", _THROTTLED)
        action = f"kms:{operation}"
        decision = _decision(call, key, action, key.policy, context)
        if decision.allowed:
            return ()
        if not decision.explicit:
            grants = await allowing_grants(self._documents, call, key, operation, context)
            if grants:
                return grants
        raise denied(call.principal.name, action, key.arn, decision)


def check_enabled(key: KmsKey, now: int) -> None:
    """Refuse to use a key that is not enabled; raises AwsError (`DisabledException` or `KMSInvalidStateException`)."""
    state = key.state(now)
    if state == DISABLED:
        raise disabled(key)
    if state != ENABLED:
        raise wrong_state(key, _STATE_TEXTS[state])


def may_set_policy(call: Call, key: KmsKey, policy: str) -> bool:
    """Returns whether a policy would let the caller replace it again."""
    return _decision(call, key, "kms:PutKeyPolicy", policy).allowed


def _in_arn(call: CallScope, arn: str) -> tuple[str, str, str]:
    """The account, the region and the key id or alias that an ARN names."""
    parsed = read_arn(arn)
    if parsed is None or parsed.service != "kms" or not parsed.resource.startswith(("key/", "alias/")):
        raise not_found(f"Invalid arn {arn}")
    if parsed.region != call.region:
        raise not_found(f"Invalid arn {parsed.region}")
    return parsed.account, parsed.region, parsed.resource.removeprefix("key/")


def _condition_keys(call: Call, key: KmsKey, context: Mapping[str, str]) -> Mapping[str, Values]:
    """The condition keys that only requests to KMS have ("Condition keys for AWS KMS", developer guide)."""
    condition_keys: dict[str, Values] = {
        "kms:CallerAccount": call.account,
        "kms:KeyOrigin": key.origin,
        "kms:KeySpec": key.spec,
        "kms:KeyUsage": key.usage,
        "kms:MultiRegion": str(bool(key.primary_region)).lower(),
        **{f"kms:EncryptionContext:{name}": value for name, value in context.items()},
    }
    if context:
        condition_keys["kms:EncryptionContextKeys"] = tuple(context)
    return {**condition_keys, **(call.further_keys or {})}


def _decision(
    call: Call, key: KmsKey, action: str, policy: str, context: Mapping[str, str] = _NO_CONTEXT
) -> Decision:
    """The decision of a key policy, which may delegate it to the policies of the account."""
    owner, keys = key.name.account, _condition_keys(call, key, context)
    return call.decide(action, key.arn, owner, policy, keys, policy_decides=True)
