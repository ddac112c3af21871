"""Metrics that each fact is counted in."""

from bisect import bisect_left
from dataclasses import replace

import pytest

from redrive.engine.ports.facts import Attempted
from redrive.model.delivery import DeadLetterReason, Outcome
from redrive.model.filtering import FilterVerdict
from redrive.model.metric import MINUTE_MS, SPANS_MS, MetricPoint, Series, SeriesGroup, Statistics
from redrive.telemetry import metrics as metrics_module
from redrive.telemetry.accumulators import NAMESPACE, Answer, arrivals_at, arrivals_in
from redrive.telemetry.metrics import Metrics
from tests.telemetry.facts import (
    ACCEPTED,
    DEAD_LETTERS,
    FAILED,
    TOPIC,
    accepted,
    attempted,
    dead_lettered,
    queue,
)

T0 = 1000 * MINUTE_MS
Q = queue("q")


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(lambda: None)


def counted(points: list[MetricPoint]) -> dict[str, tuple[float, float]]:
    """Return the number of samples and their sum, by name and labels; of subscriptions see below."""
    found = {}
    for point in points:
        if point.series.namespace == NAMESPACE:
            continue
        labels = [value for name, value in point.series.dimensions if name not in ("queue", "topic")]
        found[" ".join([point.series.name, *labels])] = (point.statistics.samples, point.statistics.total)
    return found


def test_a_queue_s_counters(metrics: Metrics) -> None:
    metrics.sent(Q, 1, 500, T0)
    metrics.sent(Q, 10, 2000, T0 + 1)
    metrics.received(Q, 3, T0 + 2)
    metrics.received(Q, 0, T0 + 3)
    metrics.received(Q, 0, T0 + 4)
    metrics.deleted(Q, 2, T0 + 5)
    points = metrics.take()
    assert counted(points) == {
        "messages_sent": (2, 11),
        "bytes_sent": (11, 2500),
        "messages_received": (1, 3),
        "empty_receives": (2, 2),
        "messages_deleted": (1, 2),
    }
    sizes = next(point for point in points if point.series.name == "bytes_sent")
    assert sizes.statistics == Statistics(11, 2500, least=200, greatest=500)
    assert {(point.at, point.unit, point.fills) for point in points} == {(T0, "", False)}


def test_a_sample_is_added_to_each_series_of_its_group_in_its_own_minute(metrics: Metrics) -> None:
    alone, both = Series("a", "r", "n", "alone"), Series("a", "r", "n", "both")
    group = SeriesGroup(alone, both)
    metrics.add(group, 3, T0)
    metrics.add(group, 5, T0 + 59_999)
    metrics.add(SeriesGroup(both), 1, T0 + 59_999)
    metrics.add(group, 7, T0 + 60_000)
    points = {(point.series, point.at): point.statistics for point in metrics.take()}
    assert points == {
        (alone, T0): Statistics(2, 8, 3, 5),
        (both, T0): Statistics(3, 9, 1, 5),
        (alone, T0 + 60_000): Statistics(1, 7, 7, 7),
        (both, T0 + 60_000): Statistics(1, 7, 7, 7),
    }
    assert metrics.take() == []


def test_answers_are_counted_by_subscription_and_result_with_what_they_took(metrics: Metrics) -> None:
    for end, outcome in ((ACCEPTED, Outcome.DELIVERED), (FAILED, Outcome.RETRY), (FAILED, Outcome.RETRY)):
        metrics.attempted(attempted(T0, end, outcome, "https"))
    alone = attempted(T0, FAILED, Outcome.RETRY, "sms")
    name = TOPIC.name._replace(region="us-east-1:sms", name="+14155550100")
    metrics.attempted(replace(alone, topic=replace(TOPIC, name=name)))
    answers = {
        (point.series, point.at): point.statistics
        for point in metrics.take()
        if point.series.namespace == NAMESPACE
    }
    took = ACCEPTED.duration_ms, FAILED.duration_ms
    delivered, failed = (Answer(TOPIC.name, "s", delivered=each) for each in (True, False))
    spans = [bisect_left(SPANS_MS, each) for each in took]
    assert answers == {
        (delivered.series, T0): Statistics(1, took[0], took[0], took[0]),
        (failed.series, T0): Statistics(2, 2 * took[1], took[1], took[1]),
        (delivered.series_of_span(spans[0]), T0): Statistics.of(SPANS_MS[spans[0]]),
        (failed.series_of_span(spans[1]), T0): Statistics.of(SPANS_MS[spans[1]], 2),
    }


