"""A run from its beginning to its end: trouble, then calm, then rest, and nothing lost."""

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

from redrive.engine.engine import Engine
from redrive.engine.ports import Runtime, Store
from redrive.engine.queues import QUEUE
from redrive.engine.redrive import TASK
from redrive.model.delivery import Delivery
from redrive.model.errors import AlreadyExists
from redrive.model.queue import DeadLetterTarget, Queue, ResourceName
from redrive.model.topic import Subscription, Topic
from redrive.testing import NothingScheduled, VirtualClock, run_virtual
from tests.simulation.books import Books
from tests.simulation.clients import LABEL, Consumer, Operator, Publisher, Sender
from tests.simulation.database import PEEK_MAX, Database
from tests.simulation.ledger import Ledger
from tests.simulation.mutants import InMemory
from tests.simulation.news import News
from tests.simulation.node import Life, Node, WrongClock, track_lives
from tests.simulation.options import (
    CALM,
    DILIGENT,
    HANG_MS_MAX,
    Faults,
    Options,
    QueuePlan,
    SubscriptionPlan,
    TopicPlan,
    draw,
)
from tests.simulation.outside import Outside, Plain
from tests.simulation.rules import Rule, Violation, require
from tests.simulation.trace import Trace
from tests.simulation.wire import Wire

NODES = ("n1", "n2", "n3")
UNDELIVERED = "undelivered"  # the dead letters of the topic's subscriptions

# After the faults: the longest lease and its extension, a hung call, a dead node's move task and the round in which
# another node takes it up, and what a task of one message a second takes for all messages of a run.
REST_MS = 5 * 60_000

WAKE_MS = 1_000  # for a message to reach who waits, when all is calm: news, and a few calls


STORY_SECONDS_MAX = 24 * 60 * 60


@dataclass(frozen=True)
class Result:
    """A run that kept all rules.

    Attributes:
        marks: What was met, and how often.
        calls: What the store carried out.
        virtual_ms: How long it took in its own time.
        digest: Equal for two runs in which the same happened.
        lines: What happened, where that was asked for.
    """

    marks: dict[str, int]
    calls: int
    virtual_ms: int
    digest: int
    lines: list[str]


class Broken(Exception):  # noqa: N818 - what the run says
    """A run broke a rule; its seed repeats it."""

    def __init__(self, seed: int, rule: Rule, why: str, lines: list[str]) -> None:
        super().__init__(seed, rule, why, lines)
        self.seed = seed
        self.rule = rule
        self.why = why
        self.lines = lines

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.why} (python -m tests.simulation --seed {self.seed} shows the whole run)"


def simulate(seed: int, make_store: Callable[[], InMemory], *, lines: bool = False) -> Result:
    """Run the cluster of a seed.

    Args:
        seed: Everything follows from it.
        make_store: Makes the store that all nodes share, right or wrong.
        lines: Whether to keep what happened for a reader.

    Raises:
        Broken: A rule did not hold.
    """
    runs: list[Cluster] = []

    async def story(clock: VirtualClock, chance: random.Random) -> Result:
        runs.append(Cluster(draw(seed), cast("Store", make_store()), clock, chance, lines=lines))
        return await runs[0].run()

    try:
        with _quiet():
            return run_virtual(story, seed)
    except Violation as violation:
        raise Broken(seed, violation.rule, str(violation), runs[0].trace.lines) from violation
    except NothingScheduled as error:
        raise Broken(seed, Rule.RESTS, str(error), runs[0].trace.lines) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The engine's warnings are about what is done to it here all the time."""
    logger = logging.getLogger("redrive")
    level, logger.level = logger.level, logging.CRITICAL
    try:
        yield
    finally:
        logger.level = level


