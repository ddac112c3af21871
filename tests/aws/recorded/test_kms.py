"""KMS's recorded answers."""

import re
from datetime import timedelta
from typing import Any

import orjson
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

from tests.aws.stage import Stage, on_stage, signed
from tests.aws.wire.clients import moment


def test_dates_are_those_of_the_clock() -> None:
    async def play(stage: Stage) -> None:
        now = moment(stage.server.core.runtime.clock.now())
        made = (await stage.call(stage.root, "kms", "CreateKey"))["KeyMetadata"]
        key = {"KeyId": made["KeyId"]}
        await stage.call(stage.root, "kms", "CreateAlias", AliasName="alias/cars", TargetKeyId=made["KeyId"])
        (alias,) = (await stage.call(stage.root, "kms", "ListAliases", **key))["Aliases"]
        await stage.call(stage.root, "kms", "EnableKeyRotation", **key, RotationPeriodInDays=90)
        rotation = await stage.call(stage.root, "kms", "GetKeyRotationStatus", **key)
        deletion = await stage.call(stage.root, "kms", "ScheduleKeyDeletion", **key, PendingWindowInDays=7)
        assert [made["CreationDate"], alias["CreationDate"], alias["LastUpdatedDate"]] == [now] * 3
        assert rotation["NextRotationDate"] == now + timedelta(days=90)
        assert deletion["DeletionDate"] == now + timedelta(days=7)

    on_stage(play)


async def key_of(stage: Stage, **params: Any) -> dict[str, Any]:
    """A new key, as it is described."""
    made: dict[str, Any] = (await stage.call(stage.root, "kms", "CreateKey", **params))["KeyMetadata"]
    return made


@pytest.mark.parametrize(
    ("spec", "algorithm", "most"),
    [
        ("RSA_2048", "RSAES_OAEP_SHA_256", 190),
        ("RSA_2048", "RSAES_OAEP_SHA_1", 214),
        ("RSA_3072", "RSAES_OAEP_SHA_1", 342),
    ],
)
def test_a_plaintext_that_is_too_long_is_told_the_limit(spec: str, algorithm: str, most: int) -> None:
    async def play(stage: Stage) -> None:
        key = {"KeyId": (await key_of(stage, KeySpec=spec, KeyUsage="ENCRYPT_DECRYPT"))["KeyId"]}
        params = {**key, "EncryptionAlgorithm": algorithm}
        await stage.call(stage.root, "kms", "Encrypt", **params, Plaintext=b"x" * most)
        refusal = await stage.refusal(stage.root, "kms", "Encrypt", **params, Plaintext=b"x" * (most + 1))
        text = f"Algorithm {algorithm} and key spec {spec} cannot encrypt data larger than {most} bytes."
        assert refusal == f"ValidationException: {text}"

    on_stage(play, auth="off")


def test_bytes_that_break_a_constraint_are_not_printed() -> None:
    async def play(stage: Stage) -> None:
        for plaintext, length in (
            (b"x" * 4097, "less than or equal to 4096"),
            (b"", "greater than or equal to 1"),
        ):
            refusal = await stage.refusal(stage.root, "kms", "Encrypt", KeyId="k", Plaintext=plaintext)
            assert refusal == (
                "ValidationException: 1 validation error detected: Value at 'plaintext' failed to satisfy constraint:"
                f" Member must have length {length}"
            )

    on_stage(play, auth="off")


def test_codes_of_another_algorithm_are_refused() -> None:
    async def play(stage: Stage) -> None:
        key = {"KeyId": (await key_of(stage, KeySpec="HMAC_224", KeyUsage="GENERATE_VERIFY_MAC"))["KeyId"]}
        for operation, more in (("GenerateMac", {}), ("VerifyMac", {"Mac": b"x"})):
            params = {**key, "Message": b"m", **more}
            refusal = await stage.refusal(stage.root, "kms", operation, **params, MacAlgorithm="HMAC_SHA_256")
            text = "Algorithm HMAC_SHA_256 is incompatible with key spec HMAC_224."
            assert refusal == f"InvalidKeyUsageException: {text}"
            refusal = await stage.refusal(stage.root, "kms", operation, **params, MacAlgorithm="SHA")
            assert refusal.endswith("[HMAC_SHA_384, HMAC_SHA_256, HMAC_SHA_224, HMAC_SHA_512]")

    on_stage(play, auth="off")


