"""Types of Amazon API Gateway that say who may use REST APIs, and where: deployments, stages, keys and plans."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from typing_extensions import override

from redrive.aws.cloudformation.template.parameters import text_of
from redrive.aws.cloudformation.types.apigateway import (
    SERVICE,
    TAGS,
    arn_of,
    found_by_tags,
    patches,
)
from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    PutResourceType,
    ResourceSpec,
    ResourceState,
    ResourceType,
    lowered,
    lowered_keys,
    pick,
    without_absence,
)
from redrive.aws.cloudformation.types.tagging import own_tags
from redrive.aws.wire.errors import AwsError


class RestDeploymentType(ResourceType):
    """`AWS::ApiGateway::Deployment`, and the stage that it may bring."""

    service = SERVICE
    name_chars_max = 0

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        properties = spec.properties
        api = properties["RestApiId"]
        params = lowered_keys(pick(properties, "Description", "StageName"))
        if canary := properties.get("DeploymentCanarySettings"):
            params["canarySettings"] = lowered_keys(canary)
        answer = await ask(SERVICE, "CreateDeployment", restApiId=api, **params)
        await _describe_stage(ask, spec, {})
        return ResourceState(answer["id"], {"DeploymentId": answer["id"]})

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        properties, api = spec.properties, spec.properties["RestApiId"]
        operations = patches(before, properties, {"Description": "/description"})
        identifiers = {"restApiId": api, "deploymentId": spec.physical_id}
        await ask(SERVICE, "UpdateDeployment", patchOperations=operations, **identifiers)
        await _describe_stage(ask, spec, before.get("StageDescription") or {})
        return ResourceState(spec.physical_id, {"DeploymentId": spec.physical_id})

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        properties = spec.properties
        identifiers = {"restApiId": properties["RestApiId"], "deploymentId": spec.physical_id}
        try:
            await without_absence(ask(SERVICE, "DeleteDeployment", **identifiers))
        except AwsError as error:
            if error.code != "BadRequestException" or "StageName" not in properties:
                raise
            stage = {"restApiId": properties["RestApiId"], "stageName": properties["StageName"]}
            await without_absence(ask(SERVICE, "DeleteStage", **stage))
            await without_absence(ask(SERVICE, "DeleteDeployment", **identifiers))

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        return ""


async def _describe_stage(ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> None:
    """Let the stage that a deployment brings be as its description says, which was another before."""
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

    service = SERVICE
    name_property = "StageName"
    name_chars_max = 128

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        properties = spec.properties
        params = lowered_keys(pick(properties, *_CREATED))
        identifiers = {"restApiId": properties["RestApiId"], "stageName": spec.name}
        try:
            await ask(SERVICE, "CreateStage", tags=spec.all_tags(), **identifiers, **params)
        except AwsError as error:
            if not (spec.again and error.code == "ConflictException"):
                raise
        if operations := list(_stage_operations(pick(properties, *_CREATED), properties)):
            await ask(SERVICE, "UpdateStage", patchOperations=operations, **identifiers)
        return ResourceState(spec.name)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        properties = spec.properties
        operations = list(_stage_operations(before, properties))
        identifiers = {"restApiId": properties["RestApiId"], "stageName": spec.physical_id}
        await ask(SERVICE, "UpdateStage", patchOperations=operations, **identifiers)
        await TAGS.set(ask, spec.all_tags(), resourceArn=_stage_arn(spec, identifiers))
        return ResourceState(spec.physical_id)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        identifiers = {"restApiId": spec.properties["RestApiId"], "stageName": spec.physical_id}
        await without_absence(ask(SERVICE, "DeleteStage", **identifiers))


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
_CREATED: Final = (
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
    """The patch operations that lead from a stage's properties to others."""
    yield from patches(before, after, _STAGE)
    had, has = (lowered_keys(properties.get("CanarySetting") or {}) for properties in (before, after))
    yield from patches({"canary": had}, {"canary": has}, {"canary": "/canarySettings"})
    old, new = before.get("AccessLogSetting") or {}, after.get("AccessLogSetting") or {}
    if old and not new:
        yield {"op": "remove", "path": "/accessLogSettings"}
    else:
        names = {"DestinationArn": "/accessLogSettings/destinationArn", "Format": "/accessLogSettings/format"}
        yield from patches(old, new, names)
    known, target = _by_method(before), _by_method(after)
    for path in sorted(known.keys() - target.keys()):
        yield {"op": "remove", "path": path}
    for path, settings in sorted(target.items()):
        for name, step in _METHOD_SETTINGS.items():
            if name in settings and known.get(path, {}).get(name) != settings[name]:
                yield {"op": "replace", "path": f"{path}/{step}", "value": text_of(settings[name])}


