"""AWS STS: who the caller is, and credentials that end by themselves. It keeps nothing."""

from collections.abc import Iterable, Mapping
from typing import Final

from redrive.aws.gateway.host import Host
from redrive.aws.kit.call import Call, ResourceScope, Verb
from redrive.aws.kit.service import AwsService, operations_of
from redrive.aws.sts.errors import translated
from redrive.aws.wire.profiles import QUERY, Profile
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine

#: Operations that need no permission, or check it by themselves (`AssumeRole` by the trust of the role).
_WITHOUT_SCOPE: Final = frozenset(
    {"AssumeRole", "DecodeAuthorizationMessage", "GetCallerIdentity", "GetSessionToken"}
)


async def _scopes(_: Engine, call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:
    if operation == "GetFederationToken":
        return [ResourceScope(f"arn:aws:sts::{call.account}:federated-user/{params['Name']}")]
    return () if operation in _WITHOUT_SCOPE else [ResourceScope("*", ("arn:aws:iam:*",))]


def _operations(host: Host) -> Mapping[str, Verb]:
    from redrive.aws.sts.sessions import Assuming, Identifying

    documents = host.engine.resources.documents
    return operations_of("sts", Identifying(host.sessions, documents), Assuming(host.sessions))


SERVICE: Final = AwsService(
    profile=Profile("sts", "sts", "2011-06-15", QUERY),
    title="Sts",
    translated=translated,
    scopes=_scopes,
    operations=_operations,
)
