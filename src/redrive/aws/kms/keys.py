"""Keys: created, described, tagged, enabled and disabled, deleted, and replicated in other regions of this server."""

from dataclasses import replace
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.kit.tagging import TagChange, Tagging, TagRequest, Tags
from redrive.aws.kms import key_policies
from redrive.aws.kms.access import KeyAccess, check_enabled
from redrive.aws.kms.errors import PAGES, error, not_valid, unsupported, wrong_state
from redrive.aws.kms.keyring import KeyRing
from redrive.aws.kms.material import Materials
from redrive.aws.kms.private_keys import new_material
from redrive.aws.kms.records import (
    ALGORITHM_MEMBERS,
    DAY_MS,
    ENABLED,
    KEY,
    PENDING_DELETION,
    PENDING_IMPORT,
    SPECS,
    KmsKey,
    Material,
    algorithms_of,
    key_arn,
)
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Documents, Draft
from redrive.model.names import ResourceName

TAGS: Final = Tagging(
    too_many=lambda: error("TagException", "Too many tags"),
    duplicate=lambda: error("TagException", "Duplicate tag keys"),
    reserved=lambda _: error("TagException", "Tags beginning with aws: are reserved"),
    pair=("TagKey", "TagValue"),
    list="ListResourceTags",
    pages=replace(PAGES, size=50),
)
DELETION_DAYS: Final = 30
_DELETION_DAYS_MIN: Final = 7
_ORIGINS: Final = ("AWS_KMS", "EXTERNAL")


class KeyTags:
    """Keys, as `Tagging` labels them."""

    def __init__(self, keyring: KeyRing, access: KeyAccess) -> None:
        self._keyring = keyring
        self._access = access

    async def tags(self, request: TagRequest) -> Tags:
        """The tags of the key that a request names; raises AwsError if there is none."""
        return (await self._access.managed_key(request.call, request.params["KeyId"], request.operation)).tags

    async def retag(self, request: TagRequest, change: TagChange) -> None:
        """Change the tags of the key that a request names; raises AwsError if there is none."""
        key = await self._access.changeable_key(request.call, request.params["KeyId"], request.operation)
        await self._keyring.change(key.name, lambda current: replace(current, tags=change(current.tags)))


def metadata(key: KmsKey, now: int) -> Structure:
    """`KeyMetadata` of a key at a moment (ms)."""
    state = key.state(now)
    description: Structure = {
        "AWSAccountId": key.name.account,
        "Arn": key.arn,
        "CreationDate": key.created_at,
        "CustomerMasterKeySpec": key.spec,
        "Description": key.description,
        "Enabled": state == ENABLED,
        ALGORITHM_MEMBERS[key.usage]: list(algorithms_of(key.spec, key.usage)),
        "KeyId": key.id,
        "KeyManager": key.manager,
        "KeySpec": key.spec,
        "KeyState": state,
        "KeyUsage": key.usage,
        "MultiRegion": bool(key.primary_region),
        "Origin": key.origin,
    }
    if key.symmetric and (key.materials or key.imported_id):
        description["CurrentKeyMaterialId"] = key.current.id if key.materials else key.imported_id
    if key.deletion_at is not None:
        description["DeletionDate"] = key.deletion_at
        description["PendingDeletionWindowInDays"] = key.deletion_days
    if key.primary_region:
        description["MultiRegionConfiguration"] = _multi_region(key)
    if key.origin == "EXTERNAL" and key.materials:
        description |= _expiration(key)
    return description


def _expiration(key: KmsKey) -> Structure:
    expires_at = key.current.expires_at
    if expires_at is None:
        return {"ExpirationModel": "KEY_MATERIAL_DOES_NOT_EXPIRE"}
    return {"ExpirationModel": "KEY_MATERIAL_EXPIRES", "ValidTo": expires_at}


