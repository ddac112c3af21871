"""Open circuits of endpoints, as several nodes see them, and their end."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from redrive.engine.engine import Engine
from redrive.engine.ports import Change, NewDelivery, PushRequest
from redrive.engine.push.circuit_breakers import ONE_BY_ONE_MAX
from redrive.model.attempt import AttemptResult, Reason
from redrive.model.circuit import CircuitPolicy
from redrive.model.topic import Subscription, Topic
from redrive.testing import VirtualClock
from tests.engine.stage import BROKEN, GONE, OK, Stage
from tests.engine.test_attempts import minutely

pytestmark = pytest.mark.usefixtures("pushes")

MINUTE_MS = 60_000
POLICY = CircuitPolicy(
    by_status={404: 5 * MINUTE_MS}, by_reason={Reason.TIMED_OUT: 10 * MINUTE_MS}, failures_max=3
)


async def resting(stage: Stage) -> tuple[Topic, Subscription]:
    """A subscription whose endpoint begins to rest for five minutes with the first message."""
    stage.profile.schedule = minutely()
    stage.profile.changes = {"circuit": POLICY}
    await stage.engine.open()
    topic = await stage.topic()
    subscription = await stage.subscribe(topic, "s", "somewhere")
    stage.endpoint.script.append(replace(GONE, result=AttemptResult.FAILED))
    await stage.publish(topic, "a")
    await stage.engine.until_quiet()
    assert await stage.engine.operations.circuit(subscription) is not None
    return topic, subscription


async def test_an_open_circuit_is_deleted_with_its_subscription(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    _, subscription = await resting(stage)
    await stage.engine.resources.subscriptions.delete(subscription)
    await stage.engine.operations.sweep()
    assert not await stage.engine.operations.open_circuits()
    await stage.engine.close()


async def test_a_circuit_that_was_closed_by_mistake_is_opened_as_it_was(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    topic, subscription = await resting(stage)
    operations = stage.engine.operations
    before = await operations.circuit(subscription)
    assert before is not None
    await operations.close_circuit(subscription)
    await operations.reopen_circuit(subscription, before)
    assert await operations.circuit(subscription) == before
    await stage.publish(topic, "b")
    await clock.sleep_until(before.until + MINUTE_MS)
    await stage.engine.until_quiet()
    (at,) = [at for at, body in stage.endpoint.pushed if body == "b"]
    assert at >= before.until
    await stage.engine.close()


async def test_a_reset_closes_every_circuit(clock: VirtualClock, rng: random.Random) -> None:
    stage = Stage(clock, rng)
    await resting(stage)
    await stage.engine.reset()
    topic = await stage.topic()
    await stage.subscribe(topic, "s", "somewhere")
    await stage.publish(topic, "b")
    await stage.engine.until_quiet()
    assert [body for _, body in stage.endpoint.pushed] == ["a", "b"]
    await stage.engine.close()


async def test_an_attempt_that_ends_after_its_subscription_opens_no_circuit(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    _, subscription = await resting(stage)
    failed = replace(GONE, result=AttemptResult.FAILED)
    await stage.engine.resources.subscriptions.delete(subscription)
    other = replace(subscription, id="other")
    for one in (subscription, other):
        await stage.engine.parts.circuits.note(one, POLICY, failed, clock.now())
        await stage.engine.parts.circuits.note(one, POLICY, BROKEN, clock.now())
    await stage.engine.operations.sweep()
    assert not await stage.engine.operations.open_circuits()
    await stage.engine.parts.circuits.note(other, POLICY, BROKEN, clock.now())
    await stage.engine.parts.circuits.note(other, POLICY, BROKEN, clock.now())
    assert (
        await stage.engine.operations.circuit(other) is None
    )  # counted from the beginning: two are not three
    await stage.engine.close()


async def test_a_success_from_before_the_failures_closes_no_circuit(
    clock: VirtualClock, rng: random.Random
) -> None:
    """A store that was away may settle it long after."""
    stage = Stage(clock, rng)
    answered_at = clock.now()
    await clock.sleep_until(answered_at + 1_000)
    _, subscription = await resting(stage)
    circuits = stage.engine.parts.circuits
    await circuits.note(subscription, POLICY, OK, answered_at)
    assert await circuits.of(subscription) is not None
    assert circuits.failing(subscription) is not None
    await circuits.note(subscription, POLICY, OK, clock.now())
    assert await circuits.of(subscription) is None
    assert circuits.failing(subscription) is None
    await stage.engine.close()


async def test_another_endpoint_of_the_same_subscription_is_served_at_once(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    topic, subscription = await resting(stage)
    await stage.engine.resources.subscriptions.update(
        subscription, lambda one: replace(one, endpoint="elsewhere")
    )
    await stage.publish(topic, "b")
    await stage.engine.until_quiet()
    assert [body for _, body in stage.endpoint.pushed] == ["a", "b"]
    assert not await stage.engine.operations.open_circuits()
    await stage.engine.close()


async def test_consecutive_failures_are_counted_across_nodes(clock: VirtualClock, rng: random.Random) -> None:
    stage = Stage(clock, rng, otherwise=BROKEN)
    stage.profile.schedule = minutely()
    stage.profile.changes = {"circuit": POLICY}
    await stage.engine.open()
    began = clock.now()
    topic = await stage.topic()
    subscription = await stage.subscribe(topic, "s", "somewhere")
    for body in "abc":
        await stage.publish(topic, body)
    await stage.engine.until_quiet()
    await stage.engine.parts.dispatcher.close()
    successor = stage.node("b")
    await successor.parts.dispatcher.open()
    for rest_ms, rests in ((1 * MINUTE_MS, 1), (2 * MINUTE_MS, 2), (4 * MINUTE_MS, 3)):
        await successor.until_quiet()
        state = await successor.parts.circuits.of(subscription)
        assert state is not None
        assert (state.rests, state.until) == (rests, clock.now() + rest_ms)
        assert state.since == began
        await clock.sleep_until(state.until)
    assert len(stage.endpoint.pushed) == 5
    await successor.close()


async def test_an_open_circuit_is_not_shortened_by_another_node(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    _, subscription = await resting(stage)
    longer = await stage.engine.operations.circuit(subscription)
    other = stage.node("b").parts.circuits  # has read that nobody rests, and not heard better yet
    await stage.engine.parts.circuits.close(subscription)
    await other.all()
    await stage.engine.parts.circuits.note(
        subscription, POLICY, replace(GONE, result=AttemptResult.FAILED), clock.now()
    )
    short = replace(POLICY, by_status={503: 10_000})
    await other.note(subscription, short, BROKEN, clock.now())
    assert await stage.node("c").parts.circuits.of(subscription) == longer
    await stage.engine.close()


async def test_the_circuit_of_a_hanging_endpoint_is_open_while_its_late_answer_is_awaited(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    stage.profile.schedule = minutely()
    stage.profile.changes = {"soft_timeout_ms": 30_000, "lease_ms": 45_000, "circuit": POLICY}
    await stage.engine.open()
    began = clock.now()
    topic = await stage.topic()
    subscription = await stage.subscribe(topic, "s", "somewhere")

    async def think(_: PushRequest) -> None:
        await clock.sleep_until(began + 50_000)

    stage.endpoint.before = think
    await stage.publish(topic, "a")
    await clock.sleep_until(began + 30_001)
    state = await stage.engine.operations.circuit(subscription)
    assert state is not None
    assert (state.reason, state.until) == (Reason.TIMED_OUT, began + 30_000 + 10 * MINUTE_MS)
    await stage.publish(topic, "b")
    await clock.sleep_until(began + 49_000)
    assert [body for _, body in stage.endpoint.pushed] == ["a"]
    await clock.sleep_until(began + 50_001)  # it took it in the end
    assert [body for _, body in stage.endpoint.pushed] == ["a", "b"]
    assert not await stage.engine.operations.open_circuits()
    await stage.engine.close()


async def test_deliveries_expired_when_a_circuit_closes_are_settled_together(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    topic, subscription = await resting(stage)
    stage.profile.schedule = minutely(expires_after_ms=2 * MINUTE_MS)
    await stage.replan(subscription)
    for number in range(300):
        await stage.publish(topic, str(number))
    await clock.sleep_until(clock.now() + 4 * MINUTE_MS)
    await stage.publish(topic, "young")
    stage.endpoint.pushed, stage.wire.calls = [], []
    await clock.sleep_until(clock.now() + MINUTE_MS + 1)
    assert [body for _, body in stage.endpoint.pushed] == ["young"]
    assert len(stage.memory.expirations) == 301
    assert await stage.store.peek(subscription.queue_id, 1) == []
    assert stage.wire.calls.count("claim") < 20
    await stage.engine.close()


async def test_a_delivery_that_expires_while_the_probe_is_recorded_is_not_pushed(
    monkeypatch: pytest.MonkeyPatch, clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    topic, subscription = await resting(stage)
    stage.profile.schedule = minutely(expires_after_ms=6 * MINUTE_MS)
    await stage.replan(subscription)
    stage.endpoint.pushed = []
    probe = stage.engine.parts.circuits.probe

    async def slowly(*arguments: Any) -> bool:
        mine = await probe(*arguments)
        await clock.sleep_until(clock.now() + 2 * MINUTE_MS)
        return mine

    monkeypatch.setattr(stage.engine.parts.circuits, "probe", slowly)
    await stage.publish(topic, "b")
    await clock.sleep_until(clock.now() + 9 * MINUTE_MS)
    assert not stage.endpoint.pushed
    assert await stage.store.peek(subscription.queue_id, 1) == []
    await stage.engine.close()


# ---- several nodes ------------------------------------------------------------------------------------------------


def hear(stage: Stage, *others: Engine) -> None:
    """Let other nodes hear of what the first one writes, as a shared store lets them."""
    real = stage.store.write

    async def told(
        changes: Sequence[Change], new_deliveries: Sequence[NewDelivery] = (), *others_written: Any
    ) -> list[int]:
        answer = await real(changes, new_deliveries, *others_written)
        for change in changes:
            for node in (stage.engine, *others):
                node.parts.directory.forget(change[0], change[1])
        return answer

    stage.store.write = told  # type: ignore[method-assign]  # that is the point


@pytest.mark.parametrize("prober_dies", [False, True])
async def test_a_half_open_circuit_allows_one_attempt_over_all_nodes(
    prober_dies: bool, clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    others = [stage.node("b"), stage.node("c")]
    hear(stage, *others)
    topic, _ = await resting(stage)
    for one in others:
        await one.parts.dispatcher.open()
    for body in "bcdef":
        await stage.publish(topic, body)
    hanging, nodes = asyncio.Event(), [stage.engine, *others]
    began, stage.endpoint.pushed = clock.now(), []

    async def hang(_: PushRequest) -> None:
        await hanging.wait()

    stage.endpoint.before = hang
    over = began + 5 * MINUTE_MS
    await clock.sleep_until(over + 20_000)
    assert [at for at, _ in stage.endpoint.pushed] == [over]
    (prober,) = [
        node for node in nodes if any(one.work() for one in node.parts.dispatcher._consumers.values())
    ]
    if prober_dies:
        await prober.parts.dispatcher.close()
        await clock.sleep_until(over + 40_000)
        assert [at for at, _ in stage.endpoint.pushed] == [over, over + 30_000]
    hanging.set()
    await clock.sleep_until(over + 2 * MINUTE_MS)
    assert {body for _, body in stage.endpoint.pushed} == set("abcdef")
    assert len(stage.endpoint.pushed) == 6 + prober_dies
    for node in nodes:
        await node.parts.dispatcher.close()
    await stage.engine.close()


async def told_apart(stage: Stage, number: int) -> list[Subscription]:
    """So many subscriptions whose endpoints rest, as the first node has read."""
    await stage.engine.open()
    topic = await stage.topic()
    found = [await stage.subscribe(topic, f"s{one}", f"e{one}") for one in range(number)]
    failed = replace(GONE, result=AttemptResult.FAILED)
    other = stage.node("b").parts.circuits
    for one in found:
        await other.note(one, POLICY, failed, stage.clock.now())
    assert len(await stage.engine.operations.open_circuits()) == number
    stage.wire.calls.clear()
    return found


async def test_a_circuit_changed_on_another_node_is_read_alone(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    first, second, third = await told_apart(stage, 3)
    await stage.node("b").parts.circuits.close(second)
    stage.engine.resources.documents.forget("probation", second.key)
    assert await stage.engine.operations.circuit(first) is not None
    assert stage.wire.calls == []
    assert await stage.engine.operations.circuit(second) is None
    assert await stage.engine.operations.circuit(second) is None
    assert stage.wire.calls == ["get"]
    assert set(await stage.engine.operations.open_circuits()) == {first.key, third.key}
    assert stage.wire.calls == ["get"]
    await stage.engine.close()


async def test_a_circuit_that_changes_while_it_is_read_is_read_again(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    (one,) = await told_apart(stage, 1)
    for verb, news in (("get", one.key), ("find", "")):
        stage.engine.resources.documents.forget("probation", news)
        answer = stage.wire.hold_answer(verb)
        reading = asyncio.ensure_future(stage.engine.operations.circuit(one))
        await answer.reached
        await stage.node("b").parts.circuits.close(one)
        stage.engine.resources.documents.forget("probation", one.key)
        answer.let_go()
        assert await reading is None
        failed = replace(GONE, result=AttemptResult.FAILED)
        await stage.node("b").parts.circuits.note(one, POLICY, failed, clock.now())
    await stage.engine.close()


async def test_many_changed_circuits_are_read_in_one_call(clock: VirtualClock, rng: random.Random) -> None:
    stage = Stage(clock, rng)
    found = await told_apart(stage, ONE_BY_ONE_MAX + 1)
    for one in found:
        stage.engine.resources.documents.forget("probation", one.key)
    assert len(await stage.engine.operations.open_circuits()) == len(found)
    assert stage.wire.calls == ["find"]
    await stage.engine.close()
