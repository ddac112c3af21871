"""The use of keys by the server itself, for stored messages and the like.

It needs no permission: the sender or the receiver of the message had it. But a disabled or deleted key cannot be used.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from redrive.aws.encryption.data_keys import RootKey
from redrive.aws.kms import ciphertext
from redrive.aws.kms.access import KeyAccess, check_enabled
from redrive.aws.kms.errors import bad_ciphertext, unreachable_key, wrong_usage
from redrive.aws.kms.keyring import KeyRing
from redrive.aws.kms.material import SYMMETRIC_BYTES, Materials
from redrive.aws.kms.records import KmsKey
from redrive.engine.engine import Engine
from redrive.engine.ports import Clock
from redrive.model.attempt import Reason
from redrive.model.names import ResourceName


@dataclass(frozen=True, slots=True)
class _KeyScope:
    """An account, a region and a moment (ms), for which a key is found (`CallScope`)."""

    account: str
    region: str
    now: int


class InsideUse:
    """Creates and decrypts data keys without a check of permissions."""

    def __init__(self, keyring: KeyRing, access: KeyAccess, materials: Materials, clock: Clock) -> None:
        self._clock = clock
        self._keyring = keyring
        self._access = access
        self._materials = materials

    async def data_key(
        self, account: str, region: str, key_id: str, context: Mapping[str, str]
    ) -> tuple[str, bytes, bytes]:
        """The ARN of the key, a new data key of 32 bytes, and its ciphertext.

        Raises:
            AwsError: The account's region has no such key, or it cannot be used.
        """
        scope = _KeyScope(account, region, self._clock.now())
        key = await self._access.find_key(scope, key_id)
        check_enabled(key, scope.now)
        if not key.symmetric:
            raise wrong_usage(key, "GenerateDataKey")
        plaintext = self._materials.random_bytes(SYMMETRIC_BYTES)
        content = self._materials.opened(key, key.current)
        nonce = self._materials.random_bytes(ciphertext.NONCE_BYTES)
        return key.arn, plaintext, ciphertext.encrypt(key, key.current, content, plaintext, context, nonce)

    async def opened(self, region: str, blob: bytes, context: Mapping[str, str]) -> bytes:
        """The data key that `data_key`, or GenerateDataKey, encrypted in a region.

        Raises:
            AwsError: The key does not exist, or cannot be used.
        """
        parts = ciphertext.parse(blob)
        now = self._clock.now()
        key = await self._keyring.get(ResourceName(parts.account, region, parts.key_id), now)
        if key is None:
            raise unreachable_key()
        check_enabled(key, now)
        return ciphertext.decrypt(parts, self._material(key, parts.material), context)

    def _material(self, key: KmsKey, id_prefix: str) -> bytes:
        for material in key.materials:
            if material.id.startswith(id_prefix):
                return self._materials.opened(key, material)
        raise bad_ciphertext()


class KeyParts(NamedTuple):
    """The parts of KMS, which hold no state besides documents."""

    keyring: KeyRing
    access: KeyAccess  # Checks the permissions of callers
    materials: Materials  # Opens the material of keys
    inside: InsideUse  # The server's own use


def key_parts(engine: Engine, root: RootKey) -> KeyParts:
    """Parts for keys among the engine's documents, their material wrapped by the root key."""
    documents, runtime = engine.resources.documents, engine.runtime
    materials = Materials(root, runtime)
    keyring = KeyRing(documents, materials, runtime)

    def is_throttled(arn: str) -> bool:
        fault = engine.operations.fault_of(arn)
        return fault is not None and fault.reason is Reason.THROTTLED

    access = KeyAccess(keyring, documents, is_throttled)
    return KeyParts(keyring, access, materials, InsideUse(keyring, access, materials, runtime.clock))
