"""The one decision that moves a delivery, as tables and as laws."""

import random
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.model.attempt import AttemptResult
from redrive.model.claiming import offer
from redrive.model.delivery import (
    Delivery,
    Limits,
    Outcome,
    Transition,
    as_dead_letter,
    as_handed_over,
    as_redriven,
    as_sent_dead_letter,
    decide,
)
from redrive.model.names import id_text

NOON = 1_000_000
MINUTE_MS = 60_000
CHANCE = random.Random(0)

DELIVERY = Delivery(
    queue_id=1,
    seq=10,
    available_at=NOON + 30_000,
    attempts=1,
    token=77,
    enqueued_at=NOON,
    sent_at=NOON - 5,
    first_claimed_at=NOON + 1,
    message_id=bytes(range(16)),
    group_id="g",
    deduplication_id="d",
    origin=None,
    headers=b"h",
    body="body",
)


class Waits:
    """A schedule that is a list of waits."""

    def __init__(self, *waits_ms: int) -> None:
        self.waits_ms = waits_ms

    def delay_ms(self, attempt: int, rng: random.Random) -> int | None:
        return self.waits_ms[attempt - 1] if attempt <= len(self.waits_ms) else None

    def expired(self, published_at: int, now: int) -> bool:
        return False


def after(
    result: AttemptResult, *waits_ms: int, attempts: int = 1, now: int = NOON, limits: Limits | None = None
) -> Transition:
    delivery = replace(DELIVERY, attempts=attempts)
    return decide(delivery, result, Waits(*waits_ms), limits or Limits(), now, CHANCE)


# ---- after an attempt


@pytest.mark.parametrize(
    ("result", "waits_ms", "attempts", "dead_letters", "expected"),
    [
        (AttemptResult.DELIVERED, (), 1, False, Transition(Outcome.DELIVERED)),
        (AttemptResult.DELIVERED, (5,), 9, True, Transition(Outcome.DELIVERED)),
        (AttemptResult.FAILED, (5, 7), 1, True, Transition(Outcome.RETRY, NOON + 5)),
        (AttemptResult.FAILED, (5, 7), 2, True, Transition(Outcome.RETRY, NOON + 7)),
        (AttemptResult.FAILED, (0,), 1, True, Transition(Outcome.RETRY, NOON)),
        (AttemptResult.FAILED, (5, 7), 3, True, Transition(Outcome.DEAD_LETTERED)),
        (AttemptResult.FAILED, (5, 7), 3, False, Transition(Outcome.DROPPED)),
        (AttemptResult.FAILED, (), 1, True, Transition(Outcome.DEAD_LETTERED)),
        (AttemptResult.REFUSED, (5, 7), 1, True, Transition(Outcome.DEAD_LETTERED)),
        (AttemptResult.REFUSED, (5, 7), 1, False, Transition(Outcome.DROPPED)),
    ],
)
def test_each_result_of_an_attempt_has_its_outcome(
    result: AttemptResult, waits_ms: tuple[int, ...], attempts: int, dead_letters: bool, expected: Transition
) -> None:
    limits = Limits(dead_letters=dead_letters)
    assert after(result, *waits_ms, attempts=attempts, limits=limits) == expected


@pytest.mark.parametrize(
    ("until_ms", "dead_letters", "expected"),
    [
        (5, True, Transition(Outcome.RETRY, NOON + 5)),
        (4, True, Transition(Outcome.DEAD_LETTERED, too_old=True)),
        (4, False, Transition(Outcome.DROPPED, too_old=True)),
    ],
)
def test_an_attempt_that_would_fall_due_too_late_is_not_waited_for(
    until_ms: int, dead_letters: bool, expected: Transition
) -> None:
    limits = Limits(dead_letters=dead_letters, attempts_until=NOON + until_ms)
    assert after(AttemptResult.FAILED, 5, 7, limits=limits) == expected
    spent = after(AttemptResult.FAILED, 5, attempts=2, limits=limits)
    assert (spent.outcome is not Outcome.RETRY, spent.too_old) == (True, False)


@pytest.mark.parametrize("result", [AttemptResult.FAILED, AttemptResult.REFUSED])
@pytest.mark.parametrize(("later_ms", "expired"), [(-1, False), (0, True), (1, True)])
def test_an_expired_delivery_is_removed_and_not_dead_lettered(
    result: AttemptResult, later_ms: int, expired: bool
) -> None:
    limits = Limits(retention_ms=MINUTE_MS, dead_letters=True)
    transition = after(result, 5, now=NOON + MINUTE_MS + later_ms, limits=limits)
    assert (transition.outcome is Outcome.EXPIRED) is expired


