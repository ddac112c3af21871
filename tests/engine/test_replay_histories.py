"""Random histories: two nodes publish while replays begin, end and lose their node, on a store that takes its time.

What must hold is what a subscriber of an ordered topic relies on, whatever comes when:

* everything that was published reaches it;
* nothing reaches it twice as new, nor twice by one replay;
* of each group, what is new comes in order, what a replay brings comes in order, and what is new after a replay is
  newer than what that brought.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from redrive.engine.engine import Engine
from redrive.engine.ports import Put, Remove, Runtime
from redrive.engine.resources import Draft
from redrive.engine.tasks.leased_tasks import LEASE_MS
from redrive.engine.tasks.replay import SETTLED_MS
from redrive.model.delivery import is_replayed
from redrive.model.queue import DAY_MS, Queue
from redrive.model.topic import Publication, Subscription, Topic
from redrive.stores.sqlite.store import SqliteStore
from redrive.testing import VirtualClock
from tests.engine.stage import PlainProfile, name

GROUPS = 3
MESSAGES = 60


class SlowStore:
    """A node's way to the store: every call takes a while to get there, and its answer to come back.

    What one node changes, all have heard of when its call is answered.
    """

    def __init__(self, real: SqliteStore, clock: VirtualClock, rng: random.Random) -> None:
        self._real = real
        self._clock = clock
        self._rng = rng
        self.others: list[Callable[[str, str], None]] = []

    def listen(self, arrived: Callable[[int], None], changed: Callable[[str, str], None]) -> None:
        self.others.append(changed)

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        async def call(*arguments: Any, **named: Any) -> Any:
            await self._pass()
            answer = await getattr(self._real, verb)(*arguments, **named)
            if verb == "write":
                for change in arguments[0]:
                    if isinstance(change, Put | Remove):
                        self._tell(change.kind, change.key)
            await self._pass()
            return answer

        return call

    def _tell(self, kind: str, key: str) -> None:
        for changed in self.others:
            changed(kind, key)

    async def _pass(self) -> None:
        await self._clock.sleep_until(self._clock.now() + self._rng.choice((0, 0, 1, 5, 40)))


class History:
    """One run."""

    def __init__(self, clock: VirtualClock, seed: int) -> None:
        self.clock = clock
        self.rng = random.Random(seed)
        self.real = SqliteStore(None)
        self.nodes: list[Engine] = []

    async def begin(self) -> None:
        await self.real.open()
        stores = [SlowStore(self.real, self.clock, self.rng) for _ in range(2)]
        for number, store in enumerate(stores):
            runtime = Runtime(self.clock, random.Random(number), f"node-{number}")
            node = Engine(store, runtime, {"plain": PlainProfile()})  # type: ignore[arg-type]  # by __getattr__
            self.nodes.append(node)
        for store in stores:
            store.others = [node.parts.directory.forget for node in self.nodes]
        resources = self.nodes[0].resources
        self.topic = await resources.topics.create(
            Topic(0, name("t"), "plain", ordered=True, archive_ms=DAY_MS)
        )
        self.queue = await resources.queues.create(Queue(0, name("q"), ordered=True))
        self.subscription = await resources.subscriptions.create(
            Subscription("s", self.topic.name, 0, "1", "queue", "queue:q")
        )

    async def publish(self, group: str) -> None:
        for number in range(MESSAGES):
            node = self.rng.choice(self.nodes)
            message_id = node.runtime.message_id()
            body = f"{group}{number:03}"
            publication = Publication(
                message_id, body, {}, {}, b'{"envelope":"plain"}', 1, group, deduplication_id=body
            )
            topic = await node.parts.topics.get(self.topic.name)
            assert topic is not None
            await node.parts.topic_publisher.publish(topic, [publication])
            await self.pause(30)

    async def _start_in(self, node: Engine, draft: Draft) -> None:
        await node.operations.replays.start_in(draft, self.subscription, 0, None)

    async def replay(self) -> None:
        for _ in range(3):
            await self.pause(1500)
            node = self.rng.choice(self.nodes)
            await node.resources.write(partial(self._start_in, node))
            if self.rng.random() < 0.5:
                await self.pause(100)
                await node.parts.replayer.close()  # as if it died; what it began goes on by its lease

    async def keep_up(self) -> None:
        while True:
            await self.clock.sleep_until(self.clock.now() + 1_000)
            for node in self.nodes:
                await node.parts.replayer.round()

    async def pause(self, most: int) -> None:
        await self.clock.sleep_until(self.clock.now() + self.rng.randrange(most))

    async def end(self) -> list[tuple[str, bool]]:
        """Wait until all is said and done; what the subscriber got: each body, and whether it was replayed."""
        await self.clock.sleep_until(self.clock.now() + 2 * LEASE_MS + 4 * SETTLED_MS)
        found = await self.real.peek(self.queue.id, 10_000)
        return [(one.body, is_replayed(one.headers)) for one in found]


def rising(bodies: list[str]) -> bool:
    return all(before < after for before, after in pairwise(bodies))


def check(got: list[tuple[str, bool]], replays_max: int) -> None:
    for group in range(GROUPS):
        of_group = [(body, again) for body, again in got if body.startswith(f"{group}")]
        new = [body for body, again in of_group if not again]
        assert rising(new), "new ones out of order, or twice"
        assert {body for body, _ in of_group} == {f"{group}{number:03}" for number in range(MESSAGES)}
        again = [body for body, replayed in of_group if replayed]
        falls = sum(before >= after for before, after in pairwise(again))
        assert falls < replays_max, "replayed out of order, or twice by one replay"
        brought = ""
        for body, replayed in of_group:
            assert replayed or body > brought, "a new one that a replay had brought before"
            brought = max(brought, body) if replayed else brought


@pytest.mark.parametrize("seed", range(40))
async def test_any_history_of_publications_and_replays_keeps_its_order(
    clock: VirtualClock, seed: int
) -> None:
    history = History(clock, seed)
    await history.begin()
    upkeep = asyncio.create_task(history.keep_up())
    publishers = [history.publish(f"{group}") for group in range(GROUPS)]
    await asyncio.gather(*publishers, history.replay())
    got = await history.end()
    upkeep.cancel()
    check(got, replays_max=3)
