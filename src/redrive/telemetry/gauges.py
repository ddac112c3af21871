"""Gauges: how full each queue is at each minute, while anybody cares, and the levels that are shown of them.

A queue is looked at as long as something was done to it in the last six hours, or messages are in it; a dead-letter
queue counts as touched whenever one of its sources is. That is when AWS calls a queue active, and like there a
queue that is active without being used reports that it counted nothing.

Minutes can be caught up with, since a store counts for any moment: as long as nothing is done to a queue, what is
in it tells how full it was. So a simulated clock may leap, and a look is taken when the leap ends.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from redrive.engine.ports import Counts, Store
from redrive.model.delivery import Delivery
from redrive.model.metric import MINUTE_MS, MetricPoint, Statistics
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.telemetry.accumulators import QUEUE_COUNTERS, queue_series
from redrive.telemetry.metrics import Metrics

#: Queues, and topics, that are shown by name. A line of the exposition takes 0.3 µs, and each of these has a dozen.
SHOWN_MAX: Final = 2_000
#: All others together; no queue and no topic can be called like this.
OTHERS: Final = ResourceName("", "", "(others)")


@dataclass(frozen=True, slots=True)
class Level:
    """The level of a queue, or of the backlogs of a topic's subscriptions."""

    name: ResourceName  # The queue or the topic; OTHERS stands for several
    counts: Counts  # Deliveries that are due, in flight, and waiting for a later moment
    age_seconds: int  # Age of the oldest delivery
    # When that began to age (ms); None: nobody says so, or several queues are told of together.
    oldest_at: int | None = None

    def and_also(self, other: "Level") -> "Level":
        """Both levels as one: the deliveries of both, and the greater age."""
        counts = Counts(*(mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)))
        return Level(self.name, counts, max(self.age_seconds, other.age_seconds))


EMPTY: Final = Counts(0, 0, 0)


def fullest(levels: Iterable[Level], number: int = SHOWN_MAX) -> list[Level]:
    """The fullest levels by name, and one sum of the others: private ones, and those beyond the number.

    Of 100,000 levels that takes 0.1 s, so it is done when they are looked at and not when they are shown.
    """
    all_levels = list(levels)
    others = [level for level in all_levels if level.name.private]
    public = [level for level in all_levels if not level.name.private] if others else all_levels
    if len(public) > number:
        public = sorted(public, key=lambda level: sum(level.counts), reverse=True)
        public, others = public[:number], others + public[number:]
    return [*public, _sum_of(others)] if others else public


def _sum_of(levels: Sequence[Level]) -> Level:
    """Several levels as one: the deliveries of all, and the greatest age."""
    counts = Counts(
        sum([level.counts.available for level in levels]),
        sum([level.counts.claimed for level in levels]),
        sum([level.counts.delayed for level in levels]),
    )
    return Level(OTHERS, counts, max(level.age_seconds for level in levels))


ACTIVE_MS = 6 * 60 * MINUTE_MS
CAUGHT_UP_MS = ACTIVE_MS  # of a longer leap only the end is filled: 360 minutes of a queue take 20 ms
LOOKED_AT = 10  # of the oldest messages of a queue, for the age of the oldest that is not stuck
STUCK_ATTEMPTS = 3  # a message claimed so often does not count for the age (SQS metrics)
_NOTHING = Statistics.of(0)
_QUEUES_PER_PAGE = 100


@dataclass(frozen=True, slots=True)
class _QueueReading:
    """One look at a queue."""

    minute: int  # When (ms)
    counts: Counts  # How full it was
    oldest_at: int | None  # When its oldest message that is not stuck began to age (ms), if it has one

    @property
    def is_settled(self) -> bool:
        """True if it stays like this until something is done to the queue."""
        return not self.counts.claimed and not self.counts.delayed

    @property
    def age_seconds(self) -> int:
        return 0 if self.oldest_at is None else max(0, self.minute - self.oldest_at) // 1000


class QueueDirectory(Protocol):
    """The look-up of queues by name."""

    async def get(self, name: ResourceName) -> Queue | None:
        """The queue of that name."""
        ...

    async def of_number(self, queue_id: int) -> Queue | None:
        """The queue of that number, if it stands."""
        ...