def test_a_delivery_accepted_at_the_end_of_its_retention_period_is_delivered() -> None:
    limits = Limits(retention_ms=MINUTE_MS)
    assert (
        after(AttemptResult.DELIVERED, now=NOON + 9 * MINUTE_MS, limits=limits).outcome is Outcome.DELIVERED
    )


limits_of_any_kind = st.builds(
    Limits,
    retention_ms=st.none() | st.integers(0, 10**6),
    attempts_max=st.integers(0, 20),
    dead_letters=st.booleans(),
)
deliveries = st.builds(
    replace, st.just(DELIVERY), attempts=st.integers(1, 30), enqueued_at=st.integers(0, 2 * NOON)
)
waits = st.lists(st.integers(0, 10**6), max_size=20).map(lambda waits_ms: Waits(*waits_ms))
moments = st.integers(0, 3 * NOON)


@given(deliveries, st.sampled_from(AttemptResult), waits, limits_of_any_kind, moments)
def test_laws_of_the_decision(
    delivery: Delivery, result: AttemptResult, schedule: Waits, limits: Limits, now: int
) -> None:
    transition = decide(delivery, result, schedule, limits, now, CHANCE)
    outcome = transition.outcome
    assert (outcome is Outcome.DELIVERED) == (result is AttemptResult.DELIVERED)
    assert outcome is not Outcome.DEAD_LETTERED or limits.dead_letters
    assert outcome is not Outcome.DROPPED or not limits.dead_letters
    assert outcome is not Outcome.EXPIRED or limits.retention_ms is not None
    if outcome is Outcome.RETRY:
        assert result is AttemptResult.FAILED
        assert transition.available_at == now + schedule.waits_ms[delivery.attempts - 1] >= now
    else:
        assert transition.available_at == 0


@given(deliveries, waits, limits_of_any_kind, moments)
def test_attempts_end_one_after_the_schedules_last_wait(
    delivery: Delivery, schedule: Waits, limits: Limits, now: int
) -> None:
    """However often it fails, the attempts are one more than the schedule has waits, and then it is final."""
    delivery = replace(delivery, attempts=0)
    while True:
        delivery = replace(delivery, attempts=delivery.attempts + 1)
        transition = decide(delivery, AttemptResult.FAILED, schedule, limits, now, CHANCE)
        assert delivery.attempts <= len(schedule.waits_ms) + 1
        if transition.outcome is not Outcome.RETRY:
            break
        now = transition.available_at
    assert transition.outcome in (Outcome.DEAD_LETTERED, Outcome.DROPPED, Outcome.EXPIRED)


@given(deliveries, st.sampled_from(AttemptResult), waits, limits_of_any_kind, moments)
def test_a_decision_changes_nothing_and_is_the_same_again(
    delivery: Delivery, result: AttemptResult, schedule: Waits, limits: Limits, now: int
) -> None:
    before = replace(delivery)
    first = decide(delivery, result, schedule, limits, now, CHANCE)
    assert decide(delivery, result, schedule, limits, now, CHANCE) == first
    assert delivery == before


# ---- when it is due


@pytest.mark.parametrize(
    ("attempts", "attempts_max", "dead_letters", "expected"),
    [
        (0, 0, False, Outcome.RETRY),
        (0, 1, True, Outcome.RETRY),
        (1, 1, True, Outcome.DEAD_LETTERED),
        (1, 2, True, Outcome.RETRY),
        (2, 2, True, Outcome.DEAD_LETTERED),
        (5, 2, True, Outcome.DEAD_LETTERED),  # the maximum was lowered meanwhile
        (5, 2, False, Outcome.RETRY),  # its dead-letter queue is gone: nobody ever said that it failed
        (1000, 0, True, Outcome.RETRY),
    ],
)
def test_a_due_delivery_is_offered_until_its_attempts_are_exhausted(
    attempts: int, attempts_max: int, dead_letters: bool, expected: Outcome
) -> None:
    limits = Limits(attempts_max=attempts_max, dead_letters=dead_letters)
    assert offer(replace(DELIVERY, attempts=attempts), limits, NOON) is expected


@pytest.mark.parametrize(
    ("later_ms", "expected"), [(-1, Outcome.RETRY), (0, Outcome.EXPIRED), (1, Outcome.EXPIRED)]
)
def test_retention_ends_to_the_millisecond(later_ms: int, expected: Outcome) -> None:
    assert offer(DELIVERY, Limits(retention_ms=MINUTE_MS), NOON + MINUTE_MS + later_ms) is expected