def _multi_region(key: KmsKey) -> Structure:
    is_primary = key.primary_region == key.name.region

    def regional_key(region: str) -> Structure:
        return {"Arn": key_arn(key.name._replace(region=region)), "Region": region}

    return {
        "MultiRegionKeyType": "PRIMARY" if is_primary else "REPLICA",
        "PrimaryKey": regional_key(key.primary_region),
        "ReplicaKeys": [regional_key(region) for region in key.replica_regions],
    }


class Keys:
    """Creates, describes, enables and deletes keys."""

    def __init__(self, keyring: KeyRing, access: KeyAccess, materials: Materials) -> None:
        self._keyring = keyring
        self._access = access
        self._materials = materials

    async def create_key(self, call: Call, params: Structure) -> Structure:
        self._access.check_creation(call, params, call.region)
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
        key = await self._access.changeable_key(call, params["KeyId"], "UpdateKeyDescription")
        description: str = params["Description"]
        await self._keyring.change(key.name, lambda current: replace(current, description=description))
        return {}

    # ---- enabling -----------------------------------------------------------------------------------------

    async def enable_key(self, call: Call, params: Structure) -> Structure:
        return await self._switch(call, params, "EnableKey", on=True)

    async def disable_key(self, call: Call, params: Structure) -> Structure:
        return await self._switch(call, params, "DisableKey", on=False)

    async def _switch(self, call: Call, params: Structure, operation: str, *, on: bool) -> Structure:
        """Enable or disable a key; raises AwsError."""
        key = await self._access.changeable_key(call, params["KeyId"], operation)
        if key.state(call.now) == PENDING_IMPORT:
            raise wrong_state(key, "pending import")
        await self._keyring.change(key.name, lambda current: replace(current, enabled=on))
        return {}

    # ---- deletion -----------------------------------------------------------------------------------------

    async def schedule_key_deletion(self, call: Call, params: Structure) -> Structure:
        key = await self._access.changeable_key(call, params["KeyId"], "ScheduleKeyDeletion")
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

        def schedule(current: KmsKey) -> KmsKey:
            return replace(current, enabled=False, deletion_at=deletion_at, deletion_days=days)

        await self._keyring.change(key.name, schedule)
        return {
            "KeyId": key.arn,
            "DeletionDate": deletion_at,
            "KeyState": PENDING_DELETION,
            "PendingWindowInDays": days,
        }

    async def cancel_key_deletion(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/kms/latest/APIReference/API_CancelKeyDeletion.html; the key is disabled then."""
        key = await self._access.managed_key(call, params["KeyId"], "CancelKeyDeletion")
        if key.deletion_at is None:
            raise wrong_state(key, "not pending deletion")
        await self._keyring.change(
            key.name, lambda current: replace(current, deletion_at=None, deletion_days=0)
        )
        return {"KeyId": key.arn}


def _kind(params: Structure) -> tuple[str, str]:
    """The spec and the usage of a new key."""
    spec = params.get("KeySpec") or params.get("CustomerMasterKeySpec") or "SYMMETRIC_DEFAULT"
    key_spec = SPECS.get(spec)
    if key_spec is None:
        raise unsupported(f"Redrive does not offer keys of the spec {spec}; it offers {', '.join(SPECS)}.")
    usage = params.get("KeyUsage") or key_spec.usage
    if not usage:
        raise not_valid(
            "You must specify a KeyUsage value for all KMS keys except for symmetric encryption keys."
        )
    if usage not in key_spec.algorithms:
        raise not_valid(f"KeyUsage {usage} is not compatible with KeySpec {spec}")
    return spec, usage


def _origin(params: Structure) -> str:
    origin: str = params.get("Origin") or "AWS_KMS"
    if origin not in _ORIGINS or params.get("CustomKeyStoreId") or params.get("XksKeyId"):
        raise unsupported("Redrive offers no custom key stores: a key's origin is AWS_KMS or EXTERNAL.")
    return origin


class Replicating:
    """Creates replicas, and makes a replica the primary key."""

    def __init__(self, access: KeyAccess, documents: Documents, materials: Materials) -> None:
        self._access = access
        self._documents = documents
        self._materials = materials

    async def replicate_key(self, call: Call, params: Structure) -> Structure:
        key = await self._access.managed_key(call, params["KeyId"], "ReplicateKey")
        self._access.check_creation(call, params, params["ReplicaRegion"])
        check_enabled(key, call.now)
        if key.primary_region != key.name.region:
            raise unsupported(f"{key.arn} is not a multi-region primary key.")
        if key.origin != "AWS_KMS":
            raise unsupported("Redrive replicates keys with material of its own alone.")
        region: str = params["ReplicaRegion"]
        name = key.name._replace(region=region)
        policy = params.get("Policy") or key_policies.default_policy(call.account)
        replica = replace(
            key,
            name=name,
            created_at=call.now,
            policy=policy,
            description=params.get("Description") or "",
            tags=TAGS.read(params.get("Tags")),
            materials=tuple(self._materials.copy_for(key, material, name) for material in key.materials),
        )
        if params.get("Policy"):
            key_policies.check(
                call, replica, policy, bypass=bool(params.get("BypassPolicyLockoutSafetyCheck"))
            )

        async def decide(draft: Draft) -> KmsKey:
            current = await draft.get(KEY, key.name.key)
            if current is None or current.primary_region != key.name.region:
                raise unsupported(f"{key.arn} is not a primary key any more.")
            if region == key.name.region or await draft.get(KEY, name.key) is not None:
                raise error("AlreadyExistsException", f"A key {key.id} exists in {region} already")
            regions = tuple(sorted({*current.replica_regions, region}))
            member = replace(replica, replica_regions=regions)
            draft.put(KEY, name.key, member)
            await self._set_regions(draft, current, current.primary_region, regions, skip=region)
            return member

        replica = await self._documents.transact(decide)
        answer = {**metadata(replica, call.now), "KeyState": "Creating", "Enabled": False}
        answer.pop("CurrentKeyMaterialId", None)  # the answer describes the replica before it has material
        tags = {"ReplicaTags": params["Tags"]} if params.get("Tags") else {}
        return {"ReplicaKeyMetadata": answer, "ReplicaPolicy": policy, **tags}

    async def update_primary_region(self, call: Call, params: Structure) -> Structure:
        key = await self._access.managed_key(call, params["KeyId"], "UpdatePrimaryRegion")
        check_enabled(key, call.now)
        region: str = params["PrimaryRegion"]
        if key.primary_region != key.name.region or region not in key.replica_regions:
            raise unsupported(f"{key.arn} is not a primary key with a replica in {region}.")

        async def decide(draft: Draft) -> None:
            current = await draft.get(KEY, key.name.key)
            if current is None or current.primary_region != key.name.region:
                raise unsupported(f"{key.arn} is not a primary key any more.")
            replica = await draft.get(KEY, key.name._replace(region=region).key)
            # UpdatePrimaryRegion needs the right to the replica, too.
            if replica is not None:
                await self._access.check(call, replica, "UpdatePrimaryRegion")
            regions = tuple(sorted({*current.replica_regions, key.name.region} - {region}))
            await self._set_regions(draft, current, region, regions)
            draft.put(KEY, key.name.key, replace(current, primary_region=region, replica_regions=regions))

        await self._documents.transact(decide)
        return {}

    async def _set_regions(
        self, draft: Draft, key: KmsKey, primary: str, replicas: tuple[str, ...], skip: str = ""
    ) -> None:
        """Write the regions of the primary key and its replicas into all of them, except that of the region `skip`."""
        for region in {key.name.region, *key.replica_regions, *replicas, primary} - {skip}:
            name = key.name._replace(region=region)
            member = await draft.get(KEY, name.key)
            if member is not None:
                draft.put(KEY, name.key, replace(member, primary_region=primary, replica_regions=replicas))
