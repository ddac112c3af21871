"""Operations that are alike for all that an HTTP API consists of, by the table of kinds."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from redrive.aws.apigateway.authorizers.http import AUTHORIZERS
from redrive.aws.apigateway.control.apis import Apis
from redrive.aws.apigateway.control.errors import HTTP_PAGES, conflict, not_found
from redrive.aws.apigateway.control.ids import new_id
from redrive.aws.apigateway.control.records import STAGES, Tree
from redrive.aws.apigateway.http.kinds import INTEGRATIONS, KINDS, ROUTES, TARGET, HttpKind
from redrive.aws.apigateway.http.records import HttpApi
from redrive.aws.apigateway.requests.access_log import check_destination
from redrive.aws.kit.call import Call, Verb
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine

_ID_CHARS: Final = 7
#: What routes need: the member that names it, and what stands before the id there.
_USES: Final = {INTEGRATIONS: ("Target", TARGET), AUTHORIZERS: ("AuthorizerId", "")}


def operations_alike(apis: Apis[HttpApi], engine: Engine) -> dict[str, Verb]:
    """The operations of all kinds that are made, shown, listed, changed and deleted in one way."""
    verbs: dict[str, Verb] = {}
    for kind in KINDS:
        part = HttpPartOperations(kind, apis, engine)
        verbs |= {
            f"Create{kind.noun}": part.create,
            f"Get{kind.noun}": part.get,
            f"Get{kind.noun}s": part.get_all,
            f"Update{kind.noun}": part.update,
            f"Delete{kind.noun}": part.delete,
        }
    return verbs


class HttpPartOperations:
    """Makes, shows, changes and deletes one kind of what APIs consist of."""

    def __init__(self, kind: HttpKind, apis: Apis[HttpApi], engine: Engine) -> None:
        """Do it for this kind, in the APIs of an engine."""
        self._kind = kind
        self._apis = apis
        self._chance = engine.runtime.chance

    async def create(self, call: Call, params: Structure) -> Structure:
        """Make one."""
        kind = self._kind
        if not kind.chosen:
            params = {**params, kind.id: new_id(self._chance, _ID_CHARS)}

        def change(tree: Tree) -> Structure:
            if params[kind.id] in (tree.get(kind.place) or {}):
                raise conflict(f"{kind.noun} already exists")
            dated = {"CreatedDate": call.now} if kind.place == STAGES else {}
            return {**kind.defaults, **dated, **_settings(params)}

        return await self._write(call, params, change)

    async def update(self, call: Call, params: Structure) -> Structure:
        """Change those members that are given."""
        return await self._write(call, params, lambda tree: {**self._part(tree, params), **_settings(params)})

    async def get(self, call: Call, params: Structure) -> Structure:
        """Show one."""
        return self._part((await self._apis.api(call, params["ApiId"])).tree, params)

    async def get_all(self, call: Call, params: Structure) -> Structure:
        """Show all of an API."""
        api = await self._apis.api(call, params["ApiId"])
        items = list((api.tree.get(self._kind.place) or {}).values())
        return HTTP_PAGES.of(f"Get{self._kind.noun}s", params, items, dict)

    async def delete(self, call: Call, params: Structure) -> Structure:
        """Remove one, unless another part needs it."""
        kind = self._kind

        def change(api: HttpApi) -> HttpApi:
            self._part(api.tree, params)
            rest = {name: value for name, value in api.tree[kind.place].items() if name != params[kind.id]}
            uses = _USES.get(kind.place)
            routes: Mapping[str, Any] = api.tree.get(ROUTES) or {}
            if uses and any(route.get(uses[0]) == f"{uses[1]}{params[kind.id]}" for route in routes.values()):
                raise conflict(f"Cannot delete {kind.noun}. It is used by a route of this API")
            return replace(api, tree={**api.tree, kind.place: rest})

        await self._apis.edit(call, params["ApiId"], change)
        return {}

    def _part(self, tree: Tree, params: Structure) -> Structure:
        kind = self._kind
        value = (tree.get(kind.place) or {}).get(params[kind.id])
        if value is None:
            raise not_found(f"Invalid {kind.noun} identifier specified")
        part: Structure = value
        return part

    async def _write(self, call: Call, params: Structure, change: Callable[[Tree], Structure]) -> Structure:
        kind = self._kind

        def changed(api: HttpApi) -> HttpApi:
            value = change(api.tree)
            if kind.place == STAGES:
                value = {**value, "LastUpdatedDate": call.now}
                check_destination((value.get("AccessLogSettings") or {}).get("DestinationArn"), call.account)
            kind.check(value, api.tree)
            part = {**(api.tree.get(kind.place) or {}), value[kind.id]: value}
            return replace(api, tree={**api.tree, kind.place: part})

        edited = await self._apis.edit(call, params["ApiId"], changed)
        return self._part(edited.tree, params)


def _settings(params: Structure) -> Structure:
    return {name: value for name, value in params.items() if name != "ApiId" and value is not None}
