"""Late pushes: pushes that go on after their attempt was given up, since their success still counts for a while.

The next attempt begins meanwhile. Whichever of the two the endpoint takes first, the delivery is delivered: the next
attempt ends by the earlier push's success, under its own claim, and what is not being pushed yet is not pushed again.
It is a best effort. Each late push holds a connection, so that there are no more than `PUSHES_MAX` of them; and what
is claimed by another node next is pushed again.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

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
    """A push that goes on."""

    keys: frozenset[_Key]  # Backlog and sequence number of each of its deliveries
    success: "asyncio.Future[Attempt]"  # Done with its result once that is a success


class LatePushes:
    """The pushes that continue after their soft time-out, and which of them succeeded."""

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
        take: Callable[[Attempt], Awaitable[bool]],
    ) -> bool:
        """Let a push go on until then (ms), when it is cancelled, if there is room for it; True if it goes on.

        `take` is called with its result, and returns True if that is a success.
        """
        queue_id = deliveries[0].queue_id
        of_queue = sum(other == queue_id for other in self._watches.values())
        if self._clock.now() >= until or len(self._watches) >= PUSHES_MAX or of_queue >= PUSHES_MAX_EACH:
            return False
        late = _Late(_keys(deliveries), asyncio.get_running_loop().create_future())
        for key in late.keys:
            self._late.setdefault(key, []).append(late)
        watch = asyncio.ensure_future(self._watch(pushing, late, until, take))
        self._watches[watch] = queue_id
        watch.add_done_callback(self._watches.pop)
        return True

    def earlier(self, deliveries: Sequence[Delivery]) -> "list[asyncio.Future[Attempt]]":
        """Futures with the results of earlier pushes of all these deliveries, each done once its push succeeds."""
        if not self._late:
            return []
        keys = _keys(deliveries)
        pushes = self._late.get(next(iter(keys)), ())
        return [late.success for late in pushes if keys <= late.keys]

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
        take: Callable[[Attempt], Awaitable[bool]],
    ) -> None:
        """Wait for a push that goes on, until its time is over; a success is remembered for a while."""

        def end() -> None:
            pushing.cancel()

        timer = self._clock.call_at(until, end)
        succeeded = False
        try:
            await asyncio.wait([pushing])
            if not pushing.cancelled() and pushing.exception() is None:
                succeeded = await take(pushing.result())
        finally:
            timer.cancel()
            pushing.cancel()
            if succeeded:
                late.success.set_result(pushing.result())
                self._clock.call_at(self._clock.now() + KEPT_MS, lambda: self._forget(late))
            else:
                self._forget(late)

    def _forget(self, late: _Late) -> None:
        """Take a push away from each delivery that it was of."""
        for key in late.keys:
            others = [other for other in self._late.get(key, ()) if other is not late]
            if others:
                self._late[key] = others
            else:
                self._late.pop(key, None)


def _keys(deliveries: Sequence[Delivery]) -> frozenset[_Key]:
    return frozenset((delivery.queue_id, delivery.seq) for delivery in deliveries)


# The soft time-out: how long an attempt waits for an answer by the clock, and how long the clock waits for attempts.
#
# On the system's clock the two are one time. On a simulated one they are not: an endpoint answers in real time, while
# the clock stands still and must not run ahead of it; but an endpoint that hangs would hold the clock for as long. So
# a push has some real seconds, after which it counts as hanging: the clock goes on, and soft time-outs end by it.

# An endpoint of a test answers in milliseconds, and on a machine that has far too much to do in a second or two.
HANGS_SECONDS: Final = 5


class SoftTimeout:
    """The attempts that wait for an answer no longer than their plan allows."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[asyncio.Future[Any] | None, asyncio.Future[None]] = {}  # done when it hangs
        self._begun: asyncio.Future[None] | None = None  # done when a task begins to wait

    @contextlib.contextmanager
    def begin(self) -> "Iterator[asyncio.Future[None]]":
        """Begin a push; the future is done once it hangs."""
        loop = asyncio.get_running_loop()
        hangs: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(HANGS_SECONDS, hangs.set_result, None)
        try:
            yield hangs
        finally:
            timer.cancel()

    async def wait(self, pushing: "asyncio.Future[Any]", hangs: "asyncio.Future[None]", until: int) -> bool:
        """Wait for a push that was begun with `hangs`; True if it was answered by `until` (ms).

        A simulated clock is held meanwhile, unless the push hangs: see `until_quiet`.
        """
        task = asyncio.current_task()
        # Done at `until`, or by the answer
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def end(_: object = None) -> None:
            if not over.done():
                over.set_result(None)

        timer = self._clock.call_at(until, end)
        pushing.add_done_callback(end)  # `asyncio.wait` does as much and more, for 10 us
        self._waiting[task] = hangs
        if self._begun is not None and not self._begun.done():
            self._begun.set_result(None)
        try:
            await over
        finally:
            del self._waiting[task]
            timer.cancel()
            pushing.remove_done_callback(end)
        return pushing.done()

    async def until_quiet(self, work: Callable[[], Sequence["asyncio.Future[Any]"]]) -> None:
        """Return when no task of this work is left but those that hang."""
        while tasks := work():
            pushes = [self._waiting[task] for task in tasks if task in self._waiting]
            if len(pushes) == len(tasks) and all(hangs.done() for hangs in pushes):
                return
            if self._begun is None or self._begun.done():
                self._begun = asyncio.get_running_loop().create_future()
            not_yet = [hangs for hangs in pushes if not hangs.done()]
            await asyncio.wait([*tasks, *not_yet, self._begun], return_when=asyncio.FIRST_COMPLETED)
