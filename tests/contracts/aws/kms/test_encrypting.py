"""Encrypt, Decrypt, ReEncrypt and data keys, for whom the key policy lets."""

import pytest

from tests.contracts.aws.kms.keys import ACCOUNT, OTHER, ROOT, allow, kms_of, new_key, policy
from tests.contracts.aws.sqs.client import refused
from tests.services.clients import Client
from tests.services.server import Server

CONTEXT = {"tenant": "7", "purpose": "orders"}


def test_a_ciphertext_is_opened_without_naming_its_key(kms: Client) -> None:
    key = new_key(kms)
    sealed = kms.encrypt(KeyId=key, Plaintext=b"secret", EncryptionContext=CONTEXT)
    assert (sealed["KeyId"], sealed["EncryptionAlgorithm"]) == (key, "SYMMETRIC_DEFAULT")
    assert b"secret" not in sealed["CiphertextBlob"]

    opened = kms.decrypt(
        CiphertextBlob=sealed["CiphertextBlob"], EncryptionContext=dict(reversed(CONTEXT.items()))
    )
    assert (opened["KeyId"], opened["Plaintext"]) == (key, b"secret")


@pytest.mark.parametrize(
    "context", [{}, {"tenant": "7"}, {"Tenant": "7", "purpose": "orders"}, {**CONTEXT, "x": ""}]
)
def test_another_context_opens_nothing(kms: Client, context: dict[str, str]) -> None:
    blob = kms.encrypt(KeyId=new_key(kms), Plaintext=b"x", EncryptionContext=CONTEXT)["CiphertextBlob"]
    with refused("InvalidCiphertextException", ""):
        kms.decrypt(CiphertextBlob=blob, EncryptionContext=context)


def test_a_damaged_ciphertext_opens_nothing(kms: Client) -> None:
    blob: bytes = kms.encrypt(KeyId=new_key(kms), Plaintext=b"x")["CiphertextBlob"]
    for damaged in (b"", b"x", blob[:-1], blob[:-1] + bytes([blob[-1] ^ 1]), b"\2" + blob[1:], blob[:30]):
        with refused("ValidationException" if not damaged else "InvalidCiphertextException"):
            kms.decrypt(CiphertextBlob=damaged)


def test_another_key_opens_nothing(kms: Client) -> None:
    blob = kms.encrypt(KeyId=new_key(kms), Plaintext=b"x")["CiphertextBlob"]
    text = "The key ID in the request does not identify a CMK that can perform this operation."
    with refused("IncorrectKeyException", text):
        kms.decrypt(CiphertextBlob=blob, KeyId=new_key(kms))


def test_reencryption(kms: Client) -> None:
    old, new = new_key(kms), new_key(kms)
    blob = kms.encrypt(KeyId=old, Plaintext=b"x", EncryptionContext=CONTEXT)["CiphertextBlob"]
    answer = kms.re_encrypt(
        CiphertextBlob=blob,
        SourceEncryptionContext=CONTEXT,
        DestinationKeyId=new,
        DestinationEncryptionContext={"tenant": "8"},
    )
    assert (answer["SourceKeyId"], answer["KeyId"]) == (old, new)
    opened = kms.decrypt(CiphertextBlob=answer["CiphertextBlob"], EncryptionContext={"tenant": "8"})
    assert (opened["KeyId"], opened["Plaintext"]) == (new, b"x")


def test_data_keys(kms: Client) -> None:
    key = new_key(kms)
    for params, length in (
        ({"KeySpec": "AES_256"}, 32),
        ({"KeySpec": "AES_128"}, 16),
        ({"NumberOfBytes": 1024}, 1024),
    ):
        made = kms.generate_data_key(KeyId=key, EncryptionContext=CONTEXT, **params)
        assert (made["KeyId"], len(made["Plaintext"])) == (key, length)
        opened = kms.decrypt(CiphertextBlob=made["CiphertextBlob"], EncryptionContext=CONTEXT)
        assert opened["Plaintext"] == made["Plaintext"]
    hidden = kms.generate_data_key_without_plaintext(KeyId=key, KeySpec="AES_256")
    assert "Plaintext" not in hidden
    assert len(kms.decrypt(CiphertextBlob=hidden["CiphertextBlob"])["Plaintext"]) == 32
    for params in ({}, {"KeySpec": "AES_256", "NumberOfBytes": 32}):
        with refused("ValidationException"):
            kms.generate_data_key(KeyId=key, **params)


