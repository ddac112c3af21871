import asyncio
import itertools
import random
from dataclasses import replace
from typing import Any

import pytest

from redrive.engine.ports import ClaimRequest, ClaimResult, PushRequest, Settled
from redrive.model.attempt import Reason
from redrive.model.delivery import Outcome
from redrive.model.retry import Phase, RetrySchedule
from redrive.model.retry import Stage as RetryStage
from redrive.model.retry_plans import MANAGED_ENDPOINT
from redrive.testing import VirtualClock, run_virtual
from tests.engine.stage import BROKEN, GONE, Stage

pytestmark = pytest.mark.usefixtures("pushes")

HOUR_MS = 3_600_000
SAMPLE = RetrySchedule(  # the sample policy of the SNS retry document
    (
        RetryStage(Phase.IMMEDIATE, 3, 0, 0),
        RetryStage(Phase.PRE_BACKOFF, 2, 1000, 1000),
        RetryStage(Phase.BACKOFF, 10, 1000, 60_000),
        RetryStage(Phase.POST_BACKOFF, 35, 60_000, 60_000),
    )
)


async def test_a_delivery_is_pushed_at_once_and_removed(clock: VirtualClock, rng: random.Random) -> None:
    stage = Stage(clock, rng)
    await stage.engine.open()
    topic = await stage.topic()
    subscription = await stage.subscribe(topic, "s", "somewhere")
    await stage.publish(topic)
    await stage.engine.until_quiet()
    assert stage.endpoint.pushed == [(clock.now(), "hello")]
    assert await stage.store.peek(subscription.queue_id, 10) == []
    assert [fact.transition.outcome for fact in stage.memory.attempts] == [Outcome.DELIVERED]
    await stage.engine.close()


async def test_a_server_error_is_retried_by_the_schedule_then_dead_lettered(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng, otherwise=BROKEN)
    stage.profile.schedule = SAMPLE
    await stage.engine.open()
    topic, dead = await stage.topic(), await stage.queue("dead")
    subscription = await stage.subscribe(topic, "s", "somewhere", dead_letter=dead.name)
    began = clock.now()
    await stage.publish(topic)
    await clock.sleep_until(began + HOUR_MS)
    times = [at - began for at, _ in stage.endpoint.pushed]
    assert len(times) == 51
    for number, (earlier, later) in enumerate(itertools.pairwise(times), start=1):
        step = SAMPLE.step(number)
        assert step is not None
        assert step.earliest_ms <= later - earlier <= step.latest_ms + 1
    (letter,) = await stage.engine.operations.dead_letters.letters(dead, 0, 10)
    assert (letter.delivery.body, letter.attempts) == ("hello", 51)
    assert (letter.delivery.attempts, letter.delivery.origin) == (0, subscription.queue_id)
    notes = await stage.store.notes(subscription.queue_id, letter.delivery.message_id)
    assert [note.number for note in notes] == list(range(1, 52))
    assert {note.status for note in notes} == {503}
    assert len(stage.memory.dead) == 1
    await stage.engine.close()


async def test_a_client_error_is_tried_once(clock: VirtualClock, rng: random.Random) -> None:
    stage = Stage(clock, rng, otherwise=GONE)
    await stage.engine.open()
    topic, dead = await stage.topic(), await stage.queue("dead")
    await stage.subscribe(topic, "s", "somewhere", dead_letter=dead.name)
    await stage.publish(topic)
    await clock.sleep_until(clock.now() + HOUR_MS)
    assert len(stage.endpoint.pushed) == 1
    assert await stage.bodies_in(dead) == ["hello"]
    await stage.engine.close()


