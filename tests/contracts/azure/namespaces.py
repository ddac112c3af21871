"""A namespace in the words tests use, spoken by the clients people have: azure-eventgrid and azure-mgmt-eventgrid."""

import datetime as dt
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from azure.core.credentials import AzureKeyCredential
from azure.core.messaging import CloudEvent
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.eventgrid import EventGridConsumerClient, EventGridPublisherClient
from azure.mgmt.eventgrid import EventGridManagementClient, models

from tests.services.server import Server

SUBSCRIPTION: Final = "00000000-0000-0000-0000-000000000000"
GROUP: Final = "rg"
NAME: Final = "shop"
_PROVIDERS: Final = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers"
ACCOUNT: Final = f"{_PROVIDERS}/Microsoft.Storage/storageAccounts/letters"


class _NoCredential:
    def get_token(self, *scopes: str, **_: Any) -> Any:
        raise AssertionError("over plain HTTP nobody asks for a token")


def management(url: str, authentication: Any = None) -> EventGridManagementClient:
    """The resource manager's client, over plain HTTP and without a token, or with whatever the policy adds."""
    return EventGridManagementClient(
        _NoCredential(),
        SUBSCRIPTION,
        base_url=url,
        authentication_policy=authentication or SansIOHTTPPolicy(),
        retry_total=0,
    )


def make_container(server: Server, name: str = "dead") -> None:
    """Make a container for dead letters."""
    path = f"{ACCOUNT}/blobServices/default/containers/{name}?api-version=2023-05-01"
    status, answer = server.ask("PUT", path, b"{}")
    assert status in (200, 201), answer


@dataclass
class Shop:
    """The namespace `shop` with its topic `orders` and some subscriptions in queue mode."""

    server: Server
    management: Any = None
    _clients: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.management = management(self.server.url)
        self._clients.append(self.management)

    @property
    def endpoint(self) -> str:
        return f"{self.server.url}/eventgrid/{SUBSCRIPTION}/{GROUP}/{NAME}"

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def open(self, **topic: Any) -> None:
        """Make the namespace and its topic."""
        self.management.namespaces.begin_create_or_update(
            GROUP, NAME, models.Namespace(location="local")
        ).result()
        self.management.namespace_topics.begin_create_or_update(
            GROUP, NAME, "orders", models.NamespaceTopic(**topic)
        ).result()

    def subscribe(
        self,
        name: str = "billing",
        *,
        types: Sequence[str] | None = None,
        filters: Sequence[Any] | None = None,
        expires_at: dt.datetime | None = None,
        letters: bool = False,
        account: str = ACCOUNT,
        **queue: Any,
    ) -> Any:
        """Make an event subscription in queue mode."""
        if letters:
            queue["dead_letter_destination_with_resource_identity"] = models.DeadLetterWithResourceIdentity(
                dead_letter_destination=models.StorageBlobDeadLetterDestination(
                    resource_id=account, blob_container_name="dead"
                )
            )
        wanted = models.Subscription(
            delivery_configuration=models.DeliveryConfiguration(
                delivery_mode="Queue", queue=models.QueueInfo(**queue)
            ),
            filters_configuration=models.FiltersConfiguration(
                included_event_types=None if types is None else list(types),
                filters=None if filters is None else list(filters),
            ),
            expiration_time_utc=expires_at,
        )
        return self.management.namespace_topic_event_subscriptions.begin_create_or_update(
            GROUP, NAME, "orders", name, wanted
        ).result()

    def publisher(self, key: str = "any", topic: str = "orders") -> EventGridPublisherClient:
        client = EventGridPublisherClient(
            self.endpoint, AzureKeyCredential(key), namespace_topic=topic, retry_total=0
        )
        self._clients.append(client)
        return client

    def consumer(self, name: str = "billing", key: str = "any") -> EventGridConsumerClient:
        client = EventGridConsumerClient(
            self.endpoint,
            AzureKeyCredential(key),
            namespace_topic="orders",
            subscription=name,
            retry_total=0,
        )
        self._clients.append(client)
        return client

    def publish(self, *numbers: int) -> None:
        """Publish events whose data are these numbers."""
        self.publisher().send([placed(number) for number in numbers])

    def receive(self, name: str = "billing", limit: int = 100) -> list[Any]:
        """Receive the events that are available; the call waits for nothing, as there is something."""
        return list(self.consumer(name).receive(max_events=limit, max_wait_time=10))

    def receive_nothing(self, name: str = "billing") -> None:
        """There is nothing to be received in the next ten seconds."""
        assert self.waiting(lambda: self.consumer(name).receive(max_events=1, max_wait_time=10)) == []

    def waiting(self, call: Callable[[], Any]) -> Any:
        """Return the answer of a call that waits for the clock, which goes on meanwhile."""
        with ThreadPoolExecutor(1) as pool:
            answer: Future[Any] = pool.submit(call)
            while not answer.done():
                self.server.advance(1)
            return answer.result()


def placed(number: int, kind: str = "Order.Placed", **others: Any) -> CloudEvent[Any]:
    """An event about an order."""
    return CloudEvent("/shop", kind, data={"order": number}, **others)


def orders(received: Sequence[Any]) -> list[int]:
    """The data of events received."""
    return [one.event.data["order"] for one in received]


def tokens(received: Sequence[Any]) -> list[str]:
    """The lock tokens of events received."""
    return [one.broker_properties.lock_token for one in received]


def counts(received: Sequence[Any]) -> list[int]:
    """Return the delivery count of each received event, this time included."""
    return [one.broker_properties.delivery_count for one in received]


def failed(answer: Any) -> list[str]:
    """The codes of the tokens that failed."""
    return [one.error.code for one in answer.failed_lock_tokens]
