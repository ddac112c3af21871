from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.aws.sns.documents.delivery_policy import RetryPolicy
from redrive.model.circuit import USUAL
from redrive.model.durations import HOUR_MS, MINUTE_MS
from redrive.model.outage import FAILURES, Jitter, OutageAnswer, OutageEnd, outage, outage_with_breaker
from redrive.model.retry import RetryCurve, RetrySchedule
from redrive.model.retry_plans import CUSTOMER_ENDPOINT, EVENT_WEBHOOK, HTTP_DEFAULT, MANAGED_ENDPOINT
from redrive.model.timetable import runs_of

S = 1000


@pytest.mark.parametrize(
    ("schedule", "attempt_ms", "outage_ms", "answer"),
    [
        (HTTP_DEFAULT, 0, 0, OutageAnswer(OutageEnd.DELIVERED, 1, 0)),
        (HTTP_DEFAULT, 0, 20 * S, OutageAnswer(OutageEnd.DELIVERED, 2, 20 * S)),
        (HTTP_DEFAULT, 0, 20 * S + 1, OutageAnswer(OutageEnd.DELIVERED, 3, 40 * S)),
        (HTTP_DEFAULT, 0, 60 * S, OutageAnswer(OutageEnd.DELIVERED, 4, 60 * S)),
        (HTTP_DEFAULT, 0, 60 * S + 1, OutageAnswer(OutageEnd.SPENT, 4, 60 * S)),
        # A time-out of 15 s stretches 20 s to 35 s between attempts.
        (HTTP_DEFAULT, 15 * S, 36 * S, OutageAnswer(OutageEnd.DELIVERED, 3, 85 * S)),
        (HTTP_DEFAULT, 15 * S, HOUR_MS, OutageAnswer(OutageEnd.SPENT, 4, 120 * S)),
        # 15 retries take 49.665 s, then one every 20 s.
        (MANAGED_ENDPOINT, 0, 4 * HOUR_MS, OutageAnswer(OutageEnd.DELIVERED, 734, 14_409_665)),
        (RetrySchedule(()), 5, 1, OutageAnswer(OutageEnd.SPENT, 1, 5)),
    ],
)
def test_an_outage_ends_with_the_attempt_that_the_schedule_gives(
    schedule: RetrySchedule, attempt_ms: int, outage_ms: int, answer: OutageAnswer
) -> None:
    assert outage(schedule, attempt_ms, outage_ms) == answer


def test_eleven_event_attempts_in_24_hours_and_the_twelfth_finds_it_expired() -> None:
    due_at = 34 * HOUR_MS + 46 * MINUTE_MS + 40 * S
    assert outage(EVENT_WEBHOOK, 0, 99 * HOUR_MS) == OutageAnswer(OutageEnd.EXPIRED, 11, due_at)


def test_thirty_minutes_to_live_allow_six_event_attempts() -> None:
    schedule = replace(EVENT_WEBHOOK, attempts_max=10, expires_after_ms=30 * MINUTE_MS)
    assert outage(schedule, 0, 99 * HOUR_MS).attempts == 6


def test_attempts_that_come_first_end_it() -> None:
    schedule = replace(EVENT_WEBHOOK, attempts_max=5, expires_after_ms=30 * MINUTE_MS)
    assert outage(schedule, 0, 99 * HOUR_MS) == OutageAnswer(OutageEnd.SPENT, 5, 400 * S)


@given(st.integers(0, 5 * 3600), st.integers(0, 30_000), st.sampled_from(Jitter))
def test_jitter_never_delivers_later_than_one_wait_after_the_outage(
    outage_s: int, attempt_ms: int, jitter: Jitter
) -> None:
    answer = outage(CUSTOMER_ENDPOINT, attempt_ms, outage_s * S, jitter)
    assert answer.end is OutageEnd.DELIVERED
    assert outage_s * S <= answer.at_ms <= outage_s * S + 600 * S + 2 * attempt_ms