def _by_method(properties: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The settings of methods by the path that patch operations give them; a deployment's stage has those of all."""
    common = pick(properties, *_METHOD_SETTINGS)
    settings_by_method: dict[str, Mapping[str, Any]] = {"/*/*": common} if common else {}
    for settings in properties.get("MethodSettings") or ():
        path = str(settings.get("ResourcePath", "/*"))
        path = "*" if path == "/*" else path.replace("~", "~0").replace("/", "~1")
        at = f"/{path}/{settings.get('HttpMethod', '*')}"
        settings_by_method[at] = {**settings_by_method.get(at, {}), **settings}
    return settings_by_method


class AccountType(PutResourceType):
    """`AWS::ApiGateway::Account`: the settings of an account's region, which stay when the stack goes."""

    service = SERVICE

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        role = spec.properties.get("CloudWatchRoleArn", "")
        operation = {"op": "replace", "path": "/cloudwatchRoleArn", "value": role}
        await ask(SERVICE, "UpdateAccount", patchOperations=[operation])
        physical_id = spec.physical_id or spec.name
        return ResourceState(physical_id, {"Id": physical_id})

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        """Nothing: Amazon's leaves the role in its place."""


class ApiKeyType(ResourceType):
    """`AWS::ApiGateway::ApiKey`."""

    service = SERVICE
    name_property = "Name"

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        key_id = await self.find(ask, spec) if spec.again else ""
        if not key_id:
            properties = spec.properties
            names = ("Description", "Enabled", "CustomerId", "Value", "StageKeys", "GenerateDistinctId")
            params = lowered_keys(pick(properties, *names))
            name = text_of(properties.get("Name") or spec.name)
            answer = await ask(SERVICE, "CreateApiKey", tags=own_tags(spec), name=name, **params)
            key_id = answer["id"]
        return ResourceState(key_id, {"APIKeyId": key_id})

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        names = {"Description": "/description", "Enabled": "/enabled", "CustomerId": "/customerId"}
        operations = patches(before, spec.properties, names)
        await ask(SERVICE, "UpdateApiKey", apiKey=spec.physical_id, patchOperations=operations)
        await TAGS.set(ask, own_tags(spec), resourceArn=arn_of(spec, f"/apikeys/{spec.physical_id}"))
        return ResourceState(spec.physical_id, {"APIKeyId": spec.physical_id})

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        await without_absence(ask(SERVICE, "DeleteApiKey", apiKey=spec.physical_id))

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        return await found_by_tags(ask, spec, "GetApiKeys")


class UsagePlanType(ResourceType):
    """`AWS::ApiGateway::UsagePlan`."""

    service = SERVICE
    name_property = "UsagePlanName"

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        plan_id = await self.find(ask, spec) if spec.again else ""
        if not plan_id:
            properties = spec.properties
            params: dict[str, Any] = {"name": text_of(properties.get("UsagePlanName") or spec.name)}
            params |= lowered_keys(pick(properties, "Description"))
            for name in ("Quota", "Throttle"):
                if name in properties:
                    params[lowered(name)] = lowered_keys(properties[name])
            params["apiStages"] = [_api_stage(stage) for stage in properties.get("ApiStages") or ()]
            answer = await ask(SERVICE, "CreateUsagePlan", tags=own_tags(spec), **params)
            plan_id = answer["id"]
        return ResourceState(plan_id, {"Id": plan_id})

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        properties = spec.properties
        operations = [
            *patches(before, properties, {"UsagePlanName": "/name", "Description": "/description"}),
            *_plan_operations(before, properties),
        ]
        await ask(SERVICE, "UpdateUsagePlan", usagePlanId=spec.physical_id, patchOperations=operations)
        await TAGS.set(ask, own_tags(spec), resourceArn=arn_of(spec, f"/usageplans/{spec.physical_id}"))
        return ResourceState(spec.physical_id, {"Id": spec.physical_id})

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        stages = spec.properties.get("ApiStages") or ()
        operations = [
            {"op": "remove", "path": "/apiStages", "value": f"{stage['ApiId']}:{stage['Stage']}"}
            for stage in stages
        ]
        identifiers = {"usagePlanId": spec.physical_id}
        for operation in operations:  # the stages of which may be gone
            await without_absence(ask(SERVICE, "UpdateUsagePlan", patchOperations=[operation], **identifiers))
        await without_absence(ask(SERVICE, "DeleteUsagePlan", **identifiers))

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        return await found_by_tags(ask, spec, "GetUsagePlans")


def _api_stage(stage: Mapping[str, Any]) -> dict[str, Any]:
    api_stage: dict[str, Any] = {"apiId": stage["ApiId"], "stage": stage["Stage"]}
    if "Throttle" in stage:
        api_stage["throttle"] = {path: lowered_keys(limits) for path, limits in stage["Throttle"].items()}
    return api_stage


def _plan_operations(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for name in ("Quota", "Throttle"):
        old, new = before.get(name) or {}, after.get(name) or {}
        if old and not new:
            yield {"op": "remove", "path": f"/{lowered(name)}"}
        else:
            keys = old.keys() | new.keys()
            yield from patches(old, new, {key: f"/{lowered(name)}/{lowered(key)}" for key in sorted(keys)})
    old_stages = {f"{stage['ApiId']}:{stage['Stage']}" for stage in before.get("ApiStages") or ()}
    new_stages = {f"{stage['ApiId']}:{stage['Stage']}" for stage in after.get("ApiStages") or ()}
    for op, stages in (("remove", old_stages - new_stages), ("add", new_stages - old_stages)):
        yield from ({"op": op, "path": "/apiStages", "value": stage} for stage in sorted(stages))


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::ApiGateway::Account": AccountType,
    "AWS::ApiGateway::ApiKey": ApiKeyType,
    "AWS::ApiGateway::Deployment": RestDeploymentType,
    "AWS::ApiGateway::Stage": RestStageType,
    "AWS::ApiGateway::UsagePlan": UsagePlanType,
}
