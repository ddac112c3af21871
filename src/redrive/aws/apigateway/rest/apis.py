"""Operations on REST APIs as wholes."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from redrive.aws.apigateway.control.apis import ApiKind, Apis
from redrive.aws.apigateway.control.errors import PAGES, bad_request, no_api, not_offered
from redrive.aws.apigateway.control.records import API_CHARS, REST, REST_API, RestApi, Tree, custom_id, new_id
from redrive.aws.apigateway.rest.definitions import import_tree, read_definition
from redrive.aws.apigateway.rest.kinds import (
    RESOURCES,
    PatchRules,
    apply_patches,
    invalid_path,
    shape_of,
    steps_of,
)
from redrive.aws.apigateway.rest.tags import TAGS
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine

_NAME_CHARS_MAX: Final = 1024
_MEMBERS: Final = (
    *("name", "description", "version", "binaryMediaTypes", "minimumCompressionSize", "apiKeySource"),
    *("endpointConfiguration", "policy", "disableExecuteApiEndpoint"),
)
_RULES: Final = PatchRules(frozenset(_MEMBERS) - {"version"}, replace_only=("/minimumCompressionSize",))
_BINARY: Final = "binaryMediaTypes"
_ENDPOINTS: Final = frozenset({"REGIONAL", "EDGE", "PRIVATE"})
_STACKS: Final = ("ipv4", "dualstack")
_BAD_STACK: Final = "ipAddressType must be either ipv4 or dualstack."
_COMPRESSION_MAX: Final = 10 * 1024 * 1024
_BAD_COMPRESSION: Final = f"Invalid minimum compression size, must be between 0 and {_COMPRESSION_MAX}"
_SCHEMA: Final = (
    '{{\n  "$schema": "http://json-schema.org/draft-04/schema#",\n  "title" : "{} Schema",\n'
    '  "type" : "object"{}\n}}'
)
_MESSAGE: Final = ',\n  "properties" : {\n    "message" : { "type" : "string" }\n  }'
_MODELS: Final = {
    "Empty": ("This is a default empty schema model", _SCHEMA.format("Empty", "")),
    "Error": ("This is a default error schema model", _SCHEMA.format("Error", _MESSAGE)),
}


REST_APIS: Final = ApiKind(REST_API, REST, "deploymentId", no_api)


class RestApiOperations:
    """Keeps REST APIs."""

    def __init__(self, engine: Engine, apis: Apis[RestApi]) -> None:
        self._rng = engine.runtime.rng
        self._apis = apis

    async def create_rest_api(self, call: Call, params: Structure) -> Structure:
        if params.get("cloneFrom"):
            raise not_offered("cloneFrom")
        settings = {name: params[name] for name in _MEMBERS if params.get(name) is not None}
        if params.get("description") == "":
            raise bad_request("Description cannot be an empty string")
        answer = as_structure(await self._make(call, settings, TAGS.read(params.get("tags"))))
        return {**answer, "tags": answer["tags"] or None}

    async def import_rest_api(self, call: Call, params: Structure) -> Structure:
        definition = read_definition(params["body"])
        settings = {"name": "Imported", **definition.settings, **_endpoint_types_in(params)}
        return as_structure(await self._make(call, settings, {}, definition.document))

    async def put_rest_api(self, call: Call, params: Structure) -> Structure:
        definition = read_definition(params["body"])
        is_merge = params.get("mode", "merge") == "merge"

        def change(api: RestApi) -> RestApi:
            before = (
                api.tree
                if is_merge
                else {**_initial_tree(api, self._rng), "stages": api.tree.get("stages") or {}}
            )
            tree = import_tree(before, definition.document, self._rng, api.id)
            settings = {**api.settings, **definition.settings, **_endpoint_types_in(params)}
            if is_merge and _BINARY in settings:
                types = (*(api.settings.get(_BINARY) or ()), *(settings[_BINARY] or ()))
                settings[_BINARY] = list(dict.fromkeys(types))
            return replace(api, settings=_valid_settings(settings), tree=tree)

        return as_structure(await self._apis.edit(call, params["restApiId"], change))

    async def _make(
        self,
        call: Call,
        settings: Mapping[str, Any],
        tags: dict[str, str],
        document: Mapping[str, Any] | None = None,
    ) -> RestApi:
        """Create an API of settings and, if there is one, of an OpenAPI document."""
        root = new_id(self._rng, API_CHARS)
        endpoint_settings = settings.get("endpointConfiguration") or {}
        stack = "dualstack" if endpoint_settings.get("types") == ["PRIVATE"] else "ipv4"
        endpoints = {"types": ["EDGE"], "ipAddressType": stack, **endpoint_settings}
        all_settings = {
            "apiKeySource": "HEADER",
            "disableExecuteApiEndpoint": False,
            **settings,
            "endpointConfiguration": endpoints,
            "rootResourceId": root,
        }
        api_id = custom_id(tags) or new_id(self._rng, API_CHARS)
        api = RestApi(call.account, call.region, api_id, call.now, _valid_settings(all_settings), {}, tags)
        api = replace(api, tree=_initial_tree(api, self._rng))
        if document is not None:
            # An imported API has no models but its definition's (recorded).
            before = {**api.tree, "models": {}}
            api = replace(api, tree=import_tree(before, document, self._rng, api_id))
        await self._apis.create(call, api)
        return api

    async def get_rest_api(self, call: Call, params: Structure) -> Structure:
        return as_structure(await self._apis.api(call, params["restApiId"]))

    async def get_rest_apis(self, call: Call, params: Structure) -> Structure:
        return PAGES.of("GetRestApis", params, await self._apis.all(call), as_structure)

    async def update_rest_api(self, call: Call, params: Structure) -> Structure:
        operations = params.get("patchOperations") or ()

        def change(api: RestApi) -> RestApi:
            settings = dict(api.settings)
            for operation in operations:
                settings = _apply_patch(settings, operation)
            return replace(api, settings=_valid_settings(settings))

        return as_structure(await self._apis.edit(call, params["restApiId"], change))

    async def delete_rest_api(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigateway/latest/api/API_DeleteRestApi.html; its deployments go with it."""
        await self._apis.remove(call, params["restApiId"])
        return {}


