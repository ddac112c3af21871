"""A small stage for topics: a profile of its own, endpoints that answer as told, and a listener that remembers."""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, cast

from redrive.engine.engine import Engine
from redrive.engine.ports import (
    DirectEndpoint,
    FollowUp,
    Plan,
    PushRequest,
    RenderTogether,
    Runtime,
    Store,
    SubscriptionContext,
)
from redrive.engine.ports.facts import Accepted, Attempted, DeadLettered, Listener
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.delivery import Delivery, Schedule
from redrive.model.filtering import FilterVerdict
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.retry_plans import HTTP_DEFAULT
from redrive.model.topic import Attribute, Publication, Subscription, Topic
from redrive.stores.sqlite.store import SqliteStore
from redrive.testing import VirtualClock
from tests.engine.held_store import HeldStore

ACCOUNT = "000000000000"
OK = Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, 200, "", 1)
BROKEN = Attempt(AttemptResult.FAILED, Reason.SERVER_ERROR, 503, "", 1)
GONE = Attempt(AttemptResult.REFUSED, Reason.CLIENT_ERROR, 404, "", 1)
UNPUSHED = Attempt(AttemptResult.FAILED, Reason.UNMADE, 0, "this server failed in pushing it")
NOT_THERE = Attempt(AttemptResult.REFUSED, Reason.MISSING, 400, "")
CLOSED = Attempt(AttemptResult.REFUSED, Reason.DENIED, 403, "")


def name(text: str) -> ResourceName:
    return ResourceName(ACCOUNT, "us-east-1", text)


class PlainProfile:
    """Says what the tests tell it to; an endpoint `queue:NAME` is a queue of this server.

    A plan that a test changes is met by subscriptions made or changed after that.
    """

    name = "plain"
    direct = False  # its requests are made at once, so that pushes need no task: see the fixture `pushes`

    def __init__(self) -> None:
        self.schedule: Schedule = HTTP_DEFAULT
        self.rate_max: int | None = None
        self.concurrency_max = 32
        self.changes: dict[str, Any] = {}
        self.closed: set[str] = set()
        self.unreadable: set[str] = set()
        self.render_together: RenderTogether | None = None
        self.follow_ups_made: Callable[[Attempted], Sequence[FollowUp]] = lambda _: ()
        self.contexts: list[str] = []

    def context(self, topic: Topic, subscription: Subscription) -> SubscriptionContext:
        self.contexts.append(subscription.id)
        plan = Plan(self.schedule, rate_max=self.rate_max, concurrency_max=self.concurrency_max)
        kind, _, queue = subscription.endpoint.partition(":")
        return SubscriptionContext(
            topic,
            subscription,
            self,
            replace(plan, **self.changes),
            headers=lambda envelope: b'{"to":"%b",%b' % (subscription.id.encode(), envelope[1:]),
            queue=name(queue) if kind == "queue" else None,
            dead_letter=subscription.dead_letter,
            render_at_once=self.render_at_once if self.direct else None,
            render_together=self.render_together,
        )

    def refusal(
        self, context: SubscriptionContext, queue: Queue | None, body: str, headers: bytes | None = None
    ) -> Attempt | None:
        if queue is None:
            return NOT_THERE
        return CLOSED if queue.name.name in self.closed else None

    async def render(self, context: SubscriptionContext, deliveries: Sequence[Delivery]) -> PushRequest:
        return self.render_at_once(context, deliveries)

    def render_at_once(self, context: SubscriptionContext, deliveries: Sequence[Delivery]) -> PushRequest:
        if not self.unreadable.isdisjoint(delivery.body for delivery in deliveries):
            raise ValueError("no way to say this")
        body = "+".join(delivery.body for delivery in deliveries)
        return PushRequest(context.subscription.endpoint, body.encode(), "text/plain", {}, 15_000)

    def follow_ups(self, fact: Attempted) -> Sequence[FollowUp]:
        return self.follow_ups_made(fact)


