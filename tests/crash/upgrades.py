"""Rounds of a rolling upgrade: nodes of an older version are exchanged one by one, under load, on one PostgreSQL.

A new node joins those of the older version and brings the schema up to date while they work; in every second round it is
killed (SIGKILL) while it does, and started again. Then each old node stops taking calls, ends (SIGTERM) and comes back as
a new one. Beside the callers of `node_load` somebody drains a deep queue, on old nodes and new ones.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import asyncpg

from redrive.stores.postgres import migrate
from tests.crash.journal import Violated
from tests.crash.ledger import Answers
from tests.crash.lines import after
from tests.crash.node_load import NodeCaller, NodeLoad
from tests.crash.under_load import calls, port_of, settled, under_load, while_working
from tests.crash.wire import Lost
from tests.services.postgres import PostgresServer
from tests.services.server import Server, new_server

_FLAGS: Final = ("--log-level", "error")
_CALLS: Final = 100
_DRAINED_SECONDS: Final = 0.5  # for calls that had chosen a node which takes no more; the slowest took 0.06 s
_DROPPED_SECONDS: Final = 120  # for what only old nodes needed
_AT_ONCE: Final = 500_000  # rows that a statement puts in
_FILL: Final = (
    "INSERT INTO deliveries"
    " (queue_id, seq, available_at, attempts, enqueued_at, sent_at, message_id, body, place)"
    " SELECT $1, nextval('delivery_seq'), $4, 0, $4, $4, decode(md5(n::text), 'hex'), 'deep ' || n, 1"
    " FROM generate_series($2::bigint, $3::bigint) AS n"
)
_QUEUE: Final = "SELECT queue_id FROM deliveries WHERE body = 'deep 0'"
_LEFT: Final = "SELECT count(*) FROM deliveries WHERE queue_id = $1"
_STEP: Final = "SELECT max(number) FROM schema_steps"
_IS_CHANGING: Final = "SELECT EXISTS (SELECT FROM pg_stat_progress_create_index)"


@dataclass(frozen=True, slots=True)
class Stage:
    """Figures of a part of a round.

    Attributes:
        name: Its nodes.
        seconds: How long it took.
        silence: The longest time (s) in which nobody was answered.
        slowest: The slowest call that was answered (s).
        slowest_claim: The slowest receive from the deep queue (s).
        failed: The calls that failed, all of which may be made again.
    """

    name: str
    seconds: float
    silence: float
    slowest: float
    slowest_claim: float
    failed: Counter[str]


@dataclass
class UpgradeRound:
    """One round that kept every promise.

    Attributes:
        seed: Its number.
        steps: The schema's step before and after.
        stages: In their order.
        calls: Answered ones.
    """

    seed: int
    steps: tuple[int, int]
    stages: list[Stage] = field(default_factory=list)
    calls: int = 0


class Upgrades:
    """Nodes of two versions on one database."""

    def __init__(
        self, postgres: PostgresServer, old: Path, *, nodes: int = 2, rows: int = 200_000, calls: int = _CALLS
    ) -> None:
        """Begin with so many nodes of the old tree, whose dependencies are those of this one, and so deep a queue.

        So many calls are answered between two changes.
        """
        self._postgres = postgres
        self._environment = {"PYTHONPATH": str(old / "src")}
        self._number = nodes
        self._rows = rows
        self._calls = calls
        self._nodes: list[Server] = []
        self._url = ""

    async def run(self, seed: int) -> UpgradeRound:
        """One round, on a database of its own.

        Raises:
            Violated: A promise was broken.
        """
        database = f"upgrade_{seed}"
        maker = await asyncpg.connect(self._postgres.url())
        await maker.execute(f"CREATE DATABASE {database}")
        await maker.close()
        url = self._url = self._postgres.url(database)
        self._nodes = []
        connection = await asyncpg.connect(url)
        try:
            for _ in range(self._number):
                await self._start(new_server(url, *_FLAGS, environment=self._environment))
            ports = [port_of(node) for node in self._nodes]
            async with under_load(ports, seed) as load:
                return await while_working(load, self._round(load, ports, connection, seed))
        finally:
            for node in self._nodes:
                if node.process.poll() is None:
                    node.kill()
            await connection.close()

    async def _round(
        self, load: NodeLoad, ports: list[int], connection: asyncpg.Connection, seed: int
    ) -> UpgradeRound:
        rng = random.Random(seed)
        deep = Deep(load, connection, seed, self._rows)
        await deep.fill()
        draining = asyncio.create_task(deep.drain(), name="drain")
        before = await connection.fetchval(_STEP)
        done = UpgradeRound(seed, (before, before))
        await self._stage(done, load, deep, f"{self._number} old nodes", calls(load, self._calls))
        old = list(self._nodes)
        joining = self._join(ports, connection if seed % 2 else None)
        await self._stage(done, load, deep, "a new node joins, the schema is upgraded", joining)
        done.steps = (before, await connection.fetchval(_STEP))
        await self._stage(
            done, load, deep, f"{self._number} old nodes and a new one", calls(load, 3 * self._calls)
        )
        rng.shuffle(old)
        for node in old:
            await self._stage(done, load, deep, "an old node is exchanged", self._exchange(node, ports))
        await self._stage(done, load, deep, f"{self._number + 1} new nodes", calls(load, self._calls))
        await settled(load, self._nodes)
        await draining
        await deep.check()
        async with asyncio.timeout(_DROPPED_SECONDS):
            while await migrate.outdated_indexes(connection):
                await after(0.2)
        done.calls = load.calls
        return done

    async def _stage(
        self,
        done: UpgradeRound,
        load: NodeLoad,
        deep: "Deep",
        name: str,
        happening: Coroutine[Any, Any, None],
    ) -> None:
        for answers in (load.answers, deep.answers):
            answers.begin()
        began, failed = time.monotonic(), load.answers.failed + deep.answers.failed
        await happening
        stage = Stage(
            name,
            time.monotonic() - began,
            load.answers.silence,
            load.answers.slowest,
            deep.answers.slowest,
            load.answers.failed + deep.answers.failed - failed,
        )
        done.stages.append(stage)

    async def _join(self, ports: list[int], killed_by: asyncpg.Connection | None) -> None:
        """A new node starts; it is killed first while indexes are made, where somebody can say when they are."""
        node = new_server(self._url, *_FLAGS)
        if killed_by is not None:
            starting = asyncio.create_task(asyncio.to_thread(_start_in_vain, node), name="start")
            while not await killed_by.fetchval(_IS_CHANGING):
                if starting.done():
                    raise Violated("the schema was upgraded too fast to be interrupted: more rows")
                await after(0.01)
            node.process.kill()
            await starting
        await self._start(node)
        ports.append(port_of(node))

    async def _exchange(self, node: Server, ports: list[int]) -> None:
        """Exchange a node as a balancer and an init system do: no more calls, SIGTERM, the new version at its port.

        A call that is on its way while the node closes the connection is not answered, so those that had begun end first.
        """
        port = port_of(node)
        ports.remove(port)
        await after(_DRAINED_SECONDS)
        status = await asyncio.to_thread(node.stop)
        if status:
            raise Violated(f"a node of the old version ended with status {status}: {node.log}")
        self._nodes.remove(node)
        await self._start(Server(node.flags, node.log))
        ports.append(port)

    async def _start(self, node: Server) -> None:
        await asyncio.to_thread(node.start)
        self._nodes.append(node)


class Deep:
    """A queue with very many messages, from which somebody receives all the while."""

    def __init__(self, load: NodeLoad, connection: asyncpg.Connection, seed: int, rows: int) -> None:
        self._load = load
        self._connection = connection
        self._name = f"deep-{seed}"
        self._rows = rows
        self.answers = Answers()
        self._came: set[str] = set()
        self._deleted = 0

    async def fill(self) -> None:
        """Make the queue, and put in its messages behind the server's back, as its version would have."""
        caller = self._load.caller()
        self._url = (await caller.insist("CreateQueue", QueueName=self._name))["QueueUrl"]
        await caller.insist("SendMessage", QueueUrl=self._url, MessageBody="deep 0")
        await caller.close()
        self._queue_id = await self._connection.fetchval(_QUEUE)
        now = time.time_ns() // 1_000_000
        for first in range(1, self._rows, _AT_ONCE):
            last = min(first + _AT_ONCE, self._rows) - 1
            await self._connection.execute(_FILL, self._queue_id, first, last, now, timeout=3600)
        await self._connection.execute("ANALYZE deliveries", timeout=3600)

    async def drain(self) -> None:
        """Receive and delete as long as the others send."""
        caller = NodeCaller(self._load.ports, self._load.rng, self.answers)
        while self._load.sending:
            try:
                answer = await caller.call(
                    "ReceiveMessage", QueueUrl=self._url, MaxNumberOfMessages=10, VisibilityTimeout=3600
                )
                bodies = [message["Body"] for message in answer.get("Messages", [])]
                if again := self._came.intersection(bodies):
                    raise Violated(f"{sorted(again)} came to a second receiver while the first holds it")
                self._came.update(bodies)
                entries = [
                    {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
                    for number, message in enumerate(answer.get("Messages", []))
                ]
                if entries:
                    await caller.insist("DeleteMessageBatch", QueueUrl=self._url, Entries=entries)
            except Lost:
                continue
            self._deleted += len(entries)
            await after(0.05)
        await caller.close()

    async def check(self) -> None:
        """Nothing is gone but what was deleted.

        Raises:
            Violated: Something is, or is still there.
        """
        left = await self._connection.fetchval(_LEFT, self._queue_id, timeout=3600)
        if left != self._rows - self._deleted:
            raise Violated(f"{left} of {self._rows} messages are left, after {self._deleted} were deleted")


def _start_in_vain(node: Server) -> None:
    try:
        node.start()
    except RuntimeError:  # it was killed meanwhile
        return


def summary(rounds: Sequence[UpgradeRound]) -> list[str]:
    """A line for each stage: how long it took, and what callers noticed of it, over all rounds."""
    lines = []
    for name in dict.fromkeys(stage.name for done in rounds for stage in done.stages):
        stages = [stage for done in rounds for stage in done.stages if stage.name == name]
        failed = sum((stage.failed for stage in stages), Counter[str]())
        lines.append(
            f"{name:42} {max(stage.seconds for stage in stages):6.1f} s,"
            f" nobody answered for {max(stage.silence for stage in stages):.2f} s,"
            f" slowest call {max(stage.slowest for stage in stages):.2f} s,"
            f" from the deep queue {max(stage.slowest_claim for stage in stages):.2f} s,"
            f" to be made again: {dict(failed) or 0}"
        )
    return lines
