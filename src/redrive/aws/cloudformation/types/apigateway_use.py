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
    own_tags,
    patches,
)
from redrive.aws.cloudformation.types.resource_type import (
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
from redrive.aws.wire.errors import AwsError


class Deployment(ResourceType):
    """`AWS::ApiGateway::Deployment`, and the stage that it may bring."""

    service = SERVICE
    name_chars_max = 0

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        given = wanted.properties
        api = given["RestApiId"]
        params = lowered_keys(pick(given, "Description", "StageName"))
        if canary := given.get("DeploymentCanarySettings"):
            params["canarySettings"] = lowered_keys(canary)
        made = await ask(SERVICE, "CreateDeployment", restApiId=api, **params)
        await _describe_stage(ask, wanted, {})
        return Made(made["id"], {"DeploymentId": made["id"]})

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        given, api = wanted.properties, wanted.properties["RestApiId"]
        operations = patches(before, given, {"Description": "/description"})
        named = {"restApiId": api, "deploymentId": wanted.physical_id}
        await ask(SERVICE, "UpdateDeployment", patchOperations=operations, **named)
        await _describe_stage(ask, wanted, before.get("StageDescription") or {})
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


async def _describe_stage(ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> None:
    """Let the stage that a deployment brings be as its description says, which was another before."""
    given = wanted.properties
    stage = given.get("StageDescription") or {}
    if "StageName" not in given or stage == before:
        return
    named = {"restApiId": given["RestApiId"], "stageName": given["StageName"]}
    if operations := list(_stage_operations(before, stage)):
        await ask(SERVICE, "UpdateStage", patchOperations=operations, **named)
    if stage.get("Tags") != before.get("Tags"):
        tags = {tag["Key"]: text_of(tag["Value"]) for tag in stage.get("Tags") or ()}
        await TAGS.set(ask, {**(wanted.tags or {}), **tags}, resourceArn=_stage_arn(wanted, named))


def _stage_arn(wanted: Wanted, named: Mapping[str, str]) -> str:
    return arn_of(wanted, f"/restapis/{named['restApiId']}/stages/{named['stageName']}")


class Stage(ResourceType):
    """`AWS::ApiGateway::Stage`; its id is its name."""

    service = SERVICE
    name_property = "StageName"
    name_chars_max = 128

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        given = wanted.properties
        params = lowered_keys(pick(given, *_CREATED))
        named = {"restApiId": given["RestApiId"], "stageName": wanted.name}
        try:
            await ask(SERVICE, "CreateStage", tags=wanted.all_tags(), **named, **params)
        except AwsError as error:
            if not (wanted.again and error.code == "ConflictException"):
                raise
        if operations := list(_stage_operations(pick(given, *_CREATED), given)):
            await ask(SERVICE, "UpdateStage", patchOperations=operations, **named)
        return Made(wanted.name)

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        given = wanted.properties
        operations = list(_stage_operations(before, given))
        named = {"restApiId": given["RestApiId"], "stageName": wanted.physical_id}
        await ask(SERVICE, "UpdateStage", patchOperations=operations, **named)
        await TAGS.set(ask, wanted.all_tags(), resourceArn=_stage_arn(wanted, named))
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
    had, has = (lowered_keys(given.get("CanarySetting") or {}) for given in (before, after))
    yield from patches({"canary": had}, {"canary": has}, {"canary": "/canarySettings"})
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
    """The settings of methods by the path that patch operations give them; a deployment's stage has those of all."""
    common = pick(properties, *_METHOD_SETTINGS)
    found: dict[str, Mapping[str, Any]] = {"/*/*": common} if common else {}
    for settings in properties.get("MethodSettings") or ():
        path = str(settings.get("ResourcePath", "/*"))
        path = "*" if path == "/*" else path.replace("~", "~0").replace("/", "~1")
        at = f"/{path}/{settings.get('HttpMethod', '*')}"
        found[at] = {**found.get(at, {}), **settings}
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
        await TAGS.set(ask, own_tags(wanted), resourceArn=arn_of(wanted, f"/apikeys/{wanted.physical_id}"))
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
        await TAGS.set(ask, own_tags(wanted), resourceArn=arn_of(wanted, f"/usageplans/{wanted.physical_id}"))
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
