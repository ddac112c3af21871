"""Administrators at work on a server: each makes, changes and deletes what is its own, one call after the other.

They speak SQS's JSON, SNS's Query and Azure's resource manager, and note of each resource whether it stands, by the key
of its document; a call without an answer leaves that open.
"""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

import orjson

from redrive.azure.eventgrid import names
from redrive.azure.wire.arm_id import ArmId
from tests.crash.wire import Caller, Lost, Refused
from tests.simulation.administrators import Told

ACCOUNT: Final = "000000000000"
REGION: Final = "us-east-1"
NAMES: Final = 2  # of each kind an administrator has so many, so that it often meets what it made before
AZURE: Final = "00000000-0000-0000-0000-000000000000"
_PROVIDERS: Final = f"/subscriptions/{AZURE}/resourceGroups/rg/providers"
_LETTERS: Final = {
    "endpointType": "StorageBlob",
    "properties": {
        "resourceId": f"{_PROVIDERS}/Microsoft.Storage/storageAccounts/letters",
        "blobContainerName": "dead",
    },
}
_FORM: Final = (  # signed by nobody: the server asks nobody who he is, but anonymous callers may not unsubscribe
    "Content-Type: application/x-www-form-urlencoded\r\nAuthorization: AWS4-HMAC-SHA256"
    f" Credential={ACCOUNT}/20260101/{REGION}/sns/aws4_request, SignedHeaders=host, Signature=none"
)
_JSON: Final = "Content-Type: application/json"
_ARN: Final = re.compile(rb"<(?:Subscription|Endpoint|PlatformApplication)Arn>([^<]+)<")
_UNAVAILABLE: Final = 503
_NOT_FOUND: Final = 404
_OK: Final = 299


@dataclass
class Office:
    """Administrators at work on a server, and the answers they were given.

    Attributes:
        told: What stands, by the keys of topics, queues and subscriptions.
        inbox: The ARN of a queue that stands all the time.
        due: The bodies that the inbox must get: acknowledged while a subscription of it stood.
        acknowledged: How many calls were; after `stop_after` of them `enough` is set.
    """

    port: int
    rng: random.Random
    told: Told
    inbox: str
    stop_after: int
    acknowledged: int = 0
    due: set[str] = field(default_factory=set)
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Work until the server is gone."""
        administrators: Sequence[Administrator] = (
            *(Queues(self, name) for name in ("q1", "q2")),
            *(Topics(self, name) for name in ("t1", "t2", "t3")),
            *(Grid(self, name) for name in ("g1", "g2")),
            *(Namespaces(self, "n1"), Devices(self, "d1")),
        )
        async with asyncio.TaskGroup() as group:
            for administrator in administrators:
                group.create_task(administrator.work())


class Administrator:
    """One of them; `actions` are its calls, drawn one after another."""

    def __init__(self, office: Office, name: str) -> None:
        self.office = office
        self.name = name
        self.told = office.told
        self._caller = Caller(office.port)

    @property
    def actions(self) -> Sequence[Callable[[], Awaitable[None]]]:
        raise NotImplementedError

    async def work(self) -> None:
        """Go on until the server is gone."""
        try:
            while True:
                await self.office.rng.choice(self.actions)()
        except Lost:
            self.office.enough.set()
        finally:
            await self._caller.close()

    def own(self, kind: str = "") -> str:
        """One of the names of its own."""
        return f"{self.name}{kind}{self.office.rng.randrange(NAMES)}"

    async def sqs(
        self, told: dict[str, bool | None], key: str, stands: bool, operation: str, **params: Any
    ) -> bool:
        """Make a call of SQS's, and note whether what the key stands for is there then; False: there was none."""
        told[key] = None
        try:
            await self._caller.call(operation, **params)
        except Refused as refusal:
            if refusal.status == _UNAVAILABLE:
                raise Lost(operation) from refusal
            if refusal.shape != "QueueDoesNotExist":
                raise
            stands = False
        told[key] = stands
        self._count()
        return stands

    async def sns(self, action: str, **params: str) -> tuple[int, bytes]:
        """Make a call of SNS's; status and XML."""
        body = urlencode({"Action": action, "Version": "2010-03-31", **params}).encode()
        return await self._asked("POST", "/", body, _FORM)

    async def arm(self, method: str, path: str, document: Any = None) -> int:
        """Make a call of the resource manager's; its status."""
        body = b"" if document is None else orjson.dumps(document)
        return (await self._asked(method, f"{path}?api-version=2025-02-15", body, _JSON))[0]

    async def _asked(self, method: str, path: str, body: bytes, headers: str) -> tuple[int, bytes]:
        status, answer = await self._caller.ask(method, path, body, headers)
        if status == _UNAVAILABLE:
            raise Lost(path)
        if status > _OK and status != _NOT_FOUND and b"already exists" not in answer:
            raise AssertionError(f"{method} {path} {body!r}: {status} {answer!r}")
        self._count()
        return status, answer

    def _count(self) -> None:
        self.office.acknowledged += 1
        if self.office.acknowledged >= self.office.stop_after:
            self.office.enough.set()


