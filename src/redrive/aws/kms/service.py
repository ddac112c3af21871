"""Amazon KMS: keys, aliases, policies, grants and ciphertexts."""

from collections.abc import Iterable
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.kit.resource_scopes import WHOLE_SERVICE, ResourceScope
from redrive.aws.kit.service import AwsService
from redrive.aws.kms.errors import translated
from redrive.aws.kms.records import ALIAS, GRANT, KEY, alias_arn
from redrive.aws.wire.profiles import JSON, Profile, in_order
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.model.names import ResourceName

#: Parameters that lead to a key; `ListAliases` shows others' too.
_OF_KEY: Final = frozenset({"KeyId", "CiphertextBlob", "GrantToken"})


async def _scopes(_: Engine, call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:
    if "AliasName" in params:
        return [ResourceScope(alias_arn(ResourceName(call.account, call.region, params["AliasName"])))]
    if _OF_KEY & params.keys() and operation != "ListAliases":
        return ()
    return [WHOLE_SERVICE]


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
)
