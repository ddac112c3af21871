"""RSA, elliptic curves and HMAC, imported material, grants and multi-Region keys."""

from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.keywrap import aes_key_wrap_with_padding
from cryptography.hazmat.primitives.serialization import load_der_public_key

from tests.contracts.aws.kms.keys import ACCOUNT, DAY, OTHER, UNKNOWN, kms_of, metadata, new_key
from tests.contracts.aws.sqs.client import refused
from tests.services.clients import Client
from tests.services.server import Server

MESSAGE = b"an order"
OTHER_ROOT = f"arn:aws:iam::{OTHER}:root"
SHA256 = hashes.SHA256()


def oaep(digest: hashes.HashAlgorithm) -> padding.OAEP:
    return padding.OAEP(padding.MGF1(digest), digest, None)


# ---- signatures, encryption and codes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "algorithm"),
    [
        ("RSA_2048", "RSASSA_PSS_SHA_256"),
        ("RSA_2048", "RSASSA_PKCS1_V1_5_SHA_512"),
        ("ECC_NIST_P256", "ECDSA_SHA_256"),
        ("ECC_NIST_P384", "ECDSA_SHA_384"),
        ("ECC_NIST_P521", "ECDSA_SHA_512"),
        ("ECC_SECG_P256K1", "ECDSA_SHA_256"),
    ],
)
def test_signatures_are_verified_by_their_message_alone(kms: Client, spec: str, algorithm: str) -> None:
    key = new_key(kms, KeySpec=spec, KeyUsage="SIGN_VERIFY")
    params: dict[str, Any] = {"KeyId": key, "SigningAlgorithm": algorithm}
    signature = kms.sign(Message=MESSAGE, **params)["Signature"]
    digest = hashes.Hash({"256": SHA256, "384": hashes.SHA384(), "512": hashes.SHA512()}[algorithm[-3:]])
    digest.update(MESSAGE)
    hashed = digest.finalize()

    assert kms.verify(Message=MESSAGE, Signature=signature, **params)["SignatureValid"] is True
    assert kms.verify(Message=hashed, MessageType="DIGEST", Signature=signature, **params)["SignatureValid"]
    with refused("KMSInvalidSignatureException"):
        kms.verify(Message=b"another", Signature=signature, **params)
    with refused("ValidationException"):
        kms.sign(Message=b"short", MessageType="DIGEST", **params)
    with refused("ValidationException"):
        kms.sign(KeyId=key, Message=MESSAGE, SigningAlgorithm="SM2DSA")
    shown = metadata(kms, key)
    assert algorithm in shown["SigningAlgorithms"]
    assert "CurrentKeyMaterialId" not in shown
    with refused(
        "InvalidKeyUsageException", f"{key} key usage is SIGN_VERIFY which is not valid for Encrypt."
    ):
        kms.encrypt(KeyId=key, Plaintext=b"x")
    with refused("UnsupportedOperationException"):
        kms.enable_key_rotation(KeyId=key)


def test_public_keys_encrypt_and_verify_outside(kms: Client) -> None:
    encrypts = new_key(kms, KeySpec="RSA_2048", KeyUsage="ENCRYPT_DECRYPT")
    shown = kms.get_public_key(KeyId=encrypts)
    public: Any = load_der_public_key(shown["PublicKey"])
    assert (shown["KeySpec"], public.key_size) == ("RSA_2048", 2048)
    blob = public.encrypt(MESSAGE, oaep(SHA256))
    opened = kms.decrypt(KeyId=encrypts, CiphertextBlob=blob, EncryptionAlgorithm="RSAES_OAEP_SHA_256")
    assert opened["Plaintext"] == MESSAGE
    sealed = kms.encrypt(KeyId=encrypts, Plaintext=MESSAGE, EncryptionAlgorithm="RSAES_OAEP_SHA_1")
    again = kms.re_encrypt(
        CiphertextBlob=sealed["CiphertextBlob"],
        SourceKeyId=encrypts,
        SourceEncryptionAlgorithm="RSAES_OAEP_SHA_1",
        DestinationKeyId=new_key(kms),
    )
    assert kms.decrypt(CiphertextBlob=again["CiphertextBlob"])["Plaintext"] == MESSAGE
    with refused("InvalidCiphertextException"):
        kms.decrypt(KeyId=encrypts, CiphertextBlob=b"x" * 256, EncryptionAlgorithm="RSAES_OAEP_SHA_256")
    with refused("ValidationException"):
        kms.encrypt(KeyId=encrypts, Plaintext=b"x" * 300, EncryptionAlgorithm="RSAES_OAEP_SHA_256")

    signs = new_key(kms, KeySpec="ECC_NIST_P256", KeyUsage="SIGN_VERIFY")
    signature = kms.sign(KeyId=signs, Message=MESSAGE, SigningAlgorithm="ECDSA_SHA_256")["Signature"]
    curve: Any = load_der_public_key(kms.get_public_key(KeyId=signs)["PublicKey"])
    curve.verify(signature, MESSAGE, ec.ECDSA(SHA256))


