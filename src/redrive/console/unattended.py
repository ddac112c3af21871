"""Queues whose messages wait though nobody receives from them."""

from collections.abc import Collection, Sequence
from typing import Final

from redrive.engine.ports import TelemetryStore
from redrive.model.metric import MINUTE_MS, PointQuery
from redrive.model.names import ResourceName
from redrive.telemetry.accumulators import queue_series
from redrive.telemetry.levels import Level

WAITED_MINUTES: Final = 10
_LOOKED_AT_MAX: Final = 50  # those whose oldest message waits longest
_RECEIVES: Final = ("messages_received", "empty_receives")


async def unattended(
    levels: Sequence[Level],
    telemetry: TelemetryStore,
    places: Collection[ResourceName],
    dead_letter_queues: Collection[ResourceName],
    now: int,
) -> list[Level]:
    """The queues whose oldest message waits for ten minutes in which nobody asked for it: one read.

    Args:
        levels: The queues that this node looked at last.
        telemetry: Where all nodes write down who received.
        places: Of these accounts and regions.
        dead_letter_queues: Left out: nobody is expected to receive from them.
        now: The time (ms).
    """
    waiting = [
        level
        for level in levels
        if level.counts.available
        and level.age_seconds * 1000 >= WAITED_MINUTES * MINUTE_MS
        and level.name._replace(name="") in places
        and level.name not in dead_letter_queues
    ]
    waiting = sorted(waiting, key=lambda level: -level.age_seconds)[:_LOOKED_AT_MAX]
    if not waiting:
        return []
    series = {level.name: [queue_series(level.name, counter) for counter in _RECEIVES] for level in waiting}
    until = now // MINUTE_MS * MINUTE_MS + MINUTE_MS
    wanted = [each for of_queue in series.values() for each in of_queue]
    found = await telemetry.find_points_each(
        PointQuery(wanted, until - (WAITED_MINUTES + 1) * MINUTE_MS, until, MINUTE_MS)
    )
    return [
        level
        for level in waiting
        if not any(
            bucket.statistics.total for each in series[level.name] for bucket in found.get(each.id, ())
        )
    ]
