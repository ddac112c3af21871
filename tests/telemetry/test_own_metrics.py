"""Between telemetry's names and AWS's: nothing that SQS or SNS has a metric for gets lost on the way."""

import random
from dataclasses import replace

from redrive.aws.cloudwatch.metrics.own_metrics import NAMESPACES, MetricName, names_of, series_of, unit_of
from redrive.aws.sns.protection.audit import AuditLog, Sample
from redrive.aws.sns.protection.policy import Audit
from redrive.engine.ports import Counts
from redrive.model.delivery import Outcome
from redrive.model.filtering import FilterVerdict
from redrive.model.metric import MetricPoint, Series
from redrive.model.names import ResourceName
from redrive.model.protection import Text
from redrive.telemetry.backlogs import ArchiveGauges
from redrive.telemetry.gauges import _level_points, _QueueReading
from redrive.telemetry.metrics import Metrics
from tests.telemetry.facts import ACCEPTED, FAILED, HERE, TOPIC, attempted, dead_lettered, queue
from tests.telemetry.test_telemetry import Topics

T0 = 60_000_000
Q = queue("q")


async def everything() -> set[Series]:
    """The series of every counter and gauge that telemetry has."""
    metrics = Metrics(lambda: None)
    metrics.sent(Q, 1, 1, T0)
    for messages in (0, 1):
        metrics.received(Q, messages, T0)
    metrics.deleted(Q, 1, T0)
    metrics.published(TOPIC, 1, 1, 1, T0)
    for verdict in FilterVerdict:
        if verdict is not FilterVerdict.MATCHED:
            metrics.filtered(TOPIC, verdict, 1, T0)
    for protocol in ("http", "lambda"):
        metrics.attempted(attempted(T0, protocol=protocol))
        metrics.attempted(attempted(T0, FAILED, Outcome.DROPPED, protocol))
    for attempt in (ACCEPTED, FAILED):
        metrics.dead_lettered(dead_lettered(T0, attempt))
    metrics.archived(TOPIC, 1, 1, T0)
    metrics.attempted(attempted(T0, replayed=True))
    metrics.attempted(attempted(T0, FAILED, Outcome.DROPPED, replayed=True))
    topics = Topics()
    topics.found = replace(TOPIC, archive_ms=1)
    archives = await ArchiveGauges(topics, topics.size, metrics).sample(T0)
    points: list[MetricPoint] = [
        *metrics.take(),
        *_level_points(Q.name, _QueueReading(T0, Counts(0, 0, 0), None)),
        *archives,
    ]
    findings = AuditLog(Logs(), points.extend, random.Random(1), "node")
    for found in ({}, {"x": [(0, 1)]}):
        sample = Sample(TOPIC, "id", "arn", T0, ["x"], [(Text("x"), found)])
        findings.write(Audit(100, findings="", no_findings=""), sample)
    return {point.series for point in points}


class Logs:
    """A sink that nothing is written to."""

    def write(self, group: ResourceName, stream: str, at: int, message: str) -> None:
        raise AssertionError(message)


async def test_every_counted_metric_has_a_name_except_those_sns_does_not_publish() -> None:
    unnamed = {
        (one.name, dict(one.dimensions).get("endpoint")) for one in await everything() if not names_of(one)
    }
    assert unnamed == {("attempts_failed", "other"), ("deliveries_failed", "web")}


async def test_every_name_is_counted() -> None:
    known = await everything()
    for namespace in NAMESPACES.values():
        thing = Q.name.name if namespace.name == "AWS/SQS" else TOPIC.name.name
        for name in namespace.metrics:
            metric = MetricName(namespace.name, name, ((namespace.dimension, thing),))
            series = series_of(HERE.account, HERE.region, metric)
            assert series
            assert known.issuperset(series), name
            assert all(metric in names_of(one) for one in series)
            assert unit_of(metric) in ("Count", "Bytes", "Seconds")


def test_a_sender_s_metric_is_what_it_is() -> None:
    metric = MetricName("mine", "m", (("a", "b"),))
    (series,) = series_of("1", "eu", metric)
    assert series == Series("1", "eu", "mine", "m", (("a", "b"),))
    assert names_of(series) == [metric]
    assert unit_of(metric) is None
