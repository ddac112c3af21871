"""Key material: created, wrapped by the root key, and unwrapped only while it is used."""

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
    """Creates, wraps and unwraps material."""

    def __init__(self, root: RootKey, runtime: Runtime) -> None:
        self._root = root
        self._rng = runtime.rng

    def new(self, name: ResourceName, content: bytes, now: int, **members: Any) -> Material:
        """New material with this content, for the key of a name, in use from `now` (ms); `members`: further ones."""
        material_id = sha256(self._rng.randbytes(SYMMETRIC_BYTES)).hexdigest()
        return self.as_material(name, material_id, content, now, **members)

    def as_material(
        self, name: ResourceName, material_id: str, content: bytes, now: int, **members: Any
    ) -> Material:
        """As `new`, with the id that the material has already."""
        return Material(material_id, self._seal(name, material_id, content), now, **members)

    def symmetric(self, name: ResourceName, now: int, **members: Any) -> Material:
        """Fresh material for AES-256."""
        return self.new(name, self.random_bytes(SYMMETRIC_BYTES), now, **members)

    def copy_for(self, key: KmsKey, material: Material, name: ResourceName) -> Material:
        """A key's material, wrapped for a key of another name."""
        return replace(material, sealed=self._seal(name, material.id, self._open(key.name, material)))

    def random_bytes(self, number: int) -> bytes:
        """Unpredictable bytes."""
        return self._rng.randbytes(number)

    def opened(self, key: KmsKey, material: Material) -> bytes:
        """The content of material; raises StoreUnavailable if this server does not have the root key that wrapped it."""
        return self._open(key.name, material)

    def rewrap(self, key: KmsKey) -> tuple[Material, ...] | None:
        """A key's material, wrapped by the present root key; None: it already is."""
        if all(self._root.is_of_first(material.sealed) for material in key.materials):
            return None
        return tuple(
            replace(material, sealed=self._seal(key.name, material.id, self._open(key.name, material)))
            for material in key.materials
        )

    def _seal(self, name: ResourceName, material_id: str, content: bytes) -> Mapping[str, str]:
        document = {"material": b64encode(content).decode()}
        sealed: Mapping[str, str] = self._root.sealed(_KIND, f"{name.key}/{material_id}", document)
        return sealed

    def _open(self, name: ResourceName, material: Material) -> bytes:
        resource = self._root.opened(Resource(_KIND, f"{name.key}/{material.id}", 1, material.sealed))
        return b64decode(resource.document["material"])
