"""Traffic of places: what is added up over queues and topics."""

from dataclasses import replace

from redrive.model.metric import MINUTE_MS, MetricPoint
from redrive.telemetry.accumulators import SCOPE
from redrive.telemetry.metrics import Metrics
from tests.telemetry.facts import FAILED, HERE, TOPIC, accepted, attempted, queue

T0 = 1000 * MINUTE_MS


def by_place(points: list[MetricPoint]) -> dict[tuple[str, str, int], float]:
    """The sums, by region, counter and minute."""
    assert {point.series[:3] for point in points} <= {("", "", SCOPE)}
    return {
        (dict(point.series.dimensions)["region"], point.series.name, point.at): point.statistics.total
        for point in points
    }


def test_queues_and_topics_of_a_place_are_added_up_by_the_minute() -> None:
    metrics = Metrics(lambda: None)
    metrics.sent(queue("a", number=1), 3, 30, T0)
    metrics.sent(queue("b", number=2), 4, 40, T0)
    metrics.received(queue("a", number=1), 2, T0 + 1)
    elsewhere = replace(queue("c", number=3), name=HERE._replace(region="eu-west-1", name="c"))
    metrics.sent(elsewhere, 1, 10, T0)
    metrics.sent(elsewhere, 1, 10, T0 + MINUTE_MS)
    assert by_place(metrics.take_traffic()) == {
        ("us-east-1", "sent", T0): 7,
        ("us-east-1", "received", T0): 2,
        ("eu-west-1", "sent", T0): 1,
        ("eu-west-1", "sent", T0 + MINUTE_MS): 1,
    }
    assert metrics.take_traffic() == []


def test_publications_taken_by_queues_are_sent_and_not_pushed() -> None:
    metrics = Metrics(lambda: None)
    metrics.accepted(accepted(T0, queue("a", number=1), queue("b", number=2)))
    metrics.attempted(attempted(T0, protocol="https"))
    metrics.attempted(attempted(T0, protocol="lambda"))
    metrics.attempted(attempted(T0, FAILED, protocol="https"))
    assert by_place(metrics.take_traffic()) == {
        ("us-east-1", "sent", T0): 2,
        ("us-east-1", "pushed", T0): 2,
        ("us-east-1", "failed", T0): 1,
    }


def test_pushes_to_one_destination_alone_count_where_its_account_is() -> None:
    metrics = Metrics(lambda: None)
    alone = replace(TOPIC, name=TOPIC.name._replace(region="us-east-1:sms", name="+14155550100"))
    metrics.attempted(replace(attempted(T0, protocol="sms"), topic=alone))
    assert by_place(metrics.take_traffic()) == {("us-east-1", "pushed", T0): 1}
