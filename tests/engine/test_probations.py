"""Whose endpoints rest, as several nodes see it, and when that is forgotten."""

import random
from dataclasses import replace

from redrive.engine.ports import Parcel
from redrive.model.attempt import Reason
from redrive.model.delivery import Outcome
from redrive.model.probation import ProbationPolicy
from redrive.model.topic import Subscription, Topic
from redrive.testing import VirtualClock, run_virtual
from tests.engine.stage import BROKEN, GONE, Stage
from tests.engine.test_trials import minutely

MINUTE_MS = 60_000
POLICY = ProbationPolicy(
    by_status={404: 5 * MINUTE_MS}, by_reason={Reason.TIMED_OUT: 10 * MINUTE_MS}, failures_max=3
)


async def resting(stage: Stage) -> tuple[Topic, Subscription]:
    """A subscription whose endpoint begins to rest for five minutes with the first message."""
    stage.dialect.schedule = minutely()
    stage.dialect.changes = {"probation": POLICY}
    await stage.engine.open()
    topic = await stage.topic()
    subscription = await stage.subscribe(topic, "s", "somewhere")
    stage.endpoint.script.append(replace(GONE, outcome=Outcome.FAILED))
    await stage.publish(topic, "a")
    await stage.engine.quiet()
    assert await stage.engine.probations.of(subscription) is not None
    return topic, subscription


def test_goes_with_its_subscription() -> None:
    async def story(clock: VirtualClock, chance: random.Random) -> None:
        stage = Stage(clock, chance)
        _, subscription = await resting(stage)
        await stage.engine.topics.unsubscribe(subscription)
        await stage.engine.sweeper.round()
        assert not await stage.engine.probations.all()
        await stage.engine.close()

    run_virtual(story)


def test_a_reset_leaves_none() -> None:
    async def story(clock: VirtualClock, chance: random.Random) -> None:
        stage = Stage(clock, chance)
        await resting(stage)
        await stage.engine.reset()
        topic = await stage.topic()
        await stage.subscribe(topic, "s", "somewhere")
        await stage.publish(topic, "b")
        await stage.engine.quiet()
        assert [body for _, body in stage.endpoint.pushed] == ["a", "b"]
        await stage.engine.close()

    run_virtual(story)


def test_an_attempt_that_ends_after_its_subscription_leaves_nothing() -> None:
    async def story(clock: VirtualClock, chance: random.Random) -> None:
        stage = Stage(clock, chance)
        _, subscription = await resting(stage)
        failed = replace(GONE, outcome=Outcome.FAILED)
        await stage.engine.topics.unsubscribe(subscription)
        other = replace(subscription, id="other")
        for one in (subscription, other):
            await stage.engine.probations.note(one, POLICY, failed, clock.now())
            await stage.engine.probations.note(one, POLICY, BROKEN, clock.now())
        await stage.engine.sweeper.round()
        assert not await stage.engine.probations.all()
        await stage.engine.probations.note(other, POLICY, BROKEN, clock.now())
        await stage.engine.probations.note(other, POLICY, BROKEN, clock.now())
        assert (
            await stage.engine.probations.of(other) is None
        )  # counted from the beginning: two are not three
        await stage.engine.close()

    run_virtual(story)


def test_another_endpoint_of_the_same_subscription_is_served_at_once() -> None:
    async def story(clock: VirtualClock, chance: random.Random) -> None:
        stage = Stage(clock, chance)
        topic, subscription = await resting(stage)
        await stage.engine.topics.change(subscription, lambda one: replace(one, endpoint="elsewhere"))
        await stage.publish(topic, "b")
        await stage.engine.quiet()
        assert [body for _, body in stage.endpoint.pushed] == ["a", "b"]
        assert not await stage.engine.probations.all()
        await stage.engine.close()

    run_virtual(story)


def test_a_row_of_failures_goes_on_from_the_last_rest_whichever_node_counts() -> None:
    async def story(clock: VirtualClock, chance: random.Random) -> None:
        stage = Stage(clock, chance, otherwise=BROKEN)
        stage.dialect.schedule = minutely()
        stage.dialect.changes = {"probation": POLICY}
        await stage.engine.open()
        began = clock.now()
        topic = await stage.topic()
        subscription = await stage.subscribe(topic, "s", "somewhere")
        for body in "abc":
            await stage.publish(topic, body)
        await stage.engine.quiet()
        await stage.engine.dispatcher.close()
        successor = stage.node("b")
        await successor.dispatcher.open()
        for rest_ms, rests in ((1 * MINUTE_MS, 1), (2 * MINUTE_MS, 2), (4 * MINUTE_MS, 3)):
            await successor.quiet()
            state = await successor.probations.of(subscription)
            assert state is not None
            assert (state.rests, state.until) == (rests, clock.now() + rest_ms)
            assert state.since == began
            await clock.sleep_until(state.until)
        assert len(stage.endpoint.pushed) == 5
        await successor.close()

    run_virtual(story)


def test_a_rest_is_not_cut_short_by_a_shorter_one_of_another_node() -> None:
    async def story(clock: VirtualClock, chance: random.Random) -> None:
        stage = Stage(clock, chance)
        _, subscription = await resting(stage)
        longer = await stage.engine.probations.of(subscription)
        other = stage.node("b").probations  # has read that nobody rests, and not heard better yet
        await stage.engine.probations.lift(subscription)
        await other.all()
        await stage.engine.probations.note(
            subscription, POLICY, replace(GONE, outcome=Outcome.FAILED), clock.now()
        )
        short = replace(POLICY, by_status={503: 10_000})
        await other.note(subscription, short, BROKEN, clock.now())
        assert await stage.node("c").probations.of(subscription) == longer
        await stage.engine.close()

    run_virtual(story)


def test_an_endpoint_that_hangs_rests_while_its_late_answer_is_waited_for() -> None:
    async def story(clock: VirtualClock, chance: random.Random) -> None:
        stage = Stage(clock, chance)
        stage.dialect.schedule = minutely()
        stage.dialect.changes = {"patience_ms": 30_000, "lease_ms": 45_000, "probation": POLICY}
        await stage.engine.open()
        began = clock.now()
        topic = await stage.topic()
        subscription = await stage.subscribe(topic, "s", "somewhere")

        async def think(_: Parcel) -> None:
            await clock.sleep_until(began + 50_000)

        stage.endpoint.before = think
        await stage.publish(topic, "a")
        await clock.sleep_until(began + 30_001)
        state = await stage.engine.probations.of(subscription)
        assert state is not None
        assert (state.reason, state.until) == (Reason.TIMED_OUT, began + 30_000 + 10 * MINUTE_MS)
        await stage.publish(topic, "b")
        await clock.sleep_until(began + 49_000)
        assert [body for _, body in stage.endpoint.pushed] == ["a"]
        await clock.sleep_until(began + 50_001)  # it took it in the end
        assert [body for _, body in stage.endpoint.pushed] == ["a", "b"]
        assert not await stage.engine.probations.all()
        await stage.engine.close()

    run_virtual(story)
