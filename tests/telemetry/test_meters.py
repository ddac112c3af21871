"""A node's measurements for its operators: histograms, and undelivered messages by reason."""

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.engine.ports.facts import Undelivered
from redrive.model.attempt import Attempt
from redrive.model.delivery import DeadLetterReason, Outcome
from redrive.telemetry.meters import LONG_SECONDS, SHARED, SHORT_SECONDS, Histogram, NodeMeters
from tests.telemetry.facts import ACCEPTED, FAILED, attempted, queue


@pytest.fixture
def meters() -> NodeMeters:
    seconds = itertools.count(100.0, 0.125)
    return NodeMeters(lambda: next(seconds))


# ---- histograms --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [SHORT_SECONDS, LONG_SECONDS, SHARED])
def test_the_bounds_of_histograms_ascend(bounds: tuple[float, ...]) -> None:
    assert list(bounds) == sorted(set(bounds))


def test_a_bound_is_part_of_its_bucket() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 2.5):
        histogram.observe(value)
    assert histogram.read() == ([(1.0, 2), (2.0, 4), (float("inf"), 5)], 7.5)


@given(st.lists(st.floats(0, 100)))
def test_each_value_is_in_every_bucket_that_it_does_not_exceed(values: list[float]) -> None:
    histogram = Histogram(LONG_SECONDS)
    for value in values:
        histogram.observe(value)
    reading = histogram.read()
    assert list(reading.buckets) == [
        (bound, sum(value <= bound for value in values)) for bound in (*LONG_SECONDS, float("inf"))
    ]
    assert reading.sum == pytest.approx(sum(values))


# ---- what happened -----------------------------------------------------------------------------------------------


def test_attempts_are_timed_by_protocol_and_outcome(meters: NodeMeters) -> None:
    meters.attempted(attempted(0, replace(ACCEPTED, duration_ms=250), protocol="https"))
    meters.attempted(attempted(0, replace(FAILED, duration_ms=15_000), Outcome.RETRY, "https"))
    meters.attempted(attempted(0, replace(FAILED, duration_ms=15_000), Outcome.RETRY, "https"))
    assert {key: histogram.read().sum for key, histogram in meters.attempts.items()} == {
        ("https", "delivered"): 0.25,
        ("https", "retry"): 30.0,
    }


def undelivered(outcome: Outcome, attempt: Attempt = FAILED, **others: Any) -> Undelivered:
    wanted = {"confirmation": False, "handover": None, **others}
    return Undelivered(attempted(0, attempt, outcome), **wanted)


def test_undelivered_messages_count_as_dead_letters_or_losses(meters: NodeMeters) -> None:
    meters.undelivered(undelivered(Outcome.DEAD_LETTERED, handover=ACCEPTED))
    meters.undelivered(undelivered(Outcome.DROPPED, dead_letter=True))
    meters.undelivered(undelivered(Outcome.DROPPED))
    meters.undelivered(undelivered(Outcome.EXPIRED))
    meters.undelivered(
        undelivered(Outcome.DROPPED, confirmation=True)
    )  # nobody misses a confirmation's message
    meters.buried(queue("q"), 3, DeadLetterReason.EXHAUSTED, 0)
    meters.dropped(queue("q"), 4, DeadLetterReason.EXPIRED, 0)
    assert +meters.dead_letters == {("subscription", "server_error"): 2, ("queue", "exhausted"): 3}
    assert +meters.losses == {("subscription", "server_error"): 2, ("queue", "expired"): 4}


def test_causes_are_there_before_anything_has_them(meters: NodeMeters) -> None:
    """Else the first dead letter, a counter that appears with a 1, would be no increase."""
    assert meters.dead_letters["queue", "exhausted"] == 0
    assert {("subscription", "client_error"), ("queue", "expired")} <= meters.losses.keys()
    assert ("subscription", "accepted") not in meters.losses


def test_a_commit_is_timed_and_its_calls_are_counted(meters: NodeMeters) -> None:
    meters.commits.end(meters.commits.begin(), 17)
    assert meters.commits.seconds.read().sum == 0.125
    assert (32.0, 1) in meters.commits.calls.read().buckets
    assert (16.0, 0) in meters.commits.calls.read().buckets
