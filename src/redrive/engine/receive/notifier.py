"""Arrivals: how a receiver waits for a delivery without asking again and again.

A waiting receiver is a future in its queue's line and costs nothing else. It is woken when something arrives, when
the earliest delayed or claimed delivery of the queue falls due (one timer a queue, and only while somebody waits),
or when its own time is up. Whoever is woken and finds something wakes the next, so a hundred arrivals wake a hundred
receivers, and one arrival wakes one.

Two races are closed here. News between a receiver's empty claim and its wait: `wait` takes the count of news that the
receiver read *before* it claimed, and returns at once when that has moved. A receiver that goes away just after it
was woken: it hands the news on.
"""

import asyncio
from collections.abc import Callable, Iterable

from redrive.engine.ports import Clock, MoveTarget, Timer

# News is counted in so many places, queues by their numbers: an entry for each queue would be kept for ever. Two queues
# that share a place cost one claim too many, where one has news within the moments between the other's claim and wait.
COUNTS = 4_096

# A claim passes over what another node is about to take; looking again sooner than this would be a busy loop.
LOOK_AGAIN_MS = 10


class Cancellation:
    """Records that a caller went away while it waited.

    Only waiting is given up for that: a verb that has begun to change something runs to its end, so that nothing
    is left half told.

    Attributes:
        happened: It went away.
        waits: It waits at a queue that had nothing for it.
    """

    __slots__ = ("happened", "waits", "wake")

    def __init__(self) -> None:
        self.happened = False
        self.waits = False
        self.wake: Callable[[], None] | None = None

    def happen(self) -> None:
        """The caller went away."""
        self.happened = True
        if self.wake is not None:
            self.wake()


class _WaitingLine:
    """The receivers waiting at one queue."""

    __slots__ = ("due_at", "timer", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[asyncio.Future[None], None] = {}  # in order, and quick to leave
        self.timer: Timer | None = None
        self.due_at = 0


class QueueNotifier:
    """Wakes the receivers that wait for messages of queues."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lines: dict[int, _WaitingLine] = {}  # by queue
        self._counts = [0] * COUNTS  # of announcements; several queues share one
        self._counts_everywhere = 0  # of announcements about all queues
        self._watchers: dict[int, Callable[[], None]] = {}  # by queue

    def count(self, queue_id: int) -> int:
        """A number that moves with all news of the queue; read it before claiming."""
        return self._counts_everywhere + self._counts[queue_id % COUNTS]

    def anyone(self, queue_id: int) -> bool:
        """True if a receive waits there."""
        return queue_id in self._lines

    def watch(self, queue_id: int, watcher: Callable[[], None]) -> None:
        """Call `watcher` whenever something may be claimed there: for who consumes a queue for ever."""
        self._watchers[queue_id] = watcher
        self._lines.setdefault(queue_id, _WaitingLine())

    def unwatch(self, queue_id: int) -> None:
        """Stop watching."""
        self._watchers.pop(queue_id, None)
        self._drop_if_empty(queue_id)

    def announce(self, queue_id: int, number: int = 1) -> None:
        """So many deliveries may be claimed now: wake as many receivers, longest waiting first."""
        self._counts[queue_id % COUNTS] += 1  # for those who claim now and wait after it: see `wait`
        if self._watchers and (watcher := self._watchers.get(queue_id)) is not None:
            watcher()
        line = self._lines.get(queue_id)
        if line is None:
            return
        while number > 0 and line.waiting:
            receiver = next(iter(line.waiting))
            del line.waiting[receiver]
            if not receiver.done():
                receiver.set_result(None)
                number -= 1

    def announce_each(self, queue_ids: Iterable[int]) -> None:
        """A delivery may be claimed in each of these queues now."""
        for queue_id in queue_ids:
            if queue_id in self._lines:
                self.announce(queue_id)
            else:
                self._counts[queue_id % COUNTS] += 1

    def announce_all(self) -> None:
        """Anything may have arrived anywhere: wake all waiting receives."""
        self._counts_everywhere += 1
        for queue_id, line in list(self._lines.items()):
            self.announce(queue_id, len(line.waiting))

    def expect(self, queue_id: int, due_at: int) -> None:
        """News: a delivery of the queue falls due then (ms)."""
        self._counts[queue_id % COUNTS] += 1
        self.remind(queue_id, due_at)

    def expect_copies(self, target: MoveTarget, now: int) -> None:
        """Dead letters went to `target`: so did their copies, if it has such."""
        if target.copies is not None:
            self.expect(target.copies.queue_id, now + target.copies.delay_ms)

    def next_watched(self) -> int | None:
        """The time (ms) of the next look into a continuously consumed queue; None: there is none."""
        lines = (self._lines[queue_id] for queue_id in self._watchers if queue_id in self._lines)
        return min((line.due_at for line in lines if line.timer is not None), default=None)

    def remind(self, queue_id: int, due_at: int) -> None:
        """Wake a receiver then (ms), if one still waits."""
        line = self._lines.get(queue_id)
        if line is None or (line.timer is not None and line.due_at <= due_at):
            return
        if line.timer is not None:
            line.timer.cancel()
        line.due_at = due_at
        line.timer = self._clock.call_at(due_at, self._fall_due(queue_id, line))

    def _fall_due(self, queue_id: int, line: _WaitingLine) -> Callable[[], None]:
        def due() -> None:
            line.timer = None
            self.announce(queue_id)

        return due

    async def wait(
        self,
        queue_id: int,
        count: int,
        until: int,
        due_at: int | None,
        cancellation: Cancellation | None = None,
    ) -> None:
        """Return when something may have arrived, or at `until` (ms), or when the caller is gone.

        Args:
            queue_id: Where.
            count: What `count` said before the claim that came back empty.
            until: The end of the wait (ms).
            due_at: When the earliest delivery that is there already falls due (ms), if there is one.
            cancellation: Tells when the request is cancelled.
        """
        if self.count(queue_id) != count or (cancellation is not None and cancellation.happened):
            return
        line = self._lines.setdefault(queue_id, _WaitingLine())
        receiver: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.waiting[receiver] = None
        if due_at is not None and due_at < until:
            self.remind(queue_id, due_at)

        def wake() -> None:
            if not receiver.done():
                receiver.set_result(None)

        if cancellation is not None:
            cancellation.wake, cancellation.waits = wake, True
        end = self._clock.call_at(until, wake)
        try:
            await receiver
        except asyncio.CancelledError:
            if receiver.done() and not receiver.cancelled():  # woken too: the delivery is for the next one
                self.announce(queue_id)
            raise
        finally:
            end.cancel()
            if cancellation is not None:
                cancellation.waits = False
            line.waiting.pop(receiver, None)
            self._drop_if_empty(queue_id)

    def _drop_if_empty(self, queue_id: int) -> None:
        """Forget a queue's line once nobody waits in it or watches it."""
        line = self._lines.get(queue_id)
        if line is None or line.waiting or queue_id in self._watchers:
            return
        if line.timer is not None:
            line.timer.cancel()
        del self._lines[queue_id]
