"""A plan of a topic's fan-out says what the long way would, whatever changed, on whichever node."""

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from redrive.engine.engine import Engine
from redrive.engine.ports import Put, Remove, Runtime
from redrive.model.delivery import Delivery
from redrive.model.queue import Queue
from redrive.model.topic import Publication, Subscription, Topic
from redrive.stores.sqlite.store import SqliteStore
from redrive.testing import VirtualClock
from tests.engine.stage import ACCOUNT, PlainProfile, name

STEPS = 40
QUEUES = ("a", "b", "c", "dead")


class SharedStore:
    """One store for several nodes: what one changes, all have heard of when its call is answered."""

    def __init__(self, real: SqliteStore) -> None:
        self._real = real
        self._heard: list[Callable[[str, str], None]] = []

    def listen(self, heard: Callable[[str, str], None]) -> None:
        self._heard.append(heard)

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._real, verb)

    async def write(self, changes: Sequence[Any], *others: Any) -> list[int]:
        answer = await self._real.write(changes, *others)
        for change in changes:
            if isinstance(change, Put | Remove):
                for heard in self._heard:
                    heard(change.kind, change.key)
        return answer


class CountingProfile(PlainProfile):
    """Counts how often queues were asked whether they take a message, which no planned publication does."""

    asked = 0

    def refusal(self, *arguments: Any) -> Any:
        self.asked += 1
        return super().refusal(*arguments)


class World:
    """Nodes on one store, a topic, and everything that may happen to it."""

    def __init__(self, clock: VirtualClock, seed: int) -> None:
        self.clock = clock
        self.rng = random.Random(seed)
        self.profile = CountingProfile()
        self.real = SqliteStore(None)
        self.shared = SharedStore(self.real)
        self.nodes = [self.node("one"), self.node("two")]

    def node(self, text: str) -> Engine:
        return Engine(
            self.shared,  # type: ignore[arg-type]  # a store, but for its spelling
            Runtime(self.clock, random.Random(text), text),
            {"plain": self.profile},
        )

    async def open(self) -> None:
        await self.real.open()
        for node in self.nodes:
            self.shared.listen(node.parts.directory.forget)
            await node.parts.dispatcher.close()  # what enters a backlog is to stay there
        self.topic = await self.nodes[0].resources.topics.create(Topic(0, name("orders"), "plain"))
        for text in QUEUES:
            await self.nodes[0].resources.queues.create(Queue(0, name(text)))
            await self.subscribe(self.nodes[0])

    async def publish(self, node: Engine, body: str) -> list[tuple[Any, ...]]:
        """Publish on a node; all rows that came of it."""
        before = await self.real.last_seq()
        topic = await node.resources.topics.get(self.topic.name)
        assert topic is not None
        publication = Publication(
            node.runtime.message_id(), body, {}, {}, b'{"x":1}', len(body), group_id="g"
        )
        await node.messages.publish(topic, [publication])
        return sorted([_content(row) for row in await self.rows(before)])

    async def rows(self, after_seq: int) -> list[Delivery]:
        ids = [occupied.queue_id for occupied in await self.real.occupied(0, 10_000)]
        return [row for queue_id in ids for row in await self.real.peek(queue_id, 10_000, after_seq)]

    # ---- what may happen

    async def subscribe(self, node: Engine) -> None:
        endpoint = self.rng.choice([f"queue:{self.rng.choice(QUEUES)}", "elsewhere"])
        new = Subscription(f"s{self.rng.getrandbits(40)}", self.topic.name, 0, ACCOUNT, "push", endpoint)
        await node.resources.subscriptions.create(new)

    async def unsubscribe(self, node: Engine) -> None:
        if subscription := await self._any_subscription(node):
            await node.resources.subscriptions.delete(subscription)

    async def filter(self, node: Engine) -> None:
        text = self.rng.choice([None, '{"never": [true]}', '{"x": [{"exists": false}]}'])
        await self._change_subscription(node, filter_text=text)

    async def set_dead_letters(self, node: Engine) -> None:
        target = self.rng.choice([None, name("dead")])
        await self._change_subscription(node, dead_letter=target)

    async def move_endpoint(self, node: Engine) -> None:
        await self._change_subscription(node, endpoint=f"queue:{self.rng.choice(QUEUES)}")

    async def change_topic(self, node: Engine) -> None:
        value = str(self.rng.getrandbits(8))
        await node.resources.topics.update(
            self.topic.name, lambda topic: replace(topic, attributes={"DisplayName": value})
        )

    async def delay(self, node: Engine) -> None:
        seconds = self.rng.randrange(3)
        if queue := await node.resources.queues.get(name(self.rng.choice(QUEUES))):
            await node.resources.queues.update(queue.name, lambda one: replace(one, delay_ms=seconds * 1000))

    async def close_queue(self, node: Engine) -> None:
        """Close or open a queue to the topic: the profile says so, by the queue's document."""
        text = self.rng.choice(QUEUES)
        self.profile.closed ^= {text}
        if queue := await node.resources.queues.get(name(text)):
            policy = str(self.rng.getrandbits(40))
            await node.resources.queues.update(
                queue.name, lambda one: replace(one, attributes={"Policy": policy})
            )

    async def delete_queue(self, node: Engine) -> None:
        if queue := await node.resources.queues.get(name(self.rng.choice(QUEUES))):
            await node.resources.queues.delete(queue)

    async def create_queue(self, node: Engine) -> None:
        text = self.rng.choice(QUEUES)
        if await node.resources.queues.get(name(text)) is None:
            await node.resources.queues.create(Queue(0, name(text)))

    async def _any_subscription(self, node: Engine) -> Subscription | None:
        subscriptions = await node.resources.subscriptions.of(self.topic.name)
        return self.rng.choice(subscriptions) if subscriptions else None

    async def _change_subscription(self, node: Engine, **fields: Any) -> None:
        if subscription := await self._any_subscription(node):
            await node.resources.subscriptions.update(subscription, lambda one: replace(one, **fields))

    @property
    def happenings(self) -> Sequence[Callable[[Engine], Awaitable[None]]]:
        return (
            self.subscribe,
            self.unsubscribe,
            self.filter,
            self.set_dead_letters,
            self.move_endpoint,
            self.change_topic,
            self.delay,
            self.close_queue,
            self.delete_queue,
            self.create_queue,
        )