def test_publications_to_one_destination_are_not_counted_as_a_topics(metrics: Metrics) -> None:
    alone = TOPIC.name._replace(region="us-east-1:sms", name="+14155550100")
    metrics.published(replace(TOPIC, name=alone), 1, 1, 500, T0)
    assert list(metrics.totals) == []
    assert metrics.take() == []


def test_a_topic_s_counters(metrics: Metrics) -> None:
    metrics.published(TOPIC, 1, 1, 300, T0)
    metrics.published(TOPIC, 2, 0, 100, T0)
    metrics.filtered(TOPIC, FilterVerdict.ATTRIBUTES, 4, T0)
    metrics.filtered(TOPIC, FilterVerdict.INVALID_BODY, 1, T0)
    assert counted(metrics.take()) == {
        "messages_published": (2, 3),
        "bytes_published": (3, 400),
        "deliveries_filtered attributes": (1, 4),
        "deliveries_filtered invalid body": (1, 1),
    }


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (attempted(T0), {"deliveries_made other": (1, 1)}),
        (attempted(T0, protocol="https"), {"deliveries_made web": (1, 1)}),
        (attempted(T0, FAILED, Outcome.RETRY, "http"), {"attempts_failed web": (1, 1)}),
        (attempted(T0, FAILED, Outcome.RETRY, "lambda"), {"attempts_failed other": (1, 1)}),
        (
            attempted(T0, FAILED, Outcome.DEAD_LETTERED, "http"),
            {"attempts_failed web": (1, 1), "deliveries_failed web": (1, 1)},
        ),
        (
            attempted(T0, FAILED, Outcome.DROPPED),
            {"attempts_failed other": (1, 1), "deliveries_failed other": (1, 1)},
        ),
        (attempted(T0, confirmed=False), {}),
    ],
)
def test_an_attempt_counts_by_its_end_and_its_kind_of_endpoint(
    metrics: Metrics, fact: Attempted, expected: dict[str, tuple[float, float]]
) -> None:
    metrics.attempted(fact)
    assert counted(metrics.take()) == expected


def test_deliveries_accepted_by_queues_count_as_attempts_and_as_sent(metrics: Metrics) -> None:
    metrics.accepted(accepted(T0, Q, queue("other", 8)))
    at_once = metrics.take()
    for one in (Q, queue("other", 8)):
        metrics.attempted(attempted(T0))
        metrics.sent(one, 1, len("hello"), T0)
    pushed = [point for point in metrics.take() if point.series.namespace != NAMESPACE]
    assert sorted(at_once, key=repr) == sorted(pushed, key=repr)
    assert counted(at_once)["deliveries_made other"] == (2, 2)


def test_dead_letters_are_kept_or_lost(metrics: Metrics) -> None:
    metrics.dead_lettered(dead_lettered(T0, ACCEPTED))
    metrics.dead_lettered(dead_lettered(T0, ACCEPTED))
    metrics.dead_lettered(dead_lettered(T0, FAILED))
    assert counted(metrics.take()) == {
        "dead_letters_kept": (2, 2),
        "dead_letters_lost": (1, 1),
        "dead_letters_taken 000000000000 us-east-1": (1, 2),
    }