def test_an_exhausted_delivery_past_its_retention_period_is_no_dead_letter() -> None:
    limits = Limits(retention_ms=MINUTE_MS, attempts_max=1, dead_letters=True)
    assert offer(DELIVERY, limits, NOON + MINUTE_MS) is Outcome.EXPIRED


@given(deliveries, limits_of_any_kind, moments)
def test_laws_of_the_offer(delivery: Delivery, limits: Limits, now: int) -> None:
    outcome = offer(delivery, limits, now)
    assert outcome in (Outcome.RETRY, Outcome.DEAD_LETTERED, Outcome.EXPIRED)
    if outcome is Outcome.RETRY and limits.dead_letters and limits.attempts_max:
        assert delivery.attempts < limits.attempts_max
    if outcome is not Outcome.RETRY:
        assert offer(replace(delivery, attempts=delivery.attempts + 1), limits, now + 1) is not Outcome.RETRY


# ---- from queue to queue


def changed(before: Delivery, after: Delivery) -> dict[str, object]:
    """Return the fields that differ, by name."""
    names = [field.name for field in fields(Delivery)]
    return {name: getattr(after, name) for name in names if getattr(after, name) != getattr(before, name)}


def test_a_dead_letter_keeps_its_content_and_its_attempts() -> None:
    assert changed(DELIVERY, as_dead_letter(DELIVERY, 2, 99, NOON + 7, ordered=False)) == {
        "queue_id": 2,
        "seq": 99,
        "available_at": NOON + 7,
        "token": None,
        "origin": 1,
    }


def test_in_an_ordered_queue_a_dead_letter_begins_a_new_retention_period_under_its_own_name() -> None:
    assert changed(DELIVERY, as_dead_letter(DELIVERY, 2, 99, NOON + 7, ordered=True)) == {
        "queue_id": 2,
        "seq": 99,
        "available_at": NOON + 7,
        "token": None,
        "origin": 1,
        "enqueued_at": NOON + 7,
        "deduplication_id": id_text(DELIVERY.message_id),
    }


def test_a_dead_letter_that_is_sent_is_new_where_it_arrives_and_known_to_come_from_somewhere() -> None:
    sent = as_sent_dead_letter(DELIVERY, 2, 99, NOON + 7)
    assert sent == replace(as_handed_over(DELIVERY, 2, 99, NOON + 7), origin=DELIVERY.queue_id)


def test_a_redriven_delivery_is_a_new_message_with_the_old_content() -> None:
    dead = as_dead_letter(DELIVERY, 2, 99, NOON + 7, ordered=False)
    assert changed(DELIVERY, as_redriven(dead, 1, 200, NOON + 9, b"fresh" * 3 + b"!")) == {
        "seq": 200,
        "available_at": NOON + 9,
        "attempts": 0,
        "token": None,
        "enqueued_at": NOON + 9,
        "sent_at": NOON + 9,
        "first_claimed_at": None,
        "message_id": b"fresh" * 3 + b"!",
    }


def test_a_delivery_handed_over_is_new_in_its_queue() -> None:
    assert changed(DELIVERY, as_handed_over(DELIVERY, 3, 50, NOON + 2)) == {
        "queue_id": 3,
        "seq": 50,
        "available_at": NOON + 2,
        "attempts": 0,
        "token": None,
        "enqueued_at": NOON + 2,
        "sent_at": NOON + 2,
        "first_claimed_at": None,
    }


@given(deliveries, st.integers(2, 9), st.integers(100, 999), moments, st.booleans())
def test_a_delivery_that_moves_is_no_longer_claimed(
    delivery: Delivery, queue_id: int, seq: int, now: int, ordered: bool
) -> None:
    """A claim that is still out cannot be settled against the delivery in its new place."""
    for moved in (
        as_dead_letter(delivery, queue_id, seq, now, ordered=ordered),
        as_redriven(delivery, queue_id, seq, now, bytes(16)),
        as_handed_over(delivery, queue_id, seq, now),
        as_sent_dead_letter(delivery, queue_id, seq, now),
    ):
        assert (moved.token, moved.available_at, moved.queue_id, moved.seq) == (None, now, queue_id, seq)
        assert (moved.body, moved.headers, moved.group_id) == (
            delivery.body,
            delivery.headers,
            delivery.group_id,
        )
