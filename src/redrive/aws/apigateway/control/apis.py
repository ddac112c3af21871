"""APIs of one kind, with their places and deployments, and the roles that integrations and logs have."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from redrive.aws.apigateway.control.errors import bad_request, conflict, no_deployment
from redrive.aws.apigateway.control.records import (
    API_PLACE,
    DEPLOYMENT,
    STAGES,
    ApiDeployment,
    ApiPlace,
    EditedApi,
    Tree,
    api_key,
    deployment_key,
)
from redrive.aws.gateway.authorization import ServiceRoles
from redrive.aws.gateway.identities import Identities
from redrive.aws.kit.call import Call
from redrive.aws.wire.errors import AwsError
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.engine.resources import Draft

#: The credentials of an integration that mean the caller's own.
CALLERS_OWN: Final = "arn:aws:iam::*:user/*"
SERVICE: Final = "apigateway"
_SESSION: Final = "BackplaneAssumeRoleSession"  # as Amazon's calls it
_NOT_FOR_LOGS: Final = (
    "The role ARN does not have required permissions configured. Please grant trust permission for API Gateway and add"
    " the required role policy."
)


def integration_roles(identities: Identities) -> ServiceRoles:
    """The roles that API Gateway acts as for integrations."""
    return ServiceRoles(identities, SERVICE, _SESSION, _role_refusal)


def log_roles(identities: Identities) -> ServiceRoles:
    """The roles that API Gateway writes logs by."""
    return ServiceRoles(identities, SERVICE, _SESSION, lambda _: bad_request(_NOT_FOR_LOGS))


async def check_roles(roles: ServiceRoles, call: Call, tree: Tree, before: Tree) -> None:
    """Check that a caller may pass the roles that a change brings into an API, or to another part of it.

    Raises:
        AwsError: See `ServiceRoles.check`.
    """
    old_roles = dict(_roles(before))
    for owner, role in _roles(tree):
        if role != CALLERS_OWN and old_roles.get(owner) != role:
            if not isinstance(role, str):
                raise bad_request("Invalid ARN specified in the request")
            await roles.check(call, role)


def _roles(tree: Tree) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The roles of integrations and authorizers, each with the path of its owner in the tree."""
    for id_, resource in (tree.get("resources") or {}).items():
        for verb, method in (resource.get("resourceMethods") or {}).items():
            if credentials := (method.get("methodIntegration") or {}).get("credentials"):
                yield (id_, verb), credentials
    for id_, authorizer in (tree.get("authorizers") or {}).items():
        credentials = authorizer.get("authorizerCredentials") or authorizer.get("AuthorizerCredentialsArn")
        if credentials:
            yield ("authorizers", id_), credentials
    for id_, integration in (tree.get("integrations") or {}).items():
        if credentials := integration.get("CredentialsArn"):
            yield (id_,), credentials


def _role_refusal(role: str) -> AwsError:
    return bad_request(f"API Gateway does not have permission to assume the provided role {role}")


A = TypeVar("A", bound=EditedApi)


@dataclass(frozen=True, slots=True)
class ApiKind(Generic[A]):
    """A kind of APIs."""

    documents: DocumentKind[A]  # Document kind of its APIs
    word: str  # `REST` or `HTTP`
    deployment_member: str  # The member of a stage that has the id of its deployment
    # Creates the refusal for an absent API, from the caller's account and the API's id.
    absent: Callable[[str, str], AwsError]