def walked(schedule: RetrySchedule, attempt_ms: int, outage_ms: int, jitter: Jitter) -> OutageAnswer:
    """The same answer, attempt by attempt."""
    due_at, attempt = 0, 1
    while True:
        if schedule.expired(0, due_at):
            return OutageAnswer(OutageEnd.EXPIRED, attempt - 1, due_at)
        ended_at = due_at + attempt_ms
        if due_at >= outage_ms:
            return OutageAnswer(OutageEnd.DELIVERED, attempt, ended_at)
        step = schedule.step(attempt)
        if step is None:
            return OutageAnswer(OutageEnd.SPENT, attempt, ended_at)
        due_at, attempt = ended_at + jitter.wait_ms(step), attempt + 1


@given(
    st.sampled_from([HTTP_DEFAULT, CUSTOMER_ENDPOINT, EVENT_WEBHOOK, MANAGED_ENDPOINT]),
    st.integers(0, 20_000),
    st.integers(0, 48 * HOUR_MS),
    st.sampled_from(Jitter),
    st.none() | st.integers(1, 24 * HOUR_MS),
)
def test_attempts_reckoned_together_end_as_those_that_are_walked(
    schedule: RetrySchedule, attempt_ms: int, outage_ms: int, jitter: Jitter, lifetime_ms: int | None
) -> None:
    schedule = replace(schedule, expires_after_ms=lifetime_ms)
    assert outage(schedule, attempt_ms, outage_ms, jitter) == walked(schedule, attempt_ms, outage_ms, jitter)


def test_an_outage_of_twenty_days_is_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RetrySchedule, "step", None)
    day_ms = 24 * HOUR_MS
    assert outage(MANAGED_ENDPOINT, 0, 20 * day_ms).attempts == 86_414
    assert runs_of(MANAGED_ENDPOINT, 0)[-1].last.attempt == 100_016


LADDER = RetryPolicy(10, 300, 10, 0, 1, 1, RetryCurve.GEOMETRIC).schedule()


@pytest.mark.parametrize(
    ("failure", "outage_ms", "failures", "served_at_ms", "given_up"),
    [
        ("503", 0, 0, 15 * S, 0),
        ("503", 60 * S, 3, 90 * S, 0),  # rests of 10 s, each after a failure of 15 s
        ("503", 4 * HOUR_MS, 17, 15_660 * S, 1),  # ten in a row, then 1, 2, 4 … 64 and 128 minutes
        ("500", 4 * HOUR_MS, 17, 15_570 * S, 1),
        ("503", 24 * HOUR_MS, 22, 87_735 * S, 2),  # no rest is longer than four hours
    ],
)
def test_an_endpoint_that_rests_fails_a_few_attempts_however_many_messages_wait(
    failure: str, outage_ms: int, failures: int, served_at_ms: int, given_up: int
) -> None:
    rested = outage_with_breaker(LADDER, USUAL, FAILURES[failure], 15 * S, outage_ms)
    assert (rested.failures, rested.served_at_ms, rested.given_up) == (failures, served_at_ms, given_up)


def test_a_message_that_waits_alone_lasts_as_long_as_its_attempts_and_the_rests() -> None:
    alone = outage_with_breaker(HTTP_DEFAULT, USUAL, FAILURES["500"], 0, 50 * S).alone
    assert alone == OutageAnswer(OutageEnd.DELIVERED, 4, 60 * S)
    alone = outage_with_breaker(LADDER, USUAL, FAILURES["503"], 15 * S, 4 * HOUR_MS).alone
    assert (alone.end, alone.attempts) == (OutageEnd.SPENT, 11)
    rested = outage_with_breaker(EVENT_WEBHOOK, USUAL, FAILURES["503"], 0, 99 * HOUR_MS)
    assert rested.alone.end is OutageEnd.EXPIRED
