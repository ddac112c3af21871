"""Operations on deployments, and on the stages under which callers reach them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from redrive.aws.apigateway.control.apis import Apis
from redrive.aws.apigateway.control.errors import PAGES, bad_request, conflict, no_deployment, not_offered
from redrive.aws.apigateway.control.records import (
    DEPLOYMENT,
    METHODS,
    REST_API,
    STAGES,
    ApiDeployment,
    RestApi,
    Tree,
    deployment_key,
    new_id,
    value_at,
    with_value,
    without_value,
)
from redrive.aws.apigateway.requests.metrics import check_destination
from redrive.aws.apigateway.rest.kinds import (
    INTEGRATION,
    RESOURCES,
    STAGE,
    apply_patches,
    parse_value,
    steps_of,
)
from redrive.aws.apigateway.rest.tags import TAGS
from redrive.aws.kit.call import Call
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft


class DeploymentOperations:
    """Makes, shows and deletes deployments."""

    def __init__(self, engine: Engine, apis: Apis[RestApi]) -> None:
        self._engine = engine
        self._rng = engine.runtime.rng
        self._apis = apis

    async def create_deployment(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigateway/latest/api/API_CreateDeployment.html; and its stage, made or moved."""
        deployment_id = new_id(self._rng)
        name = params.get("stageName")

        async def decide(draft: Draft) -> ApiDeployment:
            api = await self._apis.api_in(draft, call, params["restApiId"])
            if params.get("canarySettings"):
                raise _no_canary(api, name)
            deployment = deployment_of(api, deployment_id, call.now, params.get("description") or "")
            draft.put(
                DEPLOYMENT, deployment_key(call.account, call.region, api.id, deployment_id), deployment
            )
            if name:
                tree = _with_stage(api, deployment_id, params, call.now)
                draft.put(REST_API, api.key, replace(api, tree=tree))
            return deployment

        return as_structure(await self._engine.resources.write(decide))

    async def get_deployment(self, call: Call, params: Structure) -> Structure:
        await self._apis.api(call, params["restApiId"])
        deployment = await self._apis.deployment(call, params["restApiId"], params["deploymentId"])
        has_summary = "apisummary" in (params.get("embed") or ())
        return {**as_structure(deployment), **({"apiSummary": _summary(deployment)} if has_summary else {})}

    async def get_deployments(self, call: Call, params: Structure) -> Structure:
        deployments = await self._apis.deployments(call, params["restApiId"])
        return PAGES.of("GetDeployments", params, deployments, as_structure)

    async def update_deployment(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigateway/latest/api/API_UpdateDeployment.html: its description alone."""
        await self._apis.api(call, params["restApiId"])
        key = deployment_key(call.account, call.region, params["restApiId"], params["deploymentId"])
        operations = params.get("patchOperations") or ()
        for operation in operations:
            if operation.get("path") != "/description":
                raise bad_request(f"Invalid patch path {operation.get('path')}")

        async def decide(draft: Draft) -> ApiDeployment:
            deployment = await draft.get(DEPLOYMENT, key)
            if deployment is None:
                raise no_deployment()
            for operation in operations:
                deployment = replace(deployment, description=operation.get("value") or "")
            draft.put(DEPLOYMENT, key, deployment)
            return deployment

        return as_structure(await self._engine.resources.write(decide))

    async def delete_deployment(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigateway/latest/api/API_DeleteDeployment.html, unless a stage shows it."""
        await self._apis.remove_deployment(call, params["restApiId"], params["deploymentId"])
        return {}


def _no_canary(api: RestApi, stage: str | None) -> AwsError:
    """The refusal of a canary release: Amazon's, if Amazon would refuse it as well (recorded)."""
    if not stage:
        return bad_request(
            "Invalid deployment content specified.Non null and non empty stageName must be provided for canary"
            f" deployment. Provided value is {'null' if stage is None else stage}"
        )
    if stage not in (api.tree.get(STAGES) or {}):
        return bad_request(
            f"Invalid deployment content specified.Stage {stage} must already be created before making a canary release"
            " deployment"
        )
    return not_offered("canary releases")


def deployment_of(api: RestApi, deployment_id: str, now: int, description: str) -> ApiDeployment:
    """A deployment of an API as it is now; raises AwsError if a method is missing, or its integration."""
    methods = [
        method
        for resource in api.tree[RESOURCES].values()
        for method in (resource.get(METHODS) or {}).values()
    ]
    if not methods:
        raise bad_request("The REST API doesn't contain any methods")
    if any(INTEGRATION not in method for method in methods):
        raise bad_request("No integration defined for method")
    tree = {name: part for name, part in api.tree.items() if name != STAGES}
    return ApiDeployment(deployment_id, now, description, dict(api.settings), tree)


def _with_stage(api: RestApi, deployment_id: str, params: Structure, now: int) -> dict[str, Any]:
    """The parts of an API with a stage, new or changed, that has the deployment."""
    name = params["stageName"]
    before = value_at(api.tree, [STAGES, name])
    if before is not None:
        stage = {**before, "deploymentId": deployment_id, "lastUpdatedDate": now}
        if params.get("variables"):
            stage["variables"] = {**(before.get("variables") or {}), **params["variables"]}
        return with_value(api.tree, [STAGES, name], stage)
    stage_params = {**params, "deploymentId": deployment_id, "description": params.get("stageDescription")}
    return with_value(api.tree, [STAGES, name], new_stage(stage_params, now))


def as_structure(deployment: ApiDeployment) -> Structure:
    """A deployment as callers see it."""
    return {
        "id": deployment.id,
        "createdDate": deployment.created_at,
        "description": deployment.description or None,
    }


def _summary(deployment: ApiDeployment) -> Structure:
    """The methods of a deployment: by path, then by verb."""
    return {
        resource["path"]: {
            name: {
                "authorizationType": method.get("authorizationType"),
                "apiKeyRequired": bool(method.get("apiKeyRequired")),
            }
            for name, method in (resource.get(METHODS) or {}).items()
        }
        for resource in deployment.tree[RESOURCES].values()
        if resource.get(METHODS)
    }


_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_VARIABLE: Final = re.compile(r"[A-Za-z0-9_]+")
_VALUE: Final = re.compile(r"[A-Za-z0-9\-._~:/?#&=,@$+*!'();%\[\]{} ]*")
_MEMBERS: Final = ("description", "variables", "documentationVersion", "tracingEnabled", "tags")
_LOG: Final = "accessLogSettings"
_LOG_MEMBERS: Final = ("destinationArn", "format")
#: A path of a method setting has the resource, the method, and two words.
_SETTING_STEPS: Final = 4
_SETTINGS: Final[Mapping[str, str]] = {
    "metrics/enabled": "metricsEnabled",
    "logging/loglevel": "loggingLevel",
    "logging/dataTrace": "dataTraceEnabled",
    "throttling/burstLimit": "throttlingBurstLimit",
    "throttling/rateLimit": "throttlingRateLimit",
    "caching/enabled": "cachingEnabled",
    "caching/ttlInSeconds": "cacheTtlInSeconds",
    "caching/dataEncrypted": "cacheDataEncrypted",
    "caching/requireAuthorizationForCacheControl": "requireAuthorizationForCacheControl",
    "caching/unauthorizedCacheControlHeaderStrategy": "unauthorizedCacheControlHeaderStrategy",
}
_METHOD_DEFAULTS: Final[Mapping[str, Any]] = {
    "metricsEnabled": False,
    "dataTraceEnabled": False,
    "throttlingBurstLimit": 5000,
    "throttlingRateLimit": 10000.0,
    "cachingEnabled": False,
    "cacheTtlInSeconds": 300,
    "cacheDataEncrypted": False,
    "requireAuthorizationForCacheControl": True,
    "unauthorizedCacheControlHeaderStrategy": "SUCCEED_WITH_RESPONSE_HEADER",
}


class StageOperations:
    """Makes, shows, changes and deletes stages."""

    def __init__(self, engine: Engine, apis: Apis[RestApi]) -> None:
        self._engine = engine
        self._apis = apis

    async def create_stage(self, call: Call, params: Structure) -> Structure:
        stage = new_stage(params, call.now)

        def change(tree: Tree) -> Tree:
            if value_at(tree, STAGE.path(params)) is not None:
                raise conflict("Stage already exists")
            return with_value(tree, STAGE.path(params), stage)

        return await self._write(call, params, change)

    async def get_stage(self, call: Call, params: Structure) -> Structure:
        api = await self._apis.api(call, params["restApiId"])
        return STAGE.as_structure(STAGE.part_in(api.tree, params))

    async def get_stages(self, call: Call, params: Structure) -> Structure:
        api = await self._apis.api(call, params["restApiId"])
        deployment_id = params.get("deploymentId")
        stages: Mapping[str, Structure] = api.tree.get(STAGES) or {}
        return {
            "item": [
                STAGE.as_structure(stage)
                for _, stage in sorted(stages.items())
                if deployment_id in (None, "", stage["deploymentId"])
            ]
        }

    async def update_stage(self, call: Call, params: Structure) -> Structure:
        operations = params.get("patchOperations") or ()

        def change(tree: Tree) -> Tree:
            stage = patch_stage(STAGE.part_in(tree, params), operations)
            return with_value(tree, STAGE.path(params), {**stage, "lastUpdatedDate": call.now})

        return await self._write(call, params, change)

    async def delete_stage(self, call: Call, params: Structure) -> Structure:

        def change(tree: Tree) -> Tree:
            STAGE.part_in(tree, params)
            return without_value(tree, STAGE.path(params))

        await self._apis.edit_tree(call, params["restApiId"], change)
        return {}

    async def flush_stage_cache(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigateway/latest/api/API_FlushStageCache.html: there is nothing in it."""
        api = await self._apis.api(call, params["restApiId"])
        STAGE.part_in(api.tree, params)
        return {}

    async def _write(self, call: Call, params: Structure, change: Callable[[Tree], Tree]) -> Structure:
        """Change the tree; raises AwsError if the stage then has an absent deployment."""

        async def decide(draft: Draft) -> RestApi:
            api = await self._apis.api_in(draft, call, params["restApiId"])
            tree = change(api.tree)
            stage = STAGE.part_in(tree, params)
            check_destination((stage.get(_LOG) or {}).get("destinationArn"), call.account)
            key = deployment_key(call.account, call.region, api.id, stage["deploymentId"])
            if await draft.get(DEPLOYMENT, key) is None:
                raise bad_request("Deployment id does not exist")
            api = replace(api, tree=tree)
            draft.put(REST_API, api.key, api)
            return api

        api = await self._engine.resources.write(decide)
        return STAGE.as_structure(STAGE.part_in(api.tree, params))


def new_stage(params: Mapping[str, Any], now: int) -> dict[str, Any]:
    """A stage as its API stores it; raises AwsError (`BadRequestException`) if it is not valid."""
    name = params["stageName"]
    if not _NAME.fullmatch(name):
        raise bad_request("Stage name only allows a-zA-Z0-9-_")
    check_variables(params.get("variables") or {})
    TAGS.read(params.get("tags"))
    refuse_unsupported(params)
    settings = {key: params[key] for key in _MEMBERS if params.get(key) is not None}
    return {
        "stageName": name,
        "deploymentId": params["deploymentId"],
        "cacheClusterEnabled": False,
        "cacheClusterStatus": "NOT_AVAILABLE",
        "methodSettings": {},
        "tracingEnabled": False,
        "createdDate": now,
        "lastUpdatedDate": now,
        **settings,
    }


def refuse_unsupported(stage: Mapping[str, Any]) -> None:
    """Refuse settings of a stage that have no effect on this server; raises AwsError (`BadRequestException`)."""
    if stage.get("canarySettings"):
        raise not_offered("canary releases")
    if stage.get("cacheClusterEnabled"):
        raise not_offered("caches of stages")
    if stage.get("clientCertificateId"):
        raise not_offered("client certificates")


def check_variables(variables: Mapping[str, str]) -> None:
    """Refuse variables of a stage whose names or values are not acceptable; raises AwsError (`BadRequestException`)."""
    for name, value in variables.items():
        if not _VARIABLE.fullmatch(name):
            raise bad_request(f"Stage variable name only allows a-zA-Z0-9_: {name}")
        if not _VALUE.fullmatch(value):
            raise bad_request(f"Invalid stage variable value: {value}")


def patch_stage(stage: Structure, operations: Iterable[Mapping[str, Any]]) -> Structure:
    """A stage after patch operations; method paths have their own form. Raises AwsError (`BadRequestException`)."""
    for operation in operations:
        steps = steps_of(operation.get("path") or "")
        if len(steps) == _SETTING_STEPS and "/".join(steps[2:]) in _SETTINGS:
            stage = _with_setting(stage, steps, operation)
        elif _removes_setting(steps, operation):
            if _setting_key(steps) not in (stage.get("methodSettings") or {}):
                raise bad_request(
                    f"Cannot remove method setting {'/'.join(steps)} because there is no method setting for this"
                    " method "
                )
            stage = without_value(stage, ["methodSettings", _setting_key(steps)])
        else:
            _check_log(steps, operation)
            stage = apply_patches(stage, STAGE.shape, STAGE.rules, [operation])
    refuse_unsupported(stage)
    check_variables(stage.get("variables") or {})
    return stage


def _removes_setting(steps: Sequence[str], operation: Mapping[str, Any]) -> bool:
    """True if an operation removes all settings of a method, by a path of two steps: a resource's path and the method.

    An unknown member of the access log's settings counts as a method, too (recorded).
    """
    names_method = len(steps) == _SETTING_STEPS - 2 and operation.get("op") == "remove"
    return names_method and (
        steps[0] not in STAGE.rules.names or (steps[0] == _LOG and steps[1] not in _LOG_MEMBERS)
    )


def _check_log(steps: Sequence[str], operation: Mapping[str, Any]) -> None:
    """Refuse unknown or empty settings of an access log (recorded)."""
    section, *members = steps or [""]
    if section != _LOG or not members:
        return
    if len(members) > 1 or members[0] not in _LOG_MEMBERS:
        paths = ", ".join(f"/{_LOG}/{name}" for name in _LOG_MEMBERS)
        raise bad_request(f"Invalid {_LOG} path. Must be one of : [{paths}]")
    if operation.get("op") != "remove" and not operation.get("value"):
        raise bad_request("Access Log value must not be empty")


def _setting_key(steps: Sequence[str]) -> str:
    """The key of a method's settings: the path of its resource without the first slash, and its name."""
    return f"{steps[0].removeprefix('/')}/{steps[1]}"


def _with_setting(stage: Structure, steps: Sequence[str], operation: Mapping[str, Any]) -> Structure:
    """A stage with another setting of a method; `steps`: the resource's path, the method, and two for the setting."""
    name = _SETTINGS["/".join(steps[2:])]
    if operation.get("op") == "remove":
        return without_value(stage, ["methodSettings", _setting_key(steps), name])
    if operation.get("op") != "replace":
        raise _invalid_operation(operation)
    shape = STAGE.shape.members["methodSettings"].shape.value.shape.members[name].shape
    value = parse_value(shape, operation.get("value"), operation["path"])
    if name == "cachingEnabled" and value:
        raise not_offered("caches of stages")
    before = value_at(stage, ["methodSettings", _setting_key(steps)]) or _METHOD_DEFAULTS
    return with_value(stage, ["methodSettings", _setting_key(steps)], {**before, name: value})


def _invalid_operation(operation: Mapping[str, Any]) -> AwsError:
    return bad_request(f"Invalid patch operation {operation.get('op')} for path {operation.get('path')}")
