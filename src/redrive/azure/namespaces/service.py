"""Requests to namespaces: finds a request's topic or event subscription, and checks its credentials.

    POST /eventgrid/{subscription}/{group}/{namespace}/topics/{topic}:publish
    POST /eventgrid/{subscription}/{group}/{namespace}/topics/{topic}/eventsubscriptions/{name}:receive …
    POST https://{namespace}.{region}.eventgrid.{…}/topics/…              where DNS resolves that host to this server

The part before `/topics/` is the endpoint that clients are configured with; they add the rest.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Final, TypeVar

from redrive.access.secret import InstallationSecret
from redrive.azure.eventgrid import names
from redrive.azure.eventgrid.credentials import (
    CredentialFault,
    GuardedResource,
    NotAdmitted,
    PublisherCredentials,
)
from redrive.azure.eventgrid.dialect import PULL
from redrive.azure.eventgrid.documents import (
    NAMESPACE,
    NamespacePlace,
    namespace_id,
    namespace_name,
    topic_name,
)
from redrive.azure.eventgrid.measures import SUBSCRIPTION, Dimensions, Measures
from redrive.azure.eventgrid.names import HostNames
from redrive.azure.eventgrid.notation import written_text
from redrive.azure.eventgrid.published import PublishedEvent
from redrive.azure.eventgrid.settings import (
    CLOUD_EVENT_SCHEMA,
    ID,
    KEYS,
    PROPERTIES,
    delivery_settings,
    network,
)
from redrive.azure.namespaces.incoming import events_of
from redrive.azure.namespaces.settling import (
    LockTokens,
    NamespaceCall,
    NamespaceReceiving,
    NamespaceSettling,
    PullCall,
    refused,
)
from redrive.azure.recognise import EVENT_GRID, is_at_namespace_host, is_for_namespace
from redrive.azure.wire.answers import AzureError, json_answer, not_found, unauthorized
from redrive.azure.wire.arm_id import ArmId
from redrive.azure.wire.routes import RouteMatch, RouteTable, query_of
from redrive.engine.engine import Engine
from redrive.model.http import Request, Response
from redrive.model.names import ResourceName, bytes_of
from redrive.model.queue import Queue
from redrive.model.topic import Publication, Subscription, Topic

_TOPIC: Final = "POST /eventgrid/{subscription}/{group}/{namespace}/topics/{topic}"
_EVENT_SUBSCRIPTION: Final = f"{_TOPIC}/eventsubscriptions/{{name}}"

#: By operation, the metrics of its latency and of its refusals; an empty name has no metric.
_METRICS: Final = {
    "publish": ("PublishLatencyInMilliseconds", "FailedPublishedEvents"),
    "receive": ("ReceiveLatencyInMilliseconds", "FailedReceivedEvents"),
    "acknowledge": ("AcknowledgeLatencyInMilliseconds", "FailedAcknowledgedEvents"),
    "release": ("", "FailedReleasedEvents"),
    "reject": ("RejectLatencyInMilliseconds", ""),
}

_KEY_SCHEME: Final = "sharedaccesskey"
_NAMESPACE_PARTS: Final = 5  # of a path: nothing, `eventgrid`, the subscription, the group, the namespace
_NOT_ADMITTED: Final = {
    CredentialFault.ABSENT: "The request must contain an Authorization of SharedAccessKey, SharedAccessSignature or"
    " Bearer, an aeg-sas-key or an aeg-sas-token.",
    CredentialFault.KEY: "The request authorization key is not authorized for this namespace.",
    CredentialFault.ACCOUNT: "The bearer does not manage the namespace's Azure subscription.",
}

T = TypeVar("T")
Operation = Callable[[NamespaceCall], Awaitable[Response]]
PullOperation = Callable[[PullCall], Awaitable[Response]]


class Namespaces:
    """Publishing to and pulling from namespaces (`redrive.azure.gateway.Service`)."""

    def __init__(
        self,
        engine: Engine,
        credentials: PublisherCredentials,
        measures: Measures,
        secret: InstallationSecret,
    ) -> None:
        self._engine = engine
        self._credentials = credentials
        self._measures = measures
        self._hosts = HostNames(engine.resources.documents, self._host_names)
        self._publishes: RouteTable[Operation] = RouteTable(
            {f"{_TOPIC}:publish": NamespacePublishing(engine).publish}
        )
        tokens = LockTokens(secret)
        settling = NamespaceSettling(engine.messages, tokens)
        pulls: Mapping[str, PullOperation] = {
            "receive": NamespaceReceiving(engine.messages, tokens).receive,
            "acknowledge": settling.acknowledge,
            "release": settling.release,
            "reject": settling.reject,
            "renewLock": settling.renew,
        }
        self._pulls: RouteTable[PullOperation] = RouteTable(
            {f"{_EVENT_SUBSCRIPTION}:{verb}": pull for verb, pull in pulls.items()}
        )

    @property
    def routes(self) -> list[str]:
        """Method and pattern of every route."""
        return [*self._publishes.names, *self._pulls.names]

    def handles(self, path: str, host: str) -> bool:
        """See `Service.handles`."""
        return is_for_namespace(path, host)

    async def answer(self, request: Request) -> Response:
        """Carry out a pull operation, or publish, by the path (`Service.answer`); raises AzureError."""
        now = self._engine.clock.now()
        path = request.path
        if is_at_namespace_host(path, request.host):
            path = f"{await self._path_of_host(request.host)}{path}"
        pull = self._pulls.find(request.method, path)
        if pull is not None:
            topic = await self._topic(request, path, pull.params)
            subscription = await self._subscription(topic, pull.params["name"], now)
            queue = await self._queue(subscription, pull.params["name"])
            verb = _operation_of(pull, request)
            owner = (SUBSCRIPTION, delivery_settings(subscription).name)
            count = partial(self._count, topic, (owner,))
            pull_call = PullCall(request, topic, query_of(request), now, count, queue)
            return await self._measure(pull_call, _operation_name(path), verb(pull_call))
        publish = self._publishes.find(request.method, path)
        if publish is None:
            raise not_found(f"There is nothing at {request.path}.", "NotFound")
        topic = await self._topic(request, path, publish.params)
        operation = _operation_of(publish, request)
        call = NamespaceCall(request, topic, query_of(request), now, partial(self._count, topic, ()))
        return await self._measure(call, _operation_name(path), operation(call))

    def _count(
        self, topic: Topic, owner: Dimensions, name: str, value: float, dimensions: Dimensions = ()
    ) -> None:
        self._measures.counter.count(topic.name, name, value, self._engine.clock.now(), (*owner, *dimensions))

    async def _measure(self, call: NamespaceCall, verb: str, pending_answer: Awaitable[Response]) -> Response:
        """Await the answer; its latency or its refusal is counted, where there is a metric for it."""
        latency, refusals = _METRICS.get(verb, ("", ""))
        try:
            answer = await pending_answer
        except AzureError as refusal:
            if refusals:
                is_own_fault = refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR
                kind = "ServerError" if is_own_fault else "ClientError"
                call.count(refusals, 1, (("Error", refusal.code), ("ErrorType", kind)))
            raise
        if latency:
            call.count(latency, self._engine.clock.now() - call.now)
        return answer

    async def _path_of_host(self, host: str) -> str:
        """The path of the namespace with this host; for an unknown host a path that no namespace has."""
        namespace = await self._hosts.find(host, self._exists)
        if namespace is None:
            return f"{EVENT_GRID}-/-/{host.partition('.')[0]}"
        return f"{EVENT_GRID}{namespace.key}"

    async def _host_names(self) -> list[names.HostClaim]:
        """The hosts of all namespaces."""
        namespaces = await self._engine.resources.documents.find(NAMESPACE, "")
        return [names.HostClaim(each.created_at, each.name.name, each.name) for each in namespaces]

    async def _exists(self, name: ResourceName) -> bool:
        return await self._engine.resources.documents.get(NAMESPACE, name.key) is not None

    async def _topic(self, request: Request, path: str, params: Mapping[str, str]) -> Topic:
        """The topic of the path, after the request's credentials and address were checked."""
        if not all(map(names.is_name, params.values())):
            raise not_found(f"There is nothing at {request.path}.", "NotFound")
        resource = namespace_id(params["subscription"], params["group"], params["namespace"])
        namespace = await self._engine.resources.documents.get(NAMESPACE, namespace_name(resource).key)
        name = topic_name(resource.child("topics", params["topic"]))
        topic = self._engine.resources.topics.known(name) or await self._engine.resources.topics.get(name)
        if self._credentials.required:
            await self._admit(request, path, resource, namespace, topic)
        if namespace is None:
            raise not_found(f"The namespace '{resource.name}' does not exist.", "NotFound")
        if not network(namespace.attributes[PROPERTIES]).admits(request.client_host):
            raise _address_refusal(request)
        if topic is None:
            raise not_found(f"The namespace has no topic '{params['topic']}'.", "NotFound")
        return topic

    async def _admit(
        self,
        request: Request,
        path: str,
        resource: ArmId,
        namespace: NamespacePlace | None,
        topic: Topic | None,
    ) -> None:
        """Check the request's credentials for the path; those for a missing namespace are all refused."""
        parent = path.rpartition(":")[0]
        key_holders = [holder for holder in (namespace, topic) if namespace and holder]
        guarded_resource = GuardedResource(
            account=resource.subscription.lower(),
            keys=[holder.attributes[key] for holder in key_holders for key in KEYS],
            path=request.path.rpartition(":")[0],
            name=resource.name,
            path_at_host="/" + "/".join(parent.split("/")[_NAMESPACE_PARTS:]),
            key_scheme=_KEY_SCHEME,
        )
        try:
            await self._credentials.check(request, guarded_resource)
        except NotAdmitted as refusal:
            raise _unauthorized(refusal) from refusal

    async def _subscription(self, topic: Topic, name: str, now: int) -> Subscription:
        subscription = await self._engine.resources.subscriptions.get(topic.name, names.subscription_id(name))
        if subscription is None or (subscription.expires_at is not None and subscription.expires_at <= now):
            raise not_found(f"The topic has no event subscription '{name}'.", "NotFound")
        return subscription

    async def _queue(self, subscription: Subscription, name: str) -> Queue:
        """The queue of an event subscription in queue mode; raises AzureError if it is in another."""
        if subscription.protocol != PULL:
            raise refused(f"The event subscription '{name}' is not in queue mode: its events are pushed.")
        queue_name = ResourceName.from_key(subscription.endpoint)
        queue = self._engine.resources.queues.known(queue_name) or await self._engine.resources.queues.get(
            queue_name
        )
        if queue is None:
            raise not_found(f"The topic has no event subscription '{name}'.", "NotFound")
        return queue


