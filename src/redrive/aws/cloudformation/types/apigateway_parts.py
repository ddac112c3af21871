"""Types of REST APIs' methods, deployments, stages, API keys and usage plans, and of the settings of an account."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from redrive.aws.cloudformation.template.parameters import text_of
from redrive.aws.cloudformation.types.apigateway import (
    SERVICE,
    TAGS,
    RestApiPartType,
    TaggedType,
    arn_of,
    patches,
)
from redrive.aws.cloudformation.types.calls import (
    Ask,
    ResourceSpec,
    ResourceState,
    as_text,
    lower_first,
    lower_first_keys,
    pick,
    unless_created,
    without_absence,
)
from redrive.aws.cloudformation.types.resource_type import (
    ID,
    Factory,
    Parameters,
    PutResourceType,
    ResourceType,
    Row,
    lower_first_names,
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
    """`AWS::ApiGateway::Method`, with its integration and responses, under a generated id."""

    service, noun = SERVICE, "Method"
    keys = lower_first_names("RestApiId", "ResourceId", "HttpMethod")

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        properties = spec.properties
        if spec.may_exist or spec.physical_id:  # an update puts the method anew, with all of its parts
            await self.delete(ask, spec)
        identifiers = self.identifiers(spec)
        params = lower_first_keys(pick(properties, *_METHOD))
        await ask(SERVICE, "PutMethod", **{"authorizationType": "NONE", **identifiers, **params})
        for response in properties.get("MethodResponses") or ():
            params = lower_first_keys(pick(response, "ResponseModels", "ResponseParameters"))
            status = text_of(response["StatusCode"])
            await ask(SERVICE, "PutMethodResponse", statusCode=status, **identifiers, **params)
        if properties.get("Integration"):
            await _put_integration(ask, identifiers, properties["Integration"])
        return ResourceState(spec.physical_id or spec.name)


async def _put_integration(ask: Ask, identifiers: Mapping[str, str], integration: Mapping[str, Any]) -> None:
    """Put an integration and its responses, with the responses of the method that they need."""
    params = lower_first_keys(pick(integration, *_INTEGRATION))
    await ask(SERVICE, "PutIntegration", **identifiers, **params)
    for response in integration.get("IntegrationResponses") or ():
        status = text_of(response["StatusCode"])
        params = lower_first_keys(pick(response, *_RESPONSE))
        if "responseTemplates" in params:
            params["responseTemplates"] = {
                kind: as_text(text) for kind, text in params["responseTemplates"].items()
            }
        try:
            await ask(SERVICE, "PutIntegrationResponse", statusCode=status, **identifiers, **params)
        except AwsError as error:
            if error.code != "NotFoundException":
                raise
            # A template may leave out the response of the method, which this one needs.
            await ask(SERVICE, "PutMethodResponse", statusCode=status, **identifiers)
            await ask(SERVICE, "PutIntegrationResponse", statusCode=status, **identifiers, **params)


# ---- deployments and stages -----------------------------------------------------------------------------------


class RestDeploymentType(RestApiPartType):
    """`AWS::ApiGateway::Deployment`, and the stage that it may create."""

    noun = "Deployment"
    key_properties: ClassVar[tuple[str, ...]] = ()
    paths: ClassVar[Mapping[str, str]] = {"Description": "/description"}

    @override
    def params(self, spec: ResourceSpec) -> dict[str, Any]:
        params = lower_first_keys(pick(spec.properties, "RestApiId", "Description", "StageName"))
        canary = spec.properties.get("DeploymentCanarySettings")
        return {**params, "canarySettings": lower_first_keys(canary)} if canary else params

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        state = await super().create(ask, spec)
        await _describe_stage(ask, spec, {})
        return state

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        state = await super().update(ask, spec, before)
        await _describe_stage(ask, spec, before.get("StageDescription") or {})
        return state

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        try:
            await super().delete(ask, spec)
        except AwsError as error:
            if error.code != "BadRequestException" or "StageName" not in spec.properties:
                raise
            stage = lower_first_keys(pick(spec.properties, "RestApiId", "StageName"))
            await without_absence(ask(SERVICE, "DeleteStage", **stage))
            await super().delete(ask, spec)


async def _describe_stage(ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> None:
    """Update the stage of a deployment to its description, from the description that it had before."""
    properties = spec.properties
    stage = properties.get("StageDescription") or {}
    if "StageName" not in properties or stage == before:
        return
    identifiers = {"restApiId": properties["RestApiId"], "stageName": properties["StageName"]}
    if operations := list(_stage_operations(before, stage)):
        await ask(SERVICE, "UpdateStage", patchOperations=operations, **identifiers)
    if stage.get("Tags") != before.get("Tags"):
        tags = {tag["Key"]: text_of(tag["Value"]) for tag in stage.get("Tags") or ()}
        await TAGS.set(ask, {**(spec.tags or {}), **tags}, resourceArn=_stage_arn(spec, identifiers))


def _stage_arn(spec: ResourceSpec, identifiers: Mapping[str, str]) -> str:
    return arn_of(spec, f"/restapis/{identifiers['restApiId']}/stages/{identifiers['stageName']}")


class RestStageType(ResourceType):
    """`AWS::ApiGateway::Stage`; its id is its name."""

    service, noun = SERVICE, "Stage"
    name_property = "StageName"
    name_chars_max = 128
    keys: ClassVar[Parameters] = {"restApiId": "RestApiId", "stageName": ID}

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        properties = spec.properties
        params = lower_first_keys(pick(properties, *_CREATION_PROPERTIES))
        identifiers = self.identifiers(spec)
        creation = ask(SERVICE, "CreateStage", tags=spec.all_tags(), **identifiers, **params)
        await unless_created(creation, spec, "ConflictException")
        if operations := list(_stage_operations(pick(properties, *_CREATION_PROPERTIES), properties)):
            await ask(SERVICE, "UpdateStage", patchOperations=operations, **identifiers)
        return ResourceState(spec.name)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        properties = spec.properties
        operations = list(_stage_operations(before, properties))
        identifiers = self.identifiers(spec)
        await ask(SERVICE, "UpdateStage", patchOperations=operations, **identifiers)
        await TAGS.set(ask, spec.all_tags(), resourceArn=_stage_arn(spec, identifiers))
        return ResourceState(spec.physical_id)


_STAGE: Final = {
    "DeploymentId": "/deploymentId",
    "Description": "/description",
    "Variables": "/variables",
    "TracingEnabled": "/tracingEnabled",
    "DocumentationVersion": "/documentationVersion",
    "CacheClusterEnabled": "/cacheClusterEnabled",
    "CacheClusterSize": "/cacheClusterSize",
    "ClientCertificateId": "/clientCertificateId",
}
#: The properties that a stage is created with; it is given the others after that.
_CREATION_PROPERTIES: Final = (
    *("DeploymentId", "Description", "Variables", "TracingEnabled", "DocumentationVersion"),
    *("CacheClusterEnabled", "CacheClusterSize"),
)
_METHOD_SETTINGS: Final = {
    "MetricsEnabled": "metrics/enabled",
    "LoggingLevel": "logging/loglevel",
    "DataTraceEnabled": "logging/dataTrace",
    "ThrottlingBurstLimit": "throttling/burstLimit",
    "ThrottlingRateLimit": "throttling/rateLimit",
    "CachingEnabled": "caching/enabled",
    "CacheTtlInSeconds": "caching/ttlInSeconds",
    "CacheDataEncrypted": "caching/dataEncrypted",
}


def _stage_operations(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """The patch operations that change a stage from properties to others."""
    yield from patches(before, after, _STAGE)
    old_canary, new_canary = (
        lower_first_keys(properties.get("CanarySetting") or {}) for properties in (before, after)
    )
    yield from patches({"canary": old_canary}, {"canary": new_canary}, {"canary": "/canarySettings"})
    old, new = before.get("AccessLogSetting") or {}, after.get("AccessLogSetting") or {}
    if old and not new:
        yield {"op": "remove", "path": "/accessLogSettings"}
    else:
        names = {"DestinationArn": "/accessLogSettings/destinationArn", "Format": "/accessLogSettings/format"}
        yield from patches(old, new, names)
    old_methods, new_methods = _method_settings(before), _method_settings(after)
    for path in sorted(old_methods.keys() - new_methods.keys()):
        yield {"op": "remove", "path": path}
    for path, settings in sorted(new_methods.items()):
        for name, subpath in _METHOD_SETTINGS.items():
            if name in settings and old_methods.get(path, {}).get(name) != settings[name]:
                yield {"op": "replace", "path": f"{path}/{subpath}", "value": text_of(settings[name])}


def _method_settings(properties: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The settings of methods, by their paths in patch operations; the stage of a deployment has them for all methods."""
    common = pick(properties, *_METHOD_SETTINGS)
    settings_by_method: dict[str, Mapping[str, Any]] = {"/*/*": common} if common else {}
    for settings in properties.get("MethodSettings") or ():
        path = str(settings.get("ResourcePath", "/*"))
        path = "*" if path == "/*" else path.replace("~", "~0").replace("/", "~1")
        method_path = f"/{path}/{settings.get('HttpMethod', '*')}"
        settings_by_method[method_path] = {**settings_by_method.get(method_path, {}), **settings}
    return settings_by_method


