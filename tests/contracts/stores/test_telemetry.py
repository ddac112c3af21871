from dataclasses import replace

import pytest

from redrive.engine.ports import NodeStore, Put
from redrive.model.errors import Conflict
from redrive.model.log import EVENT_BYTES, LogEvent, LogQuery, LogSpan
from redrive.model.metric import (
    MINUTE_MS,
    MetricPoint,
    PeriodStatistics,
    PointQuery,
    Series,
    SeriesQuery,
    Statistics,
)
from tests.contracts.stores.homes import Home

T0 = 100 * MINUTE_MS
EVER = 2**62

SENT = Series("1", "eu", ":queue", "sent", (("queue", "a"),))
OTHER = Series("1", "eu", ":queue", "sent", (("queue", "b"),))


def point(
    series: Series = SENT,
    minute: int = 0,
    value: float = 1,
    *,
    samples: float = 1,
    unit: str = "",
    values: dict[float, float] | None = None,
    fills: bool = False,
) -> MetricPoint:
    at = T0 + minute * MINUTE_MS
    return MetricPoint(series, at, unit, Statistics.of(value, samples), values or {}, fills)


async def buckets(
    store: NodeStore, *series: Series, minutes: int = 60, period: int = 1
) -> list[tuple[int, Statistics]]:
    until = T0 + minutes * MINUTE_MS
    found = await store.find_points(PointQuery(series or (SENT,), T0, until, period * MINUTE_MS))
    return [((one.at - T0) // MINUTE_MS, one.statistics) for one in found]


# ---- metrics ---------------------------------------------------------------------------------------------------


async def test_points_of_one_minute_are_added_up(store: NodeStore) -> None:
    await store.add_points([point(value=3), point(value=5, samples=2)])
    await store.add_points([point(value=1)])
    assert await buckets(store) == [(0, Statistics(samples=4, total=14, least=1, greatest=5))]


async def test_periods_begin_where_the_question_does(store: NodeStore) -> None:
    await store.add_points([point(minute=minute, value=minute) for minute in (0, 2, 3, 4, 11)])
    assert [(at, kept.total) for at, kept in await buckets(store, period=3)] == [(0, 2), (3, 7), (9, 11)]
    later = await store.find_points(
        PointQuery((SENT,), T0 + 2 * MINUTE_MS, T0 + 4 * MINUTE_MS, 5 * MINUTE_MS)
    )
    assert later == [PeriodStatistics(T0 + 2 * MINUTE_MS, "", Statistics(2, 5, 2, 3))]


async def test_the_end_of_a_question_is_not_in_it(store: NodeStore) -> None:
    await store.add_points([point(minute=1)])
    assert await buckets(store, minutes=1) == []
    assert len(await buckets(store, minutes=2)) == 1


async def test_series_are_kept_apart_and_can_be_asked_for_together(store: NodeStore) -> None:
    await store.add_points([point(value=2), point(OTHER, value=3)])
    assert [kept.total for _, kept in await buckets(store, SENT)] == [2]
    assert await buckets(store, SENT, OTHER) == [(0, Statistics(2, 5, 2, 3))]
    assert await buckets(store, SENT._replace(dimensions=())) == []


async def test_many_series_are_asked_for_at_once_each_by_itself(store: NodeStore) -> None:
    await store.add_points([point(value=2), point(OTHER, value=3), point(OTHER, minute=1, value=4)])
    without = SENT._replace(dimensions=())
    query = PointQuery((SENT, OTHER, without), T0, T0 + 2 * MINUTE_MS, MINUTE_MS)
    assert await store.find_points_each(query) == {
        SENT.id: [PeriodStatistics(T0, "", Statistics.of(2))],
        OTHER.id: [
            PeriodStatistics(T0, "", Statistics.of(3)),
            PeriodStatistics(T0 + MINUTE_MS, "", Statistics.of(4)),
        ],
    }


async def test_units_are_not_added_up(store: NodeStore) -> None:
    await store.add_points([point(value=60, unit="Seconds"), point(value=1, unit="Minutes")])
    found = await store.find_points(PointQuery((SENT,), T0, T0 + MINUTE_MS, MINUTE_MS))
    assert [(one.unit, one.statistics.total) for one in found] == [("Minutes", 1), ("Seconds", 60)]


async def test_a_filling_point_gives_way_to_what_is_there(store: NodeStore) -> None:
    await store.add_points([point(value=7), point(value=0, fills=True), point(minute=1, value=4, fills=True)])
    await store.add_points([point(minute=1, value=9, fills=True)])
    assert await buckets(store) == [(0, Statistics.of(7)), (1, Statistics.of(4))]


async def test_fine_points_and_large_numbers_are_kept_as_they_are(store: NodeStore) -> None:
    fine = [MetricPoint(SENT, T0 + 1000, "", Statistics.of(-(2.0**360))), point(value=0.1)]
    await store.add_points(fine)
    found = await store.find_points(PointQuery((SENT,), T0, T0 + MINUTE_MS, 1000))
    assert found == [
        PeriodStatistics(T0, "", Statistics.of(0.1)),
        PeriodStatistics(T0 + 1000, "", Statistics.of(-(2.0**360))),
    ]


async def test_values_are_counted_by_period(store: NodeStore) -> None:
    await store.add_points([point(values={1.5: 2, 7.0: 1}), point(minute=1, values={1.5: 1}), point(OTHER)])
    await store.add_points([point(values={7.0: 3})])
    found = await store.find_values(PointQuery((SENT, OTHER), T0, EVER, 2 * MINUTE_MS))
    assert [(one.at, one.value, one.samples) for one in found] == [(T0, 1.5, 3), (T0, 7.0, 4)]


def named(namespace: str, name: str, *dimensions: tuple[str, str]) -> Series:
    return Series("1", "eu", namespace, name, dimensions)


async def test_series_are_found_in_order_and_page_by_page(store: NodeStore) -> None:
    # As JSON text, a list that holds something comes before the empty one.
    ordered = [named("a", "x", ("d", "1")), named("a", "x"), named("a", "y"), named("b", "x", ("né", "€"))]
    await store.add_points([point(one) for one in reversed(ordered)])
    assert await store.find_series(SeriesQuery("1", "eu", limit=10)) == ordered
    first = await store.find_series(SeriesQuery("1", "eu", limit=2))
    assert first == ordered[:2]
    assert await store.find_series(SeriesQuery("1", "eu", limit=9, after=first[-1])) == ordered[2:]
    assert await store.find_series(SeriesQuery("1", "eu", limit=9, namespace="a", name="x")) == ordered[:2]
    assert await store.find_series(SeriesQuery("1", "us", limit=9)) == []
    assert await store.find_series(SeriesQuery("2", "eu", limit=9)) == []


async def test_a_series_is_active_as_long_as_points_come(store: NodeStore) -> None:
    await store.add_points([point(minute=0), point(OTHER, minute=0)])
    await store.add_points([point(minute=30)])
    await store.add_points([point(minute=5)])  # late
    late = SeriesQuery("1", "eu", limit=9, active_since=T0 + 20 * MINUTE_MS)
    assert await store.find_series(late) == [SENT]


async def test_old_points_are_dropped_a_few_at_a_time(store: NodeStore) -> None:
    await store.add_points([point(minute=minute, values={1.0: 1}) for minute in range(5)])
    await store.add_points([point(OTHER, minute=0)])
    before = T0 + 4 * MINUTE_MS
    gone = []
    while not gone or gone[-1]:
        gone.append(await store.drop_points(before, 2))
    assert gone == [2 + 2 + 1, 2 + 2, 1, 0]  # 5 points, 4 values, and the series that got none since
    assert [at for at, _ in await buckets(store, SENT, OTHER)] == [4]
    assert [one.at for one in await store.find_values(PointQuery((SENT,), T0, EVER, MINUTE_MS))] == [before]


# ---- logs ------------------------------------------------------------------------------------------------------


def event(message: str, at: int = 0, *, group: int = 1, stream: int = 1, ingested_at: int = 7) -> LogEvent:
    return LogEvent(group, stream, T0 + at, ingested_at, message)


def messages(events: list[LogEvent]) -> list[str]:
    return [one.message for one in events]


async def test_events_come_in_order_of_time_then_of_arrival(store: NodeStore) -> None:
    await store.add_events([event("c", 2), event("a", 1), event("b", 1)])
    await store.add_events([event("d", 2)])
    found = await store.find_events(LogQuery(1, limit=10))
    assert messages(found) == ["a", "b", "c", "d"]
    assert found[0] == event("a", 1)._replace(seq=found[0].seq)
    assert messages(await store.find_events(LogQuery(1, limit=3, backwards=True))) == ["d", "c", "b"]


async def test_events_are_found_by_time(store: NodeStore) -> None:
    await store.add_events([event(str(at), at) for at in range(5)])
    query = LogQuery(1, limit=10, since=T0 + 1, until=T0 + 4)
    assert messages(await store.find_events(query)) == ["1", "2", "3"]


async def test_events_are_found_by_stream(store: NodeStore) -> None:
    await store.add_events(
        [event("a", stream=1), event("b", stream=2), event("c", stream=3), event("d", group=2)]
    )
    for streams, expected in [(None, ["a", "b", "c"]), ((2,), ["b"]), ((3, 1), ["a", "c"]), ((), [])]:
        found = await store.find_events(LogQuery(1, limit=10, stream_ids=streams))
        assert messages(found) == expected, streams


@pytest.mark.parametrize("streams", [None, (1,), (1, 2)])
async def test_events_are_read_page_by_page_both_ways(
    store: NodeStore, streams: tuple[int, ...] | None
) -> None:
    await store.add_events([event(str(at), at // 3) for at in range(8)])
    ahead = await read_on(store, streams)
    assert messages(ahead) == [str(at) for at in range(8)]
    back = await read_on(store, streams, after=ahead[-1].position, backwards=True)
    assert back == ahead[-2::-1]


async def read_on(
    store: NodeStore,
    streams: tuple[int, ...] | None,
    *,
    after: tuple[int, int] | None = None,
    backwards: bool = False,
) -> list[LogEvent]:
    """All events from a place on, three at a time."""
    seen: list[LogEvent] = []
    while True:
        query = LogQuery(1, limit=3, stream_ids=streams, after=after, backwards=backwards)
        page = await store.find_events(query)
        if not page:
            return seen
        seen += page
        after = page[-1].position


async def test_events_are_read_in_order_of_arrival(store: NodeStore) -> None:
    await store.add_events([event("first", 5), event("elsewhere", group=2)])
    (first,) = await store.find_events(LogQuery(1, limit=1, arrived_after=0, backwards=True))
    await store.add_events([event("late", 1), event("of 2", 9, stream=2), event("last", 3)])
    behind = LogQuery(1, limit=10, arrived_after=first.seq)
    assert messages(await store.find_events(behind)) == ["late", "of 2", "last"]
    assert messages(await store.find_events(replace(behind, limit=1))) == ["late"]
    assert messages(await store.find_events(replace(behind, backwards=True, limit=1))) == ["last"]


async def test_events_are_written_with_what_they_lead_to_or_not_at_all(store: NodeStore) -> None:
    await store.write([Put("kind", "key", {})], [], [event("a")])
    assert messages(await store.find_events(LogQuery(1, limit=10))) == ["a"]
    assert await store.log_bytes() == {1: 1 + EVENT_BYTES}
    with pytest.raises(Conflict):
        await store.write([Put("kind", "key", {})], [], [event("b")])
    assert messages(await store.find_events(LogQuery(1, limit=10))) == ["a"]


async def test_messages_are_kept_as_they_are(store: NodeStore) -> None:
    strange = ["\U0001f640 日本語", "a\nb\t\r", "", "x" * 100_000]
    await store.add_events([event(message, at) for at, message in enumerate(strange)])
    assert messages(await store.find_events(LogQuery(1, limit=10))) == strange


async def test_streams_tell_how_far_they_reach(store: NodeStore) -> None:
    await store.add_events([event("a", 5, ingested_at=8), event("b", 3, ingested_at=9), event("c", stream=2)])
    assert await store.log_spans(1, [1, 2, 3]) == {1: LogSpan(T0 + 3, T0 + 5, 8), 2: LogSpan(T0, T0, 7)}


async def test_the_newest_events_of_several_groups_are_read_by_their_beginnings(store: NodeStore) -> None:
    await store.add_events(
        [event("first", 1), event("second", 3), event("thïrd", 2), event("old", 0), event("x", 9, group=2)]
    )
    read = await store.log_beginnings([1, 2, 3], T0 + 1, 2, 3)
    assert read == {1: ["sec", "thï"], 2: ["x"], 3: []}


async def test_groups_tell_what_they_weigh(store: NodeStore) -> None:
    await store.add_events([event("é"), event("abc"), event("x", group=2)])
    assert await store.log_bytes() == {1: 2 + 3 + 2 * EVENT_BYTES, 2: 1 + EVENT_BYTES}
    assert await store.drop_events(1, None, EVER, 1) == 1
    assert await store.log_bytes() == {1: 3 + EVENT_BYTES, 2: 1 + EVENT_BYTES}
    await store.drop_events(1, None, EVER, 10)
    assert await store.log_bytes() == {2: 1 + EVENT_BYTES}


async def test_events_are_dropped_oldest_first_and_no_more_than_asked(store: NodeStore) -> None:
    await store.add_events([event(str(at), at, stream=1 + at % 2) for at in range(6)])
    assert await store.drop_events(1, None, T0 + 3, 2) == 2
    assert await store.drop_events(1, None, T0 + 3, 2) == 1
    assert await store.drop_events(1, None, T0 + 3, 2) == 0
    assert await store.drop_events(1, 2, EVER, 10) == 2
    assert messages(await store.find_events(LogQuery(1, limit=10))) == ["4"]


async def test_telemetry_outlives_the_store(lasting_home: Home) -> None:
    store = await lasting_home.open()
    await store.add_points([point(value=4)])
    await store.add_events([event("a")])
    await lasting_home.close(store)
    store = await lasting_home.open()
    assert [kept.total for _, kept in await buckets(store)] == [4]
    assert messages(await store.find_events(LogQuery(1, limit=10))) == ["a"]