def _operation_name(path: str) -> str:
    return path.rpartition(":")[2].lower()


def _unauthorized(refusal: NotAdmitted) -> AzureError:
    """The refusal of a request whose credentials open nothing."""
    if refusal.cause is CredentialFault.BEARER:
        return unauthorized(refusal.detail)
    if refusal.cause is CredentialFault.TOKEN:
        message = f"The request authorization signature is not authorized: {refusal.detail}."
    else:
        message = _NOT_ADMITTED.get(refusal.cause, _NOT_ADMITTED[CredentialFault.KEY])
    return AzureError(HTTPStatus.UNAUTHORIZED, "Unauthorized", message)


def _address_refusal(request: Request) -> AzureError:
    message = f"The client {request.client_host} is rejected due to IpAddress filtering rules."
    return AzureError(HTTPStatus.FORBIDDEN, "Forbidden", message)


def _operation_of(match: RouteMatch[T], request: Request) -> T:
    """The operation of a route; raises AzureError if the request has another method."""
    if match.verb is None:
        message = f"The operation is asked for by POST, not {request.method}."
        status, allowed = HTTPStatus.METHOD_NOT_ALLOWED, {"Allow": ", ".join(match.methods)}
        raise AzureError(status, "MethodNotAllowed", message, headers=allowed)
    return match.verb


# Publish: CloudEvents to a namespace's topic.


class NamespacePublishing:
    """Publishes events."""

    def __init__(self, engine: Engine) -> None:
        self._runtime = engine.runtime
        self._messages = engine.messages

    async def publish(self, call: NamespaceCall) -> Response:
        """Publish all of a request's events, or none of them.

        https://learn.microsoft.com/rest/api/eventgrid/dataplane/publish-cloud-events.
        """
        envelope = PublishedEvent(CLOUD_EVENT_SCHEMA, call.topic.attributes[ID], call.now).envelope()
        publications = []
        for event in events_of(call.request):
            text = written_text(event)
            publications.append(
                Publication(
                    id=self._runtime.message_id(),
                    body=text,
                    bodies={},
                    attributes={},
                    envelope=envelope,
                    bytes_published=bytes_of(text),
                    document=event,
                )
            )
        if publications:
            await self._messages.publish(call.topic, publications)
        return json_answer({})
