"""Deliveries pushed while the store was away: settled when it is back, and not pushed again."""

import asyncio
import random
from dataclasses import replace

import pytest

from redrive.engine.ports import PushRequest
from redrive.model.delivery import Outcome
from redrive.model.errors import StoreUnavailable
from redrive.model.topic import Subscription
from redrive.testing import VirtualClock
from tests.engine.stage import BROKEN, GONE, Stage, name
from tests.engine.test_attempts import minutely

pytestmark = pytest.mark.usefixtures("pushes")

MINUTE_MS = 60_000
LEASE_MS = 30_000


async def pushed_into_an_outage(stage: Stage, outage_ms: int, number: int = 5) -> Subscription:
    """Publish so many; the store goes away while the first is pushed, and is back after the outage."""
    clock = stage.clock
    await stage.engine.open()
    topic, dead = await stage.topic(), await stage.queue("dead")
    subscription = await stage.subscribe(topic, "s", "somewhere", dead_letter=dead.name)
    stage.engine.parts.dispatcher.forget(subscription.queue_id)
    for one in range(number):
        await stage.publish(topic, str(one))

    async def lose(_: PushRequest) -> None:
        if not stage.wire.away and len(stage.endpoint.pushed) <= number:
            stage.wire.away = True
            clock.call_at(clock.now() + outage_ms, lambda: setattr(stage.wire, "away", False))
        await clock.sleep_until(clock.now() + 10)

    stage.endpoint.before = lose
    await stage.engine.parts.dispatcher.open()
    return subscription


