"""The parts that every use of keys goes by, callers' and the server's own."""

from typing import NamedTuple

from redrive.aws.encryption.data_keys import RootKey
from redrive.aws.kms.access import KeyAccess
from redrive.aws.kms.inside import InsideUse
from redrive.aws.kms.keyring import KeyRing
from redrive.aws.kms.material import Materials
from redrive.engine.engine import Engine
from redrive.model.attempt import Reason


class KeyParts(NamedTuple):
    """The parts, which remember nothing besides documents."""

    keyring: KeyRing
    access: KeyAccess  # Lets callers use them
    materials: Materials  # Opens their material
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
