"""One PostgreSQL behind one PgBouncer in session mode, either of which is lost and starts again."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from typing_extensions import override

from tests.crash.nodes import Backing, Loss
from tests.services.pgbouncer import PgBouncer, own_pgbouncer
from tests.services.postgres import PostgresServer, own_server
from tests.services.postgres_pair import kill

# As the page about PostgreSQL tells users: by default PgBouncer asks a database that was away again after 15 s.
_SETTINGS: Final = {"server_login_retry": 1}


class PooledBacking(Backing):
    """A database whose every session goes through the pooler."""

    copies = 2

    def __init__(self, run_directory: Path) -> None:
        """Keep everything in the directory of a run."""
        self._directory = run_directory / "pgbouncer"
        self._postgres: PostgresServer = own_server(run_directory)
        self._pooler: PgBouncer | None = None

    @property
    @override
    def losses(self) -> Mapping[str, Loss]:
        return {"pooler": Loss(8, self._lose_pooler), "database": Loss(4, self._lose_database)}

    @override
    async def open(self, nodes: int) -> Sequence[str]:
        self._directory.mkdir()
        self._pooler = own_pgbouncer(self._postgres, "session", self._directory, **_SETTINGS)
        return [self._pooler.url()] * nodes

    @override
    async def close(self) -> None:
        if self._pooler is not None:
            self._pooler.kill()

    @override
    async def spread(self, queues: Sequence[str]) -> None:
        """There is one database."""

    async def _lose_pooler(self, rng: random.Random) -> None:
        """kill -9 of PgBouncer, and with it of every session; it is started again at once."""
        assert self._pooler is not None
        await asyncio.to_thread(self._pooler.kill)
        await asyncio.to_thread(self._pooler.start)

    async def _lose_database(self, rng: random.Random) -> None:
        """kill -9 of PostgreSQL, which PgBouncer outlives; it is started again at once."""
        await asyncio.to_thread(kill, self._postgres)
        await asyncio.to_thread(self._postgres.start)
