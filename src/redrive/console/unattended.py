"""Queues whose messages wait though nobody receives from them."""

from collections.abc import Collection, Sequence
from typing import Final

from redrive.console.hour import Hour
from redrive.model.metric import MINUTE_MS, Series
from redrive.model.names import ResourceName
from redrive.telemetry.accumulators import queue_series
from redrive.telemetry.gauges import Level

WAITED_MINUTES: Final = 10
_LOOKED_AT_MAX: Final = 50  # those whose oldest message waits longest
_RECEIVES: Final = ("messages_received", "empty_receives")


def long_waiting(
    levels: Sequence[Level], scopes: Collection[ResourceName], dead_letter_queues: Collection[ResourceName]
) -> list[Level]:
    """The queues whose oldest message waits for ten minutes, the longest waiting first.

    Args:
        levels: The queues that this node looked at last.
        scopes: Of these accounts and regions.
        dead_letter_queues: Left out: nobody is expected to receive from them.
    """
    waiting = [
        level
        for level in levels
        if level.counts.available
        and level.age_seconds * 1000 >= WAITED_MINUTES * MINUTE_MS
        and level.name._replace(name="") in scopes
        and level.name not in dead_letter_queues
    ]
    return sorted(waiting, key=lambda level: -level.age_seconds)[:_LOOKED_AT_MAX]


def receive_series(levels: Sequence[Level]) -> list[Series]:
    """The series that show whether these queues have receivers."""
    return [queue_series(level.name, counter) for level in levels for counter in _RECEIVES]


def unattended(levels: Sequence[Level], hour: Hour) -> list[Level]:
    """Those of the queues that nobody asked for messages in the last ten minutes.

    Args:
        levels: Of `long_waiting`.
        hour: With the points of `receive_series`.
    """
    since = (hour.until - (WAITED_MINUTES + 1) * MINUTE_MS) // hour.period_ms * hour.period_ms
    return [level for level in levels if not any(hour.total(each, since) for each in receive_series([level]))]
