"""Times to answer: attempts are counted by the span that they took, and drawn with their median."""

from itertools import pairwise

import pytest

from redrive.console.health import answer_of, answer_times, span_series
from redrive.console.hour import last_hour
from redrive.model.metric import SPANS_MS, MetricPoint
from redrive.telemetry.accumulators import Answers
from tests.console.test_schedules import text
from tests.console.world import ROOM, make_world, visiting


def test_spans_grow_by_the_same_share_from_milliseconds_to_seconds() -> None:
    assert SPANS_MS[0] == 5
    assert SPANS_MS[-1] == 9223
    assert all(1.5 <= after / before <= 1.65 for before, after in pairwise(SPANS_MS))


@pytest.mark.parametrize(
    ("took", "median", "most", "bars"),
    [
        ([5] * 9 + [6], "5 ms or less", "8 ms or less", 2),
        ([30], "33 ms or less", "33 ms or less", 1),
        ([10] * 99 + [15_000], "13 ms or less", "13 ms or less", 16),
        ([15_000], "more than 9.2 s", "more than 9.2 s", 1),
    ],
)
async def test_attempts_are_drawn_by_what_they_took(
    took: list[int], median: str, most: str, bars: int
) -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        answers, store = Answers(), visitor.server.core.store
        for each in took:
            answers.add(answer_of(world.subscription, each < SPANS_MS[-1]), each)
        now = world.engine.clock.now()
        points = [MetricPoint(series, now, "", statistics) for series, statistics in answers.take()]
        await store.add_points(points)
        hour = await last_hour(store, span_series(world.subscription), now)
        drawn = answer_times(hour, world.subscription)
        assert drawn is not None
        assert (drawn.median, drawn.most, len(drawn.bars)) == (median, most, bars)
        assert sum(bar.delivered + bar.failed for bar in drawn.bars) == len(took)
        assert sum(bar.failed for bar in drawn.bars) == took.count(15_000)
        page = text(await visitor.get(f"{ROOM}/topics/Rentals/6f1c"))
        assert f"median {median} 95 % {most}" in page
