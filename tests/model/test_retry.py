import json
import random
from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.model.delivery import Schedule
from redrive.model.durations import HOUR_MS, MINUTE_MS, SECOND_MS
from redrive.model.retry import Phase, RetryCurve, RetrySchedule, Stage
from redrive.model.retry_plans import (
    CUSTOMER_ENDPOINT,
    EVENT_WEBHOOK,
    FUNCTION_ERROR,
    HTTP_DEFAULT,
    MANAGED_ENDPOINT,
)

PLANS = [MANAGED_ENDPOINT, CUSTOMER_ENDPOINT, HTTP_DEFAULT, EVENT_WEBHOOK, FUNCTION_ERROR]

stages = st.builds(
    lambda phase, retries, ends, curve: Stage(phase, retries, min(ends), max(ends), curve),
    st.sampled_from(Phase),
    st.integers(0, 12),
    st.tuples(st.integers(1, 3_600_000), st.integers(1, 3_600_000)),
    st.sampled_from(RetryCurve),
)
schedules = st.builds(
    RetrySchedule,
    st.lists(stages, max_size=5).map(tuple),
    attempts_max=st.none() | st.integers(1, 20),
    expires_after_ms=st.none() | st.integers(1, 10**9),
    earlier_permille=st.integers(0, 1000),
    later_permille=st.integers(0, 500),
)


def test_managed_endpoints_are_retried_100_015_times_in_four_phases() -> None:
    assert MANAGED_ENDPOINT.retries_max == 100_015
    assert [MANAGED_ENDPOINT.nominal_ms(i) for i in range(1, 6)] == [0, 0, 0, 1000, 1000]
    assert (MANAGED_ENDPOINT.nominal_ms(6), MANAGED_ENDPOINT.nominal_ms(15)) == (1000, 20_000)
    assert MANAGED_ENDPOINT.nominal_ms(100_015) == 20_000
    assert MANAGED_ENDPOINT.nominal_ms(100_016) is None
    steps = [MANAGED_ENDPOINT.step(i) for i in (3, 4, 5, 6, 15, 16, 100_015, 100_016)]
    assert [step and step.phase for step in steps] == [
        Phase.IMMEDIATE,
        Phase.PRE_BACKOFF,
        Phase.PRE_BACKOFF,
        Phase.BACKOFF,
        Phase.BACKOFF,
        Phase.POST_BACKOFF,
        Phase.POST_BACKOFF,
        None,
    ]


def test_customer_endpoints_are_retried_50_times_within_hours() -> None:
    assert CUSTOMER_ENDPOINT.retries_max == 50
    assert [CUSTOMER_ENDPOINT.nominal_ms(i) for i in (1, 2, 3, 12, 13, 50)] == [
        10_000,
        10_000,
        10_000,
        600_000,
        600_000,
        600_000,
    ]
    assert 6 * HOUR_MS <= CUSTOMER_ENDPOINT.total_ms() < 7 * HOUR_MS


def test_http_default_is_three_times_20_s() -> None:
    assert [step.nominal_ms for step in HTTP_DEFAULT.steps()] == [20_000, 20_000, 20_000]


