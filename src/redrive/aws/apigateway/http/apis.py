"""Operations on HTTP APIs, their deployments and tags."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from redrive.aws.apigateway.control.apis import ApiKind, Apis
from redrive.aws.apigateway.control.errors import HTTP_PAGES, bad_request, not_found, not_offered
from redrive.aws.apigateway.control.records import (
    API_CHARS,
    DEFAULT_STAGE,
    DEPLOYMENT,
    HTTP,
    HTTP_API,
    STAGES,
    ApiDeployment,
    HttpApi,
    Tree,
    custom_id,
    deployment_key,
    new_id,
)
from redrive.aws.apigateway.control.targets import PATH
from redrive.aws.apigateway.http.definitions import read_tree
from redrive.aws.apigateway.http.kinds import INTEGRATIONS, PART_ID_CHARS, ROUTES, TARGET
from redrive.aws.apigateway.rest.definitions import read_definition
from redrive.aws.kit.call import Call
from redrive.aws.kit.tagging import TagChange, Tagging, TagRequest, Tags
from redrive.aws.wire.hosted_urls import hosted_url
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft

_MEMBERS: Final = (
    *("Name", "Description", "Version", "CorsConfiguration", "DisableExecuteApiEndpoint"),
    *("RouteSelectionExpression", "ApiKeySelectionExpression", "DisableSchemaValidation", "IpAddressType"),
)
_PAYLOAD: Final = "2.0"
TAGS: Final = Tagging(too_many=lambda: bad_request("A resource has at most 50 tags"), pair=(), list="GetTags")


HTTP_APIS: Final = ApiKind(
    HTTP_API, HTTP, "DeploymentId", lambda _, api_id: not_found(f"Invalid API identifier specified {api_id}")
)


class HttpApiOperations:
    """Keeps HTTP APIs."""

    def __init__(self, engine: Engine, apis: Apis[HttpApi]) -> None:
        self._engine = engine
        self._apis = apis
        self._rng = engine.runtime.rng

    # ---- APIs ------------------------------------------------------------------------------------------------

    async def create_api(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigatewayv2/latest/api-reference/apis.html; a target creates a route, too."""
        if params["ProtocolType"] != HTTP.upper():
            raise not_offered("WebSocket APIs")
        settings = {name: params[name] for name in _MEMBERS if params.get(name) is not None}
        tree: Tree = {}
        if params.get("Target"):
            tree = self._quick_create_tree(params, call.now)
        return await self._create(call, settings, tree, TAGS.read(params.get("Tags")))

    async def import_api(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigatewayv2/latest/api-reference/apis.html: from OpenAPI 3."""
        settings, tree = self._read_body(params["Body"])
        return await self._create(call, settings, tree, {})

    async def reimport_api(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigatewayv2/latest/api-reference/apis-apiid.html; its stages stay."""
        settings, tree = self._read_body(params["Body"])

        def change(api: HttpApi) -> HttpApi:
            new_tree = {**tree, STAGES: api.tree.get(STAGES) or {}}
            return replace(api, settings={**api.settings, **settings}, tree=new_tree)

        return as_structure(call, await self._apis.edit(call, params["ApiId"], change))

    async def get_api(self, call: Call, params: Structure) -> Structure:
        return as_structure(call, await self._apis.api(call, params["ApiId"]))

    async def get_apis(self, call: Call, params: Structure) -> Structure:
        apis = await self._apis.all(call)
        return HTTP_PAGES.of("GetApis", params, apis, lambda api: as_structure(call, api))

    async def update_api(self, call: Call, params: Structure) -> Structure:
        changes = {name: params[name] for name in _MEMBERS if params.get(name) is not None}

        def change(api: HttpApi) -> HttpApi:
            tree = _with_quick_changes(api.tree, params)
            return replace(api, settings={**api.settings, **changes}, tree=tree)

        return as_structure(call, await self._apis.edit(call, params["ApiId"], change))

    async def delete_cors_configuration(self, call: Call, params: Structure) -> Structure:

        def change(api: HttpApi) -> HttpApi:
            settings = {name: value for name, value in api.settings.items() if name != "CorsConfiguration"}
            return replace(api, settings=settings)

        await self._apis.edit(call, params["ApiId"], change)
        return {}

    async def delete_api(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigatewayv2/latest/api-reference/apis-apiid.html; its deployments go with it."""
        await self._apis.remove(call, params["ApiId"])
        return {}

    async def _create(
        self, call: Call, settings: Mapping[str, Any], tree: Tree, tags: dict[str, str]
    ) -> Structure:
        api_id = custom_id(tags) or new_id(self._rng, API_CHARS)
        all_settings = {
            "RouteSelectionExpression": "$request.method $request.path",
            "ApiKeySelectionExpression": "$request.header.x-api-key",
            "DisableExecuteApiEndpoint": False,
            **settings,
        }
        http_api = HttpApi(call.account, call.region, api_id, call.now, all_settings, tree, tags)
        await self._apis.create(call, http_api)
        return as_structure(call, http_api)

    def _read_body(self, body: str) -> tuple[dict[str, Any], Tree]:
        """The settings and the tree of an API as a definition in OpenAPI has them."""
        definition = read_definition(body.encode())
        info = definition.settings
        settings = {
            name: info[name.lower()] for name in ("Name", "Description", "Version") if name.lower() in info
        }
        cors = definition.document.get("x-amazon-apigateway-cors")
        if isinstance(cors, Mapping):
            settings["CorsConfiguration"] = {
                name[0].upper() + name[1:]: value for name, value in cors.items()
            }
        return settings, read_tree(definition.document, self._rng)

    def _quick_create_tree(self, params: Structure, now: int) -> Tree:
        """The tree of an API that is created with a target for all requests, or for one route."""
        target, integration_id = params["Target"], new_id(self._rng, PART_ID_CHARS)
        is_function = target.startswith("arn:")
        integration = {
            "IntegrationId": integration_id,
            "ConnectionType": "INTERNET",
            "TimeoutInMillis": 30_000,
            "IntegrationType": "AWS_PROXY" if is_function else "HTTP_PROXY",
            "IntegrationMethod": "POST" if is_function else "ANY",
            "IntegrationUri": target,
            "PayloadFormatVersion": _PAYLOAD if is_function else "1.0",
            "ApiGatewayManaged": True,
            **({"CredentialsArn": params["CredentialsArn"]} if params.get("CredentialsArn") else {}),
        }
        route = {
            "RouteId": new_id(self._rng, PART_ID_CHARS),
            "RouteKey": params.get("RouteKey") or "$default",
            "AuthorizationType": "NONE",
            "ApiKeyRequired": False,
            "Target": f"{TARGET}{integration_id}",
            "ApiGatewayManaged": True,
        }
        stage = {
            "StageName": DEFAULT_STAGE,
            "AutoDeploy": True,
            "CreatedDate": now,
            "LastUpdatedDate": now,
            "ApiGatewayManaged": True,
        }
        return {
            INTEGRATIONS: {integration_id: integration},
            ROUTES: {route["RouteId"]: route},
            STAGES: {DEFAULT_STAGE: stage},
        }

    # ---- deployments -----------------------------------------------------------------------------------------

    async def create_deployment(self, call: Call, params: Structure) -> Structure:
        deployment_id, name = new_id(self._rng), params.get("StageName")

        async def decide(draft: Draft) -> ApiDeployment:
            api = await self._apis.api_in(draft, call, params["ApiId"])
            tree = {section: part for section, part in api.tree.items() if section != STAGES}
            deployment = ApiDeployment(
                deployment_id, call.now, params.get("Description") or "", dict(api.settings), tree
            )
            draft.put(
                DEPLOYMENT, deployment_key(call.account, call.region, api.id, deployment_id), deployment
            )
            if name:
                stages = dict(api.tree.get(STAGES) or {})
                if name not in stages:
                    raise not_found("Invalid stage identifier specified")
                stages[name] = {**stages[name], "DeploymentId": deployment_id, "LastUpdatedDate": call.now}
                draft.put(HTTP_API, api.key, replace(api, tree={**api.tree, STAGES: stages}))
            return deployment

        return _deployment_structure(await self._engine.resources.write(decide))

    async def get_deployment(self, call: Call, params: Structure) -> Structure:
        return _deployment_structure(
            await self._apis.deployment(call, params["ApiId"], params["DeploymentId"])
        )

    async def get_deployments(self, call: Call, params: Structure) -> Structure:
        deployments = await self._apis.deployments(call, params["ApiId"])
        return HTTP_PAGES.of("GetDeployments", params, deployments, _deployment_structure)

    async def delete_deployment(self, call: Call, params: Structure) -> Structure:
        await self._apis.remove_deployment(call, params["ApiId"], params["DeploymentId"])
        return {}

    # ---- tags ------------------------------------------------------------------------------------------------

    async def tags(self, request: TagRequest) -> Tags:
        """The tags of the HTTP API that a request names; raises AwsError if there is none."""
        return (await self._apis.api(request.call, _tagged_api_id(request.params))).tags

    async def retag(self, request: TagRequest, change: TagChange) -> None:
        """Change the tags of the HTTP API that a request names; raises AwsError if there is none."""
        await self._apis.edit(
            request.call, _tagged_api_id(request.params), lambda api: replace(api, tags=change(api.tags))
        )


def _with_quick_changes(tree: Tree, params: Structure) -> Tree:
    """An API's parts after a change of the target it was created with; raises AwsError if it has none."""
    integration = {"IntegrationUri": params.get("Target"), "CredentialsArn": params.get("CredentialsArn")}
    members_by_section = {INTEGRATIONS: integration, ROUTES: {"RouteKey": params.get("RouteKey")}}
    changed_tree = dict(tree)
    for section, members in members_by_section.items():
        changes = {name: value for name, value in members.items() if value}
        parts: Mapping[str, Any] = tree.get(section) or {}
        # Parts that were created with the API, for its target.
        managed = {id_: {**part, **changes} for id_, part in parts.items() if part.get("ApiGatewayManaged")}
        if changes and not managed:
            raise bad_request(
                "Target, CredentialsArn and RouteKey are for APIs that were created with a target"
            )
        changed_tree[section] = {**parts, **managed}
    return changed_tree


def _tagged_api_id(params: Structure) -> str:
    """The id of the API that an ARN names; raises AwsError if it names something else."""
    words = str(params["ResourceArn"]).rpartition(":")[2].strip("/").split("/")
    if len(words) != 2 or words[0] != "apis":  # noqa: PLR2004 - `apis`, and the id
        raise not_offered("tags of anything but APIs")
    return words[1]


def as_structure(call: Call, api: HttpApi) -> Structure:
    """An API as callers see it."""
    host, path = f"{api.id}.execute-api.{api.region}", f"{PATH}{api.id}"
    return {
        "ApiId": api.id,
        "ApiEndpoint": hosted_url(call.base_url, host, path),
        "ProtocolType": HTTP.upper(),
        "CreatedDate": api.created_at,
        **api.settings,
        "Tags": dict(api.tags),
    }


def _deployment_structure(deployment: ApiDeployment) -> Structure:
    return {
        "DeploymentId": deployment.id,
        "CreatedDate": deployment.created_at,
        "DeploymentStatus": "DEPLOYED",
        "AutoDeployed": False,
        "Description": deployment.description or None,
    }