def _content(row: Delivery) -> tuple[Any, ...]:
    return (
        row.queue_id,
        row.body,
        row.headers,
        row.available_at,
        row.enqueued_at,
        row.group_id,
        row.origin or 0,
    )


@pytest.mark.parametrize("seed", range(6))
async def test_a_plan_says_what_the_long_way_would(clock: VirtualClock, seed: int) -> None:
    world = World(clock, seed)
    await world.open()
    for step in range(STEPS):
        for node in world.nodes:  # so that both have plans when something happens
            await world.publish(node, f"before {step}")
            await world.publish(node, f"before {step}")
        await world.rng.choice(world.happenings)(world.rng.choice(world.nodes))
        body = "m" * world.rng.choice((1, 200))
        expected = await world.publish(world.node(f"new {step}"), body)  # it remembers nothing
        for node in world.nodes:
            assert await world.publish(node, body) == expected
            assert await world.publish(node, body) == expected
    await world.real.close()


async def test_a_planned_publication_asks_no_queue(clock: VirtualClock) -> None:
    world = World(clock, 0)
    await world.open()
    (one, _) = world.nodes
    await world.publish(one, "a longer message")
    await world.publish(one, "a longer message")
    asked = world.profile.asked
    await world.publish(one, "the same")
    assert world.profile.asked == asked
    await world.publish(one, "a message that is longer than any before")
    assert world.profile.asked > asked
    await world.real.close()
