"""Ciphertexts of symmetric keys: opaque to callers; for KMS they contain the id of their key.

    version (1) | kind of key id (1) | account (5) | key id (16) | material id, its beginning (8) | nonce (12) | sealed

AES-256-GCM; the bytes before the nonce and the encryption context are authenticated as well.
"""

import struct
from collections.abc import Mapping
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from redrive.aws.kms.errors import bad_ciphertext
from redrive.aws.kms.records import KmsKey, Material

NONCE_BYTES: Final = 12
_VERSION: Final = 1
_MULTI_REGION: Final = "mrk-"
_HEAD: Final = struct.Struct(">BB5s16s8s")
_LENGTHS: Final = struct.Struct(">II")
_TAG_BYTES: Final = 16


class Ciphertext(NamedTuple):
    """The parts of a ciphertext."""

    account: str  # Account of the key
    key_id: str  # Id of the key
    material: str  # The first 16 digits of the material's id
    head: bytes  # Authenticated data
    nonce: bytes  # 12 bytes
    sealed: bytes  # The rest


def encrypt(
    key: KmsKey,
    material: Material,
    content: bytes,
    plaintext: bytes,
    context: Mapping[str, str],
    nonce: bytes,
) -> bytes:
    """Encrypt under 32 bytes of a key's material, with a nonce of 12 bytes that is used once."""
    is_multi = key.id.startswith(_MULTI_REGION)
    digits = key.id.removeprefix(_MULTI_REGION).replace("-", "")
    head = _HEAD.pack(
        _VERSION,
        is_multi,
        int(key.name.account).to_bytes(5),
        bytes.fromhex(digits),
        bytes.fromhex(material.id[:16]),
    )
    return head + nonce + AESGCM(content).encrypt(nonce, plaintext, head + canonical(context))


def parse(blob: bytes) -> Ciphertext:
    """Read the parts of a ciphertext; raises AwsError (`InvalidCiphertextException`) if it has another form."""
    nonce_end = _HEAD.size + NONCE_BYTES
    if len(blob) < nonce_end + _TAG_BYTES:
        raise bad_ciphertext()
    head = blob[: _HEAD.size]
    version, is_multi, account, key_id, material = _HEAD.unpack(head)
    if version != _VERSION or blob[1] not in (0, 1):  # a flag of another value would have two forms
        raise bad_ciphertext()
    digits = key_id.hex()
    key_name = (
        f"{_MULTI_REGION}{digits}"
        if is_multi
        else f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
    )
    return Ciphertext(
        f"{int.from_bytes(account):012d}",
        key_name,
        material.hex(),
        head,
        blob[_HEAD.size : nonce_end],
        blob[nonce_end:],
    )


def decrypt(ciphertext: Ciphertext, content: bytes, context: Mapping[str, str]) -> bytes:
    """The plaintext.

    Raises:
        AwsError: `InvalidCiphertextException`: it was damaged, or encrypted under another context.
    """
    try:
        return AESGCM(content).decrypt(
            ciphertext.nonce, ciphertext.sealed, ciphertext.head + canonical(context)
        )
    except InvalidTag:
        raise bad_ciphertext() from None


def canonical(context: Mapping[str, str]) -> bytes:
    """An encryption context as bytes, which are equal for the same pairs in any order, and for no others."""
    parts: list[bytes] = []
    for name, value in sorted(context.items()):
        name_bytes, value_bytes = name.encode(), value.encode()
        parts += [_LENGTHS.pack(len(name_bytes), len(value_bytes)), name_bytes, value_bytes]
    return b"".join(parts)
