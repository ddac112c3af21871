"""Whichever path ends a delivery otherwise than delivered, listeners are told once, with the message's id."""

import random
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from redrive.engine.ports import FollowUp
from redrive.engine.ports.facts import Listener, Undelivered
from redrive.model.attempt import Reason
from redrive.model.delivery import Outcome
from redrive.model.topic import Publication
from redrive.testing import VirtualClock
from tests.engine.stage import BROKEN, GONE, Stage, name
from tests.engine.test_attempts import minutely

pytestmark = pytest.mark.usefixtures("pushes")


class Losses(Listener):
    """Keeps what was not delivered."""

    def __init__(self) -> None:
        self.facts: list[Undelivered] = []

    def undelivered(self, fact: Undelivered) -> None:
        self.facts.append(fact)


Path = Callable[[Stage], Awaitable[None]]


async def subscribed(
    stage: Stage, endpoint: str = "somewhere", dead: str | None = None, **fields: str
) -> None:
    topic = await stage.topic()
    dead_letter = None if dead is None else name(dead)
    subscription = await stage.subscribe(topic, "s", endpoint, dead_letter=dead_letter)
    if fields:
        await stage.engine.resources.subscriptions.update(subscription, lambda one: replace(one, **fields))
    await stage.publish(topic)


async def by_an_answer(stage: Stage) -> None:
    stage.endpoint.otherwise = GONE
    await subscribed(stage)


async def by_its_last_attempt(stage: Stage) -> None:
    stage.endpoint.otherwise = BROKEN
    stage.profile.schedule = replace(minutely(), attempts_max=2)
    await stage.queue("dead")
    await subscribed(stage, dead="dead")


async def by_time(stage: Stage) -> None:
    stage.profile.schedule = minutely(expires_after_ms=0)
    await subscribed(stage)


async def by_a_missing_queue(stage: Stage) -> None:
    await subscribed(stage, "queue:nowhere")


async def by_a_missing_queue_with_dead_letters(stage: Stage) -> None:
    await stage.queue("dead")
    await subscribed(stage, "queue:nowhere", dead="dead")


async def by_a_missing_queue_and_missing_dead_letters(stage: Stage) -> None:
    await subscribed(stage, "queue:nowhere", dead="nowhere")


async def by_missing_dead_letters(stage: Stage) -> None:
    stage.endpoint.otherwise = GONE
    await subscribed(stage, dead="nowhere")


async def by_a_missing_endpoint(stage: Stage) -> None:
    await subscribed(stage, protocol="telegraph")


@pytest.mark.parametrize(
    ("path", "outcome", "reason", "attempts", "handover"),
    [
        (by_an_answer, Outcome.DROPPED, Reason.CLIENT_ERROR, 1, None),
        (by_its_last_attempt, Outcome.DEAD_LETTERED, Reason.SERVER_ERROR, 2, Reason.ACCEPTED),
        (by_time, Outcome.EXPIRED, Reason.EXPIRED, 0, None),
        (by_a_missing_queue, Outcome.DROPPED, Reason.MISSING, 1, None),
        (by_a_missing_queue_with_dead_letters, Outcome.DEAD_LETTERED, Reason.MISSING, 1, Reason.ACCEPTED),
        (by_a_missing_queue_and_missing_dead_letters, Outcome.DROPPED, Reason.MISSING, 1, Reason.MISSING),
        (by_missing_dead_letters, Outcome.DROPPED, Reason.CLIENT_ERROR, 1, Reason.MISSING),
        (by_a_missing_endpoint, Outcome.DROPPED, Reason.MISSING, 1, None),
    ],
)
async def test_an_end_is_told_once(
    path: Path,
    outcome: Outcome,
    reason: Reason,
    attempts: int,
    handover: Reason | None,
    clock: VirtualClock,
    rng: random.Random,
) -> None:
    stage, losses = Stage(clock, rng), Losses()
    stage.engine.add_listener(losses)
    await stage.engine.open()
    await path(stage)
    await clock.sleep_until(clock.now() + 120_000)
    (fact,) = losses.facts
    last = fact.last
    assert (last.transition.outcome, last.attempt.reason, last.delivery.attempts) == (
        outcome,
        reason,
        attempts,
    )
    assert (None if fact.handover is None else fact.handover.reason) == handover
    assert fact.message_id
    await stage.engine.close()


async def test_a_retry_and_a_success_are_no_end_to_tell_of(clock: VirtualClock, rng: random.Random) -> None:
    stage, losses = Stage(clock, rng, BROKEN), Losses()
    stage.profile.schedule = minutely()
    stage.engine.add_listener(losses)
    await stage.engine.open()
    await subscribed(stage)
    await clock.sleep_until(clock.now() + 120_000)
    assert len(stage.endpoint.pushed) == 2
    assert losses.facts == []
    await stage.engine.close()


@pytest.mark.parametrize(
    ("subscription", "outcome"),
    [("store", Outcome.DEAD_LETTERED), ("deleted", Outcome.DROPPED), (None, Outcome.DROPPED)],
    ids=["to a store of dead letters", "to a store that was deleted", "an event that tells of it"],
)
async def test_a_message_to_one_subscription_alone_is_a_dead_letter(
    subscription: str | None, outcome: Outcome, clock: VirtualClock, rng: random.Random
) -> None:
    stage, losses = Stage(clock, rng), Losses()
    stage.engine.add_listener(losses)
    await stage.engine.open()
    after = await stage.topic("after")
    await stage.subscribe(after, "store", "somewhere")
    message = Publication(stage.engine.runtime.message_id(), "lost", {}, {}, b"{}", 4)
    follow_up = FollowUp(after.name, message, subscription)
    stage.profile.follow_ups_made = lambda fact: [follow_up] if fact.subscription.id == "s" else []
    stage.endpoint.otherwise = GONE
    await subscribed(stage)
    await clock.sleep_until(clock.now() + 1000)
    assert [fact.outcome for fact in losses.facts if fact.last.subscription.id == "s"] == [outcome]
    await stage.engine.close()
