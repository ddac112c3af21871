"""Keys as KMS describes them."""

from redrive.aws.kms.records import ENABLED, KmsKey, key_arn
from redrive.aws.kms.specs import ALGORITHM_MEMBERS, algorithms_of
from redrive.aws.wire.shapes import Structure


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

    def placed(region: str) -> Structure:
        return {"Arn": key_arn(key.name._replace(region=region)), "Region": region}

    return {
        "MultiRegionKeyType": "PRIMARY" if is_primary else "REPLICA",
        "PrimaryKey": placed(key.primary_region),
        "ReplicaKeys": [placed(region) for region in key.replica_regions],
    }