class AccountType(PutResourceType):
    """`AWS::ApiGateway::Account`: the settings of an account's region, which outlive the stack, as on AWS."""

    service = SERVICE

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        role = spec.properties.get("CloudWatchRoleArn", "")
        operation = {"op": "replace", "path": "/cloudwatchRoleArn", "value": role}
        await ask(SERVICE, "UpdateAccount", patchOperations=[operation])
        physical_id = spec.physical_id or spec.name
        return ResourceState(physical_id, {"Id": physical_id})


class ApiKeyType(TaggedType):
    """`AWS::ApiGateway::ApiKey`."""

    noun, attribute, collection = "ApiKey", "APIKeyId", "/apikeys"
    keys: ClassVar[Parameters] = {"apiKey": ID}

    @override
    def params(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        names = ("Description", "Enabled", "CustomerId", "Value", "StageKeys", "GenerateDistinctId")
        return lower_first_keys(pick(properties, *names))

    @override
    def operations(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, str]]:
        names = {"Description": "/description", "Enabled": "/enabled", "CustomerId": "/customerId"}
        return patches(before, after, names)


class UsagePlanType(TaggedType):
    """`AWS::ApiGateway::UsagePlan`."""

    noun, attribute, collection = "UsagePlan", "Id", "/usageplans"
    name_property = "UsagePlanName"
    keys: ClassVar[Parameters] = {"usagePlanId": ID}

    @override
    def params(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        limits = {
            lower_first(name): lower_first_keys(properties[name]) for name in _LIMITS if name in properties
        }
        stages = [_api_stage(stage) for stage in properties.get("ApiStages") or ()]
        return {**lower_first_keys(pick(properties, "Description")), **limits, "apiStages": stages}

    @override
    def operations(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, str]]:
        names = {"UsagePlanName": "/name", "Description": "/description"}
        return [*patches(before, after, names), *_plan_operations(before, after)]

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        for stage in _stages(spec.properties):  # a plan with stages is not deleted; a stage may be absent
            operation = {"op": "remove", "path": "/apiStages", "value": stage}
            params = {**self.identifiers(spec), "patchOperations": [operation]}
            await without_absence(ask(SERVICE, "UpdateUsagePlan", **params))
        await super().delete(ask, spec)