@pytest.mark.parametrize("bits", [224, 256, 384, 512])
def test_codes_are_verified_by_their_message_alone(kms: Client, bits: int) -> None:
    key = new_key(kms, KeySpec=f"HMAC_{bits}", KeyUsage="GENERATE_VERIFY_MAC")
    params = {"KeyId": key, "MacAlgorithm": f"HMAC_SHA_{bits}"}
    mac = kms.generate_mac(Message=MESSAGE, **params)["Mac"]
    assert len(mac) == bits // 8
    assert kms.verify_mac(Message=MESSAGE, Mac=mac, **params)["MacValid"] is True
    with refused("KMSInvalidMacException"):
        kms.verify_mac(Message=b"another", Mac=mac, **params)
    with refused("UnsupportedOperationException"):
        kms.get_public_key(KeyId=key)


def test_pairs_of_data_keys(kms: Client) -> None:
    key = new_key(kms)
    pair = kms.generate_data_key_pair(KeyId=key, KeyPairSpec="ECC_NIST_P256", EncryptionContext={"a": "b"})
    opened = kms.decrypt(CiphertextBlob=pair["PrivateKeyCiphertextBlob"], EncryptionContext={"a": "b"})
    assert opened["Plaintext"] == pair["PrivateKeyPlaintext"]
    hidden = kms.generate_data_key_pair_without_plaintext(KeyId=key, KeyPairSpec="RSA_2048")
    assert "PrivateKeyPlaintext" not in hidden
    assert load_der_public_key(hidden["PublicKey"])


# ---- imported material ----------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["RSAES_OAEP_SHA_256", "RSA_AES_KEY_WRAP_SHA_256"])
def test_imported_material_serves_until_it_expires_and_can_come_back(
    server: Server, kms: Client, algorithm: str
) -> None:
    key = new_key(kms, Origin="EXTERNAL")
    assert metadata(kms, key)["KeyState"] == "PendingImport"
    with refused("KMSInvalidStateException", f"{key} is pending import."):
        kms.encrypt(KeyId=key, Plaintext=b"x")
    material = bytes(range(32))

    def imported(content: bytes, **params: Any) -> Any:
        given = kms.get_parameters_for_import(
            KeyId=key, WrappingAlgorithm=algorithm, WrappingKeySpec="RSA_2048"
        )
        public: Any = load_der_public_key(given["PublicKey"])
        wrapped = public.encrypt(content, oaep(SHA256))
        if "AES_KEY" in algorithm:
            wrapped = public.encrypt(b"k" * 32, oaep(SHA256)) + aes_key_wrap_with_padding(b"k" * 32, content)
        return kms.import_key_material(
            KeyId=key, ImportToken=given["ImportToken"], EncryptedKeyMaterial=wrapped, **params
        )

    valid_to = server.now() + DAY
    imported(material, ValidTo=valid_to)
    assert metadata(kms, key)["ExpirationModel"] == "KEY_MATERIAL_EXPIRES"
    blob = kms.encrypt(KeyId=key, Plaintext=b"x")["CiphertextBlob"]
    server.advance(DAY)
    with refused("KMSInvalidStateException"):
        kms.decrypt(CiphertextBlob=blob)
    with refused("IncorrectKeyMaterialException"):
        imported(bytes(32), ExpirationModel="KEY_MATERIAL_DOES_NOT_EXPIRE")
    with refused("IncorrectKeyMaterialException"):
        imported(b"short", ExpirationModel="KEY_MATERIAL_DOES_NOT_EXPIRE")
    imported(material, ExpirationModel="KEY_MATERIAL_DOES_NOT_EXPIRE")
    assert kms.decrypt(CiphertextBlob=blob)["Plaintext"] == b"x"
    kms.delete_imported_key_material(KeyId=key)
    assert metadata(kms, key)["KeyState"] == "PendingImport"
    with refused("InvalidImportTokenException"):
        kms.import_key_material(
            KeyId=key,
            ImportToken=b"x",
            EncryptedKeyMaterial=b"x",
            ExpirationModel="KEY_MATERIAL_DOES_NOT_EXPIRE",
        )


# ---- grants ----------------------------------------------------------------------------


