"""The PostgreSQL store under a run: a real server, and virtual time that stands still while it works.

The runs' store carries out one call at a time, so nothing is lost by waiting for each. What several nodes do to the
same rows at once is not met here but in the stores' contract tests; here every statement meets every history.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from redrive.runtime.machine import SystemClock
from redrive.stores.postgres.store import PostgresStore
from tests.simulation.world import World

T = TypeVar("T")


class OnPostgres(World):
    """A store in a database, with a loop and a thread of its own: the loop of the run has no time for sockets."""

    def __init__(self, url: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="postgres")
        self._thread.start()
        self._store = PostgresStore(url, SystemClock(), "simulated")

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **named: Any) -> Any:
            async def run() -> Any:
                return await getattr(self._store, verb)(*args, **named)

            await asyncio.sleep(0)  # whoever heard the last answer comes first
            return self._wait_for(run())

        return call

    def leave(self) -> None:
        """Close the store, at whatever point the run ended."""
        self._wait_for(self._store.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def close(self) -> None:
        """Left to `leave`."""

    def _wait_for(self, call: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()
