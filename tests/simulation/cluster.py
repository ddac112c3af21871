"""Nodes on one store, and what their clients see of them."""

import asyncio
import random
from collections.abc import Callable
from typing import Any, cast

from redrive.engine.engine import Engine
from redrive.engine.ports import Runtime, Store
from redrive.model.names import ResourceName
from redrive.model.queue import DeadLetterTarget, Queue
from redrive.testing import VirtualClock
from tests.simulation.administrators import Told
from tests.simulation.books import Books
from tests.simulation.database import Database
from tests.simulation.dialects import Lettered, Plain
from tests.simulation.ledger import Ledger
from tests.simulation.news import News
from tests.simulation.node import Life, Node, WrongClock, own_life, track_lives
from tests.simulation.options import CALM, HANG_MS_MAX, FaultInjection, Options, QueuePlan
from tests.simulation.outside import Outside
from tests.simulation.rules import Rule, Violation
from tests.simulation.subscribers import LETTERED, PLAIN
from tests.simulation.trace import Trace
from tests.simulation.wire import Wire
from tests.simulation.world import World

NODES = ("n1", "n2", "n3")


class Cluster:
    """Nodes on one store.

    Attributes:
        faults: What goes wrong at present.
        queues: Those that clients send to and receive from, with their plans.
        dead_letters: By name.
        told: What administrators were told.
        failure: Done as soon as something goes wrong that nobody waits for.
    """

    def __init__(
        self, options: Options, world: World, clock: VirtualClock, rng: random.Random, *, lines: bool
    ) -> None:
        self.options = options
        self.faults = CALM
        self._clock = clock
        self._rng = rng
        began = clock.now()
        self.trace = Trace(lambda: clock.now() - began, lines=lines)
        skew_ms = 2 * options.skew_ms_max
        plans = {plan.name: plan for topic in options.topics for plan in topic.everybody}
        self.outside = Outside(
            plans, self.now, self.pause, self.fork(), self.trace, skew_ms, self.fail, own_life
        )
        self._dialects = {PLAIN: Plain(plans), LETTERED: Lettered(plans)}
        outages = options.outage_ms > 0
        self.books = Books(self.trace, self.now, skew_ms, skew_ms + HANG_MS_MAX, outages, self.outside.seen)
        self.ledger = Ledger(self.books, skew_ms)
        self.told = Told()
        self._news = News(self._present_faults, self.trace)
        self._spoil = world.spoil
        self.database = Database(cast("Store", world), self.books, self._news, self.trace)
        self.nodes = [
            Node(name, self._wrong_clock(), self._wire, self._engine, self.trace, self.fail) for name in NODES
        ]
        self.queues: list[tuple[Queue, QueuePlan]] = []
        self.dead_letters: dict[str, Queue] = {}
        loop = asyncio.get_running_loop()
        self.failure: asyncio.Future[None] = loop.create_future()
        track_lives(loop)
        loop.set_exception_handler(self._escaped)

    # ---- what clients see --------------------------------------------------------------------------------

    def now(self) -> int:
        """The true time (ms)."""
        return self._clock.now()

    async def pause(self, milliseconds: float) -> None:
        """Wait."""
        await self._clock.sleep_until(self._clock.now() + round(milliseconds))

    async def some_life(self, rng: random.Random) -> Life:
        """A node that serves."""
        while True:
            lives = [node.life for node in self.nodes if node.life is not None and node.life.serves]
            if lives:
                return rng.choice(lives)
            await self.pause(100)

    # ---- what is there -----------------------------------------------------------------------------------

    async def build(self) -> None:
        """Start the nodes and make the queues, while nothing goes wrong."""
        await self.revive()
        for plan in self.options.queues:
            if plan.dead_letters:
                await self._make_dead_letters(plan.dead_letters, ordered=plan.ordered)
            self.queues.append((await self._make(self._planned(plan)), plan))
        for topic in self.options.topics:
            await self._make_dead_letters(undelivered(topic.name), ordered=topic.ordered)

    async def _make_dead_letters(self, name: str, *, ordered: bool) -> None:
        if name not in self.dead_letters:
            self.dead_letters[name] = await self._make(Queue(0, named(name), ordered=ordered))

    async def _make(self, wanted: Queue) -> Queue:
        life = await self.some_life(self._rng)
        queue = await life.call(lambda engine: engine.resources.queues.create(wanted))
        self.books.queues[queue.id] = queue
        return queue

    def _planned(self, plan: QueuePlan) -> Queue:
        dead = self.dead_letters.get(plan.dead_letters)
        return Queue(
            id=0,
            name=named(plan.name),
            ordered=plan.ordered,
            delay_ms=plan.delay_ms,
            lease_ms=plan.lease_ms,
            retention_ms=plan.retention_ms,
            dead_letter=None if dead is None else DeadLetterTarget(dead.name, plan.attempts_max),
            deduplicates_content=plan.deduplicates_content,
            deduplicates_per_group=plan.deduplicates_per_group,
        )

    async def revive(self) -> None:
        """Start every node that is dead."""
        for node in self.nodes:
            if node.life is None:
                await node.start(self._rng)

    async def revive_for_ever(self) -> None:
        """Let no node be dead for long."""
        while True:
            await self.pause(self._rng.uniform(0, 10_000))
            await self.revive()

    def fail(self, error: BaseException) -> None:
        """End the run with this."""
        if not self.failure.done():
            self.failure.set_exception(error)

    # ---- parts -------------------------------------------------------------------------------------------

    def fork(self) -> random.Random:
        """Chance for somebody, so that what others do does not change it."""
        return random.Random(self._rng.getrandbits(64))

    def skew_ms(self) -> int:
        """By how much a clock may be off."""
        return self._rng.randint(-self.options.skew_ms_max, self.options.skew_ms_max)

    def _wrong_clock(self) -> WrongClock:
        return WrongClock(self._clock, self.skew_ms())

    def _present_faults(self) -> FaultInjection:
        return self.faults

    def _engine(self, store: Store, runtime: Runtime) -> Engine:
        engine = Engine(store, runtime, dict(self._dialects), {"push": self.outside})
        self._spoil(engine)
        return engine

    def _wire(self, node: str, rng: random.Random, die: Callable[[str], None]) -> Wire:
        return Wire(node, self.database, self._news, self._present_faults, rng, self.trace, die)

    def _escaped(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.fail(Violation(Rule.STANDS, f"{context['message']}: {context.get('exception')!r}"))


def undelivered(topic: str) -> str:
    """The dead letters of a topic's subscriptions."""
    return f"undelivered-{topic}"


def named(name: str) -> ResourceName:
    """A name in the account and region of the runs."""
    return ResourceName("1", "here", name)
