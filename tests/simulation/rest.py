"""Rest: the faults have stopped, and everything has to end well."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from redrive.engine.configuration.queues import QUEUE
from redrive.engine.ports import Resource
from redrive.engine.tasks.redrive import TASK
from redrive.model.delivery import Delivery
from redrive.model.queue import Queue
from tests.simulation.clients import LABEL, Consumer, Sender
from tests.simulation.cluster import NODES, Cluster
from tests.simulation.database import PEEK_MAX
from tests.simulation.documents import read_configuration
from tests.simulation.options import DILIGENT
from tests.simulation.rules import Rule, require

# The longest lease and its extension, a dead node's move task and the round in which another node takes it up, and
# what a task of one message a second takes for all messages of a run.
REST_MS = 5 * 60_000

WAKE_MS = 1_000  # for a message to reach who waits, when all is well: news, and a few calls


class Rest:
    """The second part of a run."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._books = cluster.books

    async def come(self) -> None:
        """See everything emptied, and hold what came of it against what was promised."""
        cluster = self._cluster
        for node in cluster.nodes:
            node.clock.skew_ms = 0  # or a claim shorter than the difference could never be settled in time
        cluster.outside.well = True
        await cluster.revive()
        consumers = [self._diligent(queue) for queue, _ in cluster.queues for _ in NODES]
        backlogs = [self._books.queues[queue_id] for queue_id in self._books.backlogs]
        await self._come_to_rest([*(queue for queue, _ in cluster.queues), *backlogs])
        for dead in cluster.dead_letters.values():
            await self._look(dead)
            consumers.append(self._diligent(dead))
        await self._come_to_rest(list(cluster.dead_letters.values()))
        await self._wake()
        cluster.ledger.close()
        await self._check_tasks()
        await self._check_documents()
        await self._check_configuration()
        for consumer in consumers:
            consumer.cancel()
        await cluster.pause(WAKE_MS)
        for node in cluster.nodes:
            if node.life is not None:
                await node.life.leave()

    def _diligent(self, queue: Queue) -> asyncio.Task[None]:
        consumer = Consumer(f"{queue.name.name}-calm", self._cluster, self._cluster.fork(), DILIGENT)
        task = asyncio.create_task(consumer.run(queue), name=consumer.name)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, consumer: asyncio.Task[None]) -> None:
        if not consumer.cancelled() and (error := consumer.exception()) is not None:
            self._cluster.fail(error)

    async def _come_to_rest(self, queues: list[Queue]) -> None:
        """Wait until the queues are empty and no task moves anything."""
        until = self._cluster.now() + REST_MS
        while busy := await self._busy(queues):
            require(self._cluster.now() < until, Rule.RESTS, *busy)
            await self._cluster.pause(1_000)

    async def _busy(self, queues: list[Queue]) -> Sequence[object]:
        """Return the messages left in the queues; when there are none, the tasks that are still active."""
        left = [one for queue in queues for one in await self._look(queue)]
        found = [] if left else await self._cluster.database.ask("find", TASK.name, "")
        return left or [one for one in found if TASK.read(one.document).state.active]

    async def _look(self, queue: Queue) -> list[Delivery]:
        """Return the content of a queue, checked against the books."""
        there: list[Delivery] = await self._cluster.database.ask("peek", queue.id, PEEK_MAX)
        self._books.agree(queue.id, there)
        return there

    async def _wake(self) -> None:
        """A message to somebody who waits at another node is there at once."""
        await self._cluster.pause(1_000)
        for queue, plan in self._cluster.queues:
            sender = Sender(f"{queue.name.name}-wake", self._cluster, self._cluster.fork())
            await sender.run(queue, replace(plan, messages=1, delays=0), 0)
            await self._cluster.pause(queue.delay_ms + WAKE_MS)
            left = await self._look(queue)
            require(not left, Rule.WOKEN, *left)

    async def _check_tasks(self) -> None:
        """The counts of the tasks lag behind what was moved, and are never ahead of it."""
        for dead in self._cluster.dead_letters.values():
            found = await self._cluster.database.ask("find", TASK.name, dead.name.key)
            tasks = [TASK.read(one.document) for one in found]
            moved = sum(task.moved for task in tasks)
            require(moved <= self._books.moved.get(dead.id, 0), Rule.MOVED, moved, self._books.moved)
            for task in tasks:
                self._cluster.trace.mark(f"a move task {task.state}")

    async def _check_documents(self) -> None:
        """Every node remembers what the store holds, and no change of a document was lost."""
        labels = 0
        for queue, _ in self._cluster.queues:
            stored = await self._cluster.database.ask("get", QUEUE.name, queue.name.key)
            require(stored is not None, Rule.AGREES, queue.name.name, "is gone")
            labels += int(QUEUE.read(stored.document).tags.get(LABEL, 0)) if stored else 0
            for node in self._cluster.nodes:
                known = node.life.engine.resources.queues.known(queue.name) if node.life else None
                agrees = known is None or (stored is not None and known == QUEUE.read(stored.document))
                require(agrees, Rule.AGREES, node.name, "remembers", known, "for", stored)
        ledger = self._cluster.ledger
        require(ledger.labels_heard <= labels <= ledger.labels_asked, Rule.LOST, labels, "labels")

    async def _check_configuration(self) -> None:
        """Check that the administrators' answers hold, and every node counts as the store does."""
        cluster = self._cluster

        async def find(kind: str, prefix: str) -> Sequence[Resource]:
            found: Sequence[Resource] = await cluster.database.ask("find", kind, prefix)
            return found

        stored = await read_configuration(find)
        cluster.told.check(stored)
        half = stored.half_written()
        require(not half, Rule.WHOLE, *half)
        for topic in stored.topics.values():
            wanted = sum(one.topic == topic.name for one in stored.subscriptions.values())
            for node in cluster.nodes:
                if node.life is not None:
                    counts = await node.life.engine.resources.subscriptions.count(topic.name)
                    counted = counts.confirmed + counts.unconfirmed
                    require(counted == wanted, Rule.AGREES, node.name, "counts", counted, "of", wanted)