def test_a_grant_allows_without_a_policy_until_it_is_revoked(server: Server, kms: Client) -> None:
    key, stranger = new_key(kms), kms_of(server, OTHER)
    blob = kms.encrypt(KeyId=key, Plaintext=b"x", EncryptionContext={"a": "1", "b": "2"})["CiphertextBlob"]
    context = {"a": "1", "b": "2"}
    with refused("AccessDeniedException"):
        stranger.decrypt(CiphertextBlob=blob, EncryptionContext=context)
    wanted: dict[str, Any] = {
        "KeyId": key,
        "GranteePrincipal": OTHER_ROOT,
        "Operations": ["Decrypt"],
        "Name": "once",
        "Constraints": {"EncryptionContextSubset": {"a": "1"}},
    }
    made = kms.create_grant(**wanted)
    assert kms.create_grant(**wanted)["GrantId"] == made["GrantId"]
    assert stranger.decrypt(CiphertextBlob=blob, EncryptionContext=context)["Plaintext"] == b"x"
    with refused("AccessDeniedException"):
        stranger.encrypt(KeyId=key, Plaintext=b"x")
    other = kms.encrypt(KeyId=key, Plaintext=b"x")["CiphertextBlob"]
    with refused("AccessDeniedException"):
        stranger.decrypt(CiphertextBlob=other)
    (grant,) = kms.list_grants(KeyId=key)["Grants"]
    assert (grant["GrantId"], grant["Name"], grant["GranteePrincipal"], grant["Constraints"]) == (
        made["GrantId"],
        "once",
        OTHER_ROOT,
        wanted["Constraints"],
    )
    kms.revoke_grant(KeyId=key, GrantId=made["GrantId"])
    with refused("AccessDeniedException"):
        stranger.decrypt(CiphertextBlob=blob, EncryptionContext=context)
    with refused("NotFoundException"):
        kms.revoke_grant(KeyId=key, GrantId=made["GrantId"])


def test_a_grant_is_retired_by_whom_it_names(server: Server, kms: Client) -> None:
    key = new_key(kms)
    root = f"arn:aws:iam::{ACCOUNT}:root"
    made = kms.create_grant(
        KeyId=key, GranteePrincipal=OTHER_ROOT, RetiringPrincipal=root, Operations=["Decrypt"]
    )
    assert [each["GrantId"] for each in kms.list_retirable_grants(RetiringPrincipal=root)["Grants"]] == [
        made["GrantId"]
    ]
    service = "lambda.amazonaws.com"
    assert kms.list_retirable_grants(RetiringServicePrincipal=service)["Grants"] == []
    for principals in ({}, {"RetiringPrincipal": root, "RetiringServicePrincipal": service}):
        with refused("ValidationException"):
            kms.list_retirable_grants(**principals)
    with refused("AccessDeniedException"):
        kms_of(server, OTHER).retire_grant(KeyId=key, GrantId=made["GrantId"])
    kms.retire_grant(GrantToken=made["GrantToken"])
    assert kms.list_grants(KeyId=key)["Grants"] == []
    with refused("InvalidGrantTokenException"):
        kms.retire_grant(GrantToken=made["GrantToken"])
    with refused("ValidationException"):
        kms.create_grant(KeyId=key, GranteePrincipal=root, Operations=["Sign"])
    kms.disable_key(KeyId=key)
    with refused("DisabledException"):
        kms.create_grant(KeyId=key, GranteePrincipal=root, Operations=["Decrypt"])


# ---- several regions ----------------------------------------------------------------------------


def test_replicas_open_what_their_primary_encrypted(server: Server, kms: Client) -> None:
    key = new_key(kms, MultiRegion=True)
    key_id = key.rpartition("/")[2]
    assert key_id.startswith("mrk-")
    there = kms_of(server, region="eu-west-1")
    with refused("NotFoundException"):
        there.describe_key(KeyId=key_id)
    replica = kms.replicate_key(KeyId=key, ReplicaRegion="eu-west-1")["ReplicaKeyMetadata"]
    assert replica["MultiRegionConfiguration"]["MultiRegionKeyType"] == "REPLICA"
    assert metadata(there, key_id)["KeyState"] == "Enabled", "said to be made, and soon there"
    blob = kms.encrypt(KeyId=key, Plaintext=b"x")["CiphertextBlob"]
    assert there.decrypt(CiphertextBlob=blob)["KeyId"] == replica["Arn"]
    configuration = metadata(kms, key)["MultiRegionConfiguration"]
    assert (
        configuration["MultiRegionKeyType"],
        [each["Region"] for each in configuration["ReplicaKeys"]],
    ) == (
        "PRIMARY",
        ["eu-west-1"],
    )
    with refused("AlreadyExistsException"):
        kms.replicate_key(KeyId=key, ReplicaRegion="eu-west-1")
    with refused("KMSInvalidStateException"):
        kms.schedule_key_deletion(KeyId=key)
    kms.update_primary_region(KeyId=key, PrimaryRegion="eu-west-1")
    assert metadata(there, key_id)["MultiRegionConfiguration"]["MultiRegionKeyType"] == "PRIMARY"
    kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=7)
    server.advance(7 * DAY)
    with refused("NotFoundException"):
        kms.describe_key(KeyId=key)
    assert metadata(there, key_id)["MultiRegionConfiguration"]["ReplicaKeys"] == []
    with refused("UnsupportedOperationException"):
        kms.replicate_key(KeyId=new_key(kms), ReplicaRegion="eu-west-1")
    with refused("NotFoundException"):
        kms.replicate_key(KeyId=UNKNOWN, ReplicaRegion="eu-west-1")