class Queues(Administrator):
    """Keeps queues of SQS."""

    @property
    def actions(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return (self._make, self._make, self._change, self._delete)

    async def _make(self) -> None:
        name = self.own()
        await self.sqs(self.told.queues, _key(name), True, "CreateQueue", QueueName=name)

    async def _change(self) -> None:
        name = self.own()
        known = self.told.queues.get(_key(name))
        attributes = {"DelaySeconds": str(self.office.rng.randrange(900))}
        stands = await self.sqs(
            self.told.queues,
            _key(name),
            True,
            "SetQueueAttributes",
            QueueUrl=_url(name),
            Attributes=attributes,
        )
        assert known in (None, stands), f"{name} was acknowledged as {known}, and is {stands}"

    async def _delete(self) -> None:
        name = self.own()
        await self.sqs(self.told.queues, _key(name), False, "DeleteQueue", QueueUrl=_url(name))


class Topics(Administrator):
    """Keeps topics of SNS with a subscription of the inbox each, and publishes to them."""

    def __init__(self, office: Office, name: str) -> None:
        super().__init__(office, name)
        self._subscribed: dict[str, str] = {}  # the subscription's ARN, by the topic's name
        self._published = 0

    @property
    def actions(self) -> Sequence[Callable[[], Awaitable[None]]]:
        makes = (self._make, self._subscribe, self._subscribe, self._change, self._unsubscribe, self._delete)
        return (*makes, self._publish, self._publish)

    async def _make(self) -> None:
        name = self.own()
        self.told.topics[_key(name)] = None
        await self.sns("CreateTopic", Name=name)
        self.told.topics[_key(name)] = True

    async def _delete(self) -> None:
        name = self.own()
        self._forget(name)
        self.told.topics[_key(name)] = None
        await self.sns("DeleteTopic", TopicArn=_topic(name))
        self.told.topics[_key(name)] = False
        for key in self._subscriptions(name):
            self.told.subscriptions[key] = False

    async def _subscribe(self) -> None:
        name = self.own()
        for key in self._subscriptions(name):
            self.told.subscriptions[key] = None
        status, answer = await self.sns(
            "Subscribe",
            TopicArn=_topic(name),
            Protocol="sqs",
            Endpoint=self.office.inbox,
            ReturnSubscriptionArn="true",
        )
        if status <= _OK:
            arn = _arn(answer)
            self._subscribed[name] = arn
            self.told.subscriptions[_subscription_key(name, arn)] = True

    async def _change(self) -> None:
        for arn in list(self._subscribed.values())[:1]:
            attribute = {"AttributeName": "RawMessageDelivery", "AttributeValue": "true"}
            status, answer = await self.sns("SetSubscriptionAttributes", SubscriptionArn=arn, **attribute)
            assert status <= _OK, f"{arn} was acknowledged: {answer!r}"

    async def _unsubscribe(self) -> None:
        for name in list(self._subscribed)[:1]:
            arn = self._forget(name)
            await self.sns("Unsubscribe", SubscriptionArn=arn)
            self.told.subscriptions[_subscription_key(name, arn)] = False

    async def _publish(self) -> None:
        name = self.own()
        self._published += 1
        body = f"{name}-{id(self)}-{self._published}"
        status, _ = await self.sns("Publish", TopicArn=_topic(name), Message=body)
        if name in self._subscribed and status <= _OK:
            self.office.due.add(body)

    def _forget(self, name: str) -> str:
        """Nobody knows whether the topic's subscription stands; its ARN."""
        for key in self._subscriptions(name):
            self.told.subscriptions[key] = None
        return self._subscribed.pop(name, "")

    def _subscriptions(self, name: str) -> list[str]:
        beginning = f"{_key(name)}/"
        stands = self.told.subscriptions.items()
        return [key for key, standing in stands if key.startswith(beginning) and standing is not False]


class Grid(Administrator):
    """Keeps topics of Event Grid, domains, and event subscriptions with a dead-letter destination."""

    @property
    def actions(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return (
            *(self._make, self._subscribe, self._subscribe, self._unsubscribe, self._delete),
            *(self._make_domain, self._subscribe_in_domain, self._unsubscribe_in_domain),
        )

    def _topic(self) -> str:
        return f"{_PROVIDERS}/Microsoft.EventGrid/topics/{self.own('topic')}"

    def _domain_topic(self) -> str:
        return f"{_PROVIDERS}/Microsoft.EventGrid/domains/{self.name}domain/topics/{self.own('part')}"

    async def _make(self) -> None:
        await self.put(self.told.topics, self._topic(), {"location": "local"})

    async def _make_domain(self) -> None:
        path = f"{_PROVIDERS}/Microsoft.EventGrid/domains/{self.name}domain"
        await self.put(self.told.topics, path, {"location": "local"})

    async def _delete(self) -> None:
        path = self._topic()
        self._leave_open(path)
        await self.remove(self.told.topics, path)

    async def _subscribe(self) -> None:
        await self._put_subscription(self._topic())

    async def _unsubscribe(self) -> None:
        await self._delete_subscription(self._topic())

    async def _subscribe_in_domain(self) -> None:
        path = self._domain_topic()
        self.told.topics[topic_key(path)] = None
        if await self._put_subscription(path):
            self.told.topics[topic_key(path)] = True

    async def _unsubscribe_in_domain(self) -> None:
        path = self._domain_topic()
        self.told.topics[topic_key(path)] = None
        await self._delete_subscription(path)
        others = [key for key in self.told.subscriptions if key.startswith(f"{topic_key(path)}/")]
        if all(self.told.subscriptions[key] is False for key in others):
            self.told.topics[topic_key(path)] = False  # it goes with the last of them

    async def _put_subscription(self, source: str) -> bool:
        name = self.own("sub")
        destination = {"endpointType": "WebHook", "properties": {"endpointUrl": self.office.inbox}}
        properties: dict[str, Any] = {"destination": destination}
        if self.office.rng.random() < 0.7:
            properties["deadLetterDestination"] = _LETTERS
        path = f"{source}/providers/Microsoft.EventGrid/eventSubscriptions/{name}"
        key = f"{topic_key(source)}/{name}"
        return await self.put(self.told.subscriptions, path, {"properties": properties}, key)

    async def _delete_subscription(self, source: str) -> None:
        name = self.own("sub")
        path = f"{source}/providers/Microsoft.EventGrid/eventSubscriptions/{name}"
        await self.remove(self.told.subscriptions, path, f"{topic_key(source)}/{name}")

    def _leave_open(self, source: str) -> None:
        for key in self.told.subscriptions:
            if key.startswith(f"{topic_key(source)}/"):
                self.told.subscriptions[key] = None

    async def put(self, told: dict[str, bool | None], path: str, document: Any, key: str = "") -> bool:
        """Make a resource, or replace it; False: what it is made in does not stand."""
        key = key or topic_key(path)
        told[key] = None
        made = await self.arm("PUT", path, document) <= _OK
        told[key] = made
        return made

    async def remove(self, told: dict[str, bool | None], path: str, key: str = "") -> None:
        """Delete a resource."""
        key = key or topic_key(path)
        told[key] = None
        await self.arm("DELETE", path)
        told[key] = False


class Namespaces(Grid):
    """Keeps a namespace, its topics, and event subscriptions in queue mode: a queue of its own each."""

    @property
    def actions(self) -> Sequence[Callable[[], Awaitable[None]]]:
        makes = (self._make_namespace, self._make, self._subscribe, self._subscribe)
        return (*makes, self._unsubscribe, self._delete)

    def _topic(self) -> str:
        return f"{self._namespace}/topics/{self.own('topic')}"

    @property
    def _namespace(self) -> str:
        return f"{_PROVIDERS}/Microsoft.EventGrid/namespaces/{self.name}space"

    async def _make_namespace(self) -> None:
        await self.arm("PUT", self._namespace, {"location": "local"})

    async def _make(self) -> None:
        await self.put(self.told.topics, self._topic(), {"properties": {}})

    async def _put_subscription(self, source: str) -> bool:
        name = self.own("sub")
        queue: dict[str, Any] = {}
        if self.office.rng.random() < 0.5:
            queue["deadLetterDestinationWithResourceIdentity"] = {"deadLetterDestination": _LETTERS}
        mode = {"deliveryConfiguration": {"deliveryMode": "Queue", "queue": queue}}
        key = f"{topic_key(source)}/{name}"
        path = f"{source}/eventSubscriptions/{name}"
        return await self.put(self.told.subscriptions, path, {"properties": mode}, key)

    async def _delete_subscription(self, source: str) -> None:
        name = self.own("sub")
        path = f"{source}/eventSubscriptions/{name}"
        await self.remove(self.told.subscriptions, path, f"{topic_key(source)}/{name}")


class Devices(Administrator):
    """Keeps a platform application and its endpoints."""

    def __init__(self, office: Office, name: str) -> None:
        super().__init__(office, name)
        self._endpoints: list[str] = []

    @property
    def actions(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return (
            self._make,
            self._register,
            self._register,
            self._register,
            self._change,
            self._delete,
            self._end,
        )

    @property
    def _application(self) -> str:
        return f"arn:aws:sns:{REGION}:{ACCOUNT}:app/GCM/{self.name}"

    async def _make(self) -> None:
        credential = {"Attributes.entry.1.key": "PlatformCredential", "Attributes.entry.1.value": "secret"}
        await self.sns("CreatePlatformApplication", Name=self.name, Platform="GCM", **credential)

    async def _register(self) -> None:
        token = f"token{self.office.rng.randrange(20)}"
        status, answer = await self.sns(
            "CreatePlatformEndpoint", PlatformApplicationArn=self._application, Token=token
        )
        if status <= _OK:
            self._endpoints.append(_arn(answer))

    async def _change(self) -> None:
        if self._endpoints:
            entry = {"Attributes.entry.1.key": "CustomUserData", "Attributes.entry.1.value": "other"}
            await self.sns("SetEndpointAttributes", EndpointArn=self._endpoints[-1], **entry)
            entry["Attributes.entry.1.value"] = ""
            await self.sns("SetEndpointAttributes", EndpointArn=self._endpoints[-1], **entry)

    async def _delete(self) -> None:
        if self._endpoints:
            await self.sns("DeleteEndpoint", EndpointArn=self._endpoints.pop())

    async def _end(self) -> None:
        self._endpoints.clear()
        await self.sns("DeletePlatformApplication", PlatformApplicationArn=self._application)


def topic_key(path: str) -> str:
    """The key of the engine's topic of a resource of Event Grid's."""
    resource = ArmId.parse(path)
    assert resource is not None
    return names.topic_name_of(resource).key


def _key(name: str) -> str:
    return f"{ACCOUNT}/{REGION}/{name}"


def _url(name: str) -> str:
    return f"http://localhost/{ACCOUNT}/{name}"


def _topic(name: str) -> str:
    return f"arn:aws:sns:{REGION}:{ACCOUNT}:{name}"


def _arn(answer: bytes) -> str:
    found = _ARN.search(answer)
    assert found is not None, answer
    return found[1].decode()


def _subscription_key(name: str, arn: str) -> str:
    return f"{_key(name)}/{arn.rpartition(':')[2]}"
