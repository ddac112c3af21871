"""Gauges of the archives of topics, once an hour, while they are used.

An archive is looked at as long as something entered it or was replayed from it in the last six hours, which is when
AWS calls a topic active. Counting a million rows takes a store 50 ms, so an hour is often enough, as it is for AWS.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from redrive.model.metric import MINUTE_MS, MetricPoint, Statistics
from redrive.model.names import ResourceName
from redrive.model.topic import Topic
from redrive.telemetry.accumulators import topic_series
from redrive.telemetry.gauges import ACTIVE_MS
from redrive.telemetry.metrics import Metrics

HOUR_MS = 60 * MINUTE_MS

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
        """Call no archive active."""
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