def test_limits(kms: Client) -> None:
    key = new_key(kms)
    kms.encrypt(KeyId=key, Plaintext=b"x" * 4096)
    with refused("ValidationException"):
        kms.encrypt(KeyId=key, Plaintext=b"x" * 4097)
    with refused("ValidationException"):
        kms.encrypt(KeyId=key, Plaintext=b"x", EncryptionContext={"k": "v" * 8192})
    with refused("ValidationException", "NumberOfBytes is required."):
        kms.generate_random()
    assert len(kms.generate_random(NumberOfBytes=1024)["Plaintext"]) == 1024
    with refused(
        "DryRunOperationException", "The request would have succeeded, but the DryRun option is set."
    ):
        kms.encrypt(KeyId=key, Plaintext=b"x", DryRun=True)


# ---- key policies ------------------------------------------------------------------------------------------------------


def test_only_whom_the_key_policy_names_may_use_a_key(server: Server, kms: Client) -> None:
    key = new_key(kms, Policy=policy(allow({"AWS": ROOT}, "kms:Encrypt")))
    blob = kms.encrypt(KeyId=key, Plaintext=b"x")["CiphertextBlob"]
    text = (
        f"User: {ROOT} is not authorized to perform: kms:Decrypt on resource: {key} because no resource-based policy"
        " allows the kms:Decrypt action"
    )
    with refused("AccessDeniedException", text):
        kms.decrypt(CiphertextBlob=blob)
    stranger = kms_of(server, OTHER)
    with refused("AccessDeniedException"):
        stranger.decrypt(CiphertextBlob=blob)
    everyone = policy(allow({"AWS": [ROOT, OTHER]}, "kms:Decrypt", "kms:Encrypt"))
    kms.put_key_policy(KeyId=key, Policy=everyone)
    assert kms.decrypt(CiphertextBlob=blob)["Plaintext"] == b"x"
    assert stranger.decrypt(CiphertextBlob=blob)["Plaintext"] == b"x"
    with refused("AccessDeniedException"):  # to administer a key is not another account's
        stranger.disable_key(KeyId=key)
    denied = {"Effect": "Deny", "Principal": "*", "Action": "kms:Decrypt", "Resource": "*"}
    kms.put_key_policy(KeyId=key, Policy=policy(allow({"AWS": [ROOT, OTHER]}, "kms:*"), denied))
    with refused(
        "AccessDeniedException",
        f"User: {ROOT} is not authorized to perform: kms:Decrypt on resource: {key} with an explicit deny in a"
        " resource-based policy",
    ):
        kms.decrypt(CiphertextBlob=blob)


def test_conditions_see_the_encryption_context(kms: Client) -> None:
    condition = {
        "StringEquals": {"kms:EncryptionContext:tenant": "7", "kms:CallerAccount": ACCOUNT},
        "ForAllValues:StringEquals": {"kms:EncryptionContextKeys": ["tenant", "purpose"]},
    }
    key = new_key(kms, Policy=policy(allow({"AWS": ROOT}, "kms:Encrypt", Condition=condition)))
    kms.encrypt(KeyId=key, Plaintext=b"x", EncryptionContext=CONTEXT)
    for context in ({}, {"tenant": "8"}, {"tenant": "7", "more": "x"}):
        with refused("AccessDeniedException"):
            kms.encrypt(KeyId=key, Plaintext=b"x", EncryptionContext=context)
