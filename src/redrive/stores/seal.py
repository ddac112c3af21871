"""Sealed documents: configuration, with every secret in it, encrypted by a key that the operator keeps elsewhere.

AES-256-GCM with a random nonce; kind and key of a document are authenticated with it, so that none can be put in the
place of another. Without a key documents are kept as they are.
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Final

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from redrive.engine.ports import Change, Put, Resource
from redrive.model.errors import StoreUnavailable

KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_KEY_ID_CHARS: Final = 8
_KEY_ID: Final = "sealed_by"
_CONTENT: Final = "content"


class KeysUnusable(ValueError):  # noqa: N818 - a message for the operator
    """The content of a key file is not a list of keys; the message says which line is not one."""


def read_keys(text: str) -> tuple[bytes, ...]:
    """The keys of a key file: 32 bytes in base64, one a line; lines that begin with # are passed over.

    Raises:
        KeysUnusable: A line is not a key, or there is none.
    """
    keys = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            try:
                key = b64decode(line.strip(), validate=True)
            except Base64Error:
                key = b""
            if len(key) != KEY_BYTES:
                raise KeysUnusable(f"line {number} is not {KEY_BYTES} bytes in base64")
            keys.append(key)
    if not keys:
        raise KeysUnusable("it has no key")
    return tuple(keys)


class Seal:
    """Seals documents with the first of some keys, and opens those that any of them has sealed.

    Attributes:
        prefix: What the content of each document begins with that the first key has sealed; empty without keys.

    Args:
        keys: 32 bytes each; none: documents are kept as they are.
        random_bytes: Makes unpredictable bytes, for nonces.
        setting: What names the keys, for whoever starts the server without one.
    """

    def __init__(
        self,
        keys: Sequence[bytes],
        random_bytes: Callable[[int], bytes],
        setting: str = "the file of store_key_file",
    ) -> None:
        self._setting = setting
        self._by_id = {_id_of(key): AESGCM(key) for key in keys}
        self._first = next(iter(self._by_id), None)
        self._random_bytes = random_bytes
        self.prefix = "" if self._first is None else f'{{"{_KEY_ID}":"{self._first}",'

    def closed(self, changes: Sequence[Change]) -> Sequence[Change]:
        """These changes with their documents sealed, as the store has them."""
        if self._first is None:
            return changes
        return [
            change._replace(document=self.sealed(change.kind, change.key, change.document))
            if isinstance(change, Put)
            else change
            for change in changes
        ]

    def sealed(self, kind: str, key: str, document: Any) -> Any:
        """A document, sealed, as the store has it."""
        if self._first is None:
            return document
        nonce = self._random_bytes(_NONCE_BYTES)
        ciphertext = self._by_id[self._first].encrypt(
            nonce, orjson.dumps(document), _associated_data(kind, key)
        )
        return {_KEY_ID: self._first, _CONTENT: b64encode(nonce + ciphertext).decode()}

    def is_of_first(self, document: Any) -> bool:
        """True if the first key has sealed a document."""
        return isinstance(document, dict) and document.get(_KEY_ID) == self._first

    def opened(self, resource: Resource) -> Resource:
        """A document as it was before it was sealed.

        Raises:
            StoreUnavailable: Its key is not among these, or it was changed since.
        """
        envelope = resource.document
        if not isinstance(envelope, dict) or envelope.keys() != {_KEY_ID, _CONTENT}:
            return resource
        name = f"{resource.kind} {resource.key}"
        cipher = self._by_id.get(envelope[_KEY_ID])
        if cipher is None:
            raise StoreUnavailable(
                f"{name} is sealed with the key {envelope[_KEY_ID]}, which {self._setting} does not have"
            )
        content = b64decode(envelope[_CONTENT])
        try:
            document = cipher.decrypt(
                content[:_NONCE_BYTES], content[_NONCE_BYTES:], _associated_data(resource.kind, resource.key)
            )
        except InvalidTag:
            raise StoreUnavailable(f"{name} was changed without its key") from None
        return resource._replace(document=orjson.loads(document))


def _id_of(key: bytes) -> str:
    return sha256(b"redrive store key\0" + key).hexdigest()[:_KEY_ID_CHARS]


def _associated_data(kind: str, key: str) -> bytes:
    return f"{kind}\0{key}".encode()


#: Documents are kept as they are.
UNSEALED: Final = Seal((), bytes)