class ScriptedEndpoint(DirectEndpoint):
    """Answers each push with the next attempt of its script, then with `otherwise`."""

    def __init__(self, clock: VirtualClock, *script: Attempt, otherwise: Attempt = OK) -> None:
        self.clock = clock
        self.script = deque(script)
        self.otherwise = otherwise
        self.pushed: list[tuple[int, str]] = []
        self.before: Callable[[PushRequest], Awaitable[None]] | None = None

    async def push(self, push_request: PushRequest) -> Attempt:
        self.pushed.append((self.clock.now(), push_request.body.decode()))
        if self.before is not None:
            await self.before(push_request)
        return self.script.popleft() if self.script else self.otherwise

    def begin(self, push_request: PushRequest, take: Callable[[Attempt], None]) -> Callable[[], None] | None:
        return begun(self.push(push_request), take)

    async def close(self) -> None:
        pass


def begun(push: Coroutine[Any, Any, Attempt], take: Callable[[Attempt], None]) -> Callable[[], None]:
    """A push as a `DirectEndpoint` begins it."""
    task = asyncio.get_running_loop().create_task(push)

    def ended(_: object) -> None:
        if not given_up and not task.cancelled():
            take(task.result() if task.exception() is None else UNPUSHED)

    given_up: list[bool] = []

    def give_up() -> None:
        given_up.append(True)
        task.cancel()

    task.add_done_callback(ended)
    return give_up


class Memory(Listener):
    """A listener that keeps what it was told."""

    def __init__(self) -> None:
        self.attempts: list[Attempted] = []
        self.dead: list[DeadLettered] = []
        self.expirations: list[Attempted] = []
        self.filtered_out: dict[FilterVerdict, int] = {}
        self.published_messages = 0

    def published(self, topic: Topic, messages: int, matched: int, body_bytes: int, now: int) -> None:
        self.published_messages += messages

    def filtered(self, topic: Topic, verdict: FilterVerdict, subscriptions: int, now: int) -> None:
        self.filtered_out[verdict] = self.filtered_out.get(verdict, 0) + subscriptions

    def attempted(self, fact: Attempted) -> None:
        self.attempts.append(fact)

    def expired(self, fact: Attempted) -> None:
        self.expirations.append(fact)

    def accepted(self, fact: Accepted) -> None:
        self.attempts += fact.attempts()

    def dead_lettered(self, fact: DeadLettered) -> None:
        self.dead.append(fact)


class Stage:
    """An engine in memory with one delivery profile, one endpoint and a listener.

    Attributes:
        wire: The way from the first node to the store.
    """

    def __init__(self, clock: VirtualClock, rng: random.Random, *script: Attempt, otherwise: Attempt = OK):
        self.clock = clock
        self.rng = rng
        self.profile = PlainProfile()
        self.endpoint = ScriptedEndpoint(clock, *script, otherwise=otherwise)
        self.memory = Memory()
        self.store = SqliteStore(None)
        self.wire = HeldStore(self.store)
        self.engine = self.node("a", self.wire)

    def node(self, node: str, store: HeldStore | None = None) -> Engine:
        """Another node on the same store, with the same endpoint."""
        return Engine(
            self.store if store is None else cast("Store", store),
            Runtime(self.clock, self.rng, node),
            {"plain": self.profile},
            {"push": self.endpoint},
            [self.memory],
        )

    async def topic(self, text: str = "orders", **fields: Any) -> Topic:
        return await self.engine.resources.topics.create(Topic(0, name(text), "plain", **fields))

    async def queue(self, text: str, **fields: Any) -> Queue:
        return await self.engine.resources.queues.create(Queue(0, name(text), **fields))

    async def subscribe(self, topic: Topic, one: str, endpoint: str, **fields: Any) -> Subscription:
        wanted = Subscription(one, topic.name, 0, ACCOUNT, "push", endpoint, **fields)
        return await self.engine.resources.subscriptions.create(wanted)

    async def replan(self, subscription: Subscription) -> None:
        """Let a subscription go by what the profile says now: its context is made anew for a new version."""
        plans = str(len(self.profile.contexts))
        await self.engine.resources.subscriptions.update(
            subscription, lambda one: replace(one, attributes={"plans": plans})
        )

    async def publish(self, topic: Topic, body: str = "hello", **fields: Any) -> None:
        attributes = {
            key: Attribute("String", str(value)) for key, value in fields.pop("attributes", {}).items()
        }
        message = Publication(
            self.engine.runtime.message_id(), body, {}, attributes, b'{"x":1}', len(body), **fields
        )
        await self.engine.messages.publish(topic, [message])

    async def bodies_in(self, queue: Queue) -> list[str]:
        return [delivery.body for delivery in await self.store.peek(queue.id, 1000)]
