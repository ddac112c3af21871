"""A server in memory and a visitor without a browser."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from redrive.app import Server, assembled
from redrive.engine.engine import Engine
from redrive.engine.ports import AttemptNote, MoveTarget, Settlement
from redrive.model.delivery import Outcome
from redrive.model.http import Request, Response
from redrive.model.names import ResourceName
from redrive.model.queue import DeadLetterTarget, Queue
from redrive.model.topic import Message, Subscription, Topic
from redrive.settings import Settings

URL: Final = "http://127.0.0.1:4566"
ROOT: Final = "/_redrive/console"
SCOPE: Final = ResourceName("000000000000", "us-east-1")
ROOM: Final = f"{ROOT}/{SCOPE.account}/{SCOPE.region}"
#: The retry policy that a story tries against an afternoon's outage.
TRIED: Final = {
    "numRetries": 10,
    "numNoDelayRetries": 1,
    "numMinDelayRetries": 1,
    "numMaxDelayRetries": 0,
    "minDelayTarget": 10,
    "maxDelayTarget": 300,
    "backoffFunction": "geometric",
}
BUSY: Final = AttemptNote(1, 1_700_000_000_000, 20, "server_error", 503, "upstream connect error")


@dataclass
class Visitor:
    """Somebody with a browser that keeps a cookie."""

    server: Server
    cookie: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    async def get(self, path: str, **headers: str) -> Response:
        """Follow a link."""
        return await self._ask("GET", path, b"", headers)

    async def post(self, path: str, form: Mapping[str, Any], **headers: str) -> Response:
        """Send a form from one of the console's pages."""
        own = {
            "content-type": "application/x-www-form-urlencoded",
            "sec-fetch-site": "same-origin",
            **headers,
        }
        return await self._ask("POST", path, urlencode(form, doseq=True).encode(), own)

    async def _ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Response:
        path, _, query = path.partition("?")
        sent = {
            "host": "127.0.0.1:4566",
            "accept": "text/html",
            "cookie": self.cookie,
            **self.headers,
            **headers,
        }
        answer = self.server.router.answer(Request(method, path, query, sent, body))
        response = answer if isinstance(answer, Response) else await answer
        cookie = response.headers.get("Set-Cookie")
        if cookie is not None:
            name, _, value = cookie.partition(";")[0].partition("=")
            others = [each for each in self.cookie.split("; ") if each and not each.startswith(f"{name}=")]
            self.cookie = "; ".join([*others, *([f"{name}={value}"] if value else [])])
        return response


@asynccontextmanager
async def visiting(**settings: Any) -> AsyncIterator[Visitor]:
    """A server with these settings, and somebody who visits it."""
    async with assembled(Settings(store="sqlite://:memory:", **settings), URL) as server:
        await server.open()
        yield Visitor(server)


@dataclass(frozen=True)
class World:
    """Queues, a topic and dead letters.

    Attributes:
        engine: Where they are.
        dead: The dead-letter queue.
        orders: Whose dead letters come there.
        topic: With a subscription.
        subscription: Of it.
    """

    engine: Engine
    dead: Queue
    orders: Queue
    topic: Topic
    subscription: Subscription

    async def die(self, *bodies: str, note: AttemptNote | None = BUSY) -> list[int]:
        """Let these messages die in the queue of orders; their places in the dead-letter queue."""
        engine = self.engine
        await engine.messages.send(
            self.orders, [Message(engine.runtime.message_id(), body) for body in bodies]
        )
        await self.end(Outcome.DEAD_LETTERED, len(bodies), note)
        return [
            letter.delivery.seq for letter in await engine.operations.dead_letters.letters(self.dead, 0, 1000)
        ]

    async def end(self, outcome: Outcome, number: int, note: AttemptNote | None = BUSY) -> None:
        """Let so many messages that wait in the queue of orders end like this."""
        engine = self.engine
        claimed = await engine.messages.receive(self.orders, number, wait_ms=0)
        target = MoveTarget(self.dead.id, self.dead.ordered) if outcome is Outcome.DEAD_LETTERED else None
        ends = [Settlement(one.seq, one.token or 0, outcome, target=target, note=note) for one in claimed]
        await engine.parts.store.settle(self.orders.id, ends, engine.clock.now(), ordered=False)

    async def fail(self) -> None:
        """Let an attempt at each message that waits in the queue of orders fail; it is tried again in an hour."""
        engine, now = self.engine, self.engine.clock.now()
        claimed = await engine.messages.receive(self.orders, 100, wait_ms=0)
        note = BUSY._replace(at=now)
        ends = [
            Settlement(each.seq, each.token or 0, Outcome.RETRY, available_at=now + 3_600_000, note=note)
            for each in claimed
        ]
        await engine.parts.store.settle(self.orders.id, ends, now, ordered=False)