def test_arrivals_of_dead_letters_are_counted_for_their_queue_and_its_place(metrics: Metrics) -> None:
    elsewhere = DEAD_LETTERS._replace(name="other")
    metrics.dead_lettered(dead_lettered(T0))
    metrics.dead_lettered(dead_lettered(T0, FAILED))  # not taken
    metrics.buried(queue("q", dead_letter=DEAD_LETTERS), 10, DeadLetterReason.EXHAUSTED, T0 + 1)
    metrics.buried(queue("r", dead_letter=elsewhere), 3, DeadLetterReason.REJECTED, T0 + 2)
    metrics.buried(queue("r", dead_letter=elsewhere), 4, DeadLetterReason.REJECTED, T0 + MINUTE_MS)
    taken = {
        (point.series, point.at): point.statistics.total
        for point in metrics.take()
        if point.series.name == "dead_letters_taken"
    }
    assert taken == {
        (arrivals_at(DEAD_LETTERS), T0): 11,
        (arrivals_at(elsewhere), T0): 3,
        (arrivals_in(DEAD_LETTERS), T0): 14,
        (arrivals_at(elsewhere), T0 + MINUTE_MS): 4,
        (arrivals_in(DEAD_LETTERS), T0 + MINUTE_MS): 4,
    }


def test_each_minute_is_counted_by_itself(metrics: Metrics) -> None:
    metrics.sent(Q, 1, 1, T0)
    metrics.sent(Q, 1, 1, T0 + MINUTE_MS - 1)
    metrics.sent(Q, 1, 1, T0 + MINUTE_MS)
    metrics.sent(Q, 1, 1, T0 + 5 * MINUTE_MS)
    sent = {
        point.at: point.statistics.total for point in metrics.take() if point.series.name == "messages_sent"
    }
    assert sent == {T0: 2, T0 + MINUTE_MS: 1, T0 + 5 * MINUTE_MS: 1}


def test_points_taken_are_not_counted_again(metrics: Metrics) -> None:
    metrics.sent(Q, 1, 1, T0)
    assert len(metrics.take()) == 2
    assert metrics.take() == []
    metrics.sent(Q, 1, 1, T0)
    assert counted(metrics.take())["messages_sent"] == (1, 1)


def test_points_put_back_are_added_to_newer_ones(metrics: Metrics) -> None:
    metrics.sent(Q, 1, 10, T0)
    points = metrics.take()
    metrics.sent(Q, 1, 30, T0)
    metrics.put_back(points)
    sizes = next(point for point in metrics.take() if point.series.name == "bytes_sent")
    assert sizes.statistics == Statistics(2, 40, 10, 30)


def test_points_of_different_units_are_not_added_up(metrics: Metrics) -> None:
    series = Series("111122223333", "us-east-1", "AWS/Firehose", "IncomingBytes", ())
    metrics.count(MetricPoint(series, T0, unit, Statistics.of(7)) for unit in ("Bytes", "Count", "Bytes"))
    points = {point.unit: point.statistics.samples for point in metrics.take()}
    assert points == {"Bytes": 2, "Count": 1}


def test_a_store_that_stays_away_costs_bounded_memory(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(metrics_module, "WAITING_MAX", 4)
    for minute in range(5):
        metrics.sent(Q, 1, 1, T0 + minute * MINUTE_MS)
    metrics.put_back(metrics.take())
    assert {point.at for point in metrics.take()} == {T0 + 3 * MINUTE_MS, T0 + 4 * MINUTE_MS}
    assert "telemetry.points_lost number=6" in caplog.text


def test_news_is_told_once_until_it_is_collected() -> None:
    told: list[None] = []
    metrics = Metrics(lambda: told.append(None))
    for _ in range(3):
        metrics.sent(Q, 1, 1, T0)
    assert len(told) == 1
    metrics.take()
    metrics.sent(Q, 1, 1, T0)
    assert len(told) == 2


def test_activity_of_a_queue_counts_for_its_dead_letter_queue_too(metrics: Metrics) -> None:
    source = queue("source", dead_letter=DEAD_LETTERS)
    metrics.received(source, 1, T0)
    assert metrics.activity == {source.name: T0, DEAD_LETTERS: T0}
    metrics.dead_lettered(dead_lettered(T0 + 5))
    assert metrics.activity[DEAD_LETTERS] == T0 + 5
