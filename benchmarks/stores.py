"""Empty stores to measure on, with every commit waiting for the disk."""

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from tests.services.citus import blocking, named_cluster
from tests.services.pgbouncer import PgBouncer, shared_pgbouncer
from tests.services.postgres import DatabaseMaker, PostgresServer, end_run, own_server

from redrive.stores.postgres.distributing import distribute

NewStore = Callable[[], AbstractContextManager[str]]


@contextlib.contextmanager
def sqlite(directory: Path) -> Iterator[NewStore]:
    """Stores in files of this directory, deleted when they are done with."""
    numbers = itertools.count()

    @contextlib.contextmanager
    def new_store() -> Iterator[str]:
        path = directory / f"store-{next(numbers)}.db"
        try:
            yield f"sqlite:///{path}"
        finally:
            for suffix in ("", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)

    yield new_store


@contextlib.contextmanager
def postgresql(directory: Path) -> Iterator[NewStore]:
    """Databases of a throwaway server in this directory."""
    directory.chmod(0o755)  # the server may run as another user and has to pass through
    try:
        maker = DatabaseMaker(own_server(directory), prefix="bench")
        try:
            yield maker.database
        finally:
            maker.close()
    finally:
        end_run(directory)


@contextlib.contextmanager
def pgbouncer(directory: Path) -> Iterator[NewStore]:
    """Databases of such a server behind a pooler in session mode."""
    with pooled_server(directory) as (server, pooler):
        maker = DatabaseMaker(server, "bench", pooler.url)
        try:
            yield maker.database
        finally:
            maker.close()


@contextlib.contextmanager
def pooled_server(directory: Path) -> Iterator[tuple[PostgresServer, PgBouncer]]:
    """A throwaway server in this directory, and a pooler in session mode before it."""
    run = directory / f"redrive-tests-{os.getpid()}-pooled"  # the pooler ends with the process of that id
    run.mkdir()
    for each in (directory, run):
        each.chmod(0o755)
    try:
        server = own_server(run)
        yield server, shared_pgbouncer(server, "session")
    finally:
        end_run(run)


@contextlib.contextmanager
def citus(_: Path) -> Iterator[NewStore]:
    """Distributed databases of the cluster that REDRIVE_TEST_CITUS names; its own disks are measured."""
    cluster = named_cluster("redrive_bench")

    @contextlib.contextmanager
    def new_store() -> Iterator[str]:
        with cluster.database() as url:
            blocking(distribute(url))
            yield url

    yield new_store


KINDS: Final[dict[str, Callable[[Path], AbstractContextManager[NewStore]]]] = {
    "sqlite": sqlite,
    "postgresql": postgresql,
    "pgbouncer": pgbouncer,
    "citus": citus,
}
