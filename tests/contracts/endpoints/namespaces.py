"""A namespace that is a scripted broker, behind an AmqpEndpoint."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from proton import Delivery

from redrive.endpoints.azure.amqp import AmqpEndpoint
from redrive.engine.ports import Endpoint, PushRequest
from tests.contracts.endpoints.broker import Broker, Session, accept, broker, drop, reject
from tests.contracts.endpoints.kinds import NOW, PATIENCE_MS, Place

NAMESPACE: Final = (
    "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/providers/Microsoft.ServiceBus"
    "/namespaces/bus"
)
QUEUE: Final = f"{NAMESPACE}/queues/orders"


def amqp_push(
    text: str = "hello", timeout_ms: int = PATIENCE_MS, *, entity: str = QUEUE, **headers: str
) -> PushRequest:
    beside = {"aeg-event-type": "Notification", "aeg-output-event-id": "event-1", **headers}
    return PushRequest(entity, text.encode(), "application/json", beside, timeout_ms)


def amqp_endpoint(connection_string: str | None, ca_file: Path | None = None) -> AmqpEndpoint:
    """An endpoint whose every namespace is this one."""
    return AmqpEndpoint(lambda: NOW, random.Random(7), lambda _: connection_string, ca_file)


class AmqpPlace:
    """A scripted broker behind an AmqpEndpoint."""

    def __init__(self, endpoint: Endpoint, keeper: Broker) -> None:
        self.endpoint = endpoint
        self._broker = keeper

    def push_request(self, text: str = "hello", timeout_ms: int = PATIENCE_MS) -> PushRequest:
        return amqp_push(text, timeout_ms)

    def received(self) -> list[str]:
        return [bytes(message.body).decode() for message in self._broker.messages]

    def refuse(self) -> None:
        self._broker.settle = reject("amqp:not-allowed", "never")

    def fail(self, says: str = "in trouble") -> None:
        self._broker.settle = reject("amqp:internal-error", says)

    def hang_on(self, text: str) -> None:
        def settle(session: Session, delivery: Delivery) -> None:
            if self.received()[-1] != text:
                accept(session, delivery)

        self._broker.settle = settle

    def close_early(self) -> None:
        self._broker.settle = drop

    def elsewhere(self, host: str, port: int) -> tuple[Endpoint, PushRequest]:
        return amqp_endpoint(f"amqp://{host}:{port}"), amqp_push()


@asynccontextmanager
async def amqp_place() -> AsyncIterator[Place]:
    async with broker() as keeper:
        endpoint = amqp_endpoint(f"amqp://127.0.0.1:{keeper.port}")
        yield AmqpPlace(endpoint, keeper)
        await endpoint.close()
