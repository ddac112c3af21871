"""Types of Amazon API Gateway that say who may use REST APIs, and where: deployments, stages, keys and plans."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from typing_extensions import override

from redrive.protocols.aws.cloudformation.template.parameters import text_of
from redrive.protocols.aws.cloudformation.types.apigateway import (
    SERVICE,
    found_by_tags,
    own_tags,
    patches,
)
from redrive.protocols.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    Made,
    PutResourceType,
    ResourceType,
    Wanted,
    lowered,
    lowered_keys,
    pick,
    without_absence,
)
from redrive.protocols.aws.wire.errors import AwsError


class Deployment(ResourceType):
    """`AWS::ApiGateway::Deployment`, and the stage that it may bring."""

    service = SERVICE
    name_chars_max = 0

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        given = wanted.properties
        api = given["RestApiId"]
        params = lowered_keys(pick(given, "Description", "StageName"))
        stage = given.get("StageDescription") or {}
        if "Variables" in stage:
            params["variables"] = stage["Variables"]
        if "Description" in stage:
            params["stageDescription"] = stage["Description"]
        made = await ask(SERVICE, "CreateDeployment", restApiId=api, **params)
        if operations := list(_stage_operations({}, stage)):
            named = {"restApiId": api, "stageName": given["StageName"]}
            await ask(SERVICE, "UpdateStage", patchOperations=operations, **named)
        return Made(made["id"], {"DeploymentId": made["id"]})

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        given, api = wanted.properties, wanted.properties["RestApiId"]
        operations = patches(before, given, {"Description": "/description"})
        named = {"restApiId": api, "deploymentId": wanted.physical_id}
        await ask(SERVICE, "UpdateDeployment", patchOperations=operations, **named)
        old, new = before.get("StageDescription") or {}, given.get("StageDescription") or {}
        if "StageName" in given and (changes := list(_stage_operations(old, new))):
            stage = {"restApiId": api, "stageName": given["StageName"]}
            await ask(SERVICE, "UpdateStage", patchOperations=changes, **stage)
        return Made(wanted.physical_id, {"DeploymentId": wanted.physical_id})

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        given = wanted.properties
        named = {"restApiId": given["RestApiId"], "deploymentId": wanted.physical_id}
        try:
            await without_absence(ask(SERVICE, "DeleteDeployment", **named))
        except AwsError as error:
            if error.code != "BadRequestException" or "StageName" not in given:
                raise
            stage = {"restApiId": given["RestApiId"], "stageName": given["StageName"]}
            await without_absence(ask(SERVICE, "DeleteStage", **stage))
            await without_absence(ask(SERVICE, "DeleteDeployment", **named))

    @override
    async def find(self, ask: Ask, wanted: Wanted) -> str:
        return ""


class Stage(ResourceType):
    """`AWS::ApiGateway::Stage`; its id is its name."""

    service = SERVICE
    name_property = "StageName"
    name_chars_max = 128

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        given = wanted.properties
        params = lowered_keys(pick(given, *_STAGE, "CacheClusterSize"))
        named = {"restApiId": given["RestApiId"], "stageName": wanted.name}
        if given.get("CanarySetting"):
            params["canarySettings"] = lowered_keys(given["CanarySetting"])
        try:
            await ask(SERVICE, "CreateStage", tags=wanted.all_tags(), **named, **params)
        except AwsError as error:
            if not (wanted.again and error.code == "ConflictException"):
                raise
        if operations := list(_stage_operations({}, pick(given, *_LATER))):
            await ask(SERVICE, "UpdateStage", patchOperations=operations, **named)
        return Made(wanted.name)

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        given = wanted.properties
        operations = [*patches(before, given, _STAGE), *_stage_operations(before, given)]
        named = {"restApiId": given["RestApiId"], "stageName": wanted.physical_id}
        await ask(SERVICE, "UpdateStage", patchOperations=operations, **named)
        return Made(wanted.physical_id)

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        named = {"restApiId": wanted.properties["RestApiId"], "stageName": wanted.physical_id}
        await without_absence(ask(SERVICE, "DeleteStage", **named))


_STAGE: Final = {
    "DeploymentId": "/deploymentId",
    "Description": "/description",
    "Variables": "/variables",
    "TracingEnabled": "/tracingEnabled",
    "DocumentationVersion": "/documentationVersion",
    "CacheClusterEnabled": "/cacheClusterEnabled",
}
_LATER: Final = ("AccessLogSetting", "MethodSettings", "ClientCertificateId")
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
    """The patch operations of a stage's log and of its methods' settings."""
    old, new = before.get("AccessLogSetting") or {}, after.get("AccessLogSetting") or {}
    if old and not new:
        yield {"op": "remove", "path": "/accessLogSettings"}
    else:
        names = {"DestinationArn": "/accessLogSettings/destinationArn", "Format": "/accessLogSettings/format"}
        yield from patches(old, new, names)
    known, wanted = _by_method(before), _by_method(after)
    for path in sorted(known.keys() - wanted.keys()):
        yield {"op": "remove", "path": path}
    for path, settings in sorted(wanted.items()):
        for name, step in _METHOD_SETTINGS.items():
            if name in settings and known.get(path, {}).get(name) != settings[name]:
                yield {"op": "replace", "path": f"{path}/{step}", "value": text_of(settings[name])}


def _by_method(properties: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The settings of methods by the path that patch operations give them."""
    found = {}
    for settings in properties.get("MethodSettings") or ():
        path = str(settings.get("ResourcePath", "/*"))
        path = "*" if path == "/*" else path.replace("~", "~0").replace("/", "~1")
        found[f"/{path}/{settings.get('HttpMethod', '*')}"] = settings
    return found


