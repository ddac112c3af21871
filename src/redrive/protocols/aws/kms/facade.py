"""Amazon KMS: the operations on keys, aliases, policies, grants and ciphertexts."""

from collections.abc import Mapping
from typing import Any

from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.model.attempt import Reason
from redrive.model.errors import RedriveError
from redrive.protocols.aws.call import Verb
from redrive.protocols.aws.kms.access import KeyAccess
from redrive.protocols.aws.kms.aliases import Aliases
from redrive.protocols.aws.kms.encrypting import Encrypting
from redrive.protocols.aws.kms.errors import translated
from redrive.protocols.aws.kms.granting import Granting
from redrive.protocols.aws.kms.importing import Importing
from redrive.protocols.aws.kms.inside import InsideUse
from redrive.protocols.aws.kms.key_policies import KeyPolicies
from redrive.protocols.aws.kms.keyring import KeyRing
from redrive.protocols.aws.kms.keys import Keys
from redrive.protocols.aws.kms.material import Materials, RootKey
from redrive.protocols.aws.kms.records import ALIAS, GRANT, KEY
from redrive.protocols.aws.kms.replicating import Replicating
from redrive.protocols.aws.kms.rotation import Rotation
from redrive.protocols.aws.kms.signing import Signing
from redrive.protocols.aws.kms.tags import Tagging
from redrive.protocols.aws.operations import operations_of
from redrive.protocols.aws.wire.errors import AwsError


class Kms:
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
        self.operations: Mapping[str, Verb] = operations_of(
            "kms",
            Keys(keyring, access, materials),
            Aliases(keyring, access, documents),
            KeyPolicies(keyring, access),
            Tagging(keyring, access),
            Rotation(keyring, access, materials),
            Encrypting(keyring, access, materials),
            Signing(access, materials),
            Importing(keyring, access, materials, root),
            Granting(access, documents, runtime),
            Replicating(access, documents, materials),
        )

    kinds: tuple[DocumentKind[Any], ...] = (KEY, ALIAS, GRANT)
    """All that callers make through this service."""

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)
