"""Event Grid but for its sockets, in memory, with a resource of each kind and something waiting in it."""

import itertools
import logging
import os
import random
import shutil
from collections.abc import Awaitable, Mapping
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Final

import orjson

from redrive.access.keys import AccessKey, Keyring
from redrive.access.secret import InstallationSecret
from redrive.azure import handshake
from redrive.azure.arm.event_sources import EventSources
from redrive.azure.arm.insights import Insights
from redrive.azure.arm.service import Arm, build_operations
from redrive.azure.arm.storage import StorageAccounts, StorageOperations
from redrive.azure.arm.subscribers import Subscribers
from redrive.azure.entra import Entra, WebhookTokens
from redrive.azure.eventgrid import names
from redrive.azure.eventgrid.credentials import PublisherCredentials
from redrive.azure.eventgrid.dialect import EventGridDeliveryProfile
from redrive.azure.eventgrid.measures import FailureLog, Measures, PullMeasures
from redrive.azure.eventgrid.publishing import Publishers, TopicEndpoint
from redrive.azure.gateway import AzureGateway
from redrive.azure.handshake import Handshakes
from redrive.azure.namespaces.service import Namespaces
from redrive.azure.storage_keys import StorageKeys
from redrive.azure.wire.bearer import BearerAuthentication, BearerVerifier, TrustAllBearers
from redrive.endpoints.addresses import read_url
from redrive.endpoints.containers import BlobContainers
from redrive.engine.engine import Engine
from redrive.engine.ports import PushRequest, Runtime
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.http import Request, Response
from redrive.model.topic import Topic
from redrive.telemetry.telemetry import Telemetry
from tests.aws.sns.stage import signing_pair
from tests.fuzz.watched import Complaints, Watched

ACCOUNT: Final = "000000000000"
SUBSCRIPTION: Final = f"00000000-0000-0000-0000-{ACCOUNT}"
GROUP: Final = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg"
PROVIDER: Final = f"{GROUP}/providers/Microsoft.EventGrid"
STORAGE: Final = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/letters"
HOOK: Final = "https://hook.example/agrees"
BEARER, KEY, LOCK, SECOND_LOCK, QUESTION = "<bearer>", "<key>", "<lock>", "<second lock>", "<question>"
CLIENT, SECRET = "AKIAAAAAAAAAAAAAAAAA", "s" * 40

WEBHOOK: Final[Mapping[str, Any]] = {"endpointType": "WebHook", "properties": {"endpointUrl": HOOK}}
_ATTRIBUTES: Final = [
    {"name": f"x-{number}", "type": "Dynamic", "properties": {"sourceField": field}}
    for number, field in enumerate(("id", "data", "data.size", "subject", "number"))
]
LETTERS: Final[Mapping[str, Any]] = {
    "endpointType": "StorageBlob",
    "properties": {"resourceId": STORAGE, "blobContainerName": "dead"},
}
MAPPING: Final[Mapping[str, Any]] = {
    "inputSchemaMappingType": "Json",
    "properties": {
        "id": {"sourceField": "number"},
        "eventType": {"defaultValue": "Order.Placed"},
        "subject": {"sourceField": "about", "defaultValue": "orders"},
        "topic": {"sourceField": "place"},
    },
}
_WORLDS: Final = itertools.count()


class Webhook:
    """An endpoint that agrees, unless its URL says otherwise."""

    async def push(self, push_request: PushRequest) -> Attempt:
        """Answer as the URL says."""
        try:
            read_url(push_request.endpoint)
        except ValueError as error:
            return Attempt(AttemptResult.FAILED, Reason.CONNECTION, 0, str(error), 1)
        if "refuses" in push_request.endpoint:
            return Attempt(AttemptResult.REFUSED, Reason.CLIENT_ERROR, 400, "", 1)
        if "fails" in push_request.endpoint and push_request.headers.get("aeg-event-type") == "Notification":
            return Attempt(AttemptResult.FAILED, Reason.SERVER_ERROR, 500, "", 1)
        return Attempt(
            AttemptResult.DELIVERED, Reason.ACCEPTED, 200, _agreement(push_request), 1, _leave(push_request)
        )

    async def close(self) -> None:
        """Nothing is open."""


