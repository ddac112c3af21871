"""Amazon KMS: the operations on keys, aliases, policies, grants and ciphertexts."""

from redrive.aws.kit.operations import operations_of
from redrive.aws.kit.service import OfferedService
from redrive.aws.kms.access import KeyAccess
from redrive.aws.kms.aliases import Aliases
from redrive.aws.kms.encrypting import Encrypting
from redrive.aws.kms.granting import Granting
from redrive.aws.kms.importing import Importing
from redrive.aws.kms.inside import InsideUse
from redrive.aws.kms.key_policies import KeyPolicies
from redrive.aws.kms.keyring import KeyRing
from redrive.aws.kms.keys import Keys
from redrive.aws.kms.material import Materials, RootKey
from redrive.aws.kms.replicating import Replicating
from redrive.aws.kms.rotation import Rotation
from redrive.aws.kms.service import SERVICE
from redrive.aws.kms.signing import Signing
from redrive.aws.kms.tags import TAGS, KeyTags
from redrive.engine.engine import Engine
from redrive.model.attempt import Reason


class Kms(OfferedService):
    """KMS on an engine's documents."""

    def __init__(self, engine: Engine, root: RootKey) -> None:
        """Keep keys among the engine's documents, their material wrapped by the root key."""
        documents, runtime = engine.resources.documents, engine.runtime
        materials = Materials(root, runtime)
        self.keyring = keyring = KeyRing(documents, materials, runtime)

        def is_throttled(arn: str) -> bool:
            fault = engine.operations.fault_of(arn)
            return fault is not None and fault.reason is Reason.THROTTLED

        access = KeyAccess(keyring, documents, is_throttled)
        self.inside = InsideUse(keyring, access, materials, runtime.clock)
        super().__init__(
            SERVICE,
            engine,
            operations_of(
                "kms",
                Keys(keyring, access, materials),
                Aliases(keyring, access, documents),
                KeyPolicies(keyring, access),
                TAGS.operations(KeyTags(keyring, access)),
                Rotation(keyring, access, materials),
                Encrypting(keyring, access, materials),
                Signing(access, materials),
                Importing(keyring, access, materials, root),
                Granting(access, documents, runtime),
                Replicating(access, documents, materials),
            ),
        )
