"""A Citus cluster that somebody else runs: under load its nodes are lost, and its shards moved.

Nodes are killed and started by commands that the caller gives; `{host}` and `{port}` in a command stand for the node's
address, as the cluster itself knows it.
"""

import asyncio
import random
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Final
from urllib.parse import urlsplit

import asyncpg
from typing_extensions import override

from redrive.stores.postgres.distributing import distribute
from tests.crash.lines import after
from tests.crash.nodes import Backing, Loss
from tests.services.citus import CitusCluster

_DOWN_SECONDS: Final = (0.0, 4.0)  # how long a worker is away before it is started again
_START_SECONDS: Final = 60
_AGAIN_SECONDS: Final = 0.2

# The shards that the queues of these names are in, and where.
_SHARDS_OF: Final = """
    SELECT DISTINCT p.shardid AS id, p.nodename AS host, p.nodeport AS port
    FROM resources r
    JOIN pg_dist_shard_placement p
        ON p.shardid = get_shard_id_for_distribution_column('deliveries', (r.document ->> 'id')::bigint)
    WHERE r.kind = 'queue' AND r.key LIKE ANY ($1::text[])
"""
_SHARDS: Final = """
    SELECT shardid AS id, nodename AS host, nodeport AS port
    FROM pg_dist_shard_placement JOIN pg_dist_shard USING (shardid)
    WHERE logicalrelid = 'deliveries'::regclass
"""
_MOVE: Final = "SELECT citus_move_shard_placement($1, $2, $3, $4, $5, 'force_logical')"


class ClusterBacking(Backing):
    """A database of its own on every node of the cluster."""

    copies = 4

    def __init__(self, url: str, kill: str, start: str) -> None:
        """Name the cluster.

        Args:
            url: Any database on the coordinator, as a role that may make others.
            kill: The command that ends a node's PostgreSQL at once; it returns when all of it has ended.
            start: The command that starts it again, and returns once it accepts connections.
        """
        self._cluster = CitusCluster(url, "redrive_crash")
        self._kill, self._start = kill, start
        self._ends = ExitStack()
        self._nodes: Sequence[str] = ()

    @property
    @override
    def losses(self) -> Mapping[str, Loss]:
        return {
            "worker": Loss(8, self._lose_worker),
            "coordinator": Loss(8, self._lose_coordinator),
            "shard": Loss(4, self._move_shard),
        }

    @override
    async def open(self, nodes: int) -> Sequence[str]:
        url = await asyncio.to_thread(self._ends.enter_context, self._cluster.database())
        self._nodes = self._cluster.urls(url)
        await distribute(url)
        return [url] * nodes

    @override
    async def close(self) -> None:
        await asyncio.to_thread(self._ends.close)

    @override
    async def spread(self, queues: Sequence[str]) -> None:
        connection = await asyncpg.connect(self._nodes[0])
        try:
            shards = await connection.fetch(_SHARDS_OF, [f"%{queue}%" for queue in queues])
            if len({(shard["host"], shard["port"]) for shard in shards}) == 1:
                await self._move(connection, shards[0], rng=random.Random(0))
        finally:
            await connection.close()

    async def _lose_worker(self, rng: random.Random) -> None:
        """End a worker, and start it again after some seconds."""
        worker = rng.choice(self._nodes[1:])
        await self._ask_node(self._kill, worker)
        await after(rng.uniform(*_DOWN_SECONDS))
        await self._bring_back(worker)

    async def _lose_coordinator(self, rng: random.Random) -> None:
        """End the coordinator, and start it again at once."""
        await self._ask_node(self._kill, self._nodes[0])
        await self._bring_back(self._nodes[0])

    async def _move_shard(self, rng: random.Random) -> None:
        """Move the queues of a shard from the worker that has most of them to another, as they are served."""
        connection = await asyncpg.connect(self._nodes[0])
        try:
            shards = await connection.fetch(_SHARDS)
            held = Counter((shard["host"], shard["port"]) for shard in shards)
            fullest, _ = held.most_common(1)[0]
            of_fullest = [shard for shard in shards if (shard["host"], shard["port"]) == fullest]
            await self._move(connection, rng.choice(of_fullest), rng)
        finally:
            await connection.close()

    async def _move(self, connection: asyncpg.Connection, shard: asyncpg.Record, rng: random.Random) -> None:
        source = shard["host"], shard["port"]
        workers = [(address.hostname, address.port) for address in map(urlsplit, self._nodes[1:])]
        target = rng.choice([worker for worker in workers if worker != source])
        await connection.execute(_MOVE, shard["id"], *source, *target)

    async def _bring_back(self, node: str) -> None:
        async with asyncio.timeout(_START_SECONDS):
            while not await self._ask_node(self._start, node, may_fail=True):
                await after(_AGAIN_SECONDS)

    async def _ask_node(self, command: str, node: str, *, may_fail: bool = False) -> bool:
        address = urlsplit(node)
        filled = command.replace("{host}", address.hostname or "").replace("{port}", str(address.port))
        done = await asyncio.to_thread(
            subprocess.run, filled, shell=True, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        if done.returncode and not may_fail:
            raise RuntimeError(f"{filled}: exit status {done.returncode}: {done.stderr.decode()}")
        return not done.returncode
