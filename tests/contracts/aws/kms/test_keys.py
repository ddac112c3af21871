"""Keys: described as recorded, found by every name they have, switched, rotated and given up."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.contracts.aws.kms.keys import ACCOUNT, DAY, OTHER, ROOT, UNKNOWN, kms_of, metadata, new_key, policy
from tests.contracts.aws.sqs.client import refused
from tests.services.clients import Client
from tests.services.server import Server


def test_a_key_is_described_as_recorded(kms: Client) -> None:
    made = kms.create_key(Description="orders", Tags=[{"TagKey": "team", "TagValue": "rental"}])[
        "KeyMetadata"
    ]
    key_id = made["KeyId"]

    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", key_id)
    assert re.fullmatch(r"[0-9a-f]{64}", made.pop("CurrentKeyMaterialId"))
    assert made.pop("CreationDate")
    assert made == {
        "AWSAccountId": ACCOUNT,
        "Arn": f"arn:aws:kms:us-east-1:{ACCOUNT}:key/{key_id}",
        "CustomerMasterKeySpec": "SYMMETRIC_DEFAULT",
        "Description": "orders",
        "Enabled": True,
        "EncryptionAlgorithms": ["SYMMETRIC_DEFAULT"],
        "KeyId": key_id,
        "KeyManager": "CUSTOMER",
        "KeySpec": "SYMMETRIC_DEFAULT",
        "KeyState": "Enabled",
        "KeyUsage": "ENCRYPT_DECRYPT",
        "MultiRegion": False,
        "Origin": "AWS_KMS",
    }
    assert kms.list_resource_tags(KeyId=key_id)["Tags"] == [{"TagKey": "team", "TagValue": "rental"}]


def test_a_key_has_four_names(kms: Client) -> None:
    arn = new_key(kms)
    kms.create_alias(AliasName="alias/orders", TargetKeyId=arn)
    alias_arn = f"arn:aws:kms:us-east-1:{ACCOUNT}:alias/orders"

    for name in (arn, arn.rpartition("/")[2], "alias/orders", alias_arn):
        assert metadata(kms, name)["Arn"] == arn
    (alias,) = kms.list_aliases(KeyId=arn)["Aliases"]
    assert (alias["AliasName"], alias["AliasArn"], alias["TargetKeyId"]) == (
        "alias/orders",
        alias_arn,
        arn.rpartition("/")[2],
    )


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (UNKNOWN, f"Key 'arn:aws:kms:us-east-1:{ACCOUNT}:key/{UNKNOWN}' does not exist"),
        ("fake-key-id", "Invalid keyId 'fake-key-id'"),
        (f"arn:aws:kms:eu-west-1:{ACCOUNT}:key/{UNKNOWN}", "Invalid arn eu-west-1"),
        ("alias/none", f"Alias arn:aws:kms:us-east-1:{ACCOUNT}:alias/none is not found."),
        ("alias/aws/none", f"Alias arn:aws:kms:us-east-1:{ACCOUNT}:alias/aws/none is not found."),
    ],
)
def test_names_of_no_key_are_not_found(kms: Client, key: str, text: str) -> None:
    with refused("NotFoundException", text):
        kms.describe_key(KeyId=key)


def test_lists_are_paged(server: Server, kms: Client) -> None:
    keys = {new_key(kms) for _ in range(3)}
    first = kms.list_keys(Limit=2)
    rest = kms.list_keys(Limit=2, Marker=first["NextMarker"])

    assert (first["Truncated"], rest["Truncated"]) == (True, False)
    assert {key["KeyArn"] for key in first["Keys"] + rest["Keys"]} == keys
    with refused("InvalidMarkerException"):
        kms.list_keys(Marker="*")
    assert kms_of(server, OTHER).list_keys()["Keys"] == []


# ---- aliases -----------------------------------------------------------------------------------------------------------


def test_an_alias_moves_to_another_key(kms: Client) -> None:
    old, new = new_key(kms), new_key(kms)
    kms.create_alias(AliasName="alias/a/b_c-d", TargetKeyId=old)
    with refused(
        "AlreadyExistsException",
        f"An alias with the name arn:aws:kms:us-east-1:{ACCOUNT}:alias/a/b_c-d already exists",
    ):
        kms.create_alias(AliasName="alias/a/b_c-d", TargetKeyId=new)
    kms.update_alias(AliasName="alias/a/b_c-d", TargetKeyId=new)
    assert metadata(kms, "alias/a/b_c-d")["Arn"] == new
    kms.delete_alias(AliasName="alias/a/b_c-d")
    with refused("NotFoundException"):
        kms.describe_key(KeyId="alias/a/b_c-d")


def test_aliases_that_nobody_can_have(kms: Client) -> None:
    key = new_key(kms)
    with refused(
        "ValidationException",
        'Alias must start with the prefix "alias/". Please see'
        " https://docs.aws.amazon.com/kms/latest/developerguide/kms-alias.html",
    ):
        kms.create_alias(AliasName="orders", TargetKeyId=key)
    with refused("NotAuthorizedException"):
        kms.create_alias(AliasName="alias/aws/sqs", TargetKeyId=key)
    with refused("InvalidAliasNameException"):
        kms.create_alias(AliasName="alias/a:b", TargetKeyId=key)
    with refused("ValidationException", "Aliases must refer to keys. Not aliases"):
        kms.create_alias(AliasName="alias/b", TargetKeyId="alias/a")


def test_a_services_own_key_appears_when_it_is_asked_for(kms: Client) -> None:
    shown = metadata(kms, "alias/aws/sqs")
    assert (shown["KeyManager"], shown["KeyState"]) == ("AWS", "Enabled")
    assert metadata(kms, "alias/aws/sqs")["KeyId"] == shown["KeyId"]
    with refused("AccessDeniedException"):  # it is used through the service alone
        kms.encrypt(KeyId="alias/aws/sqs", Plaintext=b"x")
    with refused("AccessDeniedException"):
        kms.disable_key(KeyId=shown["KeyId"])


# ---- policies and tags -------------------------------------------------------------------------------------------------


def test_the_default_policy_gives_the_account_everything(kms: Client) -> None:
    key = new_key(kms)
    answer = kms.get_key_policy(KeyId=key, PolicyName="default")
    assert json.loads(answer["Policy"]) == {
        "Version": "2012-10-17",
        "Id": "key-default-1",
        "Statement": [
            {
                "Sid": "Enable IAM User Permissions",
                "Effect": "Allow",
                "Principal": {"AWS": ROOT},
                "Action": "kms:*",
                "Resource": "*",
            }
        ],
    }
    assert kms.list_key_policies(KeyId=key)["PolicyNames"] == ["default"]


def test_a_policy_that_locks_its_author_out_is_refused(kms: Client) -> None:
    key = new_key(kms)
    locked = policy(owner=f"arn:aws:iam::{OTHER}:root")
    text = "The new key policy will not allow you to update the key policy in the future."
    with refused("MalformedPolicyDocumentException", text):
        kms.put_key_policy(KeyId=key, Policy=locked)
    with refused("MalformedPolicyDocumentException"):
        kms.put_key_policy(KeyId=key, Policy="{")
    with refused("MalformedPolicyDocumentException", text):
        kms.create_key(Policy=locked)
    kms.put_key_policy(KeyId=key, Policy=locked, BypassPolicyLockoutSafetyCheck=True)
    with refused("AccessDeniedException"):
        kms.get_key_policy(KeyId=key)


def test_tags(kms: Client) -> None:
    key = new_key(kms)
    kms.tag_resource(KeyId=key, Tags=[{"TagKey": "a", "TagValue": "1"}, {"TagKey": "b", "TagValue": "2"}])
    kms.untag_resource(KeyId=key, TagKeys=["a"])
    assert kms.list_resource_tags(KeyId=key)["Tags"] == [{"TagKey": "b", "TagValue": "2"}]
    for tags, text in (
        ([("a", "1"), ("a", "2")], "Duplicate tag keys"),
        ([("aws:x", "1")], "Tags beginning with aws: are reserved"),
        ([(str(number), "") for number in range(51)], "Too many tags"),
    ):
        with refused("TagException", text):
            kms.tag_resource(KeyId=key, Tags=[{"TagKey": name, "TagValue": value} for name, value in tags])


# ---- states ------------------------------------------------------------------------------------------------------------

_USES: list[Callable[[Client, str, bytes], Any]] = [
    lambda kms, key, _: kms.encrypt(KeyId=key, Plaintext=b"x"),
    lambda kms, _, blob: kms.decrypt(CiphertextBlob=blob),
    lambda kms, key, _: kms.generate_data_key(KeyId=key, KeySpec="AES_256"),
    lambda kms, key, blob: kms.re_encrypt(CiphertextBlob=blob, DestinationKeyId=key),
    lambda kms, key, _: kms.enable_key_rotation(KeyId=key),
    lambda kms, key, _: kms.disable_key_rotation(KeyId=key),
    lambda kms, key, _: kms.rotate_key_on_demand(KeyId=key),
]


def test_a_disabled_key_does_nothing_until_it_is_enabled(kms: Client) -> None:
    key = new_key(kms)
    blob = kms.encrypt(KeyId=key, Plaintext=b"x")["CiphertextBlob"]
    kms.disable_key(KeyId=key)
    assert (metadata(kms, key)["KeyState"], metadata(kms, key)["Enabled"]) == ("Disabled", False)
    for use in _USES:
        with refused("DisabledException", f"{key} is disabled."):
            use(kms, key, blob)
    kms.enable_key(KeyId=key)
    for use in _USES:
        use(kms, key, blob)


def test_a_key_pending_deletion_does_nothing_and_is_disabled_when_that_is_cancelled(kms: Client) -> None:
    key = new_key(kms)
    blob = kms.encrypt(KeyId=key, Plaintext=b"x")["CiphertextBlob"]
    with refused("KMSInvalidStateException", f"{key} is not pending deletion."):
        kms.cancel_key_deletion(KeyId=key)
    answer = kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=7)
    assert (answer["KeyId"], answer["KeyState"], answer["PendingWindowInDays"]) == (key, "PendingDeletion", 7)
    shown = metadata(kms, key)
    assert (shown["KeyState"], shown["Enabled"], shown["DeletionDate"]) == (
        "PendingDeletion",
        False,
        answer["DeletionDate"],
    )
    text = f"{key} is pending deletion."
    for use in (
        *_USES,
        lambda kms, key, _: kms.enable_key(KeyId=key),
        lambda kms, key, _: kms.disable_key(KeyId=key),
        lambda kms, key, _: kms.schedule_key_deletion(KeyId=key),
        lambda kms, key, _: kms.create_alias(AliasName="alias/late", TargetKeyId=key),
        lambda kms, key, _: kms.tag_resource(KeyId=key, Tags=[]),
        lambda kms, key, _: kms.update_key_description(KeyId=key, Description=""),
    ):
        with refused("KMSInvalidStateException", text):
            use(kms, key, blob)
    kms.put_key_policy(KeyId=key, Policy=kms.get_key_policy(KeyId=key)["Policy"])
    assert kms.cancel_key_deletion(KeyId=key)["KeyId"] == key
    assert metadata(kms, key)["KeyState"] == "Disabled"


def test_a_deleted_key_is_gone_with_its_aliases_and_nothing_opens_what_it_encrypted(
    server: Server, kms: Client
) -> None:
    key = new_key(kms)
    kms.create_alias(AliasName="alias/gone", TargetKeyId=key)
    blob = kms.encrypt(KeyId=key, Plaintext=b"x")["CiphertextBlob"]
    kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=7)
    server.advance(7 * DAY - 60)
    assert metadata(kms, key)["KeyState"] == "PendingDeletion"
    server.advance(60)
    with refused("NotFoundException", f"Key '{key}' does not exist"):
        kms.describe_key(KeyId=key)
    with refused("AccessDeniedException"):
        kms.decrypt(CiphertextBlob=blob)
    assert kms.list_aliases()["Aliases"] == []
    assert kms.list_keys()["Keys"] == []


@pytest.mark.parametrize("days", [6, 31])
def test_the_waiting_period_has_bounds(kms: Client, days: int) -> None:
    key = new_key(kms)
    with refused("ValidationException"):
        kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=days)


# ---- rotation ----------------------------------------------------------------------------------------------------------


def test_rotation_keeps_what_was_encrypted_before(server: Server, kms: Client) -> None:
    key = new_key(kms)
    first = metadata(kms, key)["CurrentKeyMaterialId"]
    blobs = [kms.encrypt(KeyId=key, Plaintext=b"0")["CiphertextBlob"]]
    kms.rotate_key_on_demand(KeyId=key)
    blobs.append(kms.encrypt(KeyId=key, Plaintext=b"1")["CiphertextBlob"])
    kms.enable_key_rotation(KeyId=key, RotationPeriodInDays=90)
    assert kms.get_key_rotation_status(KeyId=key)["RotationPeriodInDays"] == 90
    server.advance(90 * DAY + 1)
    blobs.append(kms.encrypt(KeyId=key, Plaintext=b"2")["CiphertextBlob"])

    assert [kms.decrypt(CiphertextBlob=blob)["Plaintext"] for blob in blobs] == [b"0", b"1", b"2"]
    materials = [kms.decrypt(CiphertextBlob=blob)["KeyMaterialId"] for blob in blobs]
    assert materials[0] == first
    assert len(set(materials)) == 3
    rotations = kms.list_key_rotations(KeyId=key)["Rotations"]
    assert [
        (each["RotationType"], each["KeyMaterialId"], each["KeyMaterialState"]) for each in rotations
    ] == [
        ("ON_DEMAND", materials[1], "NON_CURRENT"),
        ("AUTOMATIC", materials[2], "CURRENT"),
    ]
    assert len(kms.list_key_rotations(KeyId=key, IncludeKeyMaterial="ALL_KEY_MATERIAL")["Rotations"]) == 3
    kms.disable_key_rotation(KeyId=key)
    assert kms.get_key_rotation_status(KeyId=key)["KeyRotationEnabled"] is False


def test_a_key_is_rotated_on_demand_25_times(kms: Client) -> None:
    key = new_key(kms)
    for _ in range(25):
        kms.rotate_key_on_demand(KeyId=key)
    text = (
        "The on-demand rotations limit has been reached for the given keyId. No more on-demand rotations can be performed"
        f" for this key: {metadata(kms, key)['Arn']}"
    )
    with refused("LimitExceededException", text):
        kms.rotate_key_on_demand(KeyId=key)


# ---- what is not there -------------------------------------------------------------------------------------------------


def test_kinds_of_keys_and_operations_that_are_not_offered_are_refused(server: Server, kms: Client) -> None:
    for params in ({"KeySpec": "SM2", "KeyUsage": "SIGN_VERIFY"}, {"Origin": "AWS_CLOUDHSM"}):
        with refused("UnsupportedOperationException"):
            kms.create_key(**params)
    with refused(
        "UnknownOperationException", "Redrive does not offer the operation kms CreateCustomKeyStore."
    ):
        kms.create_custom_key_store(CustomKeyStoreName="x")
    with refused("ValidationException"):
        kms.create_key(KeyUsage="SIGN_VERIFY")
    assert kms_of(server, region="eu-west-1").list_keys()["Keys"] == []
