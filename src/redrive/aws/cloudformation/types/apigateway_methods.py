"""The type of REST APIs' methods, with what is behind them."""

from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from redrive.aws.cloudformation.template.parameters import text_of
from redrive.aws.cloudformation.types.apigateway import SERVICE
from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    PutResourceType,
    ResourceSpec,
    ResourceState,
    as_text,
    lowered_keys,
    pick,
    without_absence,
)
from redrive.aws.wire.errors import AwsError

_METHOD: Final = (
    *("AuthorizationType", "AuthorizerId", "ApiKeyRequired", "OperationName", "RequestParameters"),
    *("RequestModels", "RequestValidatorId", "AuthorizationScopes"),
)
_INTEGRATION: Final = (
    *("Type", "Uri", "ConnectionType", "ConnectionId", "Credentials", "RequestParameters"),
    *("RequestTemplates", "PassthroughBehavior", "CacheNamespace", "CacheKeyParameters"),
    *("ContentHandling", "IntegrationHttpMethod", "TimeoutInMillis"),
)
_RESPONSE: Final = ("SelectionPattern", "ResponseParameters", "ResponseTemplates", "ContentHandling")


class MethodType(PutResourceType):
    """`AWS::ApiGateway::Method`, with what is behind it and what it answers; known by a generated id."""

    service = SERVICE

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        properties = spec.properties
        if spec.again or spec.physical_id:
            await self.delete(ask, spec)
        at = _at(properties)
        params = lowered_keys(pick(properties, *_METHOD))
        await ask(SERVICE, "PutMethod", **{"authorizationType": "NONE", **at, **params})
        for response in properties.get("MethodResponses") or ():
            params = lowered_keys(pick(response, "ResponseModels", "ResponseParameters"))
            status = text_of(response["StatusCode"])
            await ask(SERVICE, "PutMethodResponse", statusCode=status, **at, **params)
        if properties.get("Integration"):
            await _put_integration(ask, at, properties["Integration"])
        return ResourceState(spec.physical_id or spec.name)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        await without_absence(ask(SERVICE, "DeleteMethod", **_at(spec.properties)))


def _at(properties: Mapping[str, Any]) -> dict[str, str]:
    return lowered_keys(pick(properties, "RestApiId", "ResourceId", "HttpMethod"))


async def _put_integration(ask: Ask, at: Mapping[str, str], integration: Mapping[str, Any]) -> None:
    params = lowered_keys(pick(integration, *_INTEGRATION))
    await ask(SERVICE, "PutIntegration", **at, **params)
    for response in integration.get("IntegrationResponses") or ():
        status = text_of(response["StatusCode"])
        params = lowered_keys(pick(response, *_RESPONSE))
        if "responseTemplates" in params:
            params["responseTemplates"] = {
                kind: as_text(text) for kind, text in params["responseTemplates"].items()
            }
        try:
            await ask(SERVICE, "PutIntegrationResponse", statusCode=status, **at, **params)
        except AwsError as error:
            if error.code != "NotFoundException":
                raise
            # A template may leave the method's response out; without one there is no place for this.
            await ask(SERVICE, "PutMethodResponse", statusCode=status, **at)
            await ask(SERVICE, "PutIntegrationResponse", statusCode=status, **at, **params)


TYPES: Final[Mapping[str, Factory]] = {"AWS::ApiGateway::Method": MethodType}