class GridWorld(Watched):
    """Azure's services on a store in memory, on a clock that stands."""

    waits_ms = 121_000

    def __init__(self, *, secured: bool) -> None:
        super().__init__()
        runtime = Runtime(self._clock, random.Random(7), "node")
        webhook = Webhook()
        self._tokens = WebhookTokens(self._clock, signing_pair(), "http://localhost")
        endpoints: dict[str, Any] = dict.fromkeys(("http", "https", "blob", "amqp", "storage-queue"), webhook)
        profiles = {names.DIALECT: EventGridDeliveryProfile(self._store.notes, self._tokens, str)}
        self.engine = Engine(self._store, runtime, profiles, endpoints)
        endpoints["topic"] = TopicEndpoint(self.engine.resources.topics)
        self.engine.add_endpoint("topic", endpoints["topic"])
        self._telemetry = Telemetry(
            self._store,
            self._clock,
            self.engine.resources.queues,
            self.engine.resources.topics,
            _nothing_archived,
            self.engine.resources.subscriptions.of_backlog,
            simulated=True,
        )
        failures = FailureLog(self._telemetry.logs, "stream", "local")
        self._measures = Measures(self._telemetry.add, failures)
        for listener, hears in self._measures.listeners():
            self.engine.add_listener(listener, *hears)
        self.engine.add_listener(PullMeasures(self._measures.counter))
        self._keyring = Keyring(self._store, self._clock)
        self._blobs = (
            Path(gettempdir()) / f"redrive-fuzz-{os.getpid()}-{next(_WORLDS)}"
        )  # made when it is needed
        self.arm: Arm
        self.gateway = self._gateway(runtime, endpoints, secured=secured)
        self.complaints = Complaints()

    def _gateway(self, runtime: Runtime, endpoints: Mapping[str, Any], *, secured: bool) -> AzureGateway:
        engine, clock = self.engine, self._clock
        authentication: BearerAuthentication = (
            BearerVerifier(self._keyring, clock) if secured else TrustAllBearers()
        )
        handshakes = Handshakes(engine, endpoints, self._tokens, clock)
        sources = EventSources(engine, Subscribers(engine))
        storage = StorageOperations(
            StorageAccounts(engine),
            BlobContainers(str(self._blobs)),
            StorageKeys(InstallationSecret(b"s" * 32)),
            _where,
        )
        insights = Insights(self._store, self._telemetry.flush, sources.resource)
        self.arm = Arm(
            clock,
            authentication,
            build_operations(engine, handshakes, _where, [insights, storage]),
            None,
            engine.resources.documents,
        )
        credentials = PublisherCredentials(authentication, clock, required=secured)
        services = [
            Publishers(engine, credentials, self._measures),
            Namespaces(engine, credentials, self._measures, InstallationSecret(b"s" * 32)),
            self.arm,
            handshakes,
            Entra(clock, authentication, None, self._tokens),
        ]
        return AzureGateway(runtime, services)

    async def open(self) -> None:
        """Make a resource of each kind, subscribe to all of them, and hold events under locks."""
        logging.getLogger("redrive").addHandler(self.complaints)
        await self.engine.open()
        await self._keyring.add(AccessKey(CLIENT, SECRET, ACCOUNT, 0))
        form = f"grant_type=client_credentials&client_id={CLIENT}&client_secret={SECRET}".encode()
        signed_in = await self._ask("POST", f"/{SUBSCRIPTION}/oauth2/v2.0/token", form)
        self.known[BEARER] = signed_in["access_token"]
        await self._make_publishers()
        await self._make_subscribers()
        self.known[KEY] = (await self._ask("POST", f"{PROVIDER}/topics/orders/listKeys"))["key1"]
        batch = [
            {"specversion": "1.0", "id": str(number), "source": "/s", "type": "t"} for number in range(4)
        ]
        topic = f"/eventgrid/{SUBSCRIPTION}/rg/space/topics/stars"
        await self._ask("POST", f"{topic}:publish", batch, "application/cloudevents-batch+json")
        received = await self._ask("POST", f"{topic}/eventsubscriptions/pulled:receive?maxEvents=2")
        for name, one in zip((LOCK, SECOND_LOCK), received["value"], strict=True):
            self.known[name] = one["brokerProperties"]["lockToken"]
        waiting = await self._ask(
            "GET", f"{PROVIDER}/topics/orders/providers/Microsoft.EventGrid/eventSubscriptions/waits"
        )
        assert waiting["properties"]["provisioningState"] == "AwaitingManualAction", waiting
        (asked,) = await self.engine.resources.documents.find(handshake.QUESTION, "")
        self.known[QUESTION] = asked.id
        await self.settle()

    async def _make_publishers(self) -> None:
        located = {"location": "local"}
        await self._ask("PUT", GROUP, located)
        for kind in ("topics", "domains"):
            for name, schema in _SCHEMAS.items():
                properties = {"inputSchema": schema}
                if schema == "CustomEventSchema":
                    properties["inputSchemaMapping"] = MAPPING
                await self._ask("PUT", f"{PROVIDER}/{kind}/{name}", {**located, "properties": properties})
        await self._ask("PUT", f"{PROVIDER}/domains/orders/topics/first")
        await self._ask("PUT", f"{PROVIDER}/namespaces/space", located)
        await self._ask("PUT", f"{PROVIDER}/namespaces/space/topics/stars", {})
        system = {**located, "properties": {"source": STORAGE}}
        await self._ask("PUT", f"{PROVIDER}/systemTopics/blobs", system)
        deployment = {"properties": {"template": {"resources": []}}}
        await self._ask("PUT", f"{GROUP}/providers/Microsoft.Resources/deployments/empty", deployment)

    async def _make_subscribers(self) -> None:
        destination = {"endpointUrl": f"{HOOK}?fails", "deliveryAttributeMappings": _ATTRIBUTES}
        failing = {"endpointType": "WebHook", "properties": destination}
        watcher = {"destination": failing, "deadLetterDestination": LETTERS}
        for parent in (
            "topics/orders",
            "topics/clouds",
            "topics/customs",
            "domains/orders",
            "domains/orders/topics/first",
            "systemTopics/blobs",
        ):
            await self._ask("PUT", f"{PROVIDER}/{parent}/eventSubscriptions/watcher", {"properties": watcher})
        waits = {"endpointType": "WebHook", "properties": {"endpointUrl": f"{HOOK}?later"}}
        await self._ask(
            "PUT",
            f"{PROVIDER}/topics/orders/eventSubscriptions/waits",
            {"properties": {"destination": waits}},
        )
        pulled = {"deliveryConfiguration": {"deliveryMode": "Queue"}}
        pushed = {"deliveryConfiguration": {"deliveryMode": "Push", "push": {"destination": WEBHOOK}}}
        for name, properties in (("pulled", pulled), ("pushed", pushed)):
            path = f"{PROVIDER}/namespaces/space/topics/stars/eventSubscriptions/{name}"
            await self._ask("PUT", path, {"properties": properties})

    async def close(self) -> None:
        """Stop what is under way."""
        shutil.rmtree(self._blobs, ignore_errors=True)
        logging.getLogger("redrive").removeHandler(self.complaints)
        await super().close()

    def handle(self, request: Request) -> Awaitable[Response]:
        """See `Watched.handle`."""
        return self.gateway.answer(request)

    async def _ask(
        self, method: str, target: str, body: Any = b"", content_type: str = "application/json"
    ) -> Any:
        """Ask for something that has to succeed; its JSON."""
        path, _, query = target.partition("?")
        content = body if isinstance(body, bytes) else orjson.dumps(body)
        headers = {"host": "localhost", "content-type": content_type}
        if BEARER in self.known:
            headers["authorization"] = f"Bearer {self.known[BEARER]}"
        response = await self.answer(Request(method, path, query, headers, content))
        assert response.status < 300, (method, target, response.body)
        return orjson.loads(response.body or b"null")


_SCHEMAS: Final = {
    "orders": "EventGridSchema",
    "clouds": "CloudEventSchemaV1_0",
    "customs": "CustomEventSchema",
}


async def _nothing_archived(_: Topic) -> tuple[int, int]:
    return (0, 0)


def _where(resource: str) -> str | None:
    """The settings know where storage accounts and hubs are, and a function."""
    if "Microsoft.Web" in resource:
        return "https://functions.example"
    known = ("Microsoft.EventHub", "Microsoft.ServiceBus", "Microsoft.Storage")
    return "UseDevelopmentStorage=true" if any(one in resource for one in known) else None


def _agreement(push_request: PushRequest) -> str:
    """The code that was asked for, unless the URL says that somebody will come back to it."""
    if (
        "later" in push_request.endpoint
        or push_request.headers.get("aeg-event-type") != "SubscriptionValidation"
    ):
        return ""
    code = orjson.loads(push_request.body)[0]["data"]["validationCode"]
    return orjson.dumps({"validationResponse": code}).decode()


def _leave(push_request: PushRequest) -> tuple[tuple[str, str], ...]:
    return () if "later" in push_request.endpoint else (("webhook-allowed-origin", "*"),)
