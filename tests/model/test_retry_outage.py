import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.model.outage import OutageAnswer, OutageEnd, outage
from redrive.model.retry import RetrySchedule
from redrive.model.retry_plans import (
    CUSTOMER_ENDPOINT,
    EVENT_WEBHOOK,
    HOUR_MS,
    HTTP_DEFAULT,
    MANAGED_ENDPOINT,
    MINUTE_MS,
)

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


@given(st.integers(0, 5 * 3600), st.integers(0, 30_000), st.randoms(use_true_random=False))
def test_jitter_never_delivers_later_than_one_wait_after_the_outage(
    outage_s: int, attempt_ms: int, chance: random.Random
) -> None:
    answer = outage(CUSTOMER_ENDPOINT, attempt_ms, outage_s * S, chance)
    assert answer.end is OutageEnd.DELIVERED
    assert outage_s * S <= answer.at_ms <= outage_s * S + 600 * S + 2 * attempt_ms
