"""The resource manager's one door: tell who calls, find the verb, call it."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, Protocol

from redrive.azure.arm import specs
from redrive.azure.arm.accounts import GROUP, AzureSubscriptionOperations
from redrive.azure.arm.call import ArmCall, Verb
from redrive.azure.arm.deployments import DEPLOYMENT, ArmDeploymentOperations
from redrive.azure.arm.destinations import EndpointResolver
from redrive.azure.arm.event_sources import EventSources
from redrive.azure.arm.event_subscriptions import EventSubscriptionOperations
from redrive.azure.arm.listings import ArmResourceOperations, ListingOperations
from redrive.azure.arm.resource_types import (
    DomainTopicCollection,
    NamespaceCollection,
    NamespaceTopicCollection,
    SystemTopicCollection,
    TopicCollection,
)
from redrive.azure.arm.storage import STORAGE_ACCOUNT
from redrive.azure.arm.subscribers import Subscribers
from redrive.azure.eventgrid.documents import SYSTEM_TOPIC
from redrive.azure.eventgrid.names import is_name
from redrive.azure.handshake import QUESTION, Handshakes
from redrive.azure.recognise import is_for_manager
from redrive.azure.wire.answers import AzureError, forbidden, invalid, not_found
from redrive.azure.wire.arm_id import ArmId
from redrive.azure.wire.bearer import BearerAuthentication, BearerCaller
from redrive.azure.wire.routes import RouteTable, query_of
from redrive.engine.engine import Engine
from redrive.engine.ports import Clock, DocumentKind
from redrive.engine.resources import Documents
from redrive.model.http import Request, Response


class ArmOperations(Protocol):
    """Some of the resource manager's operations."""

    @property
    def routes(self) -> Mapping[str, Verb]:
        """By method and pattern, as `RouteTable` takes them.

        The name `subscription` in a pattern says whose the call is about; where it has none, the resource id that
        `scope` or `parent` takes.
        """
        ...


class Arm:
    """The resource manager (`redrive.azure.gateway.Service`)."""

    def __init__(
        self,
        clock: Clock,
        authentication: BearerAuthentication,
        operations: Sequence[ArmOperations],
        public_url: str | None,
        documents: Documents,
    ) -> None:
        """Offer these operations; routes of the first win over those of the next."""
        self._clock = clock
        self._authentication = authentication
        # What URLs in answers begin with; None for the host that the client used
        self._public_url = public_url
        self.routes: RouteTable[Verb] = RouteTable()
        for group in (
            *operations,
            ArmResourceOperations(self.answer),
            ArmDeploymentOperations(documents, self.answer),
        ):
            self.routes.add_all(group.routes)

    def handles(self, path: str, host: str) -> bool:  # noqa: ARG002 - as Service
        """See `Service.handles`."""
        return is_for_manager(path)

    async def answer(self, request: Request) -> Response:
        """Carry out the operation of the request's route, for a caller who may (`Service.answer`); raises AzureError."""
        caller = await self._authentication.caller(request)
        route_match = self.routes.find(request.method, request.path)
        if route_match is None:
            raise not_found(f"The server knows no resource at {request.path}.", "InvalidResourceType")
        if route_match.verb is None:
            status, allowed = HTTPStatus.METHOD_NOT_ALLOWED, {"Allow": ", ".join(route_match.methods)}
            message = f"The resource does not support {request.method}."
            raise AzureError(status, "MethodNotAllowed", message, headers=allowed)
        _check_names(route_match.params)
        _check_owner(caller, route_match.params)
        base_url = self._public_url or f"{request.scheme}://{request.host}"
        call = ArmCall(request, route_match.params, query_of(request), caller, self._clock.now(), base_url)
        return await route_match.verb(call)


def _check_names(params: Mapping[str, str]) -> None:
    for value in params.values():
        if not is_name(value):
            raise invalid(f"The name '{value}' is not a valid name of a resource.", "InvalidResourceName")


def _check_owner(caller: BearerCaller, params: Mapping[str, str]) -> None:
    """Refuse a caller who does not manage the Azure subscription that the path is about."""
    subscription = params.get("subscription")
    above = params.get("scope", params.get("parent"))
    if subscription is None and above is not None:
        scope = ArmId.parse(above)
        subscription = "" if scope is None else scope.subscription
    if subscription is not None and not caller.manages(subscription):
        raise forbidden(
            f"The client does not have authorization to perform the action over scope "
            f"'/subscriptions/{subscription}': its GUID would end in the account of the client's access key."
        )


# The resource manager's operations, put together.

# Of documents that a reset removes.
KINDS: Final[Sequence[DocumentKind[Any]]] = (GROUP, STORAGE_ACCOUNT, SYSTEM_TOPIC, QUESTION, DEPLOYMENT)


def build_operations(
    engine: Engine, handshakes: Handshakes, resolve: EndpointResolver, others: Sequence[ArmOperations] = ()
) -> list[ArmOperations]:
    """All operations, in the order in which their routes are tried; `others` have routes of their own."""
    subscribers = Subscribers(engine)
    sources = EventSources(engine, subscribers)
    return [
        AzureSubscriptionOperations(engine, subscribers),
        TopicCollection(engine, specs.TOPICS, subscribers),
        TopicCollection(engine, specs.DOMAINS, subscribers),
        DomainTopicCollection(engine, subscribers, sources),
        SystemTopicCollection(engine, sources),
        NamespaceCollection(engine, subscribers),
        NamespaceTopicCollection(engine, subscribers),
        *others,
        ListingOperations(engine, sources),
        EventSubscriptionOperations(engine, subscribers, sources, handshakes, resolve),
    ]