class Gauges:
    """Samples the queues that are active.

    Attributes:
        levels: Of those that held something at the last look.
    """

    def __init__(self, store: Store, places: QueueDirectory, metrics: Metrics) -> None:
        """Look at this store's queues, those of `metrics.activity`."""
        self._store = store
        self._places = places
        self._activity = metrics.activity
        self._looks: dict[ResourceName, _QueueReading] = {}
        self.levels: list[Level] = []

    async def begin(self, now: int) -> None:
        """Call the queues active that have messages: what was done to them before the start is not known."""
        after = 0
        while page := await self._store.occupied(after, _QUEUES_PER_PAGE):
            for occupied in page:
                queue = (
                    None if occupied.oldest_at is None else await self._places.of_number(occupied.queue_id)
                )
                if queue is not None:
                    self._activity.setdefault(queue.name, now)
            after = page[-1].queue_id

    def forget(self) -> None:
        """Forget every queue: none is looked at until something happens to it again."""
        self._activity.clear()
        self._looks.clear()
        self.levels = []

    async def sample(self, minute: int) -> list[MetricPoint]:
        """Look at every active queue for the minutes since the last time, the last of which begins at `minute` (ms).

        Returns:
            How full each was at each minute, and for each minute before a zero for each counter of the queue.
        """
        points: list[MetricPoint] = []
        for name, touched_at in list(self._activity.items()):
            queue = await self._places.get(name)
            looks = [] if queue is None else await self._looks_at(queue, touched_at, minute)
            if not looks or _is_idle(looks[-1], touched_at):
                self._activity.pop(name, None)
                self._looks.pop(name, None)
                continue
            was_active = name in self._looks or touched_at < minute
            self._looks[name] = looks[-1]
            for look in looks:
                points += _level_points(name, look)
                if was_active:
                    points += _zero_points(name, look.minute - MINUTE_MS)
        self.levels = fullest(
            Level(name, look.counts, look.age_seconds, look.oldest_at)
            for name, look in self._looks.items()
            if any(look.counts)
        )
        return points

    async def _looks_at(self, queue: Queue, touched_at: int, minute: int) -> list[_QueueReading]:
        """The looks at a queue at each minute since the last one; the last minute is looked at in any case."""
        last = self._looks.get(queue.name)
        begin = minute if last is None else max(last.minute, minute - CAUGHT_UP_MS) + MINUTE_MS
        looks: list[_QueueReading] = []
        for moment in range(begin, minute + 1, MINUTE_MS):
            if last is not None and moment < minute and _still_holds(last, touched_at, moment):
                last = replace(last, minute=moment)
            else:
                last = await self._look(queue, moment)
            looks.append(last)
        return looks

    async def _look(self, queue: Queue, moment: int) -> _QueueReading:
        counts = await self._store.count(queue.id, moment)
        oldest = await self._oldest(queue) if any(counts) else []
        began = [_began_to_age_at(queue, each, moment) for each in oldest if not _is_stuck(each)]
        return _QueueReading(moment, counts, min(began, default=None))

    async def _oldest(self, queue: Queue) -> list[Delivery]:
        """The deliveries that the queue's age is taken from: the first, or more where that one does not tell it."""
        first = await self._store.peek(queue.id, 1)
        if not first or not (_is_stuck(first[0]) or _was_received_there(first[0])):
            return first
        deliveries = await self._store.peek(queue.id, LOOKED_AT)
        not_stuck = [each for each in deliveries if not _is_stuck(each)]
        return not_stuck if not_stuck and not_stuck[0].origin is not None else not_stuck[:1]


def _is_stuck(delivery: Delivery) -> bool:
    """True if it does not count for the age; each dead letter does, however often it was claimed where it came from."""
    return delivery.origin is None and delivery.attempts >= STUCK_ATTEMPTS


def _was_received_there(delivery: Delivery) -> bool:
    return delivery.origin is not None and delivery.token is not None


def _began_to_age_at(queue: Queue, delivery: Delivery, moment: int) -> int:
    """The moment (ms) that the delivery began to age.

    A dead letter's age is that in the dead-letter queue, of which it brings its retention along (SQS developer guide,
    "Setting-up dead-letter queue retention": a day in the queue, deleted after three of four days, and then three days
    old). Rows do not say when it came. It came when it was first due, and since those in front came no later than those
    behind, the first due of some says it also of one that was received meanwhile.
    """
    if delivery.origin is None or queue.ordered:
        return delivery.enqueued_at
    return delivery.available_at if delivery.token is None else min(delivery.available_at, moment)


def _still_holds(last: _QueueReading, touched_at: int, moment: int) -> bool:
    """True if the last look tells of that moment: what was done to the queue since came later, or was nothing."""
    return moment < touched_at or (touched_at < last.minute and last.is_settled)


def _is_idle(look: _QueueReading, touched_at: int) -> bool:
    return not any(look.counts) and look.minute - touched_at > ACTIVE_MS


def _level_points(queue: ResourceName, look: _QueueReading) -> Iterator[MetricPoint]:
    """The level of a queue at a minute, as points of its series."""
    gauges = {
        "messages_available": look.counts.available,
        "messages_claimed": look.counts.claimed,
        "messages_delayed": look.counts.delayed,
        "oldest_age_seconds": look.age_seconds,
    }
    for name, value in gauges.items():
        # Every node that knows the queue looks at it; the first to say what it saw is enough.
        yield MetricPoint(queue_series(queue, name), look.minute, "", Statistics.of(value), fills=True)


def _zero_points(queue: ResourceName, minute: int) -> Iterator[MetricPoint]:
    for name in QUEUE_COUNTERS:
        yield MetricPoint(queue_series(queue, name), minute, "", _NOTHING, fills=True)
