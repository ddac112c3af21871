"""Imported material: the owner of a key supplies its bytes, wrapped for this server alone.

The import token contains the private key that unwraps them, sealed by the root key: nothing is stored between the calls.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

import orjson
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap_with_padding

from redrive.aws.encryption.data_keys import RootKey
from redrive.aws.kit.call import Call
from redrive.aws.kms import private_keys
from redrive.aws.kms.access import KeyAccess
from redrive.aws.kms.errors import error, not_valid, unsupported, wrong_state
from redrive.aws.kms.keyring import KeyRing
from redrive.aws.kms.material import SYMMETRIC_BYTES, Materials
from redrive.aws.kms.private_keys import CURVES, MAC_BYTES, new_private_key, to_der
from redrive.aws.kms.records import DAY_MS, KmsKey, Material
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import Resource
from redrive.model.errors import StoreUnavailable

_KIND: Final = "kms_import"
_SPECS: Final = ("RSA_2048", "RSA_3072", "RSA_4096")
_DIGESTS: Final[Mapping[str, Callable[[], hashes.HashAlgorithm]]] = {
    "RSAES_OAEP_SHA_1": hashes.SHA1,
    "RSAES_OAEP_SHA_256": hashes.SHA256,
    "RSA_AES_KEY_WRAP_SHA_1": hashes.SHA1,
    "RSA_AES_KEY_WRAP_SHA_256": hashes.SHA256,
}
_MAC_BYTES_MAX: Final = 128
_NEW_MATERIAL: Final = "NEW_KEY_MATERIAL"
_NO_EXPIRY: Final = "KEY_MATERIAL_DOES_NOT_EXPIRE"


class Importing:
    """Imports the material of keys, and deletes it."""

    def __init__(self, keyring: KeyRing, access: KeyAccess, materials: Materials, root: RootKey) -> None:
        """Import into keys of this keyring; the root key seals import tokens."""
        self._keyring = keyring
        self._access = access
        self._materials = materials
        self._root = root

    async def get_parameters_for_import(self, call: Call, params: Structure) -> Structure:
        key = await self._external_key(call, params, "GetParametersForImport")
        algorithm, spec = params["WrappingAlgorithm"], params["WrappingKeySpec"]
        if algorithm not in _DIGESTS or spec not in _SPECS:
            raise unsupported(f"Redrive does not offer {algorithm} with a wrapping key of the spec {spec}.")
        private = to_der(await new_private_key(spec, call.account))
        until = call.now + DAY_MS
        token = {"private": b64encode(private).decode(), "algorithm": algorithm, "until": until}
        return {
            "KeyId": key.arn,
            "ImportToken": orjson.dumps(self._root.sealed(_KIND, key.name.key, token)),
            "PublicKey": private_keys.public_key(private),
            "ParametersValidTo": until,
        }

    async def import_key_material(self, call: Call, params: Structure) -> Structure:
        key = await self._external_key(call, params, "ImportKeyMaterial")
        token = self._token(key, params["ImportToken"])
        if token["until"] < call.now:
            raise error("ExpiredImportTokenException", "The import token has expired.")
        content = _unwrap(token, params["EncryptedKeyMaterial"])
        _check_content(key, content)
        expires_at = _expires_at(call, params)
        # The same bytes have the same id for one key, and others for another key: a key accepts its earlier material.
        material_id = sha256(key.name.key.encode() + content).hexdigest()
        description: str = params.get("KeyMaterialDescription") or ""

        def with_material(current: KmsKey) -> KmsKey:
            material = self._materials.as_material(
                current.name, material_id, content, call.now, expires_at=expires_at, description=description
            )
            known_ids = {current.imported_id, *(each.id for each in current.materials)}
            is_again = material_id in known_ids
            if not current.imported_id or (is_again and not current.materials):  # the first, or its return
                return replace(current, materials=(material,), imported_id=material_id)
            if is_again:
                materials = tuple(material if each.id == material_id else each for each in current.materials)
                return replace(current, materials=materials)
            if params.get("ImportType") == _NEW_MATERIAL and current.symmetric and current.materials:
                return _with_pending(current, material)
            text = f"The key material does not match the key material that {current.arn} was imported with."
            raise error("IncorrectKeyMaterialException", text)

        await self._keyring.change(key.name, with_material)
        return {"KeyId": key.arn, "KeyMaterialId": material_id}

    async def delete_imported_key_material(self, call: Call, params: Structure) -> Structure:
        key = await self._external_key(call, params, "DeleteImportedKeyMaterial")
        material_id = key.current.id if key.materials else None
        await self._keyring.change(key.name, lambda current: replace(current, materials=(), pending=None))
        return {"KeyId": key.arn, "KeyMaterialId": material_id}

    async def _external_key(self, call: Call, params: Structure, operation: str) -> KmsKey:
        key = await self._access.managed_key(call, params["KeyId"], operation)
        if key.origin != "EXTERNAL":
            raise unsupported(f"{key.arn} origin is {key.origin} which is not valid for this operation.")
        if key.deletion_at is not None:
            raise wrong_state(key, "pending deletion")
        return key

    def _token(self, key: KmsKey, token: bytes) -> dict[str, Any]:
        """The document that an import token seals; raises AwsError if it is not of this key."""
        try:
            token_document = orjson.loads(token)
            document = self._root.opened(Resource(_KIND, key.name.key, 1, token_document)).document
            return {**document, "private": b64decode(document["private"])}
        except (ValueError, StoreUnavailable, KeyError, TypeError):
            raise error("InvalidImportTokenException", "The import token is not of this key.") from None


def _with_pending(key: KmsKey, material: Material) -> KmsKey:
    """A key with further material, which becomes current with the next rotation on demand."""
    if key.pending is not None and key.pending.id != material.id:
        raise error(
            "KMSInvalidStateException",
            f"New key material (id: {material.id}) cannot be imported into KMS key {key.arn}, because another key"
            f" material (id: {key.pending.id}) is pending rotation.",
        )
    return replace(key, pending=material)


def _unwrap(token: Mapping[str, Any], wrapped: bytes) -> bytes:
    """The material, which is wrapped with the public key of the token."""
    private: Any = private_keys.load(token["private"])
    digest = _DIGESTS[token["algorithm"]]
    oaep = padding.OAEP(padding.MGF1(digest()), digest(), None)
    size = private.key_size // 8
    try:
        if "AES_KEY_WRAP" not in token["algorithm"]:
            unwrapped: bytes = private.decrypt(wrapped, oaep)
            return unwrapped
        # RSA wraps an AES key, which wraps the material behind it.
        return aes_key_unwrap_with_padding(private.decrypt(wrapped[:size], oaep), wrapped[size:])
    except (ValueError, InvalidUnwrap):
        raise error("InvalidCiphertextException") from None


def _check_content(key: KmsKey, content: bytes) -> None:
    """Refuse bytes that are no key of the spec."""
    if key.symmetric:
        is_valid = len(content) == SYMMETRIC_BYTES
    elif key.spec in MAC_BYTES:
        is_valid = MAC_BYTES[key.spec] <= len(content) <= _MAC_BYTES_MAX
    else:
        is_valid = _is_private_key(key.spec, content)
    if not is_valid:
        raise error("IncorrectKeyMaterialException", f"The key material is not of the spec {key.spec}.")


def _is_private_key(spec: str, content: bytes) -> bool:
    try:
        private = private_keys.load(content)
    except (ValueError, TypeError):
        return False
    if spec in CURVES:
        return getattr(getattr(private, "curve", None), "name", "") == CURVES[spec]().name
    bits = int(spec.removeprefix("RSA_"))
    return isinstance(private, rsa.RSAPrivateKey) and private_keys.is_consistent(private, bits)


def _expires_at(call: Call, params: Structure) -> int | None:
    model, valid_to = params.get("ExpirationModel") or "KEY_MATERIAL_EXPIRES", params.get("ValidTo")
    if model == _NO_EXPIRY:
        if valid_to is not None:
            raise not_valid("ValidTo is allowed with ExpirationModel KEY_MATERIAL_EXPIRES only.")
        return None
    if valid_to is None:
        raise not_valid("A validTo date must be set if the ExpirationModel is KEY_MATERIAL_EXPIRES")
    if valid_to <= call.now:
        raise not_valid("ValidTo must be in the future, or ExpirationModel KEY_MATERIAL_DOES_NOT_EXPIRE.")
    return int(valid_to)
