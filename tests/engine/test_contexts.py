"""A subscription's context is made once for each version, and claims that find nothing are not made."""

import random
from dataclasses import replace

from redrive.engine.node import memory
from redrive.engine.node.memory import SubscriptionContexts
from redrive.engine.ports import Batch
from redrive.model.topic import Subscription, Topic
from redrive.testing import VirtualClock
from tests.engine.stage import ACCOUNT, BROKEN, PlainProfile, Stage, name
from tests.engine.test_attempts import minutely

TOPIC = Topic(1, name("orders"), "plain")


def subscription(queue_id: int = 2) -> Subscription:
    return Subscription("s", TOPIC.name, queue_id, ACCOUNT, "push", "somewhere")


def test_a_context_is_made_anew_for_a_new_version_alone() -> None:
    profile = PlainProfile()
    known = SubscriptionContexts({"plain": profile})
    first = known.of(TOPIC, subscription())
    assert known.of(replace(TOPIC), subscription()) is first  # equal, though read anew
    assert known.of(replace(TOPIC, attributes={"DisplayName": "O"}), subscription()) is not first
    changed = known.of(TOPIC, replace(subscription(), endpoint="elsewhere"))
    assert changed.subscription.endpoint == "elsewhere"
    known.forget(2)
    known.of(TOPIC, replace(subscription(), endpoint="elsewhere"))
    assert len(profile.contexts) == 4


def test_no_more_contexts_are_remembered_than_there_is_room_for() -> None:
    profile = PlainProfile()
    known = SubscriptionContexts({"plain": profile})
    for queue_id in range(memory.CONTEXTS_MAX + 1):
        known.of(TOPIC, subscription(queue_id))
    assert len(known._contexts) == 1


async def test_two_attempts_need_two_claims_and_one_context(clock: VirtualClock, rng: random.Random) -> None:
    stage = Stage(clock, rng, BROKEN, BROKEN)
    stage.profile.schedule = replace(minutely(), attempts_max=2)
    await stage.engine.open()
    topic, dead = await stage.topic(), await stage.queue("dead")
    await stage.subscribe(topic, "s", "somewhere", dead_letter=dead.name)
    await stage.engine.until_quiet()
    stage.wire.calls.clear()
    await stage.publish(topic)
    await clock.sleep_until(clock.now() + 60_001)
    assert await stage.bodies_in(dead) == ["hello"]
    assert stage.profile.contexts == ["s"]
    calls = [call for call in stage.wire.calls if call in ("claim", "settle")]
    # The first claim of the three finds the delivery; the second, at the end of its lease, that it has been settled
    # for later; the third takes it up again.
    assert calls == ["claim", "settle", "claim", "claim", "settle"]
    await stage.engine.close()


async def test_a_delivery_due_after_an_earlier_claim_is_pushed_on_time(
    clock: VirtualClock, rng: random.Random
) -> None:
    """The backlog of an earlier life: nothing announces when its deliveries fall due."""
    stage = Stage(clock, rng, BROKEN, BROKEN)
    stage.profile.schedule = minutely()
    stage.profile.changes = {"batch": Batch(1, 1000)}
    await stage.engine.open()
    topic = await stage.topic()
    await stage.subscribe(topic, "s", "somewhere")
    began = clock.now()
    await stage.publish(topic, "a")
    await stage.engine.until_quiet()
    await clock.sleep_until(began + 10_000)
    await stage.publish(topic, "b")
    await stage.engine.until_quiet()
    await stage.engine.parts.dispatcher.close()

    successor = stage.node("b")
    await successor.parts.dispatcher.open()
    await stage.publish(topic, "c")  # claimed at once; "a" and "b" are due in a minute
    await successor.parts.dispatcher.look_round()
    await clock.sleep_until(began + 80_000)
    pushed = [(at - began, body) for at, body in stage.endpoint.pushed]
    assert pushed[-2:] == [(60_000, "a"), (70_000, "b")]
    await successor.close()