class Cluster:
    """Nodes on one store, and their clients."""

    def __init__(
        self, options: Options, store: Store, clock: VirtualClock, chance: random.Random, *, lines: bool
    ) -> None:
        self.options = options
        self.faults = CALM
        self._clock = clock
        self._chance = chance
        self._began = clock.now()
        self.trace = Trace(lambda: clock.now() - self._began, lines=lines)
        skew_ms = 2 * options.skew_ms_max
        plans = {plan.name: plan for plan in options.topic.subscriptions} if options.topic else {}
        self.outside = Outside(plans, self.pause, self._fork(), self.trace)
        self._dialect = Plain(plans)
        self.books = Books(self.trace, skew_ms + HANG_MS_MAX, self.outside.seen)
        self.ledger = Ledger(self.books, skew_ms)
        self._news = News(self._present_faults, self.trace)
        self.database = Database(store, self.books, self._news, self.trace)
        self.nodes = [
            Node(name, self._wrong_clock(), self._wire, self._engine, self.trace, self._fail)
            for name in NODES
        ]
        self.queues: list[tuple[Queue, QueuePlan]] = []
        self.dead_letters: dict[str, Queue] = {}
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # ---- what clients see --------------------------------------------------------------------------------

    def now(self) -> int:
        """The true time (ms)."""
        return self._clock.now()

    async def pause(self, milliseconds: float) -> None:
        """Wait."""
        await self._clock.sleep_until(self._clock.now() + round(milliseconds))

    async def some_life(self, chance: random.Random) -> Life:
        """A node that serves."""
        while True:
            lives = [node.life for node in self.nodes if node.life is not None and node.life.serves]
            if lives:
                return chance.choice(lives)
            await self.pause(100)

    # ---- a run -------------------------------------------------------------------------------------------

    async def run(self) -> Result:
        """Everything, or the first rule that was broken."""
        loop = asyncio.get_running_loop()
        track_lives(loop)
        loop.set_exception_handler(self._escaped)
        await self.database.store.open()
        story = asyncio.create_task(self._story(), name="story")
        serving = asyncio.create_task(self.database.serve(), name="store")
        try:
            running = (serving, story, self._failure)
            await asyncio.wait(running, timeout=STORY_SECONDS_MAX, return_when=asyncio.FIRST_COMPLETED)
            ended = next((one for one in running if one.done()), None)
            require(ended is not None, Rule.RESTS, "the story has no end")
            if ended is not None:
                await ended
        except* Exception as group:
            raise _violation(group) from group
        finally:
            story.cancel()
            serving.cancel()
        await self.database.store.close()
        trace = self.trace
        return Result(dict(trace.marks), trace.calls, self.now() - self._began, trace.digest, trace.lines)

    async def _story(self) -> None:
        for node in self.nodes:
            await node.start(self._chance)
        await self._make_queues()
        self.faults = self.options.faults
        reviving = asyncio.create_task(self._revive(), name="reviving")
        await self._trouble()
        self.faults = CALM
        self.trace.note("cluster", "---- the faults stop")
        await self.pause(HANG_MS_MAX)  # until the last call that hangs has arrived
        reviving.cancel()
        await self._calm()

    async def _make_queues(self) -> None:
        for plan in self.options.queues:
            if plan.dead_letters:
                await self._make_dead_letters(plan.dead_letters, ordered=plan.ordered)
            self.queues.append((await self._make(self._planned(plan)), plan))
        if self.options.topic is not None:
            await self._make_dead_letters(UNDELIVERED, ordered=self.options.topic.ordered)

    async def _make_dead_letters(self, name: str, *, ordered: bool) -> None:
        if name not in self.dead_letters:
            self.dead_letters[name] = await self._make(Queue(0, _named(name), ordered=ordered))

    async def _make(self, wanted: Queue) -> Queue:
        life = await self.some_life(self._chance)
        queue = await life.call(lambda engine: engine.queues.create(wanted))
        self.books.queues[queue.id] = queue
        return queue

    def _planned(self, plan: QueuePlan) -> Queue:
        dead = self.dead_letters.get(plan.dead_letters)
        return Queue(
            id=0,
            name=_named(plan.name),
            ordered=plan.ordered,
            delay_ms=plan.delay_ms,
            lease_ms=plan.lease_ms,
            retention_ms=plan.retention_ms,
            dead_letter=None if dead is None else DeadLetterTarget(dead.name, plan.attempts_max),
            deduplicates_content=plan.deduplicates_content,
            deduplicates_per_group=plan.deduplicates_per_group,
        )

    # ---- trouble -----------------------------------------------------------------------------------------

    async def _trouble(self) -> None:
        """Clients at work while everything goes wrong; it is over when all has been sent and the time is up."""
        duration_ms = self.options.duration_ms
        async with asyncio.TaskGroup() as senders:
            passing = [senders.create_task(work) for work in self._passing_work()]
            for queue, plan in self.queues:
                sender = Sender(f"{queue.name.name}-s", self, self._fork())
                senders.create_task(sender.run(queue, plan, duration_ms))
            if self.options.topic is not None:
                senders.create_task(self._publish(self.options.topic))
            senders.create_task(self._end_passing(passing))

    async def _publish(self, plan: TopicPlan) -> None:
        """Make the topic, publish to it, and let some subscribe from the beginning and some meanwhile."""
        topic = await self._make_topic(plan)
        over_ms = self.options.duration_ms
        async with asyncio.TaskGroup() as busy:
            for one in plan.subscriptions:
                operator = Operator(f"{one.name}-o", self, self._fork())
                enters = next((queue.id for queue, _ in self.queues if queue.name.name == one.queue), None)
                after_ms = self._chance.uniform(0, over_ms / 2) if one.late else 0
                busy.create_task(operator.subscribe(_subscription(topic, one), enters, after_ms))
            busy.create_task(Publisher("t-p", self, self._fork()).run(topic, plan, over_ms))

    async def _make_topic(self, plan: TopicPlan) -> Topic:
        wanted = Topic(0, _named(plan.name), "plain", ordered=plan.ordered)
        maker = Operator("t-o", self, self._fork())
        while True:
            with contextlib.suppress(AlreadyExists):
                await maker.ask(lambda engine: engine.topics.create(wanted))
            topic = await maker.ask(lambda engine: engine.topics.get(wanted.name))
            if topic is not None:
                return topic

    async def _end_passing(self, passing: list[asyncio.Task[None]]) -> None:
        await self.pause(self.options.duration_ms)
        for task in passing:
            task.cancel()

    def _passing_work(self) -> Iterator[Coroutine[Any, Any, None]]:
        """What goes on until the faults stop."""
        options = self.options
        if options.death_ms:
            yield self._kill()
        if options.clock_steps:
            yield self._step_clocks()
        for queue, plan in self.queues:
            for number in range(plan.consumers):
                yield Consumer(f"{queue.name.name}-c{number}", self, self._fork(), options.manners).run(queue)
            operator = Operator("operator", self, self._fork())
            if options.purge_ms:
                yield operator.purge(queue, options.purge_ms)
            if options.relabel_ms:
                yield operator.relabel(queue, options.relabel_ms)
        if options.redrive_ms:
            for dead in self.dead_letters.values():
                origins = [queue for queue, plan in self.queues if plan.dead_letters == dead.name.name]
                yield Operator("operator", self, self._fork()).redrive(dead, origins, options.redrive_ms)

    async def _kill(self) -> None:
        while True:
            await self.pause(self._chance.expovariate(1 / self.options.death_ms))
            self._chance.choice(self.nodes).die("out of the blue")

    async def _revive(self) -> None:
        while True:
            await self.pause(self._chance.uniform(0, 10_000))
            for node in self.nodes:
                if node.life is None:
                    await node.start(self._chance)

    async def _step_clocks(self) -> None:
        while True:
            await self.pause(self._chance.expovariate(1 / 10_000))
            node = self._chance.choice(self.nodes)
            node.clock.skew_ms = self._skew_ms()
            self.trace.note(node.name, "sets its clock", node.clock.skew_ms)
            self.trace.mark("a clock was set")

    # ---- calm --------------------------------------------------------------------------------------------

    async def _calm(self) -> None:
        for node in self.nodes:
            node.clock.skew_ms = 0  # or a claim shorter than the difference could never be settled in time
            if node.life is None:
                await node.start(self._chance)
        self.outside.well = True
        consumers = [self._diligent(queue) for queue, _ in self.queues for _ in NODES]
        backlogs = [self.books.queues[queue_id] for queue_id in self.books.backlogs]
        await self._come_to_rest([*(queue for queue, _ in self.queues), *backlogs])
        for dead in self.dead_letters.values():
            await self._look(dead)
            consumers.append(self._diligent(dead))
        await self._come_to_rest(list(self.dead_letters.values()))
        await self._wake()
        self.ledger.close()
        await self._check_tasks()
        await self._check_documents()
        for consumer in consumers:
            consumer.cancel()
        await self.pause(WAKE_MS)
        for node in self.nodes:
            if node.life is not None:
                await node.life.leave()

    def _diligent(self, queue: Queue) -> asyncio.Task[None]:
        consumer = Consumer(f"{queue.name.name}-calm", self, self._fork(), DILIGENT)
        task = asyncio.create_task(consumer.run(queue), name=consumer.name)
        task.add_done_callback(self._client_ended)
        return task

    async def _come_to_rest(self, queues: list[Queue]) -> None:
        """Wait until the queues are empty and no task moves anything."""
        until = self.now() + REST_MS
        while (
            busy := [queue.name.name for queue in queues if await self._look(queue)]
            or await self._active_tasks()
        ):
            require(self.now() < until, Rule.RESTS, busy, *[await self._look(queue) for queue in queues])
            await self.pause(1_000)

    async def _active_tasks(self) -> int:
        life = await self.some_life(self._chance)
        return await life.call(lambda engine: engine.redriver.active_tasks("1"))

    async def _look(self, queue: Queue) -> list[Delivery]:
        """What stands in a queue; the books say the same."""
        there: list[Delivery] = await self.database.ask("peek", queue.id, PEEK_MAX)
        self.books.agree(queue.id, there)
        return there

    async def _wake(self) -> None:
        """A message to somebody who waits at another node is there at once."""
        await self.pause(1_000)
        for queue, plan in self.queues:
            sender = Sender(f"{queue.name.name}-wake", self, self._fork())
            await sender.run(queue, replace(plan, messages=1, delays=0), 0)
            await self.pause(queue.delay_ms + WAKE_MS)
            left = await self._look(queue)
            require(not left, Rule.WOKEN, *left)

    async def _check_tasks(self) -> None:
        """The counts of the tasks lag behind what was moved, and are never ahead of it."""
        for dead in self.dead_letters.values():
            tasks = [
                TASK.read(one.document) for one in await self.database.ask("find", TASK.name, dead.name.key)
            ]
            moved = sum(task.moved for task in tasks)
            require(moved <= self.books.moved.get(dead.id, 0), Rule.MOVED, moved, self.books.moved)
            for task in tasks:
                self.trace.mark(f"a move task {task.state}")

    async def _check_documents(self) -> None:
        """Every node remembers what the store holds, and no change of a document was lost."""
        labels = 0
        for queue, _ in self.queues:
            stored = await self.database.ask("get", QUEUE.name, queue.name.key)
            require(stored is not None, Rule.AGREES, queue.name.name, "is gone")
            labels += int(QUEUE.read(stored.document).tags.get(LABEL, 0)) if stored else 0
            for node in self.nodes:
                known = node.life.engine.queues.known(queue.name) if node.life else None
                agrees = known is None or (stored is not None and known == QUEUE.read(stored.document))
                require(agrees, Rule.AGREES, node.name, "remembers", known, "for", stored)
        ledger = self.ledger
        require(ledger.labels_heard <= labels <= ledger.labels_asked, Rule.LOST, labels, "labels")

    # ---- parts -------------------------------------------------------------------------------------------

    def _fork(self) -> random.Random:
        return random.Random(self._chance.getrandbits(64))

    def _skew_ms(self) -> int:
        return self._chance.randint(-self.options.skew_ms_max, self.options.skew_ms_max)

    def _wrong_clock(self) -> WrongClock:
        return WrongClock(self._clock, self._skew_ms())

    def _present_faults(self) -> Faults:
        return self.faults

    def _engine(self, store: Store, runtime: Runtime) -> Engine:
        return Engine(store, runtime, {"plain": self._dialect}, {"push": self.outside})

    def _wire(self, node: str, chance: random.Random, die: Callable[[str], None]) -> Wire:
        return Wire(node, self.database, self._news, self._present_faults, chance, self.trace, die)

    def _fail(self, error: BaseException) -> None:
        if not self._failure.done():
            self._failure.set_exception(error)

    def _client_ended(self, client: asyncio.Task[None]) -> None:
        if not client.cancelled() and (error := client.exception()) is not None:
            self._fail(error)

    def _escaped(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._fail(Violation(Rule.STANDS, f"{context['message']}: {context.get('exception')!r}"))


def _named(name: str) -> ResourceName:
    return ResourceName("1", "here", name)


def _subscription(topic: Topic, plan: SubscriptionPlan) -> Subscription:
    return Subscription(
        id=plan.name,
        topic=topic.name,
        queue_id=0,
        owner="1",
        protocol="push",
        endpoint=plan.name,
        dead_letter=_named(UNDELIVERED) if plan.dead_letters else None,
        attributes={"ordered": str(topic.ordered).lower()},
    )


def _violation(group: BaseExceptionGroup[Exception]) -> Violation:
    """The first thing that went wrong; what is no broken rule is something that a client should not have met."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, Violation) else Violation(Rule.ANSWERS, repr(error))
