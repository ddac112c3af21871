"""Work that a server does again and again beside its requests."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from redrive.engine.ports import Clock
from redrive.model.errors import StoreUnavailable

logger = logging.getLogger(__name__)


class Upkeep:
    """One such work; a store that is away is tried again in the next round."""

    def __init__(
        self,
        work: Callable[[], Awaitable[object]],
        clock: Clock,
        round_ms: int,
        event: str,
        *,
        once: bool = False,
    ) -> None:
        """Do `work`, then rest for `round_ms`; `event` is the log's word for a store that is away.

        With `once` it ends with the first round that came through: on a simulated clock nothing changes unheard.
        """
        self._work = work
        self._clock = clock
        self._round_ms = round_ms
        self._event = event
        self._once = once
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"redrive-{self._event}")

    async def close(self) -> None:
        """End; the round under way is cut off."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        """Do the work once, or again every `round_ms`; a store that is away is waited for."""
        while True:
            try:
                await self._work()
            except StoreUnavailable as error:
                logger.warning("%s error=%s", self._event, error)
            else:
                if self._once:
                    return
            await self._clock.sleep_until(self._clock.now() + self._round_ms)
