"""A stage for Event Grid: its profile on an engine in memory, endpoints that answer as told and keep what they got."""

import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

import orjson

from redrive.access.signing_pair import SigningPair, make_pair
from redrive.azure.entra import WebhookTokens
from redrive.azure.eventgrid import names, settings
from redrive.azure.eventgrid.dialect import EventGridDeliveryProfile
from redrive.azure.eventgrid.published import PublishedEvent
from redrive.azure.wire.arm_id import ArmId
from redrive.engine.engine import Engine
from redrive.engine.ports import PushRequest, Runtime
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.queue import Queue
from redrive.model.topic import EVENTS, Publication, Subscription, Topic
from redrive.stores.sqlite.store import SqliteStore
from redrive.testing import VirtualClock
from tests.engine.stage import Memory

GROUP = ArmId("00000000-0000-0000-0000-000000000000", "rg", "Microsoft.EventGrid")
TOPIC = GROUP._replace(parts=("topics", "Orders"))
ACCOUNT = GROUP._replace(provider="Microsoft.Storage", parts=("storageAccounts", "letters"))
CONTAINER = f"{ACCOUNT.text}/blobServices/default/containers/dead"
DAY_MS = 24 * 3600 * 1000

EVENT: dict[str, Any] = {
    "id": "e-1",
    "subject": "/orders/1",
    "eventType": "Order.Placed",
    "eventTime": "2026-01-02T03:04:05Z",
    "data": {"size": 5},
    "dataVersion": "2.0",
}


def answer(
    status: int, result: AttemptResult = AttemptResult.FAILED, reason: Reason = Reason.SERVER_ERROR
) -> Attempt:
    return Attempt(result, reason, status, "", 1)


OK = answer(200, AttemptResult.DELIVERED, Reason.ACCEPTED)
BROKEN = answer(500)
GONE = answer(404, AttemptResult.REFUSED, Reason.CLIENT_ERROR)
WRITTEN = Attempt(
    AttemptResult.DELIVERED, Reason.ACCEPTED, 201, "", 1, (("etag", "0x1"), ("content-length", "7"))
)


def url_of_container(resource: str) -> str:
    """The URL of the one container, as the server's composition says it."""
    assert resource == CONTAINER
    return "http://redrive.test/_storage/letters/dead"


@dataclass
class Scripted:
    """Answers each push with the next attempt of its script, then with `otherwise`; its answers may be late."""

    clock: VirtualClock
    otherwise: Attempt
    script: deque[Attempt] = field(default_factory=deque)
    pushed: list[tuple[int, PushRequest]] = field(default_factory=list)
    takes_ms: int = 0

    async def push(self, push_request: PushRequest) -> Attempt:
        self.pushed.append((self.clock.now(), push_request))
        if self.takes_ms:
            await self.clock.sleep_until(self.clock.now() + self.takes_ms)
        return self.script.popleft() if self.script else self.otherwise

    async def close(self) -> None:
        pass

    @property
    def bodies(self) -> list[Any]:
        return [orjson.loads(push_request.body) for _, push_request in self.pushed]

    def seconds(self, since: int) -> list[float]:
        return [(at - since) / 1000 for at, _ in self.pushed]


BASE_URL = "https://redrive.example"


@cache
def signing_pair() -> SigningPair:
    """One key for all tests: making one takes up to 300 ms."""
    return make_pair(1_767_225_600_000)


class Stage:
    """An engine with Event Grid's profile, a web endpoint and a blob store."""

    def __init__(self, clock: VirtualClock, rng: random.Random) -> None:
        self.clock = clock
        self.web = Scripted(clock, OK)
        self.blobs = Scripted(clock, WRITTEN)
        self.forwarded = Scripted(clock, OK)
        self.memory = Memory()
        self.tokens = WebhookTokens(clock, signing_pair(), BASE_URL)
        store = SqliteStore(None)
        self.engine = Engine(
            store,
            Runtime(clock, rng, "a"),
            {names.DIALECT: EventGridDeliveryProfile(store.notes, self.tokens, url_of_container)},
            {"https": self.web, "http": self.web, "blob": self.blobs, "topic": self.forwarded},
            [self.memory],
        )

    async def topic(self, resource: ArmId = TOPIC, **properties: Any) -> Topic:
        name = names.topic_name(resource)
        assert name is not None
        attributes = {"id": resource.text, "properties": orjson.dumps(properties).decode()}
        return await self.engine.resources.topics.create(Topic(0, name, names.DIALECT, attributes=attributes))

    async def subscribe(
        self,
        topic: Topic,
        name: str = "Watcher",
        *,
        kind: str = "WebHook",
        protocol: str = "https",
        endpoint: str = "https://example.org/hook",
        destination: Mapping[str, Any] | None = None,
        wants: Mapping[str, Any] | None = None,
        dead_letters: bool = False,
        **properties: Any,
    ) -> Subscription:
        """An event subscription as the resource manager's facade makes it."""
        properties["destination"] = {"endpointType": kind, "properties": dict(destination or {})}
        one = names.subscription_id(name)
        queue = names.dead_letter_queue(topic.name, one) if dead_letters else None
        resource = f"{topic.attributes[settings.ID]}/eventSubscriptions/{name}"
        if queue is not None:
            properties["deadLetterDestination"] = {
                "endpointType": "StorageBlob",
                "properties": {"resourceId": ACCOUNT.text, "blobContainerName": "dead"},
            }
            await self.engine.resources.queues.create(Queue(0, queue, retention_ms=14 * DAY_MS))
            store = Subscription(
                names.dead_letter_store(one),
                topic.name,
                0,
                topic.name.account,
                "blob",
                CONTAINER,
                confirmed=False,
                attributes={"id": resource, "properties": orjson.dumps(properties).decode()},
            )
            await self.engine.resources.subscriptions.create(store)
        wanted = Subscription(
            one,
            topic.name,
            0,
            topic.name.account,
            protocol,
            endpoint,
            filter_text=None if wants is None else orjson.dumps(wants).decode(),
            filter_language=EVENTS,
            dead_letter=queue,
            attributes={"id": resource, "properties": orjson.dumps(properties).decode()},
        )
        return await self.engine.resources.subscriptions.create(wanted)

    async def publish(
        self,
        topic: Topic,
        *events: Mapping[str, Any],
        schema: str = settings.EVENT_GRID_SCHEMA,
        mapped: Mapping[str, str] | None = None,
    ) -> None:
        """Publish events as the endpoint for publishers does."""
        texts = [orjson.dumps(event).decode() for event in events]
        await self.publish_text(topic, *texts, schema=schema, mapped=mapped)

    async def publish_text(
        self, topic: Topic, *texts: str, schema: str, mapped: Mapping[str, str] | None = None
    ) -> None:
        """Publish events word for word."""
        envelope = PublishedEvent(schema, topic.attributes["id"], self.clock.now(), mapped or {}).envelope()
        publications = [self._publication(text, envelope) for text in texts]
        await self.engine.messages.publish(topic, publications)

    def _publication(self, body: str, envelope: bytes) -> Publication:
        return Publication(self.engine.runtime.message_id(), body, {}, {}, envelope, len(body))

    async def pass_time(self, milliseconds: int) -> None:
        await self.clock.sleep_until(self.clock.now() + milliseconds)

    @staticmethod
    def timestamp_ms(text: str) -> int:
        """A moment as Event Grid writes it, in ms."""
        return round(datetime.fromisoformat(text[:23] + "+00:00").timestamp() * 1000)

    @property
    def letters(self) -> list[Any]:
        """The dead letters in the blobs."""
        return [letter for blob in self.blobs.bodies for letter in blob]
