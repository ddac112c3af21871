"""Multi-Region keys: the same material and key id in several regions of this server."""

from dataclasses import replace

from redrive.aws.kit.call import Call
from redrive.aws.kms import key_policies
from redrive.aws.kms.access import KeyAccess, check_enabled
from redrive.aws.kms.errors import error, unsupported
from redrive.aws.kms.material import Materials
from redrive.aws.kms.records import KEY, KmsKey
from redrive.aws.kms.rendering import metadata
from redrive.aws.kms.tags import TAGS
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Documents, Draft


class Replicating:
    """Makes replicas, and makes one of them the primary."""

    def __init__(self, access: KeyAccess, documents: Documents, materials: Materials) -> None:
        self._access = access
        self._documents = documents
        self._materials = materials

    async def replicate_key(self, call: Call, params: Structure) -> Structure:
        key = await self._access.managed(call, params["KeyId"], "ReplicateKey")
        check_enabled(key, call.now)
        if key.primary_region != key.name.region:
            raise unsupported(f"{key.arn} is not a multi-region primary key.")
        if key.origin != "AWS_KMS":
            raise unsupported("Redrive replicates keys with material of its own alone.")
        region: str = params["ReplicaRegion"]
        regions = tuple(sorted({*key.replica_regions, region}))
        name = key.name._replace(region=region)
        policy = params.get("Policy") or key_policies.default_policy(call.account)
        replica = replace(
            key,
            name=name,
            created_at=call.now,
            policy=policy,
            description=params.get("Description") or "",
            replica_regions=regions,
            tags=TAGS.read(params.get("Tags")),
            materials=tuple(self._materials.copied(key, material, name) for material in key.materials),
        )
        if params.get("Policy"):
            key_policies.check(
                call, replica, policy, bypass=bool(params.get("BypassPolicyLockoutSafetyCheck"))
            )

        async def decide(draft: Draft) -> None:
            current = await draft.get(KEY, key.name.key)
            if current is None or await draft.get(KEY, name.key) is not None or region == key.name.region:
                text = f"A key {key.id} exists in {region} already"
                raise error("AlreadyExistsException", text)
            draft.put(KEY, name.key, replica)
            await self._set_regions(draft, current, current.primary_region, regions, skip=region)

        await self._documents.transact(decide)
        answer = {**metadata(replica, call.now), "KeyState": "Creating", "Enabled": False}
        answer.pop("CurrentKeyMaterialId", None)  # the answer describes the replica as it is made
        tags = {"ReplicaTags": params["Tags"]} if params.get("Tags") else {}
        return {"ReplicaKeyMetadata": answer, "ReplicaPolicy": policy, **tags}

    async def update_primary_region(self, call: Call, params: Structure) -> Structure:
        key = await self._access.managed(call, params["KeyId"], "UpdatePrimaryRegion")
        check_enabled(key, call.now)
        region: str = params["PrimaryRegion"]
        if key.primary_region != key.name.region or region not in key.replica_regions:
            raise unsupported(f"{key.arn} is not a primary key with a replica in {region}.")

        async def decide(draft: Draft) -> None:
            current = await draft.get(KEY, key.name.key)
            if current is None or current.primary_region != key.name.region:
                raise unsupported(f"{key.arn} is not a primary key any more.")
            regions = tuple(sorted({*current.replica_regions, key.name.region} - {region}))
            await self._set_regions(draft, current, region, regions)
            draft.put(KEY, key.name.key, replace(current, primary_region=region, replica_regions=regions))

        await self._documents.transact(decide)
        return {}

    async def _set_regions(
        self, draft: Draft, key: KmsKey, primary: str, replicas: tuple[str, ...], skip: str = ""
    ) -> None:
        """Tell every key of the family where its primary and its replicas are."""
        for region in {key.name.region, *key.replica_regions, *replicas, primary} - {skip}:
            name = key.name._replace(region=region)
            member = await draft.get(KEY, name.key)
            if member is not None:
                draft.put(KEY, name.key, replace(member, primary_region=primary, replica_regions=replicas))
