"""Amazon API Gateway, HTTP APIs and what belongs to them."""

from collections.abc import Iterable, Mapping
from typing import Final

from redrive.aws.apigateway.control.errors import translated
from redrive.aws.apigateway.control.records import HTTP_API
from redrive.aws.apigateway.control.scopes import path_scopes
from redrive.aws.gateway.host import Host
from redrive.aws.kit.call import Call, ResourceScope, Verb
from redrive.aws.kit.service import AwsService, operations_of
from redrive.aws.wire.profiles import MIB, REST_JSON, Profile
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine


async def _scopes(_: Engine, call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:
    return path_scopes("apigatewayv2", call, operation, params, params.get("ResourceArn"))


def _operations(host: Host) -> Mapping[str, Verb]:
    from redrive.aws.apigateway.control.apis import Apis, integration_roles
    from redrive.aws.apigateway.http.apis import HTTP_APIS, TAGS, HttpApiOperations
    from redrive.aws.apigateway.http.kinds import part_operations

    apis = Apis(host.engine, HTTP_APIS, integration_roles(host.sessions.identities))
    operations = HttpApiOperations(host.engine, apis)
    return {
        **part_operations(apis, host.engine),
        **operations_of("apigatewayv2", operations, TAGS.operations(operations)),
    }


SERVICE: Final = AwsService(
    profile=Profile(
        name="apigatewayv2",
        endpoint_prefix="apigateway",
        api_version="2018-11-29",
        protocols=REST_JSON,
        body_bytes_max=6 * MIB,  # a definition in OpenAPI
    ),
    title="ApiGatewayV2",
    documents=(HTTP_API,),  # besides what REST APIs have too
    translated=translated,
    scopes=_scopes,
    action=lambda call, _: f"apigateway:{call.request.method}",
    operations=_operations,
)
