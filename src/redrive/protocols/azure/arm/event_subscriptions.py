"""Event subscriptions: made, shown, changed and removed, in the extension form and the nested ones.

Both forms name the same object: `{topic}/providers/Microsoft.EventGrid/eventSubscriptions/{name}` and
`{topic}/eventSubscriptions/{name}`; it is shown under the id that it was asked for by.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from redrive.engine.engine import Engine
from redrive.model.topic import Subscription, Topic
from redrive.protocols.azure.arm import event_documents, fields, paging
from redrive.protocols.azure.arm.call import ArmCall, Verb, begun, check_theirs
from redrive.protocols.azure.arm.delivery_attributes import MAPPINGS
from redrive.protocols.azure.arm.destinations import Destination, EndpointResolver, queue_at
from redrive.protocols.azure.arm.event_documents import Accepted
from redrive.protocols.azure.arm.event_sources import NAMESPACE_TOPIC, EventSources
from redrive.protocols.azure.arm.fields import Document
from redrive.protocols.azure.arm.publishers import no_such
from redrive.protocols.azure.arm.subscribers import Subscribers
from redrive.protocols.azure.eventgrid import names, settings
from redrive.protocols.azure.handshake import Handshakes, Question
from redrive.protocols.azure.wire.answers import empty_answer, json_answer
from redrive.protocols.azure.wire.arm_id import ArmId
from redrive.protocols.azure.wire.errors import AzureError, invalid, not_found
from redrive.protocols.http import Response

EXTENSION: Final = "providers/Microsoft.EventGrid/eventSubscriptions"
_NAME: Final = "eventSubscription"


class EventSubscriptionOperations:
    """What is done to event subscriptions."""

    def __init__(
        self,
        engine: Engine,
        subscribers: Subscribers,
        sources: EventSources,
        handshakes: Handshakes,
        resolve: EndpointResolver,
    ) -> None:
        """Do it through this engine.

        Args:
            engine: Keeps them.
            subscribers: Writes and removes them.
            sources: What they are made at.
            handshakes: Asks endpoints whether they agree.
            resolve: What stands behind the resource ids of destinations.
        """
        self._engine = engine
        self._subscribers = subscribers
        self._sources = sources
        self._handshakes = handshakes
        self._resolve = resolve

    @property
    def routes(self) -> Mapping[str, Verb]:
        """See `Operations.routes`; both forms take whatever is before them, so they come after all others."""
        routes: dict[str, Verb] = {}
        for several in (f"/{{scope...}}/{EXTENSION}", "/{parent...}/eventSubscriptions"):
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
        """Make it, or replace it: its endpoint is asked whether it agrees, in either case."""
        event_documents.check_name(call.params[_NAME])
        resource = await self._resource(call)
        topic = await self._sources.wanted(resource)
        existing = await self._existing(call, topic)
        given = fields.part(call.document, "properties") or {}
        return await self._write(call, topic, existing, given)

    async def patch(self, call: ArmCall) -> Response:
        """Change some of it; here the document has no `properties`."""
        topic, existing = await self._found(call)
        change = call.document
        given = event_documents.patched(event_documents.properties_of(existing), change)
        return await self._write(call, topic, existing, given)

    async def _write(
        self, call: ArmCall, topic: Topic, existing: Subscription | None, given: Document
    ) -> Response:
        before = {} if existing is None else event_documents.properties_of(existing)
        wanted = event_documents.accepted(given, before, topic, self._resolve, call.now)
        check_theirs(call, *event_documents.named(wanted.properties))
        await self._check_local(call, wanted.destination)
        resource_id = f"{topic.attributes[settings.ID]}/{EXTENSION}/{call.params[_NAME]}"
        question = await self._agreed(call, topic, existing, wanted, resource_id)
        topic = await self._sources.ensured(topic)
        state = event_documents.SUCCEEDED if question is None else event_documents.AWAITING
        ends_at = 0 if question is None else question.ends_at
        made = event_documents.subscription(topic, resource_id, wanted, state, ends_at)
        written = await self._subscribers.write(made)
        if question is not None:
            written = await self._handshakes.remember(question, written)
        shown = begun(self._shown(call, topic, written), "Creating" if existing is None else "Updating")
        return json_answer(shown, HTTPStatus.CREATED, _soon(shown))

    async def _agreed(
        self, call: ArmCall, topic: Topic, existing: Subscription | None, wanted: Accepted, resource_id: str
    ) -> Question | None:
        """None: nobody has to agree, or has agreed; else what is still to be answered.

        An endpoint that agreed once needs no second action by hand when something else is changed.
        """
        if not wanted.destination.is_webhook:
            return None
        asked = event_documents.subscription(topic, resource_id, wanted, event_documents.AWAITING, 0)
        question = await self._handshakes.ask(asked, call.base_url, call.now)
        agreed = existing is not None and existing.confirmed and existing.endpoint == asked.endpoint
        return None if agreed else question

    async def _check_local(self, call: ArmCall, destination: Destination) -> None:
        """What a destination names of this server has to stand."""
        if destination.protocol == "queue":
            name = queue_at(destination.endpoint)
            permitted = name is not None and call.caller.account in (None, name.account)
            if name is None or not permitted or await self._engine.resources.queues.get(name) is None:
                raise invalid(f"The queue '{destination.endpoint}' does not exist at this server.")
        if destination.protocol == "topic":
            resource = ArmId.parse(destination.endpoint)
            topic = None if resource is None else names.topic_name(resource)
            if topic is None or await self._engine.resources.topics.get(topic) is None:
                raise invalid(f"The namespace topic '{destination.endpoint}' does not exist.")

    # ---- show and remove ---------------------------------------------------------------------------------------

    async def get(self, call: ArmCall) -> Response:
        """Show it."""
        topic, found = await self._found(call)
        return json_answer(shown := self._shown(call, topic, found), headers=_soon(shown))

    async def delete(self, call: ArmCall) -> Response:
        """Remove it, and a domain topic with the last."""
        resource = await self._resource(call)
        topic = await self._sources.topic(resource)
        if topic is not None:
            found = await self._existing(call, topic)
            if found is not None:
                await self._subscribers.remove(found)
                await self._sources.cleared(topic)
                self._handshakes.farewell(found, call.now)
        return empty_answer(HTTPStatus.NO_CONTENT)

    async def full_url(self, call: ArmCall) -> Response:
        """A webhook's URL with its query, which may be a secret."""
        _, found = await self._found(call)
        destination = event_documents.destination_of(event_documents.properties_of(found))
        return json_answer({"endpointUrl": destination["properties"].get("endpointUrl")})

    async def delivery_attributes(self, call: ArmCall) -> Response:
        """The headers of its deliveries, secrets included."""
        _, found = await self._found(call)
        destination = event_documents.destination_of(event_documents.properties_of(found))
        return json_answer({"value": destination["properties"].get(MAPPINGS) or []})

    async def list(self, call: ArmCall) -> Response:
        """Those of one source."""
        resource = await self._resource(call)
        topic = await self._sources.topic(resource)

        async def fetch(after: str, limit: int) -> Sequence[Subscription]:
            if topic is None:
                return ()
            return await self._engine.resources.subscriptions.of(topic.name, after, limit)

        if topic is None:
            await self._sources.wanted(resource)
        return await paging.page(
            call,
            fetch,
            lambda one: one.key,
            lambda one: listed_name(one, call.now),
            lambda one: self._shown(call, topic, one),
        )

    # ---- where -------------------------------------------------------------------------------------------------

    async def _resource(self, call: ArmCall) -> ArmId:
        scope, spelt = _scope(call)
        if scope is not None and scope.type == NAMESPACE_TOPIC:
            raise invalid(f"Event subscriptions of '{spelt}' are made at '{spelt}/eventSubscriptions'.")
        return await self._sources.resource(scope, spelt)

    async def _existing(self, call: ArmCall, topic: Topic) -> Subscription | None:
        found = await self._engine.resources.subscriptions.get(
            topic.name, names.subscription_id(call.params[_NAME])
        )
        return None if found is None or is_over(found, call.now) else found

    async def _found(self, call: ArmCall) -> tuple[Topic, Subscription]:
        resource = await self._resource(call)
        topic = await self._sources.topic(resource)
        if topic is None:
            raise no_such(resource)
        found = await self._existing(call, topic)
        if found is None:
            raise _no_such_subscription(call, resource)
        return topic, found

    def _shown(self, call: ArmCall, topic: Topic | None, found: Subscription) -> Mapping[str, Any]:
        scope, _ = _scope(call)
        resource_id = found.attributes[settings.ID]
        topic_id = (
            resource_id.partition(f"/{EXTENSION}")[0] if topic is None else topic.attributes[settings.ID]
        )
        kind = event_documents.TYPE
        if scope is not None and "scope" not in call.params:
            resource_id = scope.child("eventSubscriptions", resource_id.rpartition("/")[2]).text
            kind = "/".join((scope.provider, *scope.parts[::2], "eventSubscriptions"))
        return event_documents.shown(found, topic_id, call.now, resource_id, kind)


def _soon(shown: Mapping[str, Any]) -> Mapping[str, str]:
    """Who waits for an action by hand asks again in a second: by itself a client does so twice a minute."""
    awaiting = shown["properties"]["provisioningState"] == event_documents.AWAITING
    return {"Retry-After": "1"} if awaiting else {}


def is_over(found: Subscription, now: int) -> bool:
    """Whether an event subscription has expired, though it has not been swept away yet."""
    return found.expires_at is not None and now >= found.expires_at


def listed_name(found: Subscription, now: int) -> str | None:
    """An event subscription's name in lists; None: it has expired, or is a dead-letter store beside one."""
    if names.is_dead_letter_store(found.id) or is_over(found, now):
        return None
    return found.attributes[settings.ID].rpartition("/")[2]


def _scope(call: ArmCall) -> tuple[ArmId | None, str]:
    """What a call is about, and how it was spelt."""
    spelt = call.params.get("scope") or call.params["parent"]
    return ArmId.parse(spelt), f"/{spelt.lstrip('/')}"


def _no_such_subscription(call: ArmCall, resource: ArmId) -> AzureError:
    return not_found(f"The event subscription '{call.params[_NAME]}' of '{resource.text}' was not found.")
