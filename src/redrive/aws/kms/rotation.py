"""Rotation: new material for a symmetric key, automatic or on demand; older ciphertexts stay readable."""

from dataclasses import replace
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.kms.access import KeyAccess, check_enabled
from redrive.aws.kms.errors import PAGES, error, not_valid, unsupported
from redrive.aws.kms.keyring import KeyRing
from redrive.aws.kms.material import Materials
from redrive.aws.kms.records import DAY_MS, KmsKey, Material
from redrive.aws.wire.shapes import Structure

PERIOD_DAYS: Final = 365
_PERIOD_DAYS_MIN: Final = 90
_PERIOD_DAYS_MAX: Final = 2560
ON_DEMAND: Final = "ON_DEMAND"
ON_DEMAND_MAX: Final = 25


class Rotation:
    """Rotates keys."""

    def __init__(self, keyring: KeyRing, access: KeyAccess, materials: Materials) -> None:
        self._keyring = keyring
        self._access = access
        self._materials = materials

    async def enable_key_rotation(self, call: Call, params: Structure) -> Structure:
        key = await self._rotatable_key(call, params, "EnableKeyRotation")
        if key.origin == "EXTERNAL":
            raise unsupported(f"{key.arn} has imported key material, which is rotated on demand alone.")
        days: int = params.get("RotationPeriodInDays") or key.rotation_days or PERIOD_DAYS
        if not _PERIOD_DAYS_MIN <= days <= _PERIOD_DAYS_MAX:
            raise not_valid(
                f"1 validation error detected: Value '{days}' at 'rotationPeriodInDays' failed to satisfy constraint:"
                f" Member must have value between {_PERIOD_DAYS_MIN} and {_PERIOD_DAYS_MAX}"
            )

        def enable(current: KmsKey) -> KmsKey:
            if current.rotation_days == days:
                return current
            return replace(current, rotation_days=days, rotates_at=call.now + days * DAY_MS)

        await self._keyring.change(key.name, enable)
        return {}

    async def disable_key_rotation(self, call: Call, params: Structure) -> Structure:
        key = await self._rotatable_key(call, params, "DisableKeyRotation")
        await self._keyring.change(
            key.name, lambda current: replace(current, rotation_days=None, rotates_at=None)
        )
        return {}

    async def get_key_rotation_status(self, call: Call, params: Structure) -> Structure:
        key = await self._access.find_key(call, params["KeyId"])
        await self._access.check(call, key, "GetKeyRotationStatus")
        _check_symmetric(key)
        is_on = key.rotation_days is not None and key.deletion_at is None
        status: Structure = {"KeyId": key.arn, "KeyRotationEnabled": is_on}
        if is_on and key.rotates_at is not None:
            status |= {"RotationPeriodInDays": key.rotation_days, "NextRotationDate": key.rotates_at}
        return status

    async def rotate_key_on_demand(self, call: Call, params: Structure) -> Structure:
        key = await self._rotatable_key(call, params, "RotateKeyOnDemand", on_demand=True)

        def rotate(current: KmsKey) -> KmsKey:
            if current.origin == "EXTERNAL":
                return _with_pending_material(current, call.now)
            if sum(material.rotation == ON_DEMAND for material in current.materials) >= ON_DEMAND_MAX:
                raise error(
                    "LimitExceededException",
                    "The on-demand rotations limit has been reached for the given keyId. No more on-demand rotations can"
                    f" be performed for this key: {current.arn}",
                )
            material = self._materials.symmetric(current.name, call.now, rotation=ON_DEMAND)
            return replace(current, materials=(*current.materials, material))

        await self._keyring.change(key.name, rotate)
        return {"KeyId": key.arn}

    async def list_key_rotations(self, call: Call, params: Structure) -> Structure:
        key = await self._access.managed_key(call, params["KeyId"], "ListKeyRotations")
        _check_symmetric(key)
        includes_first = params.get("IncludeKeyMaterial") == "ALL_KEY_MATERIAL"
        materials = [material for material in key.materials if includes_first or material.rotation]
        return PAGES.of("ListKeyRotations", params, materials, lambda material: _as_structure(key, material))

    async def _rotatable_key(
        self, call: Call, params: Structure, operation: str, *, on_demand: bool = False
    ) -> KmsKey:
        """The key of a call, if Redrive can rotate it; raises AwsError."""
        key = await self._access.managed_key(call, params["KeyId"], operation)
        check_enabled(key, call.now)
        _check_symmetric(key, on_demand=on_demand)
        if key.primary_region not in ("", key.name.region):
            raise unsupported(f"{key.arn} is a replica: its primary in {key.primary_region} is rotated.")
        if key.replica_regions:
            raise unsupported(
                f"{key.arn} has replicas; Redrive rotates multi-Region keys without replicas alone."
            )
        return key


def _with_pending_material(key: KmsKey, now: int) -> KmsKey:
    """A key after the rotation to its pending imported material."""
    if key.pending is None:
        text = f"No available key material pending rotation for the key: {key.arn}."
        raise error("KMSInvalidStateException", text)
    material = replace(key.pending, rotation=ON_DEMAND, created_at=now)
    return replace(key, materials=(*key.materials, material), pending=None, imported_id=material.id)


def _check_symmetric(key: KmsKey, *, on_demand: bool = False) -> None:
    """Refuse a key that is never rotated; KMS refuses to rotate it on demand with an empty message (recorded)."""
    if not key.symmetric:
        text = f"{key.arn} is not a symmetric encryption key: only those are rotated."
        raise unsupported("" if on_demand else text)


def _as_structure(key: KmsKey, material: Material) -> Structure:
    members: Structure = {
        "KeyId": key.arn,
        "KeyMaterialId": material.id,
        "KeyMaterialState": "CURRENT" if material is key.current else "NON_CURRENT",
    }
    if material.rotation:
        members |= {"RotationDate": material.created_at, "RotationType": material.rotation}
    return members