def test_a_key_that_cannot_rotate_on_demand_is_refused_without_a_word() -> None:
    async def play(stage: Stage) -> None:
        key = await key_of(stage, KeySpec="ECC_NIST_P256", KeyUsage="SIGN_VERIFY")
        refusal = await stage.refusal(stage.root, "kms", "RotateKeyOnDemand", KeyId=key["KeyId"])
        assert refusal == "UnsupportedOperationException: "
        request = stage.client("kms").request("RotateKeyOnDemand", {"KeyId": key["KeyId"]})
        answer = await stage.send(signed(request, "kms", stage.root))
        assert orjson.loads(answer.body) == {"__type": "UnsupportedOperationException"}

    on_stage(play, auth="off")


def test_a_replica_is_described_as_being_made() -> None:
    async def play(stage: Stage) -> None:
        key = await key_of(stage, MultiRegion=True)
        params = {"KeyId": key["Arn"], "ReplicaRegion": "eu-west-1"}
        answer = await stage.call(stage.root, "kms", "ReplicateKey", **params)
        replica = answer["ReplicaKeyMetadata"]
        assert (replica["KeyState"], replica["Enabled"], replica["Description"]) == ("Creating", False, "")
        assert "CurrentKeyMaterialId" not in replica
        assert "ReplicaTags" not in answer

    on_stage(play, auth="off")


def test_a_replica_is_not_replicated() -> None:
    async def play(stage: Stage) -> None:
        key = await key_of(stage, MultiRegion=True)
        answer = await stage.call(
            stage.root, "kms", "ReplicateKey", KeyId=key["Arn"], ReplicaRegion="eu-west-1"
        )
        await stage.call(
            stage.root, "kms", "UpdatePrimaryRegion", KeyId=key["Arn"], PrimaryRegion="eu-west-1"
        )
        params = {"KeyId": key["Arn"], "ReplicaRegion": "eu-north-1"}
        refusal = await stage.refusal(stage.root, "kms", "ReplicateKey", **params)
        text = f"{key['Arn']} is not a multi-region primary key."
        assert refusal == f"UnsupportedOperationException: {text}"
        assert answer["ReplicaKeyMetadata"]["KeyId"] == key["KeyId"]

    on_stage(play, auth="off")


async def importing(stage: Stage, key_id: str, content: bytes) -> dict[str, Any]:
    """The parameters that import material."""
    wrapping = {"WrappingAlgorithm": "RSAES_OAEP_SHA_256", "WrappingKeySpec": "RSA_2048"}
    parameters = await stage.call(stage.root, "kms", "GetParametersForImport", KeyId=key_id, **wrapping)
    public: Any = load_der_public_key(parameters["PublicKey"])
    oaep = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)
    return {
        "KeyId": key_id,
        "ImportToken": parameters["ImportToken"],
        "EncryptedKeyMaterial": public.encrypt(content, oaep),
    }


def test_imported_material_is_rotated_to_what_was_imported_after_it() -> None:
    async def play(stage: Stage) -> None:
        key = await key_of(stage, Origin="EXTERNAL")
        named = {"KeyId": key["KeyId"]}

        async def brought(content: bytes, **more: str) -> str:
            params = await importing(stage, key["KeyId"], content)
            forever = {"ExpirationModel": "KEY_MATERIAL_DOES_NOT_EXPIRE", **more}
            made = await stage.call(stage.root, "kms", "ImportKeyMaterial", **params, **forever)
            return str(made["KeyMaterialId"])

        async def current() -> str:
            shown = await stage.call(stage.root, "kms", "DescribeKey", **named)
            return str(shown["KeyMetadata"]["CurrentKeyMaterialId"])

        first = await brought(b"1" * 32)
        assert await current() == first
        refusal = await stage.refusal(stage.root, "kms", "RotateKeyOnDemand", **named)
        assert refusal == (
            f"KMSInvalidStateException: No available key material pending rotation for the key: {key['Arn']}."
        )
        old = await stage.call(stage.root, "kms", "Encrypt", **named, Plaintext=b"old")
        second = await brought(b"2" * 32, ImportType="NEW_KEY_MATERIAL")
        assert (await current(), first != second) == (first, True)
        third = await importing(stage, key["KeyId"], b"3" * 32)
        forever = {"ExpirationModel": "KEY_MATERIAL_DOES_NOT_EXPIRE", "ImportType": "NEW_KEY_MATERIAL"}
        refusal = await stage.refusal(stage.root, "kms", "ImportKeyMaterial", **third, **forever)
        told = re.fullmatch(
            r"KMSInvalidStateException: New key material \(id: ([0-9a-f]{64})\) (.*)", refusal
        )
        assert told is not None
        assert told[1] not in (first, second)
        assert told[2] == (
            f"cannot be imported into KMS key {key['Arn']}, because another key material (id: {second}) is pending"
            " rotation."
        )
        await stage.call(stage.root, "kms", "RotateKeyOnDemand", **named)
        assert await current() == second
        opened = await stage.call(stage.root, "kms", "Decrypt", CiphertextBlob=old["CiphertextBlob"])
        assert opened["Plaintext"] == b"old"

    on_stage(play, auth="off")