def test_event_ladder_is_delays_between_attempts() -> None:
    waits = [step.nominal_ms // SECOND_MS for step in EVENT_WEBHOOK.steps()]
    assert waits[:10] == [10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 43200]
    assert set(waits[9:]) == {43200}
    assert EVENT_WEBHOOK.retries_max == 29


def test_event_waits_are_minima() -> None:
    assert all(step.earliest_ms == step.nominal_ms for step in EVENT_WEBHOOK.steps())


def test_function_errors_are_retried_twice() -> None:
    assert [step.nominal_ms for step in FUNCTION_ERROR.steps()] == [MINUTE_MS, 2 * MINUTE_MS]


def test_attempts_max_counts_the_first_attempt() -> None:
    five = replace(EVENT_WEBHOOK, attempts_max=5)
    assert five.retries_max == 4
    assert five.nominal_ms(4) == 5 * MINUTE_MS
    assert five.nominal_ms(5) is None


def test_expiry_is_a_question_of_its_own() -> None:
    half_an_hour = replace(EVENT_WEBHOOK, expires_after_ms=30 * MINUTE_MS)
    assert half_an_hour.nominal_ms(6) == 30 * MINUTE_MS  # the wait past the end is still handed out
    assert not half_an_hour.expired(1000, 1000 + 30 * MINUTE_MS - 1)
    assert half_an_hour.expired(1000, 1000 + 30 * MINUTE_MS)
    assert not replace(EVENT_WEBHOOK, expires_after_ms=None).expired(0, 10**15)


def test_attempts_count_from_one() -> None:
    with pytest.raises(ValueError, match="count from 1"):
        HTTP_DEFAULT.delay_ms(0, random.Random(1))


def test_an_empty_schedule_is_spent_at_once() -> None:
    assert RetrySchedule(()).delay_ms(1, random.Random(1)) is None
    assert list(RetrySchedule(()).steps()) == []


@pytest.mark.parametrize(
    "stage",
    [
        (Phase.BACKOFF, -1, 1, 1, RetryCurve.LINEAR),
        (Phase.BACKOFF, 1, -1, 1, RetryCurve.LINEAR),
        (Phase.BACKOFF, 1, 2, 1, RetryCurve.LINEAR),
        (Phase.BACKOFF, 3, 0, 5, RetryCurve.GEOMETRIC),
    ],
)
def test_impossible_stages_are_refused(stage: tuple[Phase, int, int, int, RetryCurve]) -> None:
    with pytest.raises(ValueError, match=r"stage|geometric"):
        Stage(*stage)


def test_jitter_may_not_reach_below_zero() -> None:
    with pytest.raises(ValueError, match="jitter"):
        RetrySchedule((), earlier_permille=1001)


def test_jitter_keeps_23_days_23_days() -> None:
    rng = random.Random(7)
    days = sum(MANAGED_ENDPOINT.delay_ms(i, rng) or 0 for i in range(1, 100_016)) / (24 * HOUR_MS)
    assert round(days) == 23


def test_the_same_seed_gives_the_same_waits() -> None:
    def waits(seed: int) -> list[int | None]:
        rng = random.Random(seed)
        return [CUSTOMER_ENDPOINT.delay_ms(i, rng) for i in range(1, 51)]

    assert waits(1) == waits(1)
    assert waits(1) != waits(2)


def test_steps_are_lazy() -> None:
    endless = RetrySchedule((Stage(Phase.POST_BACKOFF, 10**12, 5, 5),))
    assert [step.attempt for step in islice(endless.steps(), 3)] == [1, 2, 3]
    assert endless.nominal_ms(10**12) == 5
    assert endless.total_ms() == 5 * 10**12


def test_a_retry_schedule_answers_the_decisions_protocol() -> None:
    schedule: Schedule = HTTP_DEFAULT
    assert schedule.delay_ms(4, random.Random(1)) is None


@pytest.mark.parametrize("plan", PLANS)
def test_plans_survive_being_stored(plan: RetrySchedule) -> None:
    assert RetrySchedule.from_document(json.loads(json.dumps(plan.to_document()))) == plan


@given(schedules)
def test_any_schedule_survives_being_stored(schedule: RetrySchedule) -> None:
    assert RetrySchedule.from_document(json.loads(json.dumps(schedule.to_document()))) == schedule


@given(schedules, st.randoms(use_true_random=False))
def test_delays_keep_their_bounds(schedule: RetrySchedule, rng: random.Random) -> None:
    steps = list(schedule.steps())
    assert len(steps) == max(schedule.retries_max, 0)
    for number, step in enumerate(steps, 1):
        delay_ms = schedule.delay_ms(number, rng)
        assert step.attempt == number
        assert delay_ms is not None
        assert 0 <= step.earliest_ms <= step.nominal_ms <= step.latest_ms
        assert step.earliest_ms <= delay_ms <= step.latest_ms
        assert step.nominal_ms > 0 or delay_ms == 0
    assert schedule.delay_ms(len(steps) + 1, rng) is None


@given(schedules)
def test_the_total_is_the_sum_of_the_waits(schedule: RetrySchedule) -> None:
    uncapped = replace(schedule, attempts_max=None)
    assert uncapped.total_ms() == sum(step.nominal_ms for step in uncapped.steps())
