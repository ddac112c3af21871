"""Sampling of archives and of topics' totals, on a simulated clock and a real store."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from redrive.model.durations import HOUR_MS
from redrive.model.metric import MINUTE_MS, PointQuery
from redrive.telemetry.accumulators import topic_series
from redrive.telemetry.gauges import ACTIVE_MS
from redrive.telemetry.telemetry import FORGET_MS, SWEEP_MS
from tests.engine.test_forgetting import reachable
from tests.telemetry.facts import TOPIC
from tests.telemetry.test_telemetry import House, queue, running_house

ARCHIVING = replace(TOPIC, archive_ms=1)
_LIVES = (("changed", 1), ("gone", 2), ("again", 3))


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async for house in running_house(simulated=False):
        house.topics.found = ARCHIVING
        await house.advance(HOUR_MS - house.clock.now() % HOUR_MS)
        house.start = house.clock.now()
        yield house


async def hours(house: House, name: str) -> dict[int, float]:
    """Return the samples of an archive, by hours since the start."""
    query = PointQuery((topic_series(TOPIC.name, name),), house.start, 2**62, MINUTE_MS)
    found = await house.store.find_points(query)
    assert {one.statistics.samples for one in found} <= {1}
    return {(one.at - house.start) // HOUR_MS: one.statistics.total for one in found}


async def test_an_archive_in_use_is_looked_at_once_an_hour_for_six_hours(house: House) -> None:
    house.telemetry.metrics.archived(ARCHIVING, 1, 10, house.clock.now())
    await house.advance(HOUR_MS + MINUTE_MS)
    house.topics.held = (4, 400)
    await house.advance(ACTIVE_MS + 2 * HOUR_MS)
    expected = {0: 3, 1: 3} | dict.fromkeys(range(2, 7), 4)
    assert await hours(house, "archive_messages") == expected
    assert await hours(house, "archive_bytes") == {hour: 100 * held for hour, held in expected.items()}
    assert house.telemetry.metrics.archives == {}


async def test_of_two_nodes_that_look_one_is_enough(house: House) -> None:
    other = house.another()
    for telemetry in (house.telemetry, other):
        telemetry.metrics.archived(ARCHIVING, 1, 10, house.clock.now())
    await house.advance(MINUTE_MS)
    await other.flush()
    assert await hours(house, "archive_messages") == {0: 3}


@pytest.mark.parametrize("found", [None, TOPIC])
async def test_a_deleted_archive_is_forgotten(house: House, found: None) -> None:
    house.telemetry.metrics.archived(ARCHIVING, 1, 10, house.clock.now())
    house.topics.found = found
    await house.advance(MINUTE_MS)
    assert await hours(house, "archive_messages") == {}
    assert house.telemetry.metrics.archives == {}


async def test_totals_stay_as_long_as_their_topic(house: House) -> None:
    for _ in range(2):
        house.telemetry.metrics.archived(ARCHIVING, 2, 10, house.clock.now())
        await house.advance(SWEEP_MS)
    ((name, counters),) = house.telemetry.metrics.totals
    assert name == TOPIC.name
    assert {series.name: value for series, value in counters.items()} == {
        "messages_archived": 4,
        "bytes_archived": 20,
    }
    house.topics.found = None
    await house.advance(FORGET_MS)
    assert list(house.telemetry.metrics.totals) == []


async def test_the_totals_of_a_topic_go_with_it_and_not_when_it_is_changed(house: House) -> None:
    telemetry, now = house.telemetry, house.clock.now()
    changed, gone, again = (
        replace(TOPIC, name=TOPIC.name._replace(name=name), id=id_) for name, id_ in _LIVES
    )
    for topic in (changed, gone, again):
        telemetry.metrics.published(topic, 1, 1, 10, now)
    await house.advance(MINUTE_MS)
    for topic in (changed, gone, again):
        telemetry.metrics.published(topic, 1, 1, 10, now)
        telemetry.document_changed("topic", topic.name.key, topic if topic is changed else None)
    telemetry.document_changed("topic", again.name.key, again)
    telemetry.metrics.published(replace(again, id=9), 1, 1, 10, now)
    left = {name: max(counters.values()) for name, counters in telemetry.metrics.totals}
    assert left == {
        changed.name: 20,
        again.name: 20,
    }  # bytes: of both publications; of the one before, and the new one


async def test_a_reset_leaves_no_totals(house: House) -> None:
    house.telemetry.metrics.published(TOPIC, 1, 1, 10, house.clock.now())
    await house.telemetry.reset()
    assert list(house.telemetry.metrics.totals) == []


async def test_queues_and_topics_that_came_and_went_leave_nothing(house: House) -> None:
    lives, held = 100, []
    for life in range(3):
        for number in range(lives):
            gone_queue, gone_topic = queue(f"{life}-{number}", 1_000 + number), replace(ARCHIVING, id=number)
            gone_topic = replace(gone_topic, name=gone_queue.name)
            metrics, now = house.telemetry.metrics, house.clock.now()
            metrics.published(gone_topic, 1, 1, 10, now)
            metrics.archived(gone_topic, 1, 10, now)
            metrics.sent(gone_queue, 1, 10, now)
            metrics.received(gone_queue, 1, now)
        await house.advance(HOUR_MS)
        held.append(reachable(house.telemetry))
    assert held[2] - held[1] < lives, held