@pytest.mark.parametrize(
    "curve", [ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()], ids=lambda curve: curve.name
)
def test_two_keys_agree_on_a_secret(curve: ec.EllipticCurve) -> None:
    async def play(stage: Stage) -> None:
        spec = f"ECC_NIST_P{curve.key_size}"
        key = await key_of(stage, KeySpec=spec, KeyUsage="KEY_AGREEMENT")
        assert key["KeyAgreementAlgorithms"] == ["ECDH"]
        named = {"KeyId": key["KeyId"], "KeyAgreementAlgorithm": "ECDH"}
        mine = ec.generate_private_key(curve)
        public = mine.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        answer = await stage.call(stage.root, "kms", "DeriveSharedSecret", **named, PublicKey=public)
        theirs: Any = load_der_public_key(
            (await stage.call(stage.root, "kms", "GetPublicKey", KeyId=key["KeyId"]))["PublicKey"]
        )
        assert answer["SharedSecret"] == mine.exchange(ec.ECDH(), theirs)
        assert (answer["KeyId"], answer["KeyAgreementAlgorithm"], answer["KeyOrigin"]) == (
            key["Arn"],
            "ECDH",
            "AWS_KMS",
        )
        refusal = await stage.refusal(stage.root, "kms", "DeriveSharedSecret", **named, PublicKey=b"x")
        assert refusal == "ValidationException: "
        other = {**named, "KeyAgreementAlgorithm": "X25519"}
        refusal = await stage.refusal(stage.root, "kms", "DeriveSharedSecret", **other, PublicKey=public)
        assert refusal.endswith("Member must satisfy enum value set: [ECDH]")
        signs = await key_of(stage, KeySpec=spec, KeyUsage="SIGN_VERIFY")
        wrong = {**named, "KeyId": signs["KeyId"]}
        refusal = await stage.refusal(stage.root, "kms", "DeriveSharedSecret", **wrong, PublicKey=public)
        text = f"{signs['Arn']} key usage is SIGN_VERIFY which is not valid for DeriveSharedSecret."
        assert refusal == f"InvalidKeyUsageException: {text}"
        params = {"KeySpec": "RSA_2048", "KeyUsage": "KEY_AGREEMENT"}
        refusal = await stage.refusal(stage.root, "kms", "CreateKey", **params)
        assert refusal.endswith("KeyUsage KEY_AGREEMENT is not compatible with KeySpec RSA_2048")

    on_stage(play, auth="off")


def test_imported_material_needs_a_date_or_none_at_all() -> None:
    async def play(stage: Stage) -> None:
        key = await key_of(stage, Origin="EXTERNAL")
        params = await importing(stage, key["KeyId"], b"m" * 32)
        refusal = await stage.refusal(stage.root, "kms", "ImportKeyMaterial", **params)
        text = "A validTo date must be set if the ExpirationModel is KEY_MATERIAL_EXPIRES"
        assert refusal == f"ValidationException: {text}"
        forever = {**params, "ExpirationModel": "KEY_MATERIAL_DOES_NOT_EXPIRE"}
        made = await stage.call(stage.root, "kms", "ImportKeyMaterial", **forever)
        await stage.call(stage.root, "kms", "DeleteImportedKeyMaterial", KeyId=key["KeyId"])
        shown = (await stage.call(stage.root, "kms", "DescribeKey", KeyId=key["KeyId"]))["KeyMetadata"]
        assert (shown["KeyState"], shown["CurrentKeyMaterialId"]) == ("PendingImport", made["KeyMaterialId"])
        assert "ExpirationModel" not in shown

    on_stage(play, auth="off")
