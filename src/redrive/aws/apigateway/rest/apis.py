"""REST APIs as wholes: made, imported, shown, changed and deleted."""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from redrive.aws.apigateway.control.errors import PAGES, bad_request, conflict, unoffered
from redrive.aws.apigateway.control.ids import API_CHARS, chosen_id, new_id
from redrive.aws.apigateway.control.records import (
    API_PLACE,
    DEPLOYMENT,
    REST,
    REST_API,
    ApiPlace,
    RestApi,
    Tree,
    api_key,
    deployment_key,
)
from redrive.aws.apigateway.rest.definitions import imported_tree, read_definition
from redrive.aws.apigateway.rest.editing import Editing, api_in
from redrive.aws.apigateway.rest.kinds import RESOURCES, shape_of
from redrive.aws.apigateway.rest.patching import patched
from redrive.aws.apigateway.rest.tags import TAGS
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft

_NAME_CHARS_MAX: Final = 1024
_GIVEN: Final = (
    *("name", "description", "version", "binaryMediaTypes", "minimumCompressionSize", "apiKeySource"),
    *("endpointConfiguration", "policy", "disableExecuteApiEndpoint"),
)
_PATCHED: Final = frozenset(_GIVEN) - {"version"}
_ENDPOINTS: Final = frozenset({"REGIONAL", "EDGE", "PRIVATE"})
_COMPRESSION_MAX: Final = 10 * 1024 * 1024
_SCHEMA: Final = (
    '{{\n  "$schema": "http://json-schema.org/draft-04/schema#",\n  "title" : "{} Schema",\n'
    '  "type" : "object"{}\n}}'
)
_MESSAGE: Final = ',\n  "properties" : {\n    "message" : { "type" : "string" }\n  }'
_MODELS: Final = {
    "Empty": ("This is a default empty schema model", _SCHEMA.format("Empty", "")),
    "Error": ("This is a default error schema model", _SCHEMA.format("Error", _MESSAGE)),
}


