"""Encrypt, Decrypt, ReEncrypt, data keys and random bytes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.kms import ciphertext, private_keys
from redrive.aws.kms.access import KeyAccess, check_enabled
from redrive.aws.kms.ciphertext import Ciphertext
from redrive.aws.kms.errors import (
    bad_ciphertext,
    dry_run,
    incorrect_key,
    not_valid,
    unreachable_key,
    unsupported,
    wrong_usage,
)
from redrive.aws.kms.keyring import KeyRing
from redrive.aws.kms.material import Materials
from redrive.aws.kms.records import ENCRYPTS, SYMMETRIC, KmsKey, Material, algorithms_of
from redrive.aws.wire.shapes import Structure
from redrive.model.names import ResourceName

CONTEXT_BYTES_MAX: Final = 8192
_DATA_KEY_BYTES: Final = {"AES_256": 32, "AES_128": 16}


@dataclass(frozen=True, slots=True)
class Decryption:
    """The plaintext of a ciphertext, and the key and the material that decrypted it."""

    key: KmsKey
    plaintext: bytes
    algorithm: str
    material: Material | None = None


class Encrypting:
    """Encrypts and decrypts."""

    def __init__(self, keyring: KeyRing, access: KeyAccess, materials: Materials) -> None:
        self._keyring = keyring
        self._access = access
        self._materials = materials

    # ---- encryption ---------------------------------------------------------------------------------------

    async def encrypt(self, call: Call, params: Structure) -> Structure:
        context = checked_context(params.get("EncryptionContext"))
        key = await self._encryption_key(call, params["KeyId"], "Encrypt", context)
        algorithm = _algorithm(key, params.get("EncryptionAlgorithm"))
        check_dry_run(params)
        blob = self._encrypt(key, algorithm, params["Plaintext"], context)
        return {"CiphertextBlob": blob, "KeyId": key.arn, "EncryptionAlgorithm": algorithm}

    async def re_encrypt(self, call: Call, params: Structure) -> Structure:
        source = await self._decrypt(
            call,
            params,
            "ReEncryptFrom",
            params.get("SourceKeyId"),
            checked_context(params.get("SourceEncryptionContext")),
            params.get("SourceEncryptionAlgorithm"),
        )
        context = checked_context(params.get("DestinationEncryptionContext"))
        target = await self._encryption_key(call, params["DestinationKeyId"], "ReEncryptTo", context)
        algorithm = _algorithm(target, params.get("DestinationEncryptionAlgorithm"))
        check_dry_run(params)
        answer: Structure = {
            "CiphertextBlob": self._encrypt(target, algorithm, source.plaintext, context),
            "SourceKeyId": source.key.arn,
            "KeyId": target.arn,
            "SourceEncryptionAlgorithm": source.algorithm,
            "DestinationEncryptionAlgorithm": algorithm,
        }
        if source.material is not None:
            answer["SourceKeyMaterialId"] = source.material.id
        if target.symmetric:
            answer["DestinationKeyMaterialId"] = target.current.id
        return answer

    async def _encryption_key(
        self, call: Call, key_id: str, operation: str, context: Mapping[str, str]
    ) -> KmsKey:
        check_distinct(context)
        key = await self._access.usable_key(call, key_id, operation, context)
        if key.usage != ENCRYPTS:
            raise wrong_usage(key, operation)
        return key

    def _encrypt(self, key: KmsKey, algorithm: str, plaintext: bytes, context: Mapping[str, str]) -> bytes:
        content = self._materials.opened(key, key.current)
        if algorithm != SYMMETRIC:
            return private_keys.encrypt(content, algorithm, plaintext)
        nonce = self._materials.random_bytes(ciphertext.NONCE_BYTES)
        return ciphertext.encrypt(key, key.current, content, plaintext, context, nonce)

    # ---- decryption ---------------------------------------------------------------------------------------

    async def decrypt(self, call: Call, params: Structure) -> Structure:
        context = checked_context(params.get("EncryptionContext"))
        algorithm = params.get("EncryptionAlgorithm")
        decryption = await self._decrypt(call, params, "Decrypt", params.get("KeyId"), context, algorithm)
        check_dry_run(params)
        answer: Structure = {
            "KeyId": decryption.key.arn,
            "Plaintext": decryption.plaintext,
            "EncryptionAlgorithm": decryption.algorithm,
        }
        if decryption.material is not None:
            answer["KeyMaterialId"] = decryption.material.id
        return answer

    async def _decrypt(
        self,
        call: Call,
        params: Structure,
        operation: str,
        key_id: str | None,
        context: Mapping[str, str],
        algorithm: str | None,
    ) -> Decryption:
        """Decrypt what KMS encrypted; symmetric ciphertexts name their key, which `key_id` has to agree with."""
        blob: bytes | None = params.get("CiphertextBlob")
        if blob is None:
            raise not_valid("CiphertextBlob is required.")
        if algorithm not in (None, SYMMETRIC):
            return await self._decrypt_asymmetric(call, operation, key_id, blob, algorithm)
        parts = ciphertext.parse(blob)
        if key_id is not None:
            named_key = await self._access.find_key(call, key_id)
            if (named_key.id, named_key.name.account) != (parts.key_id, parts.account):
                raise incorrect_key()
        key = await self._keyring.get(ResourceName(parts.account, call.region, parts.key_id), call.now)
        if key is None:
            raise unreachable_key()
        await self._access.check(call, key, operation, context)
        check_enabled(key, call.now)
        material = _material(key, parts)
        return Decryption(
            key,
            ciphertext.decrypt(parts, self._materials.opened(key, material), context),
            SYMMETRIC,
            material,
        )

    async def _decrypt_asymmetric(
        self, call: Call, operation: str, key_id: str | None, blob: bytes, algorithm: str | None
    ) -> Decryption:
        if key_id is None:
            raise not_valid("KeyId is required for decryption with an asymmetric KMS key.")
        key = await self._encryption_key(call, key_id, operation, {})
        name = _algorithm(key, algorithm)
        content = self._materials.opened(key, key.current)
        return Decryption(key, private_keys.decrypt(content, name, blob), name)

    # ---- data keys ----------------------------------------------------------------------------------------

    async def generate_data_key(self, call: Call, params: Structure) -> Structure:
        return await self._data_key(call, params, "GenerateDataKey")

    async def generate_data_key_without_plaintext(self, call: Call, params: Structure) -> Structure:
        answer = await self._data_key(call, params, "GenerateDataKeyWithoutPlaintext")
        del answer["Plaintext"]
        return answer

    async def _data_key(self, call: Call, params: Structure, operation: str) -> Structure:
        """A new data key, in clear and encrypted; raises AwsError."""
        check_no_recipient(params)
        number = _data_key_bytes(params)
        context = checked_context(params.get("EncryptionContext"))
        key = await self._encryption_key(call, params["KeyId"], operation, context)
        if not key.symmetric:
            raise wrong_usage(key, operation)
        check_dry_run(params)
        plaintext = self._materials.random_bytes(number)
        return {
            "CiphertextBlob": self._encrypt(key, SYMMETRIC, plaintext, context),
            "Plaintext": plaintext,
            "KeyId": key.arn,
            "KeyMaterialId": key.current.id,
        }

    async def generate_random(self, call: Call, params: Structure) -> Structure:  # noqa: ARG002 - as Verb
        check_no_recipient(params)
        if params.get("CustomKeyStoreId"):
            raise unsupported("Redrive offers no custom key stores.")
        number: int | None = params.get("NumberOfBytes")
        if number is None:
            raise not_valid("NumberOfBytes is required.")
        return {"Plaintext": self._materials.random_bytes(number)}


def checked_context(context: Mapping[str, str] | None) -> Mapping[str, str]:
    """The encryption context of a request; raises AwsError if it is longer than 8,192 bytes."""
    if not context:
        return {}
    if sum(len(name.encode()) + len(value.encode()) for name, value in context.items()) > CONTEXT_BYTES_MAX:
        raise not_valid(f"EncryptionContext must have at most {CONTEXT_BYTES_MAX} bytes")
    return context


def check_distinct(context: Mapping[str, str]) -> None:
    """Refuse to encrypt under names that differ in case alone: policies would see one of their values, and not the other.

    Raises:
        AwsError: `ValidationException`.
    """
    if len({name.lower() for name in context}) < len(context):
        raise not_valid("EncryptionContext must not have names that differ in case alone")  # chosen


def check_no_recipient(params: Structure) -> None:
    """Refuse requests of enclaves, whose attestation documents cannot be verified here.

    Raises:
        AwsError: `UnsupportedOperationException`.
    """
    if params.get("Recipient"):
        raise unsupported("Redrive does not offer the parameter Recipient: it cannot attest enclaves.")


def check_dry_run(params: Structure) -> None:
    """End a dry run; called after all other checks; raises AwsError (`DryRunOperationException`)."""
    if params.get("DryRun"):
        raise dry_run()


def _algorithm(key: KmsKey, algorithm_name: str | None) -> str:
    """The algorithm of a request, by default that of symmetric keys; raises AwsError if the key does not have it."""
    algorithm = algorithm_name or SYMMETRIC
    check_algorithm(key, algorithm)
    return algorithm


def check_algorithm(key: KmsKey, algorithm: str) -> None:
    """Refuse an algorithm that a key does not have."""
    offered = algorithms_of(key.spec, key.usage)
    if algorithm not in offered:
        raise not_valid(
            f"Algorithm {algorithm} and key spec {key.spec} are incompatible: it offers {', '.join(offered)}."
        )


def _material(key: KmsKey, parts: Ciphertext) -> Material:
    for material in reversed(key.materials):
        if material.id.startswith(parts.material):
            return material
    raise bad_ciphertext()


def _data_key_bytes(params: Structure) -> int:
    spec, number = params.get("KeySpec"), params.get("NumberOfBytes")
    if (spec is None) is (number is None):
        raise not_valid("Please specify either number of bytes or key spec.")
    return _DATA_KEY_BYTES[spec] if spec is not None else int(number or 0)
