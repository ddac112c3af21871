"""What was pushed and is not settled yet: kept here, and tried again until the store takes it.

A push cannot be taken back: each settlement that is lost is a push made again. A database that is started anew is away
for seconds, and a claim holds for thirty or sixty, so what came of an attempt outlives the one and ends with the other.
What is kept is no more than was under way when the store went: nobody can claim meanwhile, and an attempt keeps its
place among its subscription's until it is settled. To settle again is harmless: the claim's token is good once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from redrive.engine.ports import Clock
from redrive.model.errors import StoreUnavailable

logger = logging.getLogger(__name__)
T = TypeVar("T")

# Before each further try, the last before all others. At once: of all troubles a connection that was cut is the most
# frequent, and the next one stands. A thousand that wait are then a thousand calls a second, which go together.
WAITS_MS: Final = (0, 100, 200, 500, 1_000)


class Unsettled:
    """Insists on what has to reach the store after a push."""

    def __init__(self, clock: Clock) -> None:
        """Insist until leases are over by this clock."""
        self._clock = clock
        self._kept = 0
        self._told = False

    @property
    def number(self) -> int:
        """How many deliveries wait for the store."""
        return self._kept

    async def insist(self, number: int, until: int, work: Callable[[], Awaitable[T]]) -> T:
        """Do some work with the store, again and again while that is away; what comes of it.

        Args:
            number: How many deliveries it is about.
            until: When their claim runs out (ms): then it is tried once more.
            work: May be done any number of times.

        Raises:
            StoreUnavailable: It was away until then. Or it would not do this, which nobody here can tell apart.
        """
        try:
            return await work()
        except StoreUnavailable as error:
            if self._clock.now() >= until:
                raise
            first = error
        self._kept += number
        try:
            return await self._again(first, until, work)
        finally:
            self._kept -= number

    async def _again(self, error: StoreUnavailable, until: int, work: Callable[[], Awaitable[T]]) -> T:
        tries = 0
        while True:
            wait_ms = WAITS_MS[min(tries, len(WAITS_MS) - 1)]
            if wait_ms:
                self._tell(error)
            await _pause(min(wait_ms, max(0, until - self._clock.now())))
            try:
                done = await work()
            except StoreUnavailable as again:
                if self._clock.now() >= until:
                    raise
                tries, error = tries + 1, again
            else:
                self._tell_taken()
                return done

    def _tell(self, error: StoreUnavailable) -> None:
        if not self._told:
            self._told = True
            logger.warning("dispatch.unsettled error=%s: kept, and tried until its lease is over", error)

    def _tell_taken(self) -> None:
        if self._told:
            self._told = False
            logger.warning("dispatch.settled: the store takes again what was kept for it")


async def _pause(milliseconds: int) -> None:
    """Wait on the loop's time: what ails the store takes as long as it takes, also where the clock stands still."""
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = asyncio.get_running_loop().call_later(milliseconds / 1000, over.set_result, None)
    try:
        await over
    finally:
        timer.cancel()
