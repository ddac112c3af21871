"""Event subscriptions: made, shown, changed and removed, in the extension form and nested in what they are made at.

Both forms name the same object: `{topic}/providers/Microsoft.EventGrid/eventSubscriptions/{name}` and
`{topic}/eventSubscriptions/{name}`; it is shown under the id that it was asked for by. Those of namespaces' topics are
nested alone, and have documents of their own.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from redrive.azure.arm import paging, schema
from redrive.azure.arm import subscription_documents as documents
from redrive.azure.arm.call import ArmCall, Verb, check_theirs, in_progress
from redrive.azure.arm.destinations import (
    MAPPINGS,
    STORAGE_ACCOUNT,
    DestinationForm,
    EndpointResolver,
    queue_at,
)
from redrive.azure.arm.event_sources import NAMESPACE_TOPIC, EventSources
from redrive.azure.arm.resource import IN_GROUP, PROVIDER, no_such
from redrive.azure.arm.schema import Document
from redrive.azure.arm.storage import StorageAccounts
from redrive.azure.arm.subscribers import Subscribers
from redrive.azure.arm.subscription_forms import EXTENSION, NamespaceForm, SubscriptionForm
from redrive.azure.eventgrid import names, settings
from redrive.azure.handshake import HandshakeRequest, Handshakes
from redrive.azure.wire.answers import empty_answer, invalid, json_answer
from redrive.azure.wire.arm_id import ArmId
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.http import Response
from redrive.model.topic import Subscription, Topic

_NAME: Final = "eventSubscription"


class _EventSource(NamedTuple):
    """The resource whose event subscriptions a call is about."""

    id: ArmId
    form: SubscriptionForm  # The form of its event subscriptions' documents
    # The resource in the path, where the call names event subscriptions as nested in it.
    nested_in: ArmId | None


class _ChangedMeanwhile(Exception):  # noqa: N818 - no error: the call begins again
    """An event subscription is no longer the one that a call is a change of."""


class EventSubscriptionOperations:
    """The operations on event subscriptions."""

    def __init__(
        self,
        engine: Engine,
        subscribers: Subscribers,
        sources: EventSources,
        handshakes: Handshakes,
        resolve: EndpointResolver,
    ) -> None:
        self._engine = engine
        self._accounts = StorageAccounts(engine)
        self._subscribers = subscribers
        self._sources = sources
        self._handshakes = handshakes
        self._resolve = resolve

    @property
    def routes(self) -> Mapping[str, Verb]:
        """See `Operations.routes`; the last two match any scope, so they come after all others."""
        routes: dict[str, Verb] = {}
        for several in (
            f"{IN_GROUP}/namespaces/{{namespace}}/topics/{{topic}}/eventSubscriptions",
            f"/{{scope...}}/{EXTENSION}",
            "/{parent...}/eventSubscriptions",
        ):
            one = f"{several}/{{{_NAME}}}"
            routes |= {
                f"PUT {one}": self.put,
                f"GET {one}": self.get,
                f"PATCH {one}": self.patch,
                f"DELETE {one}": self.delete,
                f"POST {one}/getFullUrl": self.full_url,
                f"POST {one}/getDeliveryAttributes": self.delivery_attributes,
                f"GET {several}": self.list,
            }
        return routes

    # ---- make and change ---------------------------------------------------------------------------------------

    async def put(self, call: ArmCall) -> Response:
        """Make an event subscription, or replace it: its endpoint is asked whether it agrees, in either case."""
        documents.check_name(call.params[_NAME])
        source = await self._event_source(call)
        topic = await self._sources.topic_or_new(source.id)
        properties = schema.part(call.document, "properties") or {}
        existing = await self._stored_subscription(call, topic)
        if existing is not None and documents.is_over(existing, call.now):
            return await self._write(call, source, topic, None, properties, instead_of=existing)
        return await self._write(call, source, topic, existing, properties)

    async def patch(self, call: ArmCall) -> Response:
        """Change some of an event subscription; begins again where another call changed it meanwhile."""
        while True:
            source, topic, existing = await self._get_existing(call)
            properties = source.form.apply_patch(documents.properties_of(existing), call.document)
            with contextlib.suppress(_ChangedMeanwhile):
                return await self._write(call, source, topic, existing, properties, is_change=True)

    async def _check_theirs(self, call: ArmCall, resources: Sequence[ArmId]) -> None:
        """Check that the caller may have the server write to the resources that a document names.

        Raises:
            AzureError: One is somebody else's. The name of a storage account of the server's own is the account's alone,
                whatever Azure subscription stands before it.
        """
        check_theirs(call, *resources)
        caller = call.caller.account
        for resource in resources:
            if (
                resource.type == STORAGE_ACCOUNT
                and caller is not None
                and self._resolve(resource.text) is None
            ):
                await self._accounts.check_owner(resource.name, caller)

    async def _write(
        self,
        call: ArmCall,
        source: _EventSource,
        topic: Topic,
        existing: Subscription | None,
        properties: Document,
        *,
        instead_of: Subscription | None = None,
        is_change: bool = False,
    ) -> Response:
        """Write an event subscription: in the place of the `existing` one, or of one that is over (`instead_of`)."""
        before = {} if existing is None else documents.properties_of(existing)
        content = source.form.accept(properties, before, topic, self._resolve, call.now)
        await self._check_theirs(call, documents.referenced_resources(content.properties))
        await self._check_local(call, content.destination)
        resource_id = source.form.resource_id(source.id, topic, call.params[_NAME], existing)
        question = await self._question(call, topic, existing, content, resource_id)

        async def write(draft: Draft) -> Subscription:
            if existing is not None and is_change:
                await self._check_unchanged_in(draft, existing)
            if instead_of is not None:
                await self._subscribers.remove_in(draft, instead_of)
            subscription = documents.engine_subscription(topic, resource_id, content)
            if question is not None and not await self._handshakes.agreed_in(draft, question):
                subscription = documents.engine_subscription(
                    topic, resource_id, content, documents.AWAITING, question.ends_at
                )
            return await self._subscribers.write_in(draft, topic, subscription)

        written_subscription = await self._engine.resources.write(write)
        return self._write_answer(call, source, topic, written_subscription, is_new=existing is None)

    async def _check_unchanged_in(self, draft: Draft, existing: Subscription) -> None:
        subscriptions = self._engine.resources.subscriptions
        current = await subscriptions.get_in(draft, existing.topic, existing.id)
        if current is None or documents.properties_of(current) != documents.properties_of(existing):
            raise _ChangedMeanwhile

    def _write_answer(
        self, call: ArmCall, source: _EventSource, topic: Topic, subscription: Subscription, *, is_new: bool
    ) -> Response:
        """The answer to a write, which some kinds of source show as under way."""
        body = self._body(call, source, topic, subscription)
        if source.form.in_steps:
            body = in_progress(body, "Creating" if is_new else "Updating")
        status = HTTPStatus.CREATED if is_new else source.form.replaced_status
        return json_answer(body, status, _retry_headers(source, body))

    async def _question(
        self,
        call: ArmCall,
        topic: Topic,
        existing: Subscription | None,
        content: documents.AcceptedSubscription,
        resource_id: str,
    ) -> HandshakeRequest | None:
        """The question that an endpoint was asked; None if none is to be asked.

        An endpoint that agreed once needs no second action by hand when something else is changed.
        """
        if content.destination is None or not content.destination.is_webhook:
            return None
        subscription = documents.engine_subscription(topic, resource_id, content, documents.AWAITING)
        question = await self._handshakes.ask(subscription, call.base_url, call.now)
        has_agreed = (
            existing is not None and existing.confirmed and existing.endpoint == subscription.endpoint
        )
        return replace(question, agreed=question.agreed or has_agreed)

    async def _check_local(self, call: ArmCall, destination: DestinationForm | None) -> None:
        """Refuse a destination of this server that does not exist, or is not the caller's."""
        if destination is not None and destination.protocol == "queue":
            name = queue_at(destination.endpoint)
            is_permitted = name is not None and call.caller.account in (None, name.account)
            if name is None or not is_permitted or await self._engine.resources.queues.get(name) is None:
                raise invalid(f"The queue '{destination.endpoint}' does not exist at this server.")
        if destination is not None and destination.protocol == "topic":
            resource = ArmId.parse(destination.endpoint)
            if resource is None or await self._sources.topic(resource) is None:
                raise invalid(f"The namespace topic '{destination.endpoint}' does not exist.")

    # ---- show and remove ---------------------------------------------------------------------------------------

    async def get(self, call: ArmCall) -> Response:
        """Show an event subscription."""
        source, topic, subscription = await self._get_existing(call)
        body = self._body(call, source, topic, subscription)
        return json_answer(body, headers=_retry_headers(source, body))

    async def delete(self, call: ArmCall) -> Response:
        """Remove an event subscription, and a domain topic with its last."""
        source = await self._event_source(call)
        topic = await self._sources.topic(source.id)
        if topic is not None:
            subscription = await self._stored_subscription(call, topic)
            if subscription is not None:
                topic_goes_too = await self._sources.is_removed_with_its_last(topic)
                await self._subscribers.remove(subscription, topic_goes_too=topic_goes_too)
                self._handshakes.post_deletion(subscription, call.now)
        return empty_answer(HTTPStatus.NO_CONTENT)

    async def full_url(self, call: ArmCall) -> Response:
        """A webhook's URL with its query, which may be a secret."""
        return json_answer({"endpointUrl": (await self._destination(call)).get("endpointUrl")})

    async def delivery_attributes(self, call: ArmCall) -> Response:
        """The headers of deliveries, secrets included."""
        return json_answer({"value": (await self._destination(call)).get(MAPPINGS) or []})

    async def list(self, call: ArmCall) -> Response:
        """The event subscriptions of one source."""
        source = await self._event_source(call)
        topic = await self._sources.topic_or_new(source.id)

        async def fetch(after: str, limit: int) -> Sequence[Subscription]:
            return await self._engine.resources.subscriptions.of(topic.name, after, limit)

        return await paging.page(
            call,
            fetch,
            lambda subscription: subscription.key,
            lambda subscription: listed_name(subscription, call.now),
            lambda subscription: self._body(call, source, topic, subscription),
        )

    # ---- find --------------------------------------------------------------------------------------------------

    async def _event_source(self, call: ArmCall) -> _EventSource:
        """The event source that the path names; its id stands there as `scope` or, around nested ones, as `parent`."""
        if "namespace" in call.params:
            topic = call.resource(PROVIDER, "namespaces", "topics")
            return _EventSource(topic, NamespaceForm(), topic)
        text = call.params.get("scope") or call.params["parent"]
        path_id, path = ArmId.parse(text), f"/{text.lstrip('/')}"
        if path_id is not None and path_id.type == NAMESPACE_TOPIC:
            raise invalid(f"Event subscriptions of '{path}' are created at '{path}/eventSubscriptions'.")
        source_id = await self._sources.resource(path_id, path)
        return _EventSource(source_id, SubscriptionForm(), path_id if "parent" in call.params else None)

    async def _stored_subscription(self, call: ArmCall, topic: Topic) -> Subscription | None:
        """The event subscription, also one that has expired and was not swept away yet."""
        subscription_id = names.subscription_id(call.params[_NAME])
        return await self._engine.resources.subscriptions.get_stored(topic.name, subscription_id)

    async def _get_existing(self, call: ArmCall) -> tuple[_EventSource, Topic, Subscription]:
        """The event subscription that the path names, with its source and topic; raises AzureError if there is none."""
        source = await self._event_source(call)
        topic = await self._sources.topic(source.id)
        if topic is None:
            raise no_such(source.id)
        subscription = await self._stored_subscription(call, topic)
        if subscription is None or documents.is_over(subscription, call.now):
            raise source.form.no_such(source.id, call.params[_NAME])
        return source, topic, subscription

    async def _destination(self, call: ArmCall) -> Mapping[str, Any]:
        """The properties of the destination; empty in queue mode."""
        _, _, subscription = await self._get_existing(call)
        properties: Mapping[str, Any] = (
            documents.destination_of(documents.properties_of(subscription)).get("properties") or {}
        )
        return properties

    def _body(
        self, call: ArmCall, source: _EventSource, topic: Topic, subscription: Subscription
    ) -> dict[str, Any]:
        return source.form.to_document(
            subscription, topic.attributes[settings.ID], source.nested_in, call.now
        )


def listed_name(subscription: Subscription, now: int) -> str | None:
    """An event subscription's name in lists; None: it has expired, or is a dead-letter store beside one."""
    if names.is_dead_letter_store(subscription.id) or documents.is_over(subscription, now):
        return None
    return subscription.attributes[settings.ID].rpartition("/")[2]


def _retry_headers(source: _EventSource, body: Mapping[str, Any]) -> Mapping[str, str]:
    """Headers that let a client ask again in a second for what awaits an action: by itself it does so twice a minute."""
    is_awaiting = body["properties"]["provisioningState"] == documents.AWAITING
    return {"Retry-After": "1"} if is_awaiting and source.form.in_steps else {}
