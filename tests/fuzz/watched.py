"""A server but for its sockets, on a store in memory whose tables can be compared and on a clock that stands."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, TypeVar

from redrive.engine.engine import Engine
from redrive.model.http import Request, Response
from redrive.runtime.simulated import SimulatedClock
from redrive.stores.sqlite.store import SqliteStore

_TURNS: Final = 64  # of the event loop that a call which waits for nothing may take
_NOT_COMPARED: Final = frozenset({"counters", "sqlite_schema"})  # a number may be taken in vain


class Complaints(logging.Handler):
    """Collects logged errors: nothing a request asks for may go wrong behind its answer either."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.heard.append(self.format(record))


class Watched(ABC):
    """Base of the worlds: an engine on a simulated clock, and a log that must stay clean.

    Attributes:
        known: What stands for what only the server knows, and what that is.
    """

    waits_ms = 20_000  # the longest a receiver may wait
    engine: Engine

    def __init__(self) -> None:
        self._clock = SimulatedClock()
        self._store = SqliteStore(None)
        self.known: dict[str, str] = {}

    @abstractmethod
    async def open(self) -> None:
        """Make what is there to be disturbed."""

    @abstractmethod
    def handle(self, request: Request) -> Awaitable[Response]:
        """Answer a request as the server does."""

    async def close(self) -> None:
        """Stop what is under way."""
        await self.engine.close()

    async def answer(self, request: Request) -> Response:
        """Answer a request; one that waits is let wait its time."""
        answering = asyncio.ensure_future(self.handle(request))
        for _ in range(_TURNS):
            if answering.done():
                break
            await asyncio.sleep(0)
        else:
            await self._clock.advance(self.waits_ms, self.engine.until_quiet)
        response = await answering
        await self.settle()
        return response

    async def settle(self) -> None:
        """Let everything come to rest that the last request set going."""
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        await self.engine.until_quiet()

    def everything(self) -> dict[str, list[Any]]:
        """All that is stored, table by table."""
        connection = self._store.connection
        named = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        tables = {str(row[0]) for row in named} - _NOT_COMPARED
        return {
            table: sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
            for table in sorted(tables)
        }


W = TypeVar("W", bound=Watched)


class Worlds(Generic[W]):
    """Worlds for requests each of which is to find one as it was made: what changed nothing leaves its world to the next.

    A world takes 20 to 100 ms to make, and half of the operations of a service only read.
    """

    def __init__(self, make: Callable[[], W]) -> None:
        self._make = make
        self._world: W | None = None
        self._stored: dict[str, list[Any]] = {}

    async def next(self) -> W:
        """A world in which nothing has happened yet."""
        if self._world is None or self._world.everything() != self._stored:
            await self.close()
            self._world = self._make()
            await self._world.open()
            self._stored = self._world.everything()
        return self._world

    async def close(self) -> None:
        """Close the last one."""
        if self._world is not None:
            await self._world.close()
            self._world = None
