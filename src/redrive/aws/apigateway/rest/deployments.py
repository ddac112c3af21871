"""Deployments: an API as it was at a moment, until it is deleted."""

from dataclasses import replace
from typing import Any

from redrive.aws.apigateway.control.apis import Apis
from redrive.aws.apigateway.control.errors import PAGES, bad_request, no_deployment, unoffered
from redrive.aws.apigateway.control.ids import new_id
from redrive.aws.apigateway.control.records import (
    DEPLOYMENT,
    METHODS,
    REST_API,
    STAGES,
    ApiDeployment,
    RestApi,
    deployment_key,
)
from redrive.aws.apigateway.rest.kinds import INTEGRATION, RESOURCES
from redrive.aws.apigateway.rest.stages import made_stage
from redrive.aws.apigateway.rest.trees import value_at, with_value
from redrive.aws.kit.call import Call
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft


class DeploymentOperations:
    """Makes, shows and deletes deployments."""

    def __init__(self, engine: Engine, apis: Apis[RestApi]) -> None:
        self._engine = engine
        self._chance = engine.runtime.chance
        self._apis = apis

    async def create_deployment(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigateway/latest/api/API_CreateDeployment.html; and its stage, made or moved."""
        made_id = new_id(self._chance)
        name = params.get("stageName")

        async def decide(draft: Draft) -> ApiDeployment:
            api = await self._apis.api_in(draft, call, params["restApiId"])
            if params.get("canarySettings"):
                raise _no_canary(api, name)
            deployment = deployment_of(api, made_id, call.now, params.get("description") or "")
            draft.put(DEPLOYMENT, deployment_key(call.account, call.region, api.id, made_id), deployment)
            if name:
                changed = replace(api, tree=_with_stage(api, made_id, params, call.now))
                draft.put(REST_API, changed.key, changed)
            return deployment

        return as_structure(await self._engine.resources.write(decide))

    async def get_deployment(self, call: Call, params: Structure) -> Structure:
        await self._apis.api(call, params["restApiId"])
        deployment = await self._apis.deployment(call, params["restApiId"], params["deploymentId"])
        whole = "apisummary" in (params.get("embed") or ())
        return {**as_structure(deployment), **({"apiSummary": _summary(deployment)} if whole else {})}

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
    """The refusal of a canary release: Amazon's own, where it would refuse it as well (recorded)."""
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
    return unoffered("canary releases")


def deployment_of(api: RestApi, made_id: str, now: int, description: str) -> ApiDeployment:
    """A deployment of an API as it is.

    Raises:
        AwsError: `BadRequestException`: it has no methods, or one without anything behind it.
    """
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
    return ApiDeployment(made_id, now, description, dict(api.settings), tree)


def _with_stage(api: RestApi, deployment_id: str, params: Structure, now: int) -> dict[str, Any]:
    name = params["stageName"]
    before = value_at(api.tree, [STAGES, name])
    if before is not None:
        stage = {**before, "deploymentId": deployment_id, "lastUpdatedDate": now}
        if params.get("variables"):
            stage["variables"] = {**(before.get("variables") or {}), **params["variables"]}
        return with_value(api.tree, [STAGES, name], stage)
    stage_params = {**params, "deploymentId": deployment_id, "description": params.get("stageDescription")}
    return with_value(api.tree, [STAGES, name], made_stage(stage_params, now))


def as_structure(deployment: ApiDeployment) -> Structure:
    """A deployment as callers see it."""
    return {
        "id": deployment.id,
        "createdDate": deployment.created_at,
        "description": deployment.description or None,
    }


def _summary(deployment: ApiDeployment) -> Structure:
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
