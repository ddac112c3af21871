"""Amazon KMS: keys, aliases, policies, grants and ciphertexts."""

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from redrive.aws.encryption.data_keys import RootKey
from redrive.aws.gateway.host import Host
from redrive.aws.kit.call import WHOLE_SERVICE, Call, ResourceScope, Verb
from redrive.aws.kit.service import AwsService, operations_of
from redrive.aws.kms.errors import translated
from redrive.aws.kms.records import ALIAS, GRANT, KEY, alias_arn
from redrive.aws.wire.profiles import JSON, Profile, in_order
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.model.names import ResourceName

#: Parameters that identify a key, whose policy decides; `ListAliases` may list those of other keys, too.
_OF_KEY: Final = frozenset({"KeyId", "CiphertextBlob", "GrantToken"})


async def _scopes(_: Engine, call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:
    """The resources of a call; none of a key, whose policy and grants the operations ask themselves."""
    if "AliasName" in params:
        return [ResourceScope(alias_arn(ResourceName(call.account, call.region, params["AliasName"])))]
    if _OF_KEY & params.keys() and operation != "ListAliases":
        return ()
    return [WHOLE_SERVICE]


class KeyHost(Host, Protocol):
    """A server whose root key wraps the material of others."""

    @property
    def root_key(self) -> RootKey:
        """The key."""
        ...


def _operations(host: KeyHost) -> Mapping[str, Verb]:
    from redrive.aws.kms.aliases import Aliases
    from redrive.aws.kms.encrypting import Encrypting
    from redrive.aws.kms.granting import Granting
    from redrive.aws.kms.importing import Importing
    from redrive.aws.kms.inside import key_parts
    from redrive.aws.kms.key_policies import KeyPolicies
    from redrive.aws.kms.keys import TAGS, Keys, KeyTags, Replicating
    from redrive.aws.kms.rotation import Rotation
    from redrive.aws.kms.signing import Signing

    documents, root = host.engine.resources.documents, host.root_key
    keyring, access, materials, _ = key_parts(host.engine, root)
    return operations_of(
        "kms",
        Keys(keyring, access, materials),
        Aliases(keyring, access, documents),
        KeyPolicies(keyring, access),
        TAGS.operations(KeyTags(keyring, access)),
        Rotation(keyring, access, materials),
        Encrypting(keyring, access, materials),
        Signing(access, materials),
        Importing(keyring, access, materials, root),
        Granting(access, documents, host.engine.runtime),
        Replicating(access, documents, materials),
    )


SERVICE: Final = AwsService(
    profile=Profile(
        "kms",
        "kms",
        "2014-11-01",
        JSON,
        "TrentService",
        amended=in_order(MacAlgorithmSpec=("HMAC_SHA_384", "HMAC_SHA_256", "HMAC_SHA_224", "HMAC_SHA_512")),
    ),
    title="Kms",
    documents=(KEY, ALIAS, GRANT),
    translated=translated,
    scopes=_scopes,
    operations=_operations,
)