_LIMITS: Final = ("Quota", "Throttle")


def _stages(properties: Mapping[str, Any]) -> dict[str, None]:
    stages = properties.get("ApiStages") or ()
    return dict.fromkeys(f"{stage['ApiId']}:{stage['Stage']}" for stage in stages)


def _api_stage(stage: Mapping[str, Any]) -> dict[str, Any]:
    api_stage: dict[str, Any] = {"apiId": stage["ApiId"], "stage": stage["Stage"]}
    if "Throttle" in stage:
        api_stage["throttle"] = {path: lower_first_keys(limits) for path, limits in stage["Throttle"].items()}
    return api_stage


def _plan_operations(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """The patch operations that change the limits and the stages of a usage plan."""
    for name in _LIMITS:
        old, new = before.get(name) or {}, after.get(name) or {}
        if old and not new:
            yield {"op": "remove", "path": f"/{lower_first(name)}"}
        else:
            keys = old.keys() | new.keys()
            yield from patches(
                old, new, {key: f"/{lower_first(name)}/{lower_first(key)}" for key in sorted(keys)}
            )
    old_stages, new_stages = _stages(before).keys(), _stages(after).keys()
    for op, stages in (("remove", old_stages - new_stages), ("add", new_stages - old_stages)):
        yield from ({"op": op, "path": "/apiStages", "value": stage} for stage in sorted(stages))


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::ApiGateway::Account": AccountType,
    "AWS::ApiGateway::ApiKey": ApiKeyType,
    "AWS::ApiGateway::Deployment": RestDeploymentType,
    "AWS::ApiGateway::Method": MethodType,
    "AWS::ApiGateway::Stage": RestStageType,
    "AWS::ApiGateway::UsagePlan": UsagePlanType,
    "AWS::ApiGateway::UsagePlanKey": Row(
        service="apigateway",
        create="CreateUsagePlanKey",
        delete="DeleteUsagePlanKey",
        keys=lower_first_names("UsagePlanId", "KeyId"),
        params=lower_first_names("KeyType"),
        exists_code="ConflictException",
        id="{KeyId}:{UsagePlanId}",
        attributes=("Id",),
        name_chars_max=0,
    ),
}