async def make_world(visitor: Visitor, name: str = "orders") -> World:
    """Make the things that pages show."""
    engine = visitor.server.core.engine
    resources = engine.resources
    dead = await resources.queues.create(Queue(0, SCOPE._replace(name=f"{name}-dead")))
    target = DeadLetterTarget(dead.name, 3)
    orders = await resources.queues.create(Queue(0, SCOPE._replace(name=name), dead_letter=target))
    topic = await resources.topics.create(Topic(0, SCOPE._replace(name="Rentals"), "sns"))
    wanted = Subscription(
        "6f1c",
        topic.name,
        0,
        SCOPE.account,
        "https",
        "https://billing.example.com/hook?key=secret",
        dead_letter=dead.name,
    )
    subscription = await resources.subscriptions.create(wanted)
    return World(engine, dead, orders, topic, subscription)


def pages_of(world: World, seq: int) -> list[str]:
    """Every page that only looks."""
    dead, orders = f"{ROOM}/dead-letters/{world.dead.name.name}", f"{ROOM}/queues/{world.orders.name.name}"
    return [
        f"{ROOT}/",
        f"{ROOT}/keys",
        f"{ROOT}/find?q=orders",
        f"{ROOT}/navigation",
        f"{ROOM}/dead-letters",
        dead,
        f"{dead}?cause=all",
        f"{dead}?cause={world.orders.id}:server_error%20503&order=oldest",
        f"{dead}?q=order",
        f"{dead}/search?cause={world.orders.id}:server_error%20503&q=order",
        f"{dead}/facets?q=order",
        f"{dead}/plan?what=all&cause={world.orders.id}:server_error%20503",
        f"{dead}/plan?what=picked&id={seq}",
        f"{dead}/{seq}",
        f"{dead}/{seq}/edit",
        f"{ROOM}/redrives",
        f"{ROOM}/queues",
        f"{ROOM}/new-queue",
        f"{ROOM}/dead-letter-queue?queue={world.orders.name.name}",
        f"{ROOM}/dead-letter-queue?topic=Rentals&subscription=6f1c",
        orders,
        f"{orders}/messages",
        f"{orders}/messages?view=delayed&order=newest",
        f"{orders}/messages?q=order",
        f"{orders}/messages/search?q=order",
        f"{orders}/messages/facets",
        f"{orders}/send",
        f"{orders}/send?sample=S3",
        f"{orders}/import",
        f"{orders}/purge",
        f"{ROOM}/messages",
        f"{ROOM}/messages/6f1c",
        f"{ROOM}/endpoints",
        f"{ROOM}/endpoints?state=all",
        f"{ROOM}/topics",
        f"{ROOM}/topics/Rentals",
        f"{ROOM}/topics/Rentals?attributes=%7B%22city%22%3A%22Oslo%22%7D",
        f"{ROOM}/topics/Rentals/6f1c",
        f"{ROOM}/topics/Rentals/6f1c/test",
        f"{ROOM}/topics/Rentals/publish",
        f"{ROOT}/schedules",
        f"{ROOM}/event-grid",
        f"{ROOM}/tail",
        f"{ROOM}/metrics",
        f"{ROOM}/metrics?until=2026-01-01",
        f"{ROOM}/metrics?of=%3Cx-evil&namespace=%3Cx-evil&metric=%3Cx-evil",
        f"{ROOM}/tail?of=%3Cx-evil&only=failures",
        f"{ROOM}/schedules?topic=Rentals&subscription=6f1c&outage=%3Cx-evil&policy=%3Cx-evil",
        f"{ROOM}/schedules?topic=Rentals&subscription=6f1c&numRetries=5",
    ]
