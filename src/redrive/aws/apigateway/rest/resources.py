"""Resources of REST APIs: the paths that callers can ask for."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from redrive.aws.apigateway.control.apis import Apis
from redrive.aws.apigateway.control.errors import PAGES, bad_request, conflict, error
from redrive.aws.apigateway.control.records import METHODS, RestApi, Tree, new_id
from redrive.aws.apigateway.rest.kinds import RESOURCE, RESOURCES
from redrive.aws.apigateway.rest.patching import patched
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine

RESOURCES_MAX: Final = 300
_PART: Final = re.compile(r"[a-zA-Z0-9._~:$@*!'&(),;=+-]+|\{[a-zA-Z0-9._$:-]+\+?\}")
_GREEDY: Final = "+}"


class ResourceOperations:
    """Makes resources, and shows, moves and removes them."""

    def __init__(self, engine: Engine, apis: Apis[RestApi]) -> None:
        self._rng = engine.runtime.rng
        self._apis = apis

    async def create_resource(self, call: Call, params: Structure) -> Structure:
        made_id = new_id(self._rng)

        def change(tree: Tree) -> Tree:
            return with_resource(tree, made_id, params["parentId"], params["pathPart"])

        tree = await self._apis.edit_tree(call, params["restApiId"], change)
        return as_structure(tree[RESOURCES][made_id])

    async def get_resources(self, call: Call, params: Structure) -> Structure:
        api = await self._apis.api(call, params["restApiId"])
        whole = "methods" in (params.get("embed") or ())
        resources = sorted(api.tree[RESOURCES].values(), key=lambda resource: str(resource["path"]))
        return PAGES.of(
            "GetResources", params, resources, lambda resource: as_structure(resource, whole=whole)
        )

    async def get_resource(self, call: Call, params: Structure) -> Structure:
        api = await self._apis.api(call, params["restApiId"])
        whole = "methods" in (params.get("embed") or ())
        return as_structure(RESOURCE.part_in(api.tree, params), whole=whole)

    async def update_resource(self, call: Call, params: Structure) -> Structure:
        resource_id = params["resourceId"]

        def change(tree: Tree) -> Tree:
            before = RESOURCE.part_in(tree, params)
            operations = params.get("patchOperations") or ()
            after = patched(before, RESOURCE.shape, RESOURCE.rules, operations)
            if "parentId" not in before:
                member = "parentId" if "parentId" in after else "pathPart"
                raise bad_request(f"Root resource cannot update its {member}.")
            RESOURCE.part_in(tree, {"resourceId": after["parentId"]})
            if _is_below(tree, after["parentId"], resource_id):
                raise bad_request("Resources cannot be cyclical.")
            others = {key: resource for key, resource in tree[RESOURCES].items() if key != resource_id}
            path = _checked_path(others.values(), others[after["parentId"]], after["pathPart"])
            moved = {**tree[RESOURCES], resource_id: {**after, "path": path}}
            return {**tree, RESOURCES: _with_paths(moved)}

        tree = await self._apis.edit_tree(call, params["restApiId"], change)
        return as_structure(tree[RESOURCES][resource_id])

    async def delete_resource(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigateway/latest/api/API_DeleteResource.html; those below it go with it."""
        resource_id = params["resourceId"]

        def change(tree: Tree) -> Tree:
            if "parentId" not in RESOURCE.part_in(tree, params):
                raise bad_request("Root resource cannot be deleted")
            remaining = {
                key: resource
                for key, resource in tree[RESOURCES].items()
                if key != resource_id and not _is_below(tree, key, resource_id)
            }
            return {**tree, RESOURCES: remaining}

        await self._apis.edit_tree(call, params["restApiId"], change)
        return {}


def with_resource(tree: Tree, made_id: str, parent_id: str, part: str) -> Tree:
    """The tree with a resource more.

    Raises:
        AwsError: Its parent is not there, or its part of the path cannot be.
    """
    known: Mapping[str, Mapping[str, Any]] = tree[RESOURCES]
    parent = RESOURCE.part_in(tree, {"resourceId": parent_id})
    if len(known) >= RESOURCES_MAX:
        raise error("LimitExceededException", f"An API has at most {RESOURCES_MAX} resources")
    path = _checked_path(known.values(), parent, part)
    resource = {"id": made_id, "parentId": parent_id, "pathPart": part, "path": path}
    return {**tree, RESOURCES: {**known, made_id: resource}}


def _checked_path(known: Iterable[Mapping[str, Any]], parent: Mapping[str, Any], part: str) -> str:
    """The path of a part below a resource."""
    if not _PART.fullmatch(part):
        raise bad_request(
            "Resource's path part only allow a-zA-Z0-9._-: or a valid greedy path variable and curly braces at the"
            " beginning and the end."
        )
    if str(parent.get("pathPart", "")).endswith(_GREEDY):
        raise bad_request(
            f"Cannot create a child of a resource with a greedy path variable: {parent['pathPart']}"
        )
    for sibling in known:
        if sibling.get("parentId") != parent["id"]:
            continue
        if sibling["pathPart"] == part:
            raise conflict(f"Another resource with the same parent already has this name: {part}")
        if part.startswith("{") and sibling["pathPart"].startswith("{"):
            raise bad_request(
                f"A sibling ({sibling['pathPart']}) of this resource already has a variable path part -- only one is"
                " allowed"
            )
    return f"{parent['path'].rstrip('/')}/{part}"


def _is_below(tree: Tree, resource_id: str, above: str) -> bool:
    """True if a resource is another, or stands below it."""
    at: str | None = resource_id
    for _ in range(RESOURCES_MAX + 1):
        if at == above:
            return True
        at = tree[RESOURCES].get(at, {}).get("parentId")
        if at is None:
            return False
    return False


def _with_paths(resources: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The resources with their paths as their parents have it."""

    def path(resource: Mapping[str, Any]) -> str:
        above = resource.get("parentId")
        return "" if above is None else f"{path(resources[above])}/{resource['pathPart']}"

    return {key: {**resource, "path": path(resource) or "/"} for key, resource in resources.items()}


def as_structure(resource: Mapping[str, Any], *, whole: bool = False) -> Structure:
    """A resource as callers see it; its methods by name alone unless they ask for the whole."""
    methods = resource.get(METHODS)
    if not methods:
        return {name: value for name, value in resource.items() if name != METHODS}
    return {**resource, METHODS: dict(methods) if whole else {name: {} for name in methods}}
