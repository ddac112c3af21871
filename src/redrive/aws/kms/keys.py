"""Keys: made, described, switched on and off, and given up."""

from dataclasses import replace
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.kms import key_policies
from redrive.aws.kms.access import KeyAccess
from redrive.aws.kms.errors import PAGES, error, not_valid, unsupported, wrong_state
from redrive.aws.kms.keyring import KeyRing
from redrive.aws.kms.material import Materials
from redrive.aws.kms.new_material import new_material
from redrive.aws.kms.records import DAY_MS, PENDING_DELETION, PENDING_IMPORT, KmsKey, Material
from redrive.aws.kms.rendering import metadata
from redrive.aws.kms.specs import SPECS
from redrive.aws.kms.tags import TAGS
from redrive.aws.wire.shapes import Structure
from redrive.model.names import ResourceName

DELETION_DAYS: Final = 30
_DELETION_DAYS_MIN: Final = 7
_ORIGINS: Final = ("AWS_KMS", "EXTERNAL")


class Keys:
    """Makes, describes and ends keys."""

    def __init__(self, keyring: KeyRing, access: KeyAccess, materials: Materials) -> None:
        self._keyring = keyring
        self._access = access
        self._materials = materials

    async def create_key(self, call: Call, params: Structure) -> Structure:
        spec, usage = _kind(params)
        origin = _origin(params)
        multi_region = bool(params.get("MultiRegion"))
        name = ResourceName(call.account, call.region, self._keyring.new_id(multi_region=multi_region))
        key = KmsKey(
            name,
            call.now,
            spec,
            usage,
            params.get("Policy") or key_policies.default_policy(call.account),
            origin=origin,
            description=params.get("Description") or "",
            primary_region=call.region if multi_region else "",
            tags=TAGS.read(params.get("Tags")),
        )
        if params.get("Policy"):
            key_policies.check(
                call, key, key.policy, bypass=bool(params.get("BypassPolicyLockoutSafetyCheck"))
            )
        materials: tuple[Material, ...] = ()
        if origin == "AWS_KMS":
            content = await new_material(spec, self._materials, call.account)
            materials = (self._materials.new(name, content, call.now),)
        key = replace(key, materials=materials)
        await self._keyring.add(key)
        return {"KeyMetadata": metadata(key, call.now)}

    async def describe_key(self, call: Call, params: Structure) -> Structure:
        key = await self._access.find_key(call, params["KeyId"])
        await self._access.check(call, key, "DescribeKey")
        return {"KeyMetadata": metadata(key, call.now)}

    async def list_keys(self, call: Call, params: Structure) -> Structure:
        keys = await self._keyring.of_account(call.account, call.region, call.now)

        def as_structure(key: KmsKey) -> Structure:
            return {"KeyId": key.id, "KeyArn": key.arn}

        return PAGES.of("ListKeys", params, keys, as_structure, lambda key: key.id)

    async def update_key_description(self, call: Call, params: Structure) -> Structure:
        key = await self._access.changeable(call, params["KeyId"], "UpdateKeyDescription")
        description: str = params["Description"]
        await self._keyring.change(key.name, lambda current: replace(current, description=description))
        return {}

    # ---- on and off ---------------------------------------------------------------------------------------

    async def enable_key(self, call: Call, params: Structure) -> Structure:
        return await self._switch(call, params, "EnableKey", on=True)

    async def disable_key(self, call: Call, params: Structure) -> Structure:
        return await self._switch(call, params, "DisableKey", on=False)

    async def _switch(self, call: Call, params: Structure, operation: str, *, on: bool) -> Structure:
        key = await self._access.changeable(call, params["KeyId"], operation)
        if key.state(call.now) == PENDING_IMPORT:
            raise wrong_state(key, "pending import")
        await self._keyring.change(key.name, lambda current: replace(current, enabled=on))
        return {}

    # ---- deletion -----------------------------------------------------------------------------------------

    async def schedule_key_deletion(self, call: Call, params: Structure) -> Structure:
        key = await self._access.changeable(call, params["KeyId"], "ScheduleKeyDeletion")
        days: int = params.get("PendingWindowInDays") or DELETION_DAYS
        if not _DELETION_DAYS_MIN <= days <= DELETION_DAYS:
            raise not_valid(
                f"1 validation error detected: Value '{days}' at 'pendingWindowInDays' failed to satisfy constraint:"
                f" Member must have value between {_DELETION_DAYS_MIN} and {DELETION_DAYS}"
            )
        if key.replica_regions and key.primary_region == key.name.region:
            raise error(
                "KMSInvalidStateException",
                f"{key.arn} has replicas in {', '.join(key.replica_regions)}: they are deleted first.",
            )
        deletion_at = call.now + days * DAY_MS

        def scheduled(current: KmsKey) -> KmsKey:
            return replace(current, enabled=False, deletion_at=deletion_at, deletion_days=days)

        await self._keyring.change(key.name, scheduled)
        return {
            "KeyId": key.arn,
            "DeletionDate": deletion_at,
            "KeyState": PENDING_DELETION,
            "PendingWindowInDays": days,
        }

    async def cancel_key_deletion(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/kms/latest/APIReference/API_CancelKeyDeletion.html; the key is disabled then."""
        key = await self._access.managed(call, params["KeyId"], "CancelKeyDeletion")
        if key.deletion_at is None:
            raise wrong_state(key, "not pending deletion")
        await self._keyring.change(
            key.name, lambda current: replace(current, deletion_at=None, deletion_days=0)
        )
        return {"KeyId": key.arn}


def _kind(params: Structure) -> tuple[str, str]:
    """The spec and the usage of the key that a request asks for."""
    spec = params.get("KeySpec") or params.get("CustomerMasterKeySpec") or "SYMMETRIC_DEFAULT"
    known = SPECS.get(spec)
    if known is None:
        raise unsupported(f"Redrive does not offer keys of the spec {spec}; it offers {', '.join(SPECS)}.")
    usage = params.get("KeyUsage") or known.usage
    if not usage:
        raise not_valid(
            "You must specify a KeyUsage value for all KMS keys except for symmetric encryption keys."
        )
    if usage not in known.algorithms:
        raise not_valid(f"KeyUsage {usage} is not compatible with KeySpec {spec}")
    return spec, usage


def _origin(params: Structure) -> str:
    origin: str = params.get("Origin") or "AWS_KMS"
    if origin not in _ORIGINS or params.get("CustomKeyStoreId") or params.get("XksKeyId"):
        raise unsupported("Redrive offers no custom key stores: a key's origin is AWS_KMS or EXTERNAL.")
    return origin