def as_structure(api: RestApi) -> Structure:
    """An API as callers see it."""
    return {"id": api.id, "createdDate": api.created_at, **api.settings, "tags": dict(api.tags)}


def _valid_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of an API; raises AwsError if they are not valid."""
    name = settings.get("name") or ""
    if not name or len(name) > _NAME_CHARS_MAX:
        raise bad_request(f"The name of an API has 1 to {_NAME_CHARS_MAX} characters")
    _check_endpoints(settings.get("endpointConfiguration") or {})
    size = settings.get("minimumCompressionSize")
    if size is not None and not 0 <= size <= _COMPRESSION_MAX:
        raise bad_request(_BAD_COMPRESSION)
    return dict(settings)


def _apply_patch(settings: Structure, operation: Mapping[str, Any]) -> Structure:
    """The settings of an API after a patch operation; some members follow rules of their own (recorded)."""
    path, value = operation.get("path") or "", operation.get("value") or ""
    steps = steps_of(path)
    if steps[:1] == [_BINARY]:
        return {**settings, _BINARY: _patch_media_types(settings.get(_BINARY) or (), steps[1:], operation)}
    if path == "/minimumCompressionSize" and operation.get("op") == "replace":
        if value and not value.isdecimal():
            raise bad_request(_BAD_COMPRESSION)
        rest = {name: each for name, each in settings.items() if name != "minimumCompressionSize"}
        # Nine digits exceed the maximum already, which `_valid_settings` refuses.
        return {**rest, "minimumCompressionSize": int(value[:9])} if value else rest
    if path == "/endpointConfiguration/ipAddressType" and value not in _STACKS:
        raise bad_request(_BAD_STACK)
    return apply_patches(settings, shape_of("GetRestApi"), _RULES, [operation])


def _patch_media_types(types: Sequence[str], steps: Sequence[str], operation: Mapping[str, Any]) -> list[str]:
    """Binary media types after a patch operation, whose path names a type; a replacement comes last."""
    op, others = operation.get("op"), [kind for kind in types if kind not in steps]
    if len(steps) != 1:
        raise invalid_path(operation.get("path") or "")
    if op == "remove":
        return others
    if op not in ("add", "replace"):
        raise bad_request("Invalid patch operation specified. Must be 'add'|'remove'|'replace'")
    kind = steps[0] if op == "add" else operation.get("value") or steps[0]
    return list(types) if kind in types and op == "add" else [*others, kind]


def _check_endpoints(endpoints: Mapping[str, Any]) -> None:
    types, ip_type = endpoints.get("types", ["EDGE"]), endpoints.get("ipAddressType", "ipv4")
    if not types:
        raise bad_request("REGIONAL Configuration and EDGE Configuration cannot be both DISABLED.")
    if not set(types) <= _ENDPOINTS:
        raise bad_request("Invalid EndpointTypes specified. Valid options are REGIONAL,EDGE,PRIVATE")
    if len(types) > 1:
        raise bad_request("Cannot create an api with multiple Endpoint Types.")
    if ip_type not in _STACKS:
        raise bad_request(_BAD_STACK)
    if types == ["PRIVATE"] and ip_type != "dualstack":
        raise bad_request("Only dualstack ipAddressType is supported for Private APIs.")


def _endpoint_types_in(params: Structure) -> dict[str, Any]:
    """The settings that the parameters of an import have for endpoint types."""
    endpoint_types = (params.get("parameters") or {}).get("endpointConfigurationTypes")
    return {"endpointConfiguration": {"types": [endpoint_types]}} if endpoint_types else {}


def _initial_tree(api: RestApi, rng: random.Random) -> Tree:
    """The tree of a new API: its root, and the default models."""
    models = {
        name: {
            "id": new_id(rng),
            "name": name,
            "description": description,
            "schema": schema,
            "contentType": "application/json",
        }
        for name, (description, schema) in _MODELS.items()
    }
    root = api.settings["rootResourceId"]
    return {RESOURCES: {root: {"id": root, "path": "/"}}, "models": models}
