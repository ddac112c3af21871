"""AWS Systems Manager: the parameter store."""

from collections.abc import Iterable, Mapping
from typing import Final

from redrive.aws.gateway.host import Host
from redrive.aws.kit.call import Call, ResourceScope, Verb, values_of
from redrive.aws.kit.service import AwsService, operations_of
from redrive.aws.ssm.errors import translated
from redrive.aws.ssm.records import PARAMETER, plain_name
from redrive.aws.wire.profiles import JSON, Profile
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine


async def _scopes(_: Engine, call: Call, _operation: str, params: Structure) -> Iterable[ResourceScope]:
    """A selector (`name:3`) is not a part of a name, and `a` and `/a` share an ARN."""
    own = f"arn:aws:ssm:{call.region}:{call.account}"
    names = values_of(params, "Name", "Names", "ResourceId")
    scopes = [
        ResourceScope(f"{own}:parameter/{plain_name(name).partition(':')[0].lstrip('/')}") for name in names
    ]
    if path := params.get("Path"):
        beginning = f"{own}:parameter/{path.strip('/')}"
        scopes.append(ResourceScope(f"{own}:parameter{path}", (f"{beginning.rstrip('/')}/*",)))
    return scopes or [ResourceScope(f"{own}:*")]


def _operations(host: Host) -> Mapping[str, Verb]:
    from redrive.aws.ssm.parameters import TAGS, ParameterOperations, ParameterTags

    return operations_of("ssm", ParameterOperations(host.engine), TAGS.operations(ParameterTags(host.engine)))


SERVICE: Final = AwsService(
    profile=Profile("ssm", "ssm", "2014-11-06", JSON, "AmazonSSM"),
    title="Ssm",
    documents=(PARAMETER,),
    translated=translated,
    scopes=_scopes,
    operations=_operations,
)
