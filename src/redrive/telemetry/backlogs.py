"""Gauges of backlogs: how many deliveries wait for each topic's endpoints, looked at once a minute.

The store says which numbers hold anything, so that an empty backlog costs nothing; what a backlog holds is counted for
1,000 of them a minute, in turn, at 50 to 100 µs each. Between two looks at a backlog the older one stands.
"""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from redrive.engine.ports import Counts, Store
from redrive.model.durations import HOUR_MS
from redrive.model.metric import MetricPoint, Statistics
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription, Topic
from redrive.telemetry.accumulators import topic_series
from redrive.telemetry.gauges import ACTIVE_MS, EMPTY, Level, fullest
from redrive.telemetry.metrics import Metrics

LOOKS_MAX: Final = 1_000  # a minute
_NUMBERS_PER_PAGE: Final = 100

#: The subscription whose backlog has that number, if it is one's.
OfBacklog = Callable[[int], Awaitable[Subscription | None]]


class BacklogGauges:
    """Looks at the backlogs that hold something.

    Attributes:
        levels: Of their topics, as of the last look.
    """

    def __init__(self, store: Store, of_backlog: OfBacklog) -> None:
        self._store = store
        self._of_backlog = of_backlog
        self._counts: dict[int, Counts] = {}  # by number, as of the last look
        self._turn = 0  # the number after which the next looks begin
        self.levels: list[Level] = []

    @property
    def busy(self) -> bool:
        """True if anything was in a backlog at the last look."""
        return bool(self.levels)

    def forget(self) -> None:
        """Forget every look."""
        self._counts.clear()
        self.levels = []

    async def sample(self, now: int) -> None:
        """Look at the backlogs."""
        backlogs = await self._occupied_backlogs()
        await self._count(sorted(backlogs), now)
        levels: dict[ResourceName, Level] = {}
        for number, (topic, oldest_at) in backlogs.items():
            level = Level(topic, self._counts.get(number, EMPTY), max(0, now - oldest_at) // 1000)
            levels[topic] = levels[topic].and_also(level) if topic in levels else level
        self.levels = fullest(levels.values())

    async def _occupied_backlogs(self) -> dict[int, tuple[ResourceName, int]]:
        """The backlogs that hold something: their topics, and when the oldest delivery of each entered (ms)."""
        backlogs: dict[int, tuple[ResourceName, int]] = {}
        after = 0
        while page := await self._store.occupied(after, _NUMBERS_PER_PAGE):
            for occupied in page:
                subscription = (
                    None if occupied.oldest_at is None else await self._of_backlog(occupied.queue_id)
                )
                if subscription is not None:
                    backlogs[occupied.queue_id] = subscription.topic, occupied.oldest_at or 0
            after = page[-1].queue_id
        return backlogs

    async def _count(self, numbers: list[int], now: int) -> None:
        """Count what is in some of the backlogs, those whose turn it is; forget those that are empty."""
        self._counts = {number: self._counts[number] for number in numbers if number in self._counts}
        turn = [number for number in numbers if number > self._turn][:LOOKS_MAX]
        turn += numbers[: LOOKS_MAX - len(turn)]
        for number in dict.fromkeys(turn):
            self._counts[number] = await self._store.count(number, now)
        self._turn = turn[-1] if len(numbers) > LOOKS_MAX else 0


# Gauges of the archives of topics, once an hour, while they are used.
#
# An archive is looked at as long as something entered it or was replayed from it in the last six hours, which is when
# AWS calls a topic active. Counting a million rows takes a store 50 ms, so an hour is often enough, as it is for AWS.


# How many messages a topic's archive holds, and of how many bytes.
Size = Callable[[Topic], Awaitable[tuple[int, int]]]


class TopicPlaces(Protocol):
    """The look-up of topics by name."""

    async def get(self, name: ResourceName) -> Topic | None:
        """The topic of that name."""
        ...


class ArchiveGauges:
    """Samples the archives of `metrics.archives`."""

    def __init__(self, topics: TopicPlaces, size: Size, metrics: Metrics) -> None:
        self._topics = topics
        self._size = size
        self._metrics = metrics
        self._hours: dict[ResourceName, int] = {}  # which each was looked at for last

    def forget(self) -> None:
        """Forget every archive: none is looked at until something happens to it again."""
        self._metrics.archives.clear()
        self._hours.clear()

    async def sample(self, minute: int) -> list[MetricPoint]:
        """Look at each archive that was not looked at in the hour of `minute` (ms).

        Hours that passed since the last time without a look stay unknown.
        """
        hour = minute - minute % HOUR_MS
        points: list[MetricPoint] = []
        for name, touched_at in list(self._metrics.archives.items()):
            if self._hours.get(name) == hour:
                continue
            topic = await self._topics.get(name)
            if topic is None or not topic.archive_ms or hour - touched_at > ACTIVE_MS:
                self._metrics.archives.pop(name, None)
                self._hours.pop(name, None)
                continue
            messages, size_bytes = await self._size(topic)
            self._hours[name] = hour
            for series, value in (("archive_messages", messages), ("archive_bytes", size_bytes)):
                # Every node that the topic is used through looks; the first to say what it saw is enough.
                at = topic_series(name, series)
                points.append(MetricPoint(at, hour, "", Statistics.of(value), fills=True))
        return points
