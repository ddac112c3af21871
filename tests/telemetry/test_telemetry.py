"""Flushing, sampling and sweeping of telemetry, on a simulated clock and a real store."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest

from redrive.engine.ports import ClaimRequest, Counts, MoveTarget, NewDelivery, Put, Remove
from redrive.model.delivery import Delivery, Limits
from redrive.model.errors import StoreUnavailable
from redrive.model.log import LOG_GROUP, LogEvent, LogGroup, LogQuery
from redrive.model.metric import MINUTE_MS, MetricPoint, PointQuery, SeriesQuery, Statistics
from redrive.model.names import ResourceName
from redrive.model.queue import DAY_MS, Queue
from redrive.model.topic import Subscription, Topic
from redrive.runtime.simulated import SimulatedClock
from redrive.stores.sqlite.store import SqliteStore
from redrive.telemetry.accumulators import queue_series, scope_series
from redrive.telemetry.gauges import ACTIVE_MS, CAUGHT_UP_MS, Level
from redrive.telemetry.logs import RETENTION_DAYS
from redrive.telemetry.telemetry import FLUSH_MS, POINTS_KEPT_MS, Telemetry
from tests.telemetry.facts import DEAD_LETTERS, HERE, TOPIC, queue, subscription

GROUP = HERE._replace(name="sns/us-east-1/000000000000/orders")
Q = queue("q", 1)
D = queue("dead", 2)
BACKLOG = queue("backlog", 3)  # of a subscription


class Shelf:
    """Queues by name, as the engine finds them."""

    def __init__(self, *queues: Queue) -> None:
        self.queues = {one.name: one for one in queues}

    async def get(self, name: ResourceName) -> Queue | None:
        return self.queues.get(name)

    async def of_number(self, queue_id: int) -> Queue | None:
        return next((one for one in self.queues.values() if one.id == queue_id), None)

    async def of_backlog(self, queue_id: int) -> Subscription | None:
        return subscription() if queue_id == BACKLOG.id else None


class Topics:
    """One topic, and how much its archive holds."""

    def __init__(self) -> None:
        self.found: Topic | None = TOPIC
        self.held = (3, 300)

    async def get(self, name: ResourceName) -> Topic | None:
        return self.found if name == TOPIC.name else None

    async def size(self, topic: Topic) -> tuple[int, int]:
        assert topic is self.found
        return self.held


class House:
    """Telemetry that runs, and time that passes when a test says so."""

    def __init__(self, store: SqliteStore, *, simulated: bool) -> None:
        self.store = store
        self.clock = SimulatedClock()
        self.shelf = Shelf(Q, D)
        self.topics = Topics()
        self.simulated = simulated
        self.telemetry = self.another()
        self.start = self.clock.now()
        self._tokens = itertools.count(2)

    def another(self) -> Telemetry:
        """Telemetry of another node, or after another start."""
        return Telemetry(
            self.store,
            self.clock,
            self.shelf,
            self.topics,
            self.topics.size,
            self.shelf.of_backlog,
            simulated=self.simulated,
        )

    async def advance(self, milliseconds: int) -> None:
        async def settled() -> None:
            await self.telemetry.until_quiet()
            await self.store.flush()

        await self.clock.advance(milliseconds, settled)

    async def totals(self, name: str, queue: Queue = Q) -> dict[int, float]:
        """Return the totals of a queue's metric, by minutes since the start."""
        query = PointQuery((queue_series(queue.name, name),), self.start, 2**62, MINUTE_MS)
        found = await self.store.find_points(query)
        return {(one.at - self.start) // MINUTE_MS: one.statistics.total for one in found}

    async def enqueue(self, queue: Queue, *bodies: str, delay_ms: int = 0) -> None:
        now = self.clock.now()
        await self.store.enqueue(
            [NewDelivery(queue.id, bytes(16), body, None, now + delay_ms, now) for body in bodies]
        )

    async def claim(self, queue: Queue, token: int = 1) -> Delivery:
        order = ClaimRequest(
            queue.id, ordered=False, limit=1, now=self.clock.now(), lease_ms=DAY_MS, token=token
        )
        (claimed,) = (await self.store.claim(order)).deliveries
        return claimed

    async def claim_and_give_back(self, queue: Queue) -> str:
        """Claim the queue's first, and leave it where it was."""
        token = next(self._tokens)
        claimed = await self.claim(queue, token)
        await self.store.extend(queue.id, [(claimed.seq, token, self.start)], self.start, ordered=False)
        return claimed.body


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async for house in running_house(simulated=False):
        yield house


async def running_house(*, simulated: bool) -> AsyncIterator[House]:
    store = SqliteStore(None)
    await store.open()
    house = House(store, simulated=simulated)
    running = asyncio.create_task(house.telemetry.run())
    await house.advance(0)
    yield house
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await store.close()


# ---- writing down ----------------------------------------------------------------------------------------------


async def test_metrics_are_flushed_some_seconds_later(house: House) -> None:
    house.telemetry.metrics.sent(Q, 2, 10, house.clock.now())
    await house.advance(FLUSH_MS - 1)
    assert await house.totals("messages_sent") == {}
    await house.advance(1)
    assert await house.totals("messages_sent") == {0: 2}


async def test_metrics_of_a_facade_are_flushed_with_the_others(house: House) -> None:
    at = house.clock.now() // MINUTE_MS * MINUTE_MS
    house.telemetry.count([MetricPoint(queue_series(Q.name, "apples"), at, "", Statistics.of(3))])
    await house.advance(FLUSH_MS)
    assert await house.totals("apples") == {0: 3}


async def test_a_reader_can_flush_metrics_at_once(house: House) -> None:
    house.telemetry.metrics.sent(Q, 2, 10, house.clock.now())
    await house.telemetry.flush()
    assert await house.totals("messages_sent") == {0: 2}


async def test_closing_flushes_the_remaining_metrics(house: House) -> None:
    house.telemetry.metrics.sent(Q, 2, 10, house.clock.now())
    house.telemetry.logs.write(GROUP, "s", 5, "line")
    await house.telemetry.close()
    assert await house.totals("messages_sent") == {0: 2}
    assert list((await house.store.log_bytes()).values()) == [30]


async def test_all_nodes_add_to_the_traffic_of_a_place(house: House) -> None:
    for node in (house.telemetry, house.another()):
        node.metrics.sent(Q, 3, 30, house.start)
        await node.flush()
    query = PointQuery([scope_series(HERE, "sent")], house.start, 2**62, MINUTE_MS)
    assert [found.statistics.total for found in await house.store.find_points(query)] == [6]


async def test_points_that_the_store_refused_are_written_later(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(_: object) -> None:
        raise StoreUnavailable("away")

    house.telemetry.logs.write(GROUP, "s", house.clock.now(), "line")
    house.telemetry.metrics.sent(Q, 1, 10, house.clock.now())
    for verb in ("add_points", "add_events"):
        with monkeypatch.context() as broken:
            broken.setattr(house.store, verb, away)
            with pytest.raises(StoreUnavailable):
                await house.telemetry.flush()
            await house.telemetry.close()  # does not raise
    house.telemetry.metrics.sent(Q, 1, 10, house.clock.now())
    await house.advance(FLUSH_MS)
    assert await house.totals("messages_sent") == {0: 2}
    assert list((await house.store.log_bytes()).values()) == [30]


async def test_quiet_weeks_take_no_turns(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.telemetry.metrics.sent(Q, 1, 1, house.clock.now())
    await house.advance(ACTIVE_MS + 5 * MINUTE_MS)
    turns: list[None] = []
    count: Callable[[int, int], Awaitable[object]] = house.store.count

    async def counted(queue_id: int, now: int) -> object:
        turns.append(None)
        return await count(queue_id, now)

    monkeypatch.setattr(house.store, "count", counted)
    await house.advance(7 * DAY_MS)
    assert turns == []
    house.telemetry.metrics.received(Q, 0, house.clock.now())
    await house.advance(3 * MINUTE_MS)
    assert len(turns) == 1 + 3


# ---- sampling --------------------------------------------------------------------------------------------------


async def test_an_active_queue_is_sampled_as_each_minute_begins(house: House) -> None:
    await house.enqueue(Q, "a", "b", "c")
    await house.enqueue(Q, "later", delay_ms=DAY_MS)
    await house.claim(Q)
    house.telemetry.metrics.sent(Q, 4, 4, house.clock.now())
    await house.advance(2 * MINUTE_MS)
    assert await house.totals("messages_available") == {0: 2, 1: 2, 2: 2}
    assert await house.totals("messages_claimed") == {0: 1, 1: 1, 2: 1}
    assert await house.totals("messages_delayed") == {0: 1, 1: 1, 2: 1}
    assert await house.totals("oldest_age_seconds") == {0: 0, 1: 60, 2: 120}


async def test_an_idle_counter_is_written_as_zero(house: House) -> None:
    house.telemetry.metrics.sent(Q, 2, 10, house.clock.now())
    await house.advance(3 * MINUTE_MS)
    assert await house.totals("messages_sent") == {0: 2, 1: 0, 2: 0}
    assert await house.totals("empty_receives") == {0: 0, 1: 0, 2: 0}


async def test_a_message_claimed_three_times_does_not_age(house: House) -> None:
    await house.enqueue(Q, "stuck")
    await house.advance(10_000)
    await house.enqueue(Q, "fresh")
    house.telemetry.metrics.sent(Q, 2, 2, house.clock.now())
    for _ in range(3):
        assert await house.claim_and_give_back(Q) == "stuck"
    await house.advance(50_000)
    assert await house.totals("oldest_age_seconds") == {0: 0, 1: 50}


async def test_a_dead_letter_ages_from_when_it_came_and_however_often_it_was_received_before(
    house: House,
) -> None:
    async def bury() -> None:
        """Let what is in the queue be received three times, and then go to the dead letters."""
        for _ in range(3):
            await house.claim_and_give_back(Q)
        limits, dead = Limits(attempts_max=3, dead_letters=True), MoveTarget(D.id, ordered=False)
        order = ClaimRequest(
            Q.id, ordered=False, limit=1, now=house.clock.now(), lease_ms=1, token=99, limits=limits
        )
        assert (await house.store.claim(replace(order, dead_letters_to=dead))).dead_lettered == 1

    house.telemetry.metrics.sent(D, 1, 1, house.clock.now())
    await house.enqueue(Q, "a")
    await house.advance(MINUTE_MS)
    await bury()
    await house.advance(MINUTE_MS)
    await house.enqueue(Q, "b")
    await bury()
    await house.advance(MINUTE_MS)
    ages = await house.totals("oldest_age_seconds", D)
    assert (ages[2], ages[3]) == (60, 120)
    await house.claim(D)
    await house.advance(MINUTE_MS)
    assert (await house.totals("oldest_age_seconds", D))[
        4
    ] == 120  # of "b"; when "a" came nobody can tell now


async def test_dead_letters_are_seen_without_touching_their_queue(house: House) -> None:
    source = queue("q", 1, dead_letter=DEAD_LETTERS)
    await house.enqueue(D, "dead")
    house.telemetry.metrics.received(source, 0, house.clock.now())
    await house.advance(MINUTE_MS)
    assert await house.totals("messages_available", D) == {0: 1, 1: 1}


async def test_a_queue_that_holds_messages_stays_active_after_a_restart(house: House) -> None:
    await house.enqueue(D, "dead")
    again = house.another()
    running = asyncio.create_task(again.run())
    await house.advance(ACTIVE_MS + 2 * MINUTE_MS)
    running.cancel()
    minutes = ACTIVE_MS // MINUTE_MS + 2
    assert await house.totals("messages_available", D) == dict.fromkeys(range(1, minutes + 1), 1)
    assert await house.totals("messages_available", Q) == {}


async def test_a_deleted_queue_is_forgotten(house: House) -> None:
    house.telemetry.metrics.sent(Q, 1, 1, house.clock.now())
    del house.shelf.queues[Q.name]
    await house.advance(MINUTE_MS)
    assert await house.totals("messages_available") == {}
    assert house.telemetry.metrics.activity == {}


async def test_of_two_nodes_that_look_one_is_enough(house: House) -> None:
    other = house.another()
    running = asyncio.create_task(other.run())
    await house.advance(0)
    await house.enqueue(Q, "a")
    for telemetry in (house.telemetry, other):
        telemetry.metrics.sent(Q, 1, 1, house.clock.now())
    await house.advance(MINUTE_MS)
    running.cancel()
    assert await house.totals("messages_available") == {0: 1, 1: 1}
    assert await house.totals("messages_sent") == {0: 2}


# ---- leaps -----------------------------------------------------------------------------------------------------


@pytest.fixture
async def leaping() -> AsyncIterator[House]:
    async for house in running_house(simulated=True):
        yield house


async def test_a_leap_of_the_clock_schedules_no_sampling(
    leaping: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await leaping.enqueue(Q, "a")
    leaping.telemetry.metrics.sent(Q, 1, 1, leaping.clock.now())
    await leaping.advance(MINUTE_MS)  # news is sampled when the next minute begins
    moments: list[int] = []
    monkeypatch.setattr(leaping.clock, "call_at", lambda at, call: moments.append(at))
    await leaping.advance(DAY_MS)
    assert moments == []


async def test_after_a_leap_the_minutes_are_caught_up_with(leaping: House) -> None:
    await leaping.enqueue(Q, "a", "b")
    await leaping.enqueue(Q, "later", delay_ms=90_000)
    leaping.telemetry.metrics.sent(Q, 3, 3, leaping.clock.now())
    await leaping.advance(5 * MINUTE_MS)
    await leaping.telemetry.tidy()
    assert await leaping.totals("messages_available") == {1: 2, 2: 3, 3: 3, 4: 3, 5: 3}
    assert await leaping.totals("messages_delayed") == {1: 1, 2: 0, 3: 0, 4: 0, 5: 0}
    assert await leaping.totals("oldest_age_seconds") == {1: 60, 2: 120, 3: 180, 4: 240, 5: 300}
    assert await leaping.totals("messages_sent") == {0: 3, 1: 0, 2: 0, 3: 0, 4: 0}


async def test_minutes_before_something_was_done_are_as_they_were(leaping: House) -> None:
    await leaping.enqueue(Q, "a", "b")
    leaping.telemetry.metrics.sent(Q, 2, 2, leaping.clock.now())
    await leaping.advance(3 * MINUTE_MS + 30_000)
    await leaping.store.purge(Q.id, await leaping.store.last_seq(), 10)
    leaping.telemetry.metrics.deleted(Q, 2, leaping.clock.now())
    await leaping.advance(2 * MINUTE_MS)
    await leaping.telemetry.flush()
    assert await leaping.totals("messages_available") == {1: 2, 2: 2, 3: 2, 4: 0, 5: 0}


async def test_of_a_long_leap_the_end_is_filled(leaping: House) -> None:
    await leaping.enqueue(Q, "a")
    leaping.telemetry.metrics.sent(Q, 1, 1, leaping.clock.now())
    await leaping.advance(MINUTE_MS)
    await leaping.advance(3 * DAY_MS)
    await leaping.telemetry.tidy()
    found = await leaping.totals("messages_available")
    last = 3 * DAY_MS // MINUTE_MS + 1
    assert list(found) == [1, *range(last - CAUGHT_UP_MS // MINUTE_MS + 1, last + 1)]


# ---- logs ------------------------------------------------------------------------------------------------------


async def test_lines_make_their_group_and_stream(house: House) -> None:
    now = house.clock.now()
    house.telemetry.logs.write(GROUP, "one", now, "a")
    house.telemetry.logs.write(GROUP, "two", now - 5, "b")
    house.telemetry.logs.write(GROUP, "one", now + 1, "c")
    await house.advance(FLUSH_MS)
    (resource,) = await house.store.find(LOG_GROUP, "")
    group = LogGroup.from_document(resource.document)
    assert (group.name, group.retention_days, group.created_at) == (GROUP, RETENTION_DAYS, now + FLUSH_MS)
    events = await house.store.find_events(LogQuery(group.id, limit=10))
    assert [(event.message, event.at) for event in events] == [("b", now - 5), ("a", now), ("c", now + 1)]
    assert {event.ingested_at for event in events} == {now + FLUSH_MS}
    assert events[0].stream_id != events[1].stream_id == events[2].stream_id


async def test_a_group_that_stands_is_written_to_as_it_is(house: House) -> None:
    group = LogGroup(99, GROUP, 1, retention_days=None)
    await house.store.write([Put(LOG_GROUP, GROUP.key, group.to_document())])
    house.telemetry.logs.write(GROUP, "s", house.clock.now(), "a")
    await house.telemetry.flush()
    assert list(await house.store.log_bytes()) == [99]


async def test_two_nodes_make_one_group(house: House) -> None:
    other = house.another()
    for telemetry in (house.telemetry, other):
        telemetry.logs.write(GROUP, "s", house.clock.now(), "a")
    await asyncio.gather(house.telemetry.flush(), other.flush())
    assert list((await house.store.log_bytes()).values()) == [2 * 27]


# ---- sweeping --------------------------------------------------------------------------------------------------


async def test_points_are_dropped_when_they_are_too_old(house: House) -> None:
    house.telemetry.metrics.sent(Q, 1, 1, house.clock.now())
    await house.advance(POINTS_KEPT_MS - MINUTE_MS)
    assert 0 in await house.totals("messages_sent")
    await house.advance(3 * 60 * MINUTE_MS)
    assert 0 not in await house.totals("messages_sent")


async def test_events_are_dropped_by_their_group_s_retention(house: House) -> None:
    now = house.clock.now()
    for number, days in [(1, 3), (2, None)]:
        name = GROUP._replace(name=str(number))
        group = LogGroup(number, name, now, days)
        await house.store.write([Put(LOG_GROUP, name.key, group.to_document())])
        await house.store.add_events([LogEvent(number, 1, now, now, "old")])
    await house.advance(3 * DAY_MS - 60 * MINUTE_MS)
    assert len(await house.store.log_bytes()) == 2
    await house.advance(3 * 60 * MINUTE_MS)
    assert list(await house.store.log_bytes()) == [2]


async def test_events_of_a_deleted_log_group_are_removed(house: House) -> None:
    await house.store.add_events([LogEvent(5, 1, house.clock.now(), 0, "left")] * 3)
    await house.telemetry.sweep()
    assert await house.store.log_bytes() == {}


async def test_a_reset_leaves_nothing(house: House) -> None:
    house.telemetry.logs.write(GROUP, "s", house.clock.now(), "a")
    await house.telemetry.flush()
    await house.store.write([Remove(LOG_GROUP, GROUP.key)])
    house.telemetry.metrics.sent(Q, 1, 1, house.clock.now())
    await house.telemetry.reset()
    assert await house.store.find_series(SeriesQuery(HERE.account, HERE.region, limit=10)) == []
    assert await house.totals("messages_sent") == {}
    assert await house.store.log_bytes() == {}
    assert house.telemetry.metrics.take() == []
    assert house.telemetry.metrics.activity == {}


# ---- levels ----------------------------------------------------------------------------------------------------


async def test_levels_are_those_of_the_last_look_at_queues_that_hold_something(house: House) -> None:
    await house.enqueue(Q, "a", "b")
    await house.enqueue(Q, "later", delay_ms=DAY_MS)
    house.telemetry.metrics.sent(Q, 3, 7, house.clock.now())
    house.telemetry.metrics.sent(D, 0, 0, house.clock.now())
    assert house.telemetry.queue_levels == []
    await house.advance(MINUTE_MS)
    assert house.telemetry.queue_levels == [Level(Q.name, Counts(2, 0, 1), MINUTE_MS // 1000, house.start)]
    await house.claim(Q)
    assert house.telemetry.queue_levels[0].counts == Counts(2, 0, 1)  # nobody looks because somebody asks
    await house.advance(MINUTE_MS)
    assert house.telemetry.queue_levels[0].counts == Counts(1, 1, 1)
    await house.telemetry.reset()
    assert house.telemetry.queue_levels == []


async def test_backlogs_are_looked_at_by_topic_also_when_nothing_happens_to_them(house: House) -> None:
    await house.enqueue(BACKLOG, "retried", delay_ms=DAY_MS)
    await house.enqueue(BACKLOG, "due", "due as well")
    await house.claim(BACKLOG)
    house.telemetry.metrics.published(TOPIC, 1, 1, 3, house.clock.now())
    await house.advance(MINUTE_MS)
    (level,) = house.telemetry.backlog_levels
    assert (level.name, level.counts, level.age_seconds) == (TOPIC.name, Counts(1, 1, 1), 60)
    await house.advance(10 * MINUTE_MS)
    assert house.telemetry.backlog_levels[0].age_seconds == 660
    await house.store.purge(BACKLOG.id, await house.store.last_seq(), 10)
    await house.advance(MINUTE_MS)
    assert not house.telemetry.backlog_levels
