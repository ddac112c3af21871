"""A new worker joins a running Citus cluster under load, as the page about PostgreSQL says, and leaves it again.

Two nodes are at work. Figures are told by stage: the newcomer is joined, shards are moved to it, and moved
away from it. Shards are moved by Citus, while it is asked how far it is.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import asyncpg

from tests.crash.journal import Violated
from tests.crash.lines import after
from tests.crash.node_load import NodeLoad
from tests.crash.under_load import calls, port_of, settled, under_load, while_working
from tests.services.citus import CitusCluster
from tests.services.server import Server, new_server, redrive

_NODES: Final = 2
_COPIES: Final = 4
_CALLS: Final = 200
_MOVED_SECONDS: Final = 300
_HELD: Final = """
    SELECT count(*) FROM pg_dist_shard_placement JOIN pg_dist_shard USING (shardid)
    WHERE logicalrelid = 'deliveries'::regclass AND nodename = $1 AND nodeport = $2
"""
_STATE: Final = "SELECT state::text FROM citus_rebalance_status()"


@dataclass(frozen=True, slots=True)
class Stage:
    """Figures of a part, as callers noticed it.

    Attributes:
        name: What happened.
        seconds: How long it took.
        calls: Answered ones.
        silence: The longest time (s) in which nobody was answered.
        slowest: The slowest call that was answered (s), beyond the wait that it asked for.
        failed: Calls that failed, by operation and answer.
        shards: Those of the deliveries that the newcomer holds at the end of it.
    """

    name: str
    seconds: float
    calls: int
    silence: float
    slowest: float
    failed: Counter[str]
    shards: int


class Joining:
    """A cluster, and a server with Citus that is no part of it yet."""

    def __init__(self, cluster: str, newcomer: str) -> None:
        """Name a database on the coordinator, and one on the newcomer, as a role that may make others."""
        self._cluster = CitusCluster(cluster, "redrive_join")
        self._newcomer = newcomer
        address = urlsplit(newcomer)
        self._host, self._port = address.hostname or "", address.port or 5432
        self._nodes: list[Server] = []

    async def run(self, seed: int = 0) -> Sequence[Stage]:
        """All stages, at whose end everything is accounted for.

        Raises:
            Violated: A promise was broken, or a command of the documented way failed.
        """
        with ExitStack() as ends:
            url = await asyncio.to_thread(ends.enter_context, self._cluster.database())
            async with (
                self._database_on_newcomer(urlsplit(url).path.lstrip("/")),
                self._serving(url) as ports,
            ):
                connection = await asyncpg.connect(url)
                try:
                    async with under_load(ports, seed, _COPIES) as load:
                        stages = await while_working(load, self._stages(load, connection, url))
                        await settled(load, self._nodes)
                finally:
                    await connection.close()
        return stages

    async def _stages(self, load: NodeLoad, connection: asyncpg.Connection, url: str) -> Sequence[Stage]:
        parts = {
            "two workers": calls(load, _CALLS),
            "a third worker joins": self._join(connection, url),
            "shards are moved to it": self._rebalance(connection),
            "three workers": calls(load, _CALLS),
            "it is emptied, and leaves": self._leave(connection),
        }
        stages = [await self._stage(load, connection, name, part) for name, part in parts.items()]
        if not stages[3].shards or stages[4].shards:
            raise Violated(f"no shards were moved to the newcomer, or back: {stages}")
        return stages

    async def _stage(
        self, load: NodeLoad, connection: asyncpg.Connection, name: str, part: Coroutine[None, None, None]
    ) -> Stage:
        load.answers.begin()
        began, failed, answered = time.monotonic(), Counter(load.answers.failed), load.calls
        await part
        return Stage(
            name,
            time.monotonic() - began,
            load.calls - answered,
            load.answers.silence,
            load.answers.slowest,
            load.answers.failed - failed,
            await connection.fetchval(_HELD, self._host, self._port),
        )

    async def _join(self, connection: asyncpg.Connection, url: str) -> None:
        await connection.execute("SELECT citus_add_node($1, $2)", self._host, self._port)
        await _command("store", "distribute", "--store", url)
        await _command("doctor", "--store", url, may_complain=True)

    async def _rebalance(self, connection: asyncpg.Connection) -> None:
        await connection.execute("SELECT citus_rebalance_start()")
        async with asyncio.timeout(_MOVED_SECONDS):
            while (state := await connection.fetchval(_STATE)) != "finished":
                if state in ("failed", "cancelled"):
                    raise Violated(f"rebalancing has {state}")
                await after(0.2)

    async def _leave(self, connection: asyncpg.Connection) -> None:
        await connection.execute(
            "SELECT citus_set_node_property($1, $2, 'shouldhaveshards', false)", self._host, self._port
        )
        await self._rebalance(connection)
        await connection.execute("SELECT citus_remove_node($1, $2)", self._host, self._port)

    @contextlib.asynccontextmanager
    async def _database_on_newcomer(self, name: str) -> AsyncIterator[None]:
        maker = await asyncpg.connect(self._newcomer)
        await maker.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        try:
            inside = await asyncpg.connect(urlsplit(self._newcomer)._replace(path=f"/{name}").geturl())
            await inside.execute("CREATE EXTENSION citus")
            await inside.close()
            yield
        finally:
            await maker.execute(f"DROP DATABASE {name} WITH (FORCE)")
            await maker.close()

    @contextlib.asynccontextmanager
    async def _serving(self, url: str) -> AsyncIterator[list[int]]:
        """The ports of the nodes, on the cluster as it was."""
        await _command("store", "distribute", "--store", url)
        self._nodes = [new_server(url, "--log-level", "error") for _ in range(_NODES)]
        try:
            for node in self._nodes:
                await asyncio.to_thread(node.start)
            yield [port_of(node) for node in self._nodes]
        finally:
            for node in self._nodes:
                if node.process.poll() is None:
                    node.kill()


async def _command(*words: str, may_complain: bool = False) -> None:
    done = await asyncio.to_thread(redrive, *words)
    if done.returncode and not may_complain:
        raise Violated(f"redrive {' '.join(words)}: {done.stdout}{done.stderr}")


def line(stage: Stage) -> str:
    """A stage's figures."""
    return (
        f"{stage.name:26} {stage.seconds:6.1f} s, {stage.calls} calls, nobody answered for {stage.silence:.2f} s,"
        f" slowest call {stage.slowest:.2f} s, failed: {dict(stage.failed) or 0}, {stage.shards} shards on the newcomer"
    )