class Account(PutResourceType):
    """`AWS::ApiGateway::Account`: the settings of an account's region, which stay when the stack goes."""

    service = SERVICE

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        role = wanted.properties.get("CloudWatchRoleArn", "")
        operation = {"op": "replace", "path": "/cloudwatchRoleArn", "value": role}
        await ask(SERVICE, "UpdateAccount", patchOperations=[operation])
        made = wanted.physical_id or wanted.name
        return Made(made, {"Id": made})

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        """Nothing: Amazon's leaves the role in its place."""


class ApiKey(ResourceType):
    """`AWS::ApiGateway::ApiKey`."""

    service = SERVICE
    name_property = "Name"

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        found = await self.find(ask, wanted) if wanted.again else ""
        if not found:
            given = wanted.properties
            names = ("Description", "Enabled", "CustomerId", "Value", "StageKeys", "GenerateDistinctId")
            params = lowered_keys(pick(given, *names))
            name = text_of(given.get("Name") or wanted.name)
            made = await ask(SERVICE, "CreateApiKey", tags=own_tags(wanted), name=name, **params)
            found = made["id"]
        return Made(found, {"APIKeyId": found})

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        names = {"Description": "/description", "Enabled": "/enabled", "CustomerId": "/customerId"}
        operations = patches(before, wanted.properties, names)
        await ask(SERVICE, "UpdateApiKey", apiKey=wanted.physical_id, patchOperations=operations)
        return Made(wanted.physical_id, {"APIKeyId": wanted.physical_id})

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        await without_absence(ask(SERVICE, "DeleteApiKey", apiKey=wanted.physical_id))

    @override
    async def find(self, ask: Ask, wanted: Wanted) -> str:
        return await found_by_tags(ask, wanted, "GetApiKeys")


class UsagePlan(ResourceType):
    """`AWS::ApiGateway::UsagePlan`."""

    service = SERVICE
    name_property = "UsagePlanName"

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        found = await self.find(ask, wanted) if wanted.again else ""
        if not found:
            given = wanted.properties
            params: dict[str, Any] = {"name": text_of(given.get("UsagePlanName") or wanted.name)}
            params |= lowered_keys(pick(given, "Description"))
            for name in ("Quota", "Throttle"):
                if name in given:
                    params[lowered(name)] = lowered_keys(given[name])
            params["apiStages"] = [_api_stage(stage) for stage in given.get("ApiStages") or ()]
            made = await ask(SERVICE, "CreateUsagePlan", tags=own_tags(wanted), **params)
            found = made["id"]
        return Made(found, {"Id": found})

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        given = wanted.properties
        operations = [
            *patches(before, given, {"UsagePlanName": "/name", "Description": "/description"}),
            *_plan_operations(before, given),
        ]
        await ask(SERVICE, "UpdateUsagePlan", usagePlanId=wanted.physical_id, patchOperations=operations)
        return Made(wanted.physical_id, {"Id": wanted.physical_id})

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        stages = wanted.properties.get("ApiStages") or ()
        operations = [
            {"op": "remove", "path": "/apiStages", "value": f"{stage['ApiId']}:{stage['Stage']}"}
            for stage in stages
        ]
        named = {"usagePlanId": wanted.physical_id}
        for operation in operations:  # the stages of which may be gone
            await without_absence(ask(SERVICE, "UpdateUsagePlan", patchOperations=[operation], **named))
        await without_absence(ask(SERVICE, "DeleteUsagePlan", **named))

    @override
    async def find(self, ask: Ask, wanted: Wanted) -> str:
        return await found_by_tags(ask, wanted, "GetUsagePlans")


def _api_stage(stage: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"apiId": stage["ApiId"], "stage": stage["Stage"]}
    if "Throttle" in stage:
        made["throttle"] = {path: lowered_keys(limits) for path, limits in stage["Throttle"].items()}
    return made


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


class UsagePlanKey(ResourceType):
    """`AWS::ApiGateway::UsagePlanKey`; its id is the key's and the plan's."""

    service = SERVICE
    name_chars_max = 0

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        given = wanted.properties
        params = lowered_keys(pick(given, "UsagePlanId", "KeyId", "KeyType"))
        try:
            await ask(SERVICE, "CreateUsagePlanKey", **params)
        except AwsError as error:
            if not (wanted.again and error.code == "ConflictException"):
                raise
        made = await self.find(ask, wanted)
        return Made(made, {"Id": made})

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        return Made(wanted.physical_id, {"Id": wanted.physical_id})

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        named = lowered_keys(pick(wanted.properties, "UsagePlanId", "KeyId"))
        await without_absence(ask(SERVICE, "DeleteUsagePlanKey", **named))

    @override
    async def find(self, ask: Ask, wanted: Wanted) -> str:
        return f"{wanted.properties['KeyId']}:{wanted.properties['UsagePlanId']}"


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::ApiGateway::Account": Account,
    "AWS::ApiGateway::ApiKey": ApiKey,
    "AWS::ApiGateway::Deployment": Deployment,
    "AWS::ApiGateway::Stage": Stage,
    "AWS::ApiGateway::UsagePlan": UsagePlan,
    "AWS::ApiGateway::UsagePlanKey": UsagePlanKey,
}
