"""Settling while the store is away: the outcome of an attempt is kept here, and tried again until its lease ends.

A push cannot be taken back: each settlement that is lost is a push made again. A database that is restarted is away for
seconds, and a claim holds for thirty or sixty, so an outcome survives the first and ends with the second. Kept is no
more than was under way when the store went away: nothing can be claimed meanwhile, and an attempt counts among its
subscription's until it is settled. Settling twice is harmless: the claim's token is good once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from redrive.engine.ports import Clock
from redrive.model.errors import StoreUnavailable

logger = logging.getLogger(__name__)
T = TypeVar("T")

# Before each further try; the last of them before all that follow. None before the first: a connection that was cut is
# the most frequent trouble, and the next connection works. At a second's wait, a thousand outcomes that are kept are a
# thousand calls a second, which go together.
WAITS_MS: Final = (0, 100, 200, 500, 1_000)


class SettleRetrier:
    """Repeats the writes that a push owes the store."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting_count = 0
        self._told = False

    @property
    def waiting(self) -> int:
        """The number of deliveries whose outcome waits for the store."""
        return self._waiting_count

    async def retry_until_lease_ends(self, number: int, until: int, work: Callable[[], Awaitable[T]]) -> T:
        """The result of some work with the store, which is repeated while the store is away.

        Args:
            number: How many deliveries it is about.
            until: When their claim runs out (ms): the work is tried once more then, and not again.
            work: Safe to repeat.

        Raises:
            StoreUnavailable: It was away until then; or it would not do this, which looks the same from here.
        """
        try:
            return await work()
        except StoreUnavailable as error:
            if self._clock.now() >= until:
                raise
            first = error
        self._waiting_count += number
        try:
            return await self._retry(first, until, work)
        finally:
            self._waiting_count -= number

    async def _retry(self, error: StoreUnavailable, until: int, work: Callable[[], Awaitable[T]]) -> T:
        """Repeat work that failed with `error`, at once at first and then ever more slowly, until `until` (ms)."""
        tries = 0
        while True:
            wait_ms = WAITS_MS[min(tries, len(WAITS_MS) - 1)]
            if wait_ms:
                self._warn_once(error)
            await _pause(min(wait_ms, max(0, until - self._clock.now())))
            try:
                result = await work()
            except StoreUnavailable as next_error:
                if self._clock.now() >= until:
                    raise
                tries, error = tries + 1, next_error
            else:
                self._say_that_it_is_back()
                return result

    def _warn_once(self, error: StoreUnavailable) -> None:
        if not self._told:
            self._told = True
            logger.warning(
                "dispatch.unsettled error=%s: outcomes wait for the store until their leases end", error
            )

    def _say_that_it_is_back(self) -> None:
        if self._told:
            self._told = False
            logger.warning("dispatch.settled: the outcomes that waited are stored")


async def _pause(milliseconds: int) -> None:
    """Wait in the loop's time: an outage takes as long as it takes, also where the engine's clock stands still."""
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = asyncio.get_running_loop().call_later(milliseconds / 1000, over.set_result, None)
    try:
        await over
    finally:
        timer.cancel()
