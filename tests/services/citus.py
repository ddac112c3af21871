"""Databases over all nodes of a Citus cluster, which somebody else runs: Debian has no package to start one from.

`REDRIVE_TEST_CITUS` names any database on its coordinator, as a role that may make others. A database takes 0.5 s to
make on three nodes and as long to distribute, so each process of a test run has one, and empties it between tests
(20 ms).
"""

import asyncio
import itertools
import os
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import asyncpg

T = TypeVar("T")

CITUS_VARIABLE: Final = "REDRIVE_TEST_CITUS"

_NODES: Final = "SELECT nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid"
_TABLES: Final = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'schema_steps'"
_RESTART: Final = (
    "SELECT setval(sequencename::regclass, 1, false) FROM pg_sequences WHERE schemaname = 'public'"
)
_FORGET_NEWER: Final = "DELETE FROM schema_steps WHERE number >= 1000"  # a test's pretence
# A node that joins is told of all roles, which two processes at once cannot do.
_LOCK: Final = "SELECT pg_advisory_lock(21094)"


class CitusCluster:
    """Makes and drops databases. Its calls block, so that tests of both kinds can make them."""

    def __init__(self, url: str, prefix: str) -> None:
        """Ask for the cluster's nodes, the coordinator first; `url` is that of a database there."""
        self._names = (f"{prefix}_{number}" for number in itertools.count())
        self._nodes: list[str] = blocking(_nodes(url))

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL, on the coordinator, of an empty database that is on every node and joined into one cluster."""
        name = next(self._names)
        blocking(self._make(name))
        try:
            yield _at(self._nodes[0], name)
        finally:
            blocking(self._drop(name))

    @contextmanager
    def plain_database(self) -> Iterator[str]:
        """The URL of an empty database that is on the coordinator alone, and knows nothing of the cluster."""
        name = next(self._names)
        blocking(self._drop(name))
        blocking(_execute(self._nodes[0], f"CREATE DATABASE {name} TEMPLATE template0"))
        try:
            yield _at(self._nodes[0], name)
        finally:
            blocking(self._drop(name))

    def urls(self, url: str) -> list[str]:
        """The URLs of a database of this cluster on each node, the coordinator first."""
        return [_at(node, urlsplit(url).path.lstrip("/")) for node in self._nodes]

    async def _make(self, name: str) -> None:
        await self._drop(name)  # what a killed run left behind
        for node in self._nodes:
            await _execute(node, f"CREATE DATABASE {name} TEMPLATE template0")
            await _execute(_at(node, name), "CREATE EXTENSION citus")
        coordinator, *workers = self._nodes
        lock = await asyncpg.connect(coordinator)
        try:
            await lock.execute(_LOCK)
            await _execute(
                _at(coordinator, name),
                f"SELECT citus_set_coordinator_host({_host_and_port(coordinator)})",
                *(f"SELECT citus_add_node({_host_and_port(worker)})" for worker in workers),
            )
        finally:
            await lock.close()

    async def _drop(self, name: str) -> None:
        for node in self._nodes:
            await _execute(node, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def named_cluster(prefix: str) -> CitusCluster:
    """The cluster that the environment names; databases of a run's other processes have other prefixes."""
    return CitusCluster(os.environ[CITUS_VARIABLE], prefix)


def empty(url: str) -> None:
    """Let a database with Redrive's schema be as if it was just made."""
    blocking(_empty(url))


def blocking(call: Coroutine[Any, Any, T]) -> T:
    """The result of a call that may not have the caller's event loop: a test may be running on it."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, call).result()


async def _nodes(url: str) -> list[str]:
    connection = await asyncpg.connect(url)
    try:
        nodes = await connection.fetch(_NODES)
    finally:
        await connection.close()
    user, _, _ = urlsplit(url).netloc.rpartition("@")
    return [f"postgresql://{user}@{host}:{port}/postgres" for host, port in nodes]


async def _empty(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for (table,) in await connection.fetch(_TABLES):
            await connection.execute(f"DELETE FROM {table}")
        await connection.execute(_FORGET_NEWER)
        await connection.execute(_RESTART)
    finally:
        await connection.close()


async def _execute(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


def _at(url: str, database: str) -> str:
    return urlsplit(url)._replace(path=f"/{database}").geturl()


def _host_and_port(url: str) -> str:
    return f"'{urlsplit(url).hostname}', {urlsplit(url).port}"
