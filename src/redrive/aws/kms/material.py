"""Key material: made, wrapped by the root key, and opened for the moment that it is needed."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

from redrive.aws.encryption.data_keys import RootKey
from redrive.aws.kms.records import KmsKey, Material
from redrive.engine.ports import Resource, Runtime
from redrive.model.names import ResourceName

SYMMETRIC_BYTES: Final = 32
_KIND: Final = "kms_material"


class Materials:
    """Makes, wraps and opens material."""

    def __init__(self, root: RootKey, runtime: Runtime) -> None:
        self._root = root
        self._rng = runtime.rng

    def new(self, name: ResourceName, content: bytes, now: int, **others: Any) -> Material:
        """Material with this content, for the key of that name, in use from `now` (ms) on."""
        material_id = sha256(self._rng.randbytes(SYMMETRIC_BYTES)).hexdigest()
        return self.as_material(name, material_id, content, now, **others)

    def as_material(
        self, name: ResourceName, material_id: str, content: bytes, now: int, **others: Any
    ) -> Material:
        """As `new`, with an id that the material has already."""
        return Material(material_id, self._sealed(name, material_id, content), now, **others)

    def symmetric(self, name: ResourceName, now: int, **others: Any) -> Material:
        """Fresh material for AES-256."""
        return self.new(name, self.random_bytes(SYMMETRIC_BYTES), now, **others)

    def copied(self, key: KmsKey, material: Material, name: ResourceName) -> Material:
        """A key's material, wrapped for the key of another name."""
        return replace(material, sealed=self._sealed(name, material.id, self._opened(key.name, material)))

    def random_bytes(self, number: int) -> bytes:
        """So many unpredictable bytes."""
        return self._rng.randbytes(number)

    def opened(self, key: KmsKey, material: Material) -> bytes:
        """The bytes; raises StoreUnavailable if they were wrapped by a root key that this server does not have."""
        return self._opened(key.name, material)

    def wrapped_anew(self, key: KmsKey) -> tuple[Material, ...] | None:
        """A key's material, wrapped by the present root key; None where all of it is."""
        if all(self._root.is_of_first(material.sealed) for material in key.materials):
            return None
        return tuple(
            replace(material, sealed=self._sealed(key.name, material.id, self._opened(key.name, material)))
            for material in key.materials
        )

    def _sealed(self, name: ResourceName, material_id: str, content: bytes) -> Mapping[str, str]:
        document = {"material": b64encode(content).decode()}
        sealed: Mapping[str, str] = self._root.sealed(_KIND, f"{name.key}/{material_id}", document)
        return sealed

    def _opened(self, name: ResourceName, material: Material) -> bytes:
        resource = self._root.opened(Resource(_KIND, f"{name.key}/{material.id}", 1, material.sealed))
        return b64decode(resource.document["material"])