class Apis(Generic[A]):
    """The APIs of one kind, of all callers."""

    def __init__(self, engine: Engine, kind: ApiKind[A], roles: ServiceRoles) -> None:
        """Keep them in this engine; integrations may have these roles."""
        self._resources = engine.resources
        self._kind = kind
        self._roles = roles

    async def api(self, call: Call, api_id: str) -> A:
        """An API of the caller; raises AwsError (`NotFoundException`)."""
        key = api_key(call.account, call.region, api_id)
        api = await self._resources.documents.get(self._kind.documents, key)
        return self._require(call, api_id, api)

    async def api_in(self, draft: Draft, call: Call, api_id: str) -> A:
        """An API of the caller, as a draft reads it; see `api`."""
        key = api_key(call.account, call.region, api_id)
        api = await draft.get(self._kind.documents, key)
        return self._require(call, api_id, api)

    async def all(self, call: Call) -> Sequence[A]:
        """All APIs of the caller."""
        return await self._resources.documents.find(
            self._kind.documents, api_key(call.account, call.region, "")
        )

    async def create(self, call: Call, api: A) -> None:
        """Store a new API; raises AwsError if its id is taken, or the caller may not pass a role in it."""
        await check_roles(self._roles, call, api.tree, {})

        async def decide(draft: Draft) -> None:
            if await draft.get(API_PLACE, api.id) is not None:
                raise conflict(f"The API identifier {api.id} is taken")
            draft.put(API_PLACE, api.id, ApiPlace(call.account, call.region, self._kind.word))
            draft.put(self._kind.documents, api.key, api)

        await self._resources.write(decide)

    async def edit(self, call: Call, api_id: str, change: Callable[[A], A]) -> A:
        """Change an API of the caller; returns the changed API."""

        async def decide(draft: Draft) -> A:
            before = await self.api_in(draft, call, api_id)
            after = change(before)
            await check_roles(self._roles, call, after.tree, before.tree)
            draft.put(self._kind.documents, after.key, after)
            return after

        return await self._resources.write(decide)

    async def edit_tree(self, call: Call, api_id: str, change: Callable[[Tree], Tree]) -> Tree:
        """Change the tree of an API; returns the changed tree."""
        api = await self.edit(call, api_id, lambda api: replace(api, tree=change(api.tree)))
        return api.tree

    async def remove(self, call: Call, api_id: str) -> None:
        """Remove an API with its deployments."""

        async def decide(draft: Draft) -> None:
            api = await self.api_in(draft, call, api_id)
            prefix = deployment_key(call.account, call.region, api_id, "")
            for key, _ in await draft.find(DEPLOYMENT, prefix):
                draft.remove(DEPLOYMENT, key)
            draft.remove(self._kind.documents, api.key)
            draft.remove(API_PLACE, api_id)

        await self._resources.write(decide)

    def _require(self, call: Call, api_id: str, api: A | None) -> A:
        if api is None:
            raise self._kind.absent(call.account, api_id)
        return api

    # ---- deployments -----------------------------------------------------------------------------------------

    async def deployment(self, call: Call, api_id: str, deployment_id: str) -> ApiDeployment:
        """A deployment; raises AwsError (`NotFoundException`)."""
        key = deployment_key(call.account, call.region, api_id, deployment_id)
        deployment = await self._resources.documents.get(DEPLOYMENT, key)
        if deployment is None:
            raise no_deployment()
        return deployment

    async def deployments(self, call: Call, api_id: str) -> Sequence[ApiDeployment]:
        """The deployments of an API; see `api`."""
        await self.api(call, api_id)
        prefix = deployment_key(call.account, call.region, api_id, "")
        return await self._resources.documents.find(DEPLOYMENT, prefix)

    async def remove_deployment(self, call: Call, api_id: str, deployment_id: str) -> None:
        """Remove a deployment, unless a stage serves it.

        Raises:
            AwsError: `NotFoundException` or `BadRequestException`.
        """
        key = deployment_key(call.account, call.region, api_id, deployment_id)

        async def decide(draft: Draft) -> None:
            api = await self.api_in(draft, call, api_id)
            if await draft.get(DEPLOYMENT, key) is None:
                raise no_deployment()
            stages: Mapping[str, Any] = api.tree.get(STAGES) or {}
            if any(stage.get(self._kind.deployment_member) == deployment_id for stage in stages.values()):
                raise bad_request("Active stages pointing to this deployment must be moved or deleted")
            draft.remove(DEPLOYMENT, key)

        await self._resources.write(decide)
