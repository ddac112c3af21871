"""Late pushes: pushes that go on after their attempt was given up, since their success still counts for a while.

The next attempt begins meanwhile. Whichever of the two the endpoint takes first, the delivery is delivered: the next
attempt ends by the earlier push's success, under its own claim, and what is not being pushed yet is not pushed again.
It is a best effort. Each late push holds a connection, so that there are no more than `PUSHES_MAX` of them; and what
is claimed by another node next is pushed again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from redrive.engine.ports import Clock
from redrive.model.attempt import Attempt
from redrive.model.delivery import Delivery

PUSHES_MAX: Final = 1_000  # connections held by late pushes, over all subscriptions
PUSHES_MAX_EACH: Final = 32  # of one subscription
# How long a success waits for the next attempt: the longest early wait is ten minutes.
KEPT_MS: Final = 15 * 60 * 1000

_Key = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class _Late:
    """A push that goes on.

    Attributes:
        keys: Backlog and place of each of its deliveries.
        taken: Done with its result once that is a success.
    """

    keys: frozenset[_Key]
    taken: "asyncio.Future[Attempt]"


class LatePushes:
    """The pushes that go on, and those of them that were taken."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._late: dict[_Key, list[_Late]] = {}
        self._watches: dict[asyncio.Task[None], int] = {}  # with the backlogs they are of

    @property
    def pushes(self) -> int:
        """The number of pushes that go on: connections held."""
        return len(self._watches)

    def keep(
        self,
        pushing: "asyncio.Future[Attempt]",
        deliveries: Sequence[Delivery],
        until: int,
        taken: Callable[[Attempt], Awaitable[bool]],
    ) -> bool:
        """Let a push go on until then (ms), if there is room for it; whether it does.

        Args:
            pushing: The push; it is cancelled when its time is over.
            deliveries: What is pushed.
            until: How long its success counts.
            taken: Called with its result; whether that is a success.
        """
        queue_id = deliveries[0].queue_id
        each = sum(of == queue_id for of in self._watches.values())
        if self._clock.now() >= until or len(self._watches) >= PUSHES_MAX or each >= PUSHES_MAX_EACH:
            return False
        late = _Late(_keys(deliveries), asyncio.get_running_loop().create_future())
        for key in late.keys:
            self._late.setdefault(key, []).append(late)
        watch = asyncio.ensure_future(self._watch(pushing, late, until, taken))
        self._watches[watch] = queue_id
        watch.add_done_callback(self._watches.pop)
        return True

    def earlier(self, deliveries: Sequence[Delivery]) -> "list[asyncio.Future[Attempt]]":
        """Done with a result once an earlier push of all these deliveries was taken."""
        if not self._late:
            return []
        keys = _keys(deliveries)
        pushes = self._late.get(next(iter(keys)), ())
        return [late.taken for late in pushes if keys <= late.keys]

    async def close(self) -> None:
        """Give up all of them."""
        watches = list(self._watches)
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)

    async def _watch(
        self,
        pushing: "asyncio.Future[Attempt]",
        late: _Late,
        until: int,
        taken: Callable[[Attempt], Awaitable[bool]],
    ) -> None:
        def end() -> None:
            pushing.cancel()

        timer = self._clock.call_at(until, end)
        succeeded = False
        try:
            await asyncio.wait([pushing])
            if not pushing.cancelled() and pushing.exception() is None:
                succeeded = await taken(pushing.result())
        finally:
            timer.cancel()
            pushing.cancel()
            if succeeded:
                late.taken.set_result(pushing.result())
                self._clock.call_at(self._clock.now() + KEPT_MS, lambda: self._forget(late))
            else:
                self._forget(late)

    def _forget(self, late: _Late) -> None:
        for key in late.keys:
            left = [other for other in self._late.get(key, ()) if other is not late]
            if left:
                self._late[key] = left
            else:
                self._late.pop(key, None)


def _keys(deliveries: Sequence[Delivery]) -> frozenset[_Key]:
    return frozenset((delivery.queue_id, delivery.seq) for delivery in deliveries)
