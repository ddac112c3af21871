"""Operations on parts of REST APIs: by the table of kinds get, list, update and delete, which are alike for all.

And those that create models, validators and gateway responses.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from redrive.aws.apigateway.authorizers.rest import authorizer_of, check_authorizer
from redrive.aws.apigateway.control.apis import Apis
from redrive.aws.apigateway.control.errors import PAGES, absent_as, bad_request, conflict
from redrive.aws.apigateway.control.exchange import DEFAULTS, RESPONSES
from redrive.aws.apigateway.control.records import (
    GATEWAY_RESPONSES,
    METHODS,
    RestApi,
    Tree,
    new_id,
    value_at,
    with_value,
    without_value,
)
from redrive.aws.apigateway.control.schemas import check_schema
from redrive.aws.apigateway.rest.kinds import (
    AUTHORIZER,
    GATEWAY_RESPONSE,
    INTEGRATION_RESPONSE,
    METHOD,
    METHOD_INTEGRATION,
    METHOD_RESPONSE,
    MODEL,
    RESOURCES,
    VALIDATOR,
    PartKind,
    apply_patches,
    invalid_path,
)
from redrive.aws.apigateway.rest.methods import (
    check_authorization,
    check_content_handling,
    check_integration,
    check_validator,
)
from redrive.aws.kit.call import Call, Verb
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine

_MODIFIED: Final = "Unable to complete operation due to concurrent modification. Please try again later."
_COMMON_KINDS: Final = (
    METHOD,
    METHOD_RESPONSE,
    METHOD_INTEGRATION,
    INTEGRATION_RESPONSE,
    MODEL,
    VALIDATOR,
    AUTHORIZER,
)


def part_operations(apis: Apis[RestApi]) -> dict[str, Verb]:
    """The operations that get, list, update and delete parts, of all kinds for which they are alike."""
    verbs: dict[str, Verb] = {}
    for kind in _COMMON_KINDS:
        verbs |= _operations(kind, apis)
    return verbs


def _operations(kind: PartKind, apis: Apis[RestApi]) -> dict[str, Verb]:
    """The operations of a kind: Get, Update, Delete, and the list of all if the kind has a plural."""

    async def get(call: Call, params: Structure) -> Structure:
        with absent_as(kind.absent(params)):
            api = await apis.api(call, params["restApiId"])
        return kind.as_structure(kind.part_in(api.tree, params))

    async def get_all(call: Call, params: Structure) -> Structure:
        api = await apis.api(call, params["restApiId"])
        parts: Mapping[str, Structure] = api.tree.get(kind.tree_path[0]) or {}
        items = [parts[name] for name in sorted(parts)]
        return PAGES.of(f"Get{kind.plural}", params, items, kind.as_structure)

    async def update(call: Call, params: Structure) -> Structure:
        def change(tree: Tree) -> Tree:
            before, operations = kind.part_in(tree, params), params.get("patchOperations") or ()
            after = apply_patches(before, kind.shape, kind.rules, operations)
            check_part(kind, after, tree)
            return with_value(tree, kind.path(params), after)

        with absent_as(kind.absent(params)):
            tree = await apis.edit_tree(call, params["restApiId"], change)
        return kind.as_structure(kind.part_in(tree, params))

    async def delete(call: Call, params: Structure) -> Structure:
        def change(tree: Tree) -> Tree:
            part = kind.part_in(tree, params)
            if kind in (AUTHORIZER, MODEL):
                check_unused(kind, part, tree)
            return without_value(tree, kind.path(params))

        with absent_as(kind.absent(params)):
            await apis.edit_tree(call, params["restApiId"], change)
        return {}

    listing = {f"Get{kind.plural}": get_all} if kind.plural else {}
    return {f"Get{kind.name}": get, **listing, f"Update{kind.name}": update, f"Delete{kind.name}": delete}


class PartOperations:
    """Creates models and validators, and sets gateway responses."""

    def __init__(self, engine: Engine, apis: Apis[RestApi]) -> None:
        self._rng = engine.runtime.rng
        self._apis = apis

    async def create_model(self, call: Call, params: Structure) -> Structure:
        name = params["name"]
        if not name:
            raise bad_request("Model name must be non-empty")
        if not name.isalnum() or not name.isascii():
            raise bad_request("Model name must be alphanumeric: " + name)
        model: Structure = {
            "id": new_id(self._rng),
            **{key: params[key] for key in ("name", "description", "schema", "contentType") if key in params},
        }
        return await self._create(MODEL, call, {**params, "modelName": name}, model)

    async def create_request_validator(self, call: Call, params: Structure) -> Structure:
        validator_id = new_id(self._rng)
        validator = {
            "id": validator_id,
            "name": params.get("name"),
            "validateRequestBody": bool(params.get("validateRequestBody")),
            "validateRequestParameters": bool(params.get("validateRequestParameters")),
        }
        return await self._create(VALIDATOR, call, {**params, "requestValidatorId": validator_id}, validator)

    async def create_authorizer(self, call: Call, params: Structure) -> Structure:
        authorizer_id = new_id(self._rng)
        params_with_id = {**params, "authorizerId": authorizer_id}

        def change(tree: Tree) -> Tree:
            return with_value(
                tree, AUTHORIZER.path(params_with_id), authorizer_of(params, authorizer_id, tree)
            )

        with absent_as(conflict(_MODIFIED)):
            tree = await self._apis.edit_tree(call, params["restApiId"], change)
        return AUTHORIZER.as_structure(AUTHORIZER.part_in(tree, params_with_id))

    async def _create(self, kind: PartKind, call: Call, params: Structure, part: Structure) -> Structure:
        check_part(kind, part, {})

        def change(tree: Tree) -> Tree:
            if value_at(tree, kind.path(params)) is not None:
                raise conflict(f"{kind.name} name already exists for this REST API")
            return with_value(tree, kind.path(params), part)

        with absent_as(bad_request("Invalid REST API identifier specified")):
            await self._apis.edit_tree(call, params["restApiId"], change)
        return part

    # ---- gateway responses -----------------------------------------------------------------------------------

    async def put_gateway_response(self, call: Call, params: Structure) -> Structure:
        settings = {
            name: params[name]
            for name in ("statusCode", "responseParameters", "responseTemplates")
            if params.get(name) is not None
        }
        kind = _checked_kind(params["responseType"])

        def change(tree: Tree) -> Tree:
            return with_value(tree, [GATEWAY_RESPONSES, kind], settings)

        tree = await self._apis.edit_tree(call, params["restApiId"], change)
        return _response_structure(tree, kind)

    async def get_gateway_response(self, call: Call, params: Structure) -> Structure:
        api = await self._apis.api(call, params["restApiId"])
        return _response_structure(api.tree, _checked_kind(params["responseType"]))

    async def get_gateway_responses(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigateway/latest/api/API_GetGatewayResponses.html: all there are."""
        api = await self._apis.api(call, params["restApiId"])
        responses = sorted(RESPONSES)
        return PAGES.of(
            "GetGatewayResponses", params, responses, lambda kind: _response_structure(api.tree, kind)
        )

    async def update_gateway_response(self, call: Call, params: Structure) -> Structure:
        kind, operations = _checked_kind(params["responseType"]), params.get("patchOperations") or ()
        _check_values(operations)

        def change(tree: Tree) -> Tree:
            before = value_at(tree, [GATEWAY_RESPONSES, kind]) or {}
            after = apply_patches(before, GATEWAY_RESPONSE.shape, GATEWAY_RESPONSE.rules, operations)
            return with_value(tree, [GATEWAY_RESPONSES, kind], after)

        tree = await self._apis.edit_tree(call, params["restApiId"], change)
        return _response_structure(tree, kind)

    async def delete_gateway_response(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigateway/latest/api/API_DeleteGatewayResponse.html; the default stands again."""
        kind = _checked_kind(params["responseType"])

        def change(tree: Tree) -> Tree:
            GATEWAY_RESPONSE.part_in(tree, params)
            return without_value(tree, [GATEWAY_RESPONSES, kind])

        await self._apis.edit_tree(call, params["restApiId"], change)
        return {}


def _check_values(operations: Iterable[Mapping[str, Any]]) -> None:
    """Refuse patch operations that a gateway response does not take (recorded)."""
    for operation in operations:
        op, path = operation.get("op"), operation.get("path") or ""
        if path == "/statusCode" and op in ("add", "remove"):
            raise invalid_path(path)
        member = path[1:].partition("/")[0]
        needs_value = member in ("responseParameters", "responseTemplates") and op in ("add", "replace")
        if needs_value and operation.get("value") is None:
            raise bad_request(f"Invalid null or empty value in {member}")


def _checked_kind(kind: str) -> str:
    if kind not in RESPONSES:
        raise bad_request(f"Invalid response type specified: {kind}")
    return kind


def _response_structure(tree: Tree, kind: str) -> Structure:
    """The response of a kind as callers see it: the API's own, or that of its class (4xx, 5xx), or the default."""
    own = value_at(tree, [GATEWAY_RESPONSES, kind])
    status = RESPONSES[kind].status
    class_response = (tree.get(GATEWAY_RESPONSES) or {}).get(DEFAULTS.get(status // 100)) or {}
    response: Structure = {
        "responseType": kind,
        "responseParameters": {},
        "responseTemplates": {"application/json": '{"message":$context.error.messageString}'},
        "defaultResponse": own is None,
        **(class_response if own is None else own),
    }
    if "statusCode" not in response and status:
        response["statusCode"] = str(status)
    return response


def check_unused(kind: PartKind, part: Mapping[str, Any], tree: Tree) -> None:
    """Refuse to remove an authorizer or a model that a method needs; raises AwsError (`ConflictException`)."""
    word, user = ("authorizer", "method") if kind is AUTHORIZER else ("model", "method request")
    for resource in (tree.get(RESOURCES) or {}).values():
        for name, method in (resource.get(METHODS) or {}).items():
            models = (method.get("requestModels") or {}).values()
            is_used = part["name"] in models if kind is MODEL else part["id"] == method.get("authorizerId")
            if is_used:
                raise conflict(
                    f"Cannot delete {word} '{part['name']}', is referenced in {user}: {resource['path']}/{name}"
                )


def check_part(kind: PartKind, value: Mapping[str, Any], tree: Tree) -> None:
    """Refuse a part that cannot be used as it is in a tree; raises AwsError (`BadRequestException`)."""
    if kind is MODEL and value.get("schema") is not None:
        if value["schema"].strip() in ("", "{}"):
            raise bad_request("Model schema must have at least 1 property or array items defined")
        check_schema(value["schema"])
    if kind is VALIDATOR and value.get("name") == "":
        raise bad_request("Request Validator name cannot be blank")
    if kind is METHOD:
        check_authorization(value, tree)
        check_validator(value, tree)
    if kind is AUTHORIZER:
        check_authorizer(value, tree)
    if kind is INTEGRATION_RESPONSE:
        check_content_handling(value)
    if kind is METHOD_INTEGRATION:
        # A member that a patch operation has removed is refused like a wrong one.
        check_integration({"passthroughBehavior": "", "timeoutInMillis": 0, **value})
