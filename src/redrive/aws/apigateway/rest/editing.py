"""Editing of REST APIs: one is read, changed and written in one transaction."""

from collections.abc import Callable
from dataclasses import replace

from redrive.aws.apigateway.control.errors import no_api
from redrive.aws.apigateway.control.records import REST_API, RestApi, Tree, api_key
from redrive.aws.apigateway.control.roles import check_roles
from redrive.aws.gateway.service_roles import ServiceRoles
from redrive.aws.kit.call import Call
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft


class Editing:
    """Finds the REST APIs of callers, and changes them."""

    def __init__(self, engine: Engine, roles: ServiceRoles) -> None:
        """Find them in this engine; integrations may have these roles."""
        self._engine = engine
        self._roles = roles

    async def api(self, call: Call, api_id: str) -> RestApi:
        """An API of the caller's.

        Raises:
            AwsError: `NotFoundException`.
        """
        key = api_key(call.account, call.region, api_id)
        api = await self._engine.resources.documents.get(REST_API, key)
        if api is None:
            raise no_api(call.account, api_id)
        return api

    async def edit(self, call: Call, api_id: str, change: Callable[[RestApi], RestApi]) -> RestApi:
        """Change an API of the caller's; the API as it is then."""

        async def decide(draft: Draft) -> RestApi:
            before = await api_in(draft, call, api_id)
            changed = change(before)
            await self.check_roles(call, changed.tree, before.tree)
            draft.put(REST_API, changed.key, changed)
            return changed

        return await self._engine.resources.write(decide)

    async def check_roles(self, call: Call, tree: Tree, before: Tree) -> None:
        """Refuse roles that an API did not have before; see `roles.check_roles`."""
        await check_roles(self._roles, call, tree, before)

    async def edit_tree(self, call: Call, api_id: str, change: Callable[[Tree], Tree]) -> Tree:
        """Change what an API consists of; that, as it is then."""
        edited = await self.edit(call, api_id, lambda api: replace(api, tree=change(api.tree)))
        return edited.tree


async def api_in(draft: Draft, call: Call, api_id: str) -> RestApi:
    """An API of the caller's, as a draft leaves it.

    Raises:
        AwsError: `NotFoundException`.
    """
    api = await draft.get(REST_API, api_key(call.account, call.region, api_id))
    if api is None:
        raise no_api(call.account, api_id)
    return api
