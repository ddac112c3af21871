"""Imported material: a key's owner brings the bytes, wrapped for this server alone.

The import token holds, sealed by the root key, the private key that unwraps: nothing is kept between the two calls.
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
from redrive.aws.kms.private_keys import CURVES, MAC_BYTES, new_private_key, written
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
_FURTHER: Final = "NEW_KEY_MATERIAL"
_FOREVER: Final = "KEY_MATERIAL_DOES_NOT_EXPIRE"


class Importing:
    """Takes material that a key's owner brings, and forgets it again."""

    def __init__(self, keyring: KeyRing, access: KeyAccess, materials: Materials, root: RootKey) -> None:
        """Import into keys of this keyring; the root key seals import tokens."""
        self._keyring = keyring
        self._access = access
        self._materials = materials
        self._root = root

    async def get_parameters_for_import(self, call: Call, params: Structure) -> Structure:
        key = await self._external(call, params, "GetParametersForImport")
        algorithm, spec = params["WrappingAlgorithm"], params["WrappingKeySpec"]
        if algorithm not in _DIGESTS or spec not in _SPECS:
            raise unsupported(f"Redrive does not offer {algorithm} with a wrapping key of the spec {spec}.")
        private = written(await new_private_key(spec, call.account))
        until = call.now + DAY_MS
        token = {"private": b64encode(private).decode(), "algorithm": algorithm, "until": until}
        return {
            "KeyId": key.arn,
            "ImportToken": orjson.dumps(self._root.sealed(_KIND, key.name.key, token)),
            "PublicKey": private_keys.public_key(private),
            "ParametersValidTo": until,
        }

    async def import_key_material(self, call: Call, params: Structure) -> Structure:
        key = await self._external(call, params, "ImportKeyMaterial")
        token = self._token(key, params["ImportToken"])
        if token["until"] < call.now:
            raise error("ExpiredImportTokenException", "The import token has expired.")
        content = _unwrapped(token, params["EncryptedKeyMaterial"])
        _check_content(key, content)
        expires_at = _expires_at(call, params)
        # The same bytes have the same id, and another key's have another: a key takes back what it had alone.
        material_id = sha256(key.name.key.encode() + content).hexdigest()
        description: str = params.get("KeyMaterialDescription") or ""

        def imported(current: KmsKey) -> KmsKey:
            material = self._materials.as_material(
                current.name, material_id, content, call.now, expires_at=expires_at, description=description
            )
            known = {current.imported_id, *(each.id for each in current.materials)}
            if not current.imported_id or (not current.materials and material_id in known):
                return replace(current, materials=(material,), imported_id=material_id)
            if material_id in known:
                materials = tuple(material if each.id == material_id else each for each in current.materials)
                return replace(current, materials=materials)
            if params.get("ImportType") == _FURTHER and current.symmetric and current.materials:
                return _awaiting(current, material)
            text = f"The key material does not match the key material that {current.arn} was imported with."
            raise error("IncorrectKeyMaterialException", text)

        await self._keyring.change(key.name, imported)
        return {"KeyId": key.arn, "KeyMaterialId": material_id}

    async def delete_imported_key_material(self, call: Call, params: Structure) -> Structure:
        key = await self._external(call, params, "DeleteImportedKeyMaterial")
        material_id = key.current.id if key.materials else None
        await self._keyring.change(key.name, lambda current: replace(current, materials=(), pending=None))
        return {"KeyId": key.arn, "KeyMaterialId": material_id}

    async def _external(self, call: Call, params: Structure, operation: str) -> KmsKey:
        key = await self._access.managed(call, params["KeyId"], operation)
        if key.origin != "EXTERNAL":
            raise unsupported(f"{key.arn} origin is {key.origin} which is not valid for this operation.")
        if key.deletion_at is not None:
            raise wrong_state(key, "pending deletion")
        return key

    def _token(self, key: KmsKey, token: bytes) -> dict[str, Any]:
        try:
            token_document = orjson.loads(token)
            document = self._root.opened(Resource(_KIND, key.name.key, 1, token_document)).document
            return {**document, "private": b64decode(document["private"])}
        except (ValueError, StoreUnavailable, KeyError, TypeError):
            raise error("InvalidImportTokenException", "The import token is not of this key.") from None


def _awaiting(key: KmsKey, material: Material) -> KmsKey:
    """A key with further material, which the next rotation on demand makes current."""
    if key.pending is not None and key.pending.id != material.id:
        raise error(
            "KMSInvalidStateException",
            f"New key material (id: {material.id}) cannot be imported into KMS key {key.arn}, because another key"
            f" material (id: {key.pending.id}) is pending rotation.",
        )
    return replace(key, pending=material)


def _unwrapped(token: Mapping[str, Any], wrapped: bytes) -> bytes:
    """The material that was wrapped with the token's public key."""
    private: Any = private_keys.loaded(token["private"])
    digest = _DIGESTS[token["algorithm"]]
    oaep = padding.OAEP(padding.MGF1(digest()), digest(), None)
    size = private.key_size // 8
    try:
        if "AES_KEY_WRAP" not in token["algorithm"]:
            unwrapped: bytes = private.decrypt(wrapped, oaep)
            return unwrapped
        return aes_key_unwrap_with_padding(private.decrypt(wrapped[:size], oaep), wrapped[size:])
    except (ValueError, InvalidUnwrap):
        raise error("InvalidCiphertextException") from None


def _check_content(key: KmsKey, content: bytes) -> None:
    """Refuse bytes that are not a key of the kind."""
    if key.symmetric:
        fits = len(content) == SYMMETRIC_BYTES
    elif key.spec in MAC_BYTES:
        fits = MAC_BYTES[key.spec] <= len(content) <= _MAC_BYTES_MAX
    else:
        fits = _is_private_key(key.spec, content)
    if not fits:
        raise error("IncorrectKeyMaterialException", f"The key material is not of the spec {key.spec}.")


def _is_private_key(spec: str, content: bytes) -> bool:
    try:
        private = private_keys.loaded(content)
    except (ValueError, TypeError):
        return False
    if spec in CURVES:
        return getattr(getattr(private, "curve", None), "name", "") == CURVES[spec]().name
    bits = int(spec.removeprefix("RSA_"))
    return isinstance(private, rsa.RSAPrivateKey) and private_keys.is_consistent(private, bits)


def _expires_at(call: Call, params: Structure) -> int | None:
    model, valid_to = params.get("ExpirationModel") or "KEY_MATERIAL_EXPIRES", params.get("ValidTo")
    if model == _FOREVER:
        if valid_to is not None:
            raise not_valid("ValidTo is allowed with ExpirationModel KEY_MATERIAL_EXPIRES only.")
        return None
    if valid_to is None:
        raise not_valid("A validTo date must be set if the ExpirationModel is KEY_MATERIAL_EXPIRES")
    if valid_to <= call.now:
        raise not_valid("ValidTo must be in the future, or ExpirationModel KEY_MATERIAL_DOES_NOT_EXPIRE.")
    return int(valid_to)
