"""Rounds of load, crash, return and proof, on one store that lives through all of them."""

import asyncio
import random
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.crash.checks import Checks
from tests.crash.journal import Journal
from tests.crash.load import DELAY_SECONDS, LEASE_SECONDS, Load
from tests.crash.wire import Caller
from tests.services.postgres import PostgresServer
from tests.services.postgres_pair import kill
from tests.services.server import Server, new_server

# Calls before the crash: it falls anywhere between a server's first call and about a second.
ACKNOWLEDGED_MAX = 1500
CALLS_AFTER = 200
PAUSE_TURNS_MAX = 200  # of the event loop, so that the crash does not always follow an answer
FLAGS = ("--clock", "simulated", "--log-level", "warning")


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """One round that kept every promise.

    Attributes:
        seed: Seeded its random numbers.
        acknowledged: Calls acknowledged before the crash.
        messages: Messages sent in it, acknowledged or not.
        crashed: What was killed.
        seconds: How long it took.
    """

    seed: int
    acknowledged: int
    messages: int
    crashed: str
    seconds: float


class Rounds:
    """A server and its store, crashed again and again."""

    def __init__(self, server: Server, postgres: PostgresServer | None = None) -> None:
        """Crash this server, which runs, and what it stands on: its database where it has one, or else its disk."""
        self._server = server
        self._postgres = postgres
        self._moment = server.now()

    def run(self, seed: int) -> AttemptResult:
        """One round.

        Raises:
            Violated: A promise was broken; the round can be repeated by its seed, the crash's moment only nearly.
        """
        began = time.monotonic()
        rng = random.Random(seed)
        load = asyncio.run(self._prepared(seed, rng))
        crashed = self._crash_of(rng)
        asyncio.run(self._loaded(load, rng, crashed))
        self._come_back()
        asyncio.run(self._checked(load, Checks.at_once))
        self._advance(LEASE_SECONDS + DELAY_SECONDS)
        asyncio.run(self._checked(load, Checks.after_all_leases))
        messages = sum(len(journal.entries) for journal in (load.standard, load.fifo, load.source))
        asyncio.run(self._tidied(load))
        return AttemptResult(seed, load.acknowledged, messages, crashed.__name__, time.monotonic() - began)

    @property
    def _port(self) -> int:
        return int(self._server.url.rpartition(":")[2])

    # ---- before ------------------------------------------------------------------------------------------------

    async def _prepared(self, seed: int, rng: random.Random) -> Load:
        caller = Caller(self._port)
        try:
            dead = await _queue(caller, f"dead-{seed}")
            dead_arn = f"arn:aws:sqs:us-east-1:000000000000:dead-{seed}"
            policy = f'{{"deadLetterTargetArn":"{dead_arn}","maxReceiveCount":"2"}}'
            return Load(
                self._port,
                rng,
                Journal(await _queue(caller, f"standard-{seed}")),
                Journal(await _queue(caller, f"fifo-{seed}.fifo", FifoQueue="true")),
                Journal(await _queue(caller, f"source-{seed}", RedrivePolicy=policy)),
                dead,
                dead_arn,
                rng.randint(1, ACKNOWLEDGED_MAX),
            )
        finally:
            await caller.close()

    # ---- the crash ---------------------------------------------------------------------------------------------

    def _crash_of(self, rng: random.Random) -> Callable[[], None]:
        if self._postgres is None:
            return rng.choice([self.server, self.server, self.disk])
        return rng.choice([self.server, self.database, self.both])

    def server(self) -> None:
        """kill -9 of the server."""
        self._server.kill()

    def disk(self) -> None:
        """No file of the store may grow any further; the server lives on and finds room again."""
        limit_files(self._server, room_bytes=100_000)

    def database(self) -> None:
        """kill -9 of the database; the server lives on and finds it again."""
        assert self._postgres is not None
        kill(self._postgres)
        self._postgres.start()

    def both(self) -> None:
        """kill -9 of the database, then of the server."""
        assert self._postgres is not None
        kill(self._postgres)
        self._server.kill()
        self._postgres.start()

    async def _loaded(self, load: Load, rng: random.Random, crash: Callable[[], None]) -> None:
        working = asyncio.create_task(load.run())
        enough = asyncio.create_task(load.enough.wait())
        await asyncio.wait([working, enough], return_when=asyncio.FIRST_COMPLETED)
        for _ in range(rng.randrange(PAUSE_TURNS_MAX)):
            await asyncio.sleep(0)
        await asyncio.to_thread(crash)
        load.calls_left = CALLS_AFTER  # where the server lives on, not every call fails
        enough.cancel()
        await working

    # ---- after -------------------------------------------------------------------------------------------------

    def _come_back(self) -> None:
        """Start the server again where it is gone, at the moment it was at; where it lives, give it room."""
        if self._server.process.poll() is None:
            limit_files(self._server, room_bytes=None)
        else:
            self._server.start()
            self._server.advance(self._moment - self._server.now())

    def _advance(self, seconds: int) -> None:
        self._server.advance(seconds)
        self._moment = self._server.now()

    async def _checked(self, load: Load, check: Callable[[Checks], object]) -> None:
        caller = Caller(self._port)
        checked = check(Checks(load, caller))
        assert asyncio.iscoroutine(checked)
        try:
            await checked
        finally:
            await caller.close()

    async def _tidied(self, load: Load) -> None:
        caller = Caller(self._port)
        for url in (load.standard.url, load.fifo.url, load.source.url, load.dead_url):
            await caller.call("DeleteQueue", QueueUrl=url)
        await caller.close()


async def _queue(caller: Caller, name: str, **attributes: str) -> str:
    answer = await caller.call("CreateQueue", QueueName=name, Attributes=attributes)
    url: str = answer["QueueUrl"]
    return url


def limit_files(server: Server, room_bytes: int | None) -> None:
    """Let no file of a server's SQLite store grow by more than this, as a full disk would; None: as they like."""
    most = resource.RLIM_INFINITY
    if room_bytes is not None:
        path = Path(server.store.removeprefix("sqlite:///"))
        files = (file for file in path.parent.glob(f"{path.name}*") if not file.name.endswith("-reserve"))
        sizes = [file.stat().st_size for file in files]
        most = max(sizes) + room_bytes
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


def crash_server(store: str) -> Server:
    """The server that is to be crashed, not started yet."""
    return new_server(store, *FLAGS)