@pytest.mark.parametrize("trouble", ["none", "missing", "closed"])
async def test_a_delivery_without_a_dead_letter_queue_is_dropped_and_reported(
    trouble: str, clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng, otherwise=GONE)
    await stage.engine.open()
    topic, dead = await stage.topic(), await stage.queue("dead")
    target = {"none": None, "missing": dead.name._replace(name="nowhere"), "closed": dead.name}[trouble]
    stage.profile.closed = {"dead"} if trouble == "closed" else set()
    subscription = await stage.subscribe(topic, "s", "somewhere", dead_letter=target)
    await stage.publish(topic)
    await stage.engine.until_quiet()
    assert await stage.store.peek(subscription.queue_id, 1) == []
    assert await stage.bodies_in(dead) == []
    assert [fact.transition.outcome for fact in stage.memory.attempts] == [Outcome.DROPPED]
    assert [fact.attempt.delivered for fact in stage.memory.dead] == ([] if trouble == "none" else [False])
    await stage.engine.close()


@pytest.mark.parametrize("overdue", [False, True])
async def test_listeners_hear_no_outcome_that_was_settled_too_late(
    overdue: bool, clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng, otherwise=GONE)
    stage.profile.schedule = replace(SAMPLE, expires_after_ms=0 if overdue else None)
    await stage.engine.open()
    topic, dead = await stage.topic(), await stage.queue("dead")
    await stage.subscribe(topic, "s", "somewhere", dead_letter=dead.name)
    settle = stage.store.settle

    async def emptied_before(queue_id: int, *ends: Any, **rules: bool) -> list[Settled]:
        await stage.store.purge(queue_id, await stage.store.last_seq(), 10)
        return await settle(queue_id, *ends, **rules)

    stage.store.settle = emptied_before  # type: ignore[method-assign, assignment]  # as after a purge
    await stage.publish(topic)
    await stage.engine.until_quiet()
    assert len(stage.endpoint.pushed) == len(stage.memory.attempts) == (0 if overdue else 1)
    assert not stage.memory.expirations
    assert not stage.memory.dead
    assert not await stage.bodies_in(dead)
    await stage.engine.close()


