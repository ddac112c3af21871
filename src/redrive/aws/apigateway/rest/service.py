"""Amazon API Gateway, REST APIs and what belongs to them."""

from collections.abc import Iterable
from typing import Final

from redrive.aws.apigateway.control.errors import translated
from redrive.aws.apigateway.control.records import (
    ACCOUNT,
    API_KEY,
    API_PLACE,
    DEPLOYMENT,
    KEY_VALUE,
    REST_API,
    USAGE,
    USAGE_PLAN,
)
from redrive.aws.apigateway.control.scopes import path_scopes
from redrive.aws.apigateway.control.targets import URLS
from redrive.aws.kit.call import Call, ResourceScope
from redrive.aws.kit.service import AwsService, Outline
from redrive.aws.wire.profiles import MIB, REST_JSON, Profile, in_order
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine


async def _scopes(_: Engine, call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:
    return path_scopes("apigateway", call, operation, params, params.get("resourceArn"))


#: As an older deserializer of Java's words them (recorded).
_MISTYPED: Final = {
    f"{kind} can not be converted to a String": f"class {java} can not be converted to an String"
    for kind, java in (
        ("TRUE_VALUE", "java.lang.Boolean"),
        ("FALSE_VALUE", "java.lang.Boolean"),
        ("NUMBER_VALUE", "com.amazon.coral.value.json.numbers.TruncatingBigNumber"),
    )
}
SERVICE: Final = AwsService(
    profile=Profile(
        name="apigateway",
        endpoint_prefix="apigateway",
        api_version="2015-07-09",
        protocols=REST_JSON,
        names_input=True,
        mistyped=_MISTYPED,
        amended=in_order(
            Op=("add", "remove", "move", "test", "replace", "copy"),
            IntegrationType=("HTTP", "MOCK", "AWS_PROXY", "HTTP_PROXY", "AWS"),
            EndpointType=("PRIVATE", "EDGE", "REGIONAL"),
        ),
        body_bytes_max=6 * MIB,  # a definition in OpenAPI
    ),
    title="ApiGateway",
    documents=(REST_API, DEPLOYMENT, API_PLACE, API_KEY, KEY_VALUE, USAGE_PLAN, USAGE, ACCOUNT),
    translated=translated,
    scopes=_scopes,
    action=lambda call, _: f"apigateway:{call.request.method}",
    outline=Outline(hosted=URLS),
)