class RestApiOperations:
    """Keeps REST APIs."""

    def __init__(self, engine: Engine, editing: Editing) -> None:
        self._engine = engine
        self._documents = engine.resources.documents
        self._chance = engine.runtime.chance
        self._editing = editing

    async def create_rest_api(self, call: Call, params: Structure) -> Structure:
        if params.get("cloneFrom"):
            raise unoffered("cloneFrom")
        settings = {name: params[name] for name in _GIVEN if params.get(name) is not None}
        if params.get("description") == "":
            raise bad_request("Description cannot be an empty string")
        answer = shown(await self._make(call, settings, TAGS.read(params.get("tags"))))
        return {**answer, "tags": answer["tags"] or None}

    async def import_rest_api(self, call: Call, params: Structure) -> Structure:
        definition = read_definition(params["body"])
        endpoint_types = _given_types(params)
        settings = {"name": "Imported", **definition.settings, **endpoint_types}
        return shown(await self._make(call, settings, {}, definition.document))

    async def put_rest_api(self, call: Call, params: Structure) -> Structure:
        definition = read_definition(params["body"])
        merges = params.get("mode", "merge") == "merge"

        def change(api: RestApi) -> RestApi:
            before = (
                api.tree if merges else {**_bare(api, self._chance), "stages": api.tree.get("stages") or {}}
            )
            tree = imported_tree(before, definition.document, self._chance)
            settings = {**api.settings, **definition.settings, **_given_types(params)}
            return replace(api, settings=_checked(settings), tree=tree)

        return shown(await self._editing.edit(call, params["restApiId"], change))

    async def _make(
        self,
        call: Call,
        settings: Mapping[str, Any],
        tags: dict[str, str],
        document: Mapping[str, Any] | None = None,
    ) -> RestApi:
        root = new_id(self._chance, API_CHARS)
        endpoint_settings = settings.get("endpointConfiguration") or {}
        stack = "dualstack" if endpoint_settings.get("types") == ["PRIVATE"] else "ipv4"
        endpoints = {"types": ["EDGE"], "ipAddressType": stack, **endpoint_settings}
        whole = {
            "apiKeySource": "HEADER",
            "disableExecuteApiEndpoint": False,
            **settings,
            "endpointConfiguration": endpoints,
            "rootResourceId": root,
        }
        chosen = chosen_id(tags)
        api_id = chosen or new_id(self._chance, API_CHARS)
        api = RestApi(call.account, call.region, api_id, call.now, _checked(whole), {}, tags)
        api = replace(api, tree=_bare(api, self._chance))
        if document is not None:
            api = replace(api, tree=imported_tree(api.tree, document, self._chance))
            await self._editing.check_roles(call, api.tree, {})

        async def decide(draft: Draft) -> None:
            if await draft.get(API_PLACE, api_id) is not None:
                raise conflict(f"The API identifier {api_id} is taken")
            draft.put(API_PLACE, api_id, ApiPlace(call.account, call.region, REST))
            draft.put(REST_API, api.key, api)

        await self._engine.resources.write(decide)
        return api

    async def get_rest_api(self, call: Call, params: Structure) -> Structure:
        return shown(await self._editing.api(call, params["restApiId"]))

    async def get_rest_apis(self, call: Call, params: Structure) -> Structure:
        apis = await self._documents.find(REST_API, api_key(call.account, call.region, ""))
        return PAGES.of("GetRestApis", params, apis, shown)

    async def update_rest_api(self, call: Call, params: Structure) -> Structure:
        operations = params.get("patchOperations") or ()

        def change(api: RestApi) -> RestApi:
            settings = patched(dict(api.settings), shape_of("GetRestApi"), _PATCHED, operations)
            return replace(api, settings=_checked(settings))

        return shown(await self._editing.edit(call, params["restApiId"], change))

    async def delete_rest_api(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigateway/latest/api/API_DeleteRestApi.html; its deployments go with it."""
        api_id = params["restApiId"]

        async def decide(draft: Draft) -> None:
            api = await api_in(draft, call, api_id)
            beginning = deployment_key(call.account, call.region, api_id, "")
            for key, _ in await draft.find(DEPLOYMENT, beginning):
                draft.remove(DEPLOYMENT, key)
            draft.remove(REST_API, api.key)
            draft.remove(API_PLACE, api_id)

        await self._engine.resources.write(decide)
        return {}


def shown(api: RestApi) -> Structure:
    """An API as callers see it."""
    return {"id": api.id, "createdDate": api.created_at, **api.settings, "tags": dict(api.tags)}


def _checked(settings: Mapping[str, Any]) -> dict[str, Any]:
    name = settings.get("name") or ""
    if not name or len(name) > _NAME_CHARS_MAX:
        raise bad_request(f"The name of an API has 1 to {_NAME_CHARS_MAX} characters")
    _check_endpoints(settings.get("endpointConfiguration") or {})
    size = settings.get("minimumCompressionSize")
    if size is not None and not 0 <= size <= _COMPRESSION_MAX:
        raise bad_request(f"Invalid minimum compression size, must be between 0 and {_COMPRESSION_MAX}")
    return dict(settings)


def _check_endpoints(endpoints: Mapping[str, Any]) -> None:
    types, stack = endpoints.get("types", ["EDGE"]), endpoints.get("ipAddressType", "ipv4")
    if not types:
        raise bad_request("REGIONAL Configuration and EDGE Configuration cannot be both DISABLED.")
    if not set(types) <= _ENDPOINTS:
        raise bad_request("Invalid EndpointTypes specified. Valid options are REGIONAL,EDGE,PRIVATE")
    if len(types) > 1:
        raise bad_request("Cannot create an api with multiple Endpoint Types.")
    if stack not in ("ipv4", "dualstack"):
        raise bad_request("ipAddressType must be either ipv4 or dualstack.")
    if types == ["PRIVATE"] and stack != "dualstack":
        raise bad_request("Only dualstack ipAddressType is supported for Private APIs.")


def _given_types(params: Structure) -> dict[str, Any]:
    """The endpoint types that an import's parameters give."""
    endpoint_types = (params.get("parameters") or {}).get("endpointConfigurationTypes")
    return {"endpointConfiguration": {"types": [endpoint_types]}} if endpoint_types else {}


def _bare(api: RestApi, chance: random.Random) -> Tree:
    """The tree of an API that has nothing but its root, and the models that all have."""
    models = {
        name: {
            "id": new_id(chance),
            "name": name,
            "description": text,
            "schema": schema,
            "contentType": "application/json",
        }
        for name, (text, schema) in _MODELS.items()
    }
    root = api.settings["rootResourceId"]
    return {RESOURCES: {root: {"id": root, "path": "/"}}, "models": models}
