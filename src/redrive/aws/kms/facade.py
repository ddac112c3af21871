"""Amazon KMS: the operations on keys, aliases, policies, grants and ciphertexts."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from redrive.aws.kit.call import Call, Verb
from redrive.aws.kit.operations import operations_of
from redrive.aws.kit.resource_scopes import WHOLE_SERVICE, ResourceScope
from redrive.aws.kms.access import KeyAccess
from redrive.aws.kms.aliases import Aliases
from redrive.aws.kms.encrypting import Encrypting
from redrive.aws.kms.errors import translated
from redrive.aws.kms.granting import Granting
from redrive.aws.kms.importing import Importing
from redrive.aws.kms.inside import InsideUse
from redrive.aws.kms.key_policies import KeyPolicies
from redrive.aws.kms.keyring import KeyRing
from redrive.aws.kms.keys import Keys
from redrive.aws.kms.material import Materials, RootKey
from redrive.aws.kms.records import ALIAS, GRANT, KEY, alias_arn
from redrive.aws.kms.replicating import Replicating
from redrive.aws.kms.rotation import Rotation
from redrive.aws.kms.signing import Signing
from redrive.aws.kms.tags import TAGS, KeyTags
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.model.attempt import Reason
from redrive.model.errors import RedriveError
from redrive.model.names import ResourceName

#: Parameters that lead to a key; `ListAliases` shows others' too.
_OF_KEY: Final = frozenset({"KeyId", "CiphertextBlob", "GrantToken"})


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
            TAGS.operations(KeyTags(keyring, access)),
            Rotation(keyring, access, materials),
            Encrypting(keyring, access, materials),
            Signing(access, materials),
            Importing(keyring, access, materials, root),
            Granting(access, documents, runtime),
            Replicating(access, documents, materials),
        )

    kinds: tuple[DocumentKind[Any], ...] = (KEY, ALIAS, GRANT)
    """All that callers make through this service."""

    async def scopes(self, call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:
        """See `Facade.scopes`."""
        if "AliasName" in params:
            return [ResourceScope(alias_arn(ResourceName(call.account, call.region, params["AliasName"])))]
        if _OF_KEY & params.keys() and operation != "ListAliases":
            return ()
        return [WHOLE_SERVICE]

    def translated(self, refusal: RedriveError) -> AwsError:
        """See `Facade.translated`."""
        return translated(refusal)