async def test_an_unrenderable_delivery_is_a_failed_attempt_and_is_dead_lettered(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    stage.profile.schedule = replace(SAMPLE, attempts_max=3)
    await stage.engine.open()
    topic, dead = await stage.topic(), await stage.queue("dead")
    await stage.subscribe(topic, "s", "somewhere", dead_letter=dead.name)
    stage.profile.unreadable = {"b"}
    for body in "abc":
        await stage.publish(topic, body)
    await clock.sleep_until(clock.now() + HOUR_MS)
    assert [body for _, body in stage.endpoint.pushed] == ["a", "c"]
    assert await stage.bodies_in(dead) == ["b"]
    failed = [fact for fact in stage.memory.attempts if not fact.attempt.delivered]
    assert [(fact.delivery.attempts, fact.attempt.reason) for fact in failed] == [
        (number, Reason.UNMADE) for number in (1, 2, 3)
    ]
    await stage.engine.close()


async def test_a_dead_node_repeats_its_attempt_and_no_phase_starts_over(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng, otherwise=BROKEN)
    stage.profile.schedule = SAMPLE
    await stage.engine.open()
    topic = await stage.topic()
    subscription = await stage.subscribe(topic, "s", "somewhere")
    await stage.publish(topic)
    await clock.sleep_until(clock.now() + 10_000)
    (waiting,) = await stage.store.peek(subscription.queue_id, 1)
    hanging = asyncio.Event()

    async def hang(_: PushRequest) -> None:
        await hanging.wait()

    stage.endpoint.before = hang
    pushed = len(stage.endpoint.pushed)
    while len(stage.endpoint.pushed) == pushed:
        await clock.sleep_until(clock.now() + 100)
    (trying,) = await stage.store.peek(subscription.queue_id, 1)
    assert trying.attempts == waiting.attempts + 1
    await stage.engine.parts.dispatcher.close()  # the node is gone in the middle of the attempt

    stage.endpoint.before = None
    successor = stage.node("b")
    await successor.parts.dispatcher.open()
    while len(stage.endpoint.pushed) == pushed + 1:
        await clock.sleep_until(clock.now() + 100)
    await successor.until_quiet()
    (again,) = await stage.store.peek(subscription.queue_id, 1)
    assert again.attempts == trying.attempts
    await successor.close()


async def test_a_throttle_holds_over_two_nodes_and_keeps_the_order(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    stage.profile.rate_max = 10
    await stage.engine.open()
    topic = await stage.topic()
    await stage.subscribe(topic, "s", "somewhere")
    second = stage.node("b")
    await second.parts.dispatcher.open()
    began = clock.now()
    for number in range(40):
        await stage.publish(topic, f"{number:02d}")
    await clock.sleep_until(began + 10_000)
    times = [at - began for at, _ in stage.endpoint.pushed]
    assert [body for _, body in stage.endpoint.pushed] == [f"{number:02d}" for number in range(40)]
    assert all(sum(begin <= at < begin + 1000 for at in times) <= 10 for begin in times)
    assert times[-1] <= 4000
    await second.parts.dispatcher.close()
    await stage.engine.close()


async def test_an_ordered_topic_blocks_the_group_while_it_retries(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng, BROKEN, BROKEN)
    await stage.engine.open()
    topic = await stage.topic("orders.fifo", ordered=True)
    await stage.subscribe(topic, "s", "somewhere")
    for number in range(3):
        await stage.publish(topic, f"a{number}", group_id="a", deduplication_id=f"a{number}")
    await stage.publish(topic, "b0", group_id="b", deduplication_id="b0")
    await clock.sleep_until(clock.now() + HOUR_MS)
    bodies = [body for _, body in stage.endpoint.pushed]
    assert [body for body in bodies if body[0] == "b"] == ["b0", "b0"]
    assert [body for body in bodies if body[0] == "a"] == ["a0", "a0", "a1", "a2"]
    await stage.engine.close()


def test_two_thousand_retries_of_a_day_pass_in_virtual_time() -> None:
    async def story(clock: VirtualClock, rng: random.Random) -> int:
        stage = Stage(clock, rng, otherwise=BROKEN)
        stage.profile.schedule = replace(
            MANAGED_ENDPOINT,
            stages=(*MANAGED_ENDPOINT.stages[:3], replace(MANAGED_ENDPOINT.stages[3], retries=2000)),
        )
        await stage.engine.open()
        topic = await stage.topic()
        subscription = await stage.subscribe(topic, "s", "somewhere")
        await stage.publish(topic)
        await clock.sleep_until(clock.now() + 24 * HOUR_MS)
        assert await stage.store.peek(subscription.queue_id, 1) == []
        await stage.engine.close()
        return len(stage.endpoint.pushed)

    assert run_virtual(story) == 2016


async def test_a_hanging_endpoint_does_not_delay_other_endpoints(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    await stage.engine.open()
    topic = await stage.topic()
    for number in range(10):
        await stage.subscribe(topic, f"s{number}", "hangs" if number == 0 else f"answers{number}")

    async def hang(push_request: PushRequest) -> None:
        if push_request.endpoint == "hangs":
            await clock.sleep_until(clock.now() + HOUR_MS)

    stage.endpoint.before = hang
    began = clock.now()
    for number in range(100):
        await stage.publish(topic, str(number))
    await clock.sleep_until(began + 50)
    answered = [at for at, _ in stage.endpoint.pushed]
    assert len(answered) == 9 * 100 + stage.profile.concurrency_max
    await stage.engine.close()


async def test_deliveries_locked_by_another_node_are_not_polled_in_a_tight_loop(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    await stage.engine.open()
    subscription = await stage.subscribe(await stage.topic(), "s", "somewhere")
    await stage.engine.until_quiet()
    claims = []

    def passed_over(request: ClaimRequest) -> asyncio.Future[ClaimResult]:
        """As PostgreSQL answers: what is due is locked, and was due before now."""
        claims.append(request.now)
        answer: asyncio.Future[ClaimResult] = asyncio.get_running_loop().create_future()
        answer.set_result(ClaimResult(next_at=request.now - 1 if len(claims) < 200 else None))
        return answer

    stage.store.claim = passed_over  # type: ignore[method-assign]  # a store that answers as told
    stage.engine.parts.notifier.announce(subscription.queue_id)
    await clock.sleep_until(clock.now() + 100)
    assert len(claims) <= 11
    await stage.engine.close()