@pytest.mark.parametrize("outage_ms", [50, 2_000, LEASE_MS - 2_000])
async def test_an_outage_within_the_lease_repeats_no_push(
    outage_ms: int, caplog: pytest.LogCaptureFixture, clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    began = clock.now()
    subscription = await pushed_into_an_outage(stage, outage_ms)
    await clock.sleep_until(began + outage_ms + 1_100)
    assert await stage.store.peek(subscription.queue_id, 10) == []
    await clock.sleep_until(began + 5 * MINUTE_MS)
    assert sorted(body for _, body in stage.endpoint.pushed) == list("01234")
    assert [fact.transition.outcome for fact in stage.memory.attempts] == [Outcome.DELIVERED] * 5
    told = [record.getMessage().split()[0] for record in caplog.records if "dispatch" in record.message]
    assert told == ["dispatch.unsettled", "dispatch.settled:"]  # once for all of them
    await stage.engine.close()


async def test_documents_needed_to_settle_are_read_after_the_outage(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng, otherwise=GONE)
    began = clock.now()
    subscription = await pushed_into_an_outage(stage, 2_000)
    await clock.sleep_until(began + 5)
    stage.engine.resources.documents.forget("", "")  # nobody here knows the dead-letter queue any more
    await clock.sleep_until(began + 5 * MINUTE_MS)
    assert len(stage.endpoint.pushed) == 5
    assert await stage.store.peek(subscription.queue_id, 10) == []
    dead = await stage.engine.resources.queues.get(name("dead"))
    assert dead is not None
    assert sorted(await stage.bodies_in(dead)) == list("01234")
    assert len(stage.memory.dead) == 5
    await stage.engine.close()


async def test_a_wait_for_the_next_attempt_is_kept_too(clock: VirtualClock, rng: random.Random) -> None:
    stage = Stage(clock, rng, *[BROKEN] * 5)
    stage.profile.schedule = minutely()
    began = clock.now()
    await pushed_into_an_outage(stage, 2_000)
    await clock.sleep_until(began + 5 * MINUTE_MS)
    assert sorted(stage.endpoint.pushed[:5]) == [(began, str(one)) for one in range(5)]
    times = {at - began for at, _ in stage.endpoint.pushed[5:]}
    assert times == {MINUTE_MS + 10}  # from when the attempt ended, not from when that could be written
    await stage.engine.close()


async def test_a_delivery_unsettled_when_its_lease_ends_is_pushed_again_and_logged(
    caplog: pytest.LogCaptureFixture, clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    began = clock.now()
    subscription = await pushed_into_an_outage(stage, LEASE_MS + 5_000)
    await clock.sleep_until(began + LEASE_MS + 3_000)
    assert len(stage.endpoint.pushed) == 5
    assert caplog.text.count("dispatch.given_up") == 5
    await clock.sleep_until(began + LEASE_MS + 10_000)
    assert sorted(body for _, body in stage.endpoint.pushed) == sorted("0123401234")
    assert await stage.store.peek(subscription.queue_id, 10) == []
    await stage.engine.close()


async def test_an_answer_that_got_lost_changes_nothing_of_what_is_told(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng, GONE)
    await stage.engine.open()
    topic, dead = await stage.topic(), await stage.queue("dead")
    await stage.subscribe(topic, "s", "somewhere", dead_letter=dead.name)
    waiting = asyncio.ensure_future(stage.engine.messages.receive(dead, 1, wait_ms=MINUTE_MS))
    settling = stage.wire.hold_answer("settle")
    await stage.publish(topic, "a")
    await settling.reached
    settling.lose()
    began = clock.now()
    assert [one.body for one in await waiting] == ["a"]
    assert clock.now() < began + 1_000
    assert len(stage.memory.dead) == len(stage.memory.attempts) == 1
    await stage.engine.close()


async def test_a_node_that_is_told_to_stop_waits_for_the_store_as_long_as_it_may(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    began = clock.now()
    subscription = await pushed_into_an_outage(stage, 2_000)
    await clock.sleep_until(began + 100)
    await stage.engine.drain(10)
    assert clock.now() - began < 3_100
    assert await stage.store.peek(subscription.queue_id, 10) == []
    await stage.engine.close()


async def test_a_node_that_may_wait_no_longer_says_what_is_pushed_again(
    caplog: pytest.LogCaptureFixture, clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    began = clock.now()
    await pushed_into_an_outage(stage, 20_000)
    await clock.sleep_until(began + 100)
    await stage.engine.drain(10)
    assert clock.now() - began == 10_100
    await stage.engine.parts.dispatcher.close()
    assert "dispatch.left number=5" in caplog.text
    await clock.sleep_until(began + 20_000)
    await stage.engine.close()


async def test_a_late_answer_counts_though_the_store_was_away_at_the_soft_timeout(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    stage.profile.schedule = minutely()
    stage.profile.changes = {"soft_timeout_ms": 10_000, "lease_ms": LEASE_MS}
    await stage.engine.open()
    began = clock.now()
    topic = await stage.topic()
    subscription = await stage.subscribe(topic, "s", "somewhere")

    async def think(_: PushRequest) -> None:
        clock.call_at(began + 9_000, lambda: setattr(stage.wire, "away", True))
        clock.call_at(began + 12_000, lambda: setattr(stage.wire, "away", False))
        await clock.sleep_until(began + 50_000)

    stage.endpoint.before = think
    await stage.publish(topic, "a")
    await clock.sleep_until(began + 5 * MINUTE_MS)
    assert len(stage.endpoint.pushed) == 1
    assert await stage.store.peek(subscription.queue_id, 10) == []
    await stage.engine.close()


async def test_a_settlement_that_the_store_never_takes_does_not_delay_others(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng, replace(BROKEN, response="\0"))
    stage.profile.schedule = minutely()
    await stage.engine.open()
    topic = await stage.topic()
    subscription = await stage.subscribe(topic, "s", "somewhere")
    settle, began = stage.store.settle, clock.now()
    refused: list[int] = []

    async def refuse(queue_id, settlements, now, **rules):  # type: ignore[no-untyped-def]  # as the store
        if any(one.note is not None and "\0" in one.note.response for one in settlements):
            refused.append(now - began)
            raise StoreUnavailable("it does not take that")
        return await settle(queue_id, settlements, now, **rules)

    stage.store.settle = refuse  # type: ignore[method-assign, assignment]  # as PostgreSQL would
    for body in "abc":
        await stage.publish(topic, body)
    await clock.sleep_until(began + 5_000)
    assert len(await stage.store.peek(subscription.queue_id, 10)) == 1
    await clock.sleep_until(began + LEASE_MS + 5_000)
    assert await stage.store.peek(subscription.queue_id, 10) == []
    assert len(refused) < 40
    await stage.engine.close()
