"""Metrics of queues and topics, under the names that AWS/SQS and AWS/SNS have for them.

Sources: "Available CloudWatch metrics for Amazon SQS" and "Amazon SNS metrics" in the developer guides; of archives
and replays "Message archiving for FIFO topic owners" and "Message replay for FIFO topic subscribers", which name no
units, and do not say whether a replayed notification is among the others too: here it is. Failed notifications are
counted as SNS counts them: over HTTP every attempt, retries included; of other kinds of endpoint only what was given
up. SNS has no metric for the rest of what is known here, such as deliveries given up over HTTP.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from redrive.model.filtering import FilterVerdict
from redrive.model.metric import Series

PREFIX: Final = "AWS/"  # namespaces nobody else may write to

Dimensions = tuple[tuple[str, str], ...]
_WEB: Final = (("endpoint", "web"),)
_OTHER: Final = (("endpoint", "other"),)
# Those of text messages and of mobile applications are of no topic; telemetry has them under the names and dimensions
# that AWS has. Dollars are no unit that CloudWatch's model knows.
_OF_APPLICATIONS: Final = (("Application",), ("Application", "Platform"), ("Platform",))
_NO_TOPICS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "NumberOfMessagesPublished": _OF_APPLICATIONS,
    "NumberOfNotificationsDelivered": _OF_APPLICATIONS,
    "NumberOfNotificationsFailed": _OF_APPLICATIONS,
    "PublishSize": _OF_APPLICATIONS,
    "SMSMonthToDateSpentUSD": ((),),
    "SMSSuccessRate": (("PhoneNumber",), ("SMSType",)),
}
_TEXT_UNITS: Final = {"SMSMonthToDateSpentUSD": "None", "SMSSuccessRate": "Count"}


class MetricName(NamedTuple):
    """The name of a metric for CloudWatch's clients; dimensions in order of their names."""

    namespace: str
    name: str
    dimensions: Dimensions = ()


class MetricSource(NamedTuple):
    """The series of telemetry that has a metric's points, but for the resource measured."""

    name: str
    labels: Dimensions = ()


@dataclass(frozen=True, slots=True)
class OwnMetric:
    """One metric of AWS's."""

    unit: str  # Unit of all points
    sources: tuple[MetricSource, ...]  # The series that it is the sum of


def _count(*sources: str | MetricSource) -> OwnMetric:
    return OwnMetric(
        "Count", tuple(MetricSource(source) if isinstance(source, str) else source for source in sources)
    )


def _filtered_source(verdict: FilterVerdict) -> MetricSource:
    return MetricSource("deliveries_filtered", (("reason", verdict.value),))


_SQS: Final[Mapping[str, OwnMetric]] = {
    "ApproximateAgeOfOldestMessage": OwnMetric("Seconds", (MetricSource("oldest_age_seconds"),)),
    "ApproximateNumberOfMessagesDelayed": _count("messages_delayed"),
    "ApproximateNumberOfMessagesNotVisible": _count("messages_claimed"),
    "ApproximateNumberOfMessagesVisible": _count("messages_available"),
    "NumberOfEmptyReceives": _count("empty_receives"),
    "NumberOfMessagesDeleted": _count("messages_deleted"),
    "NumberOfMessagesReceived": _count("messages_received"),
    "NumberOfMessagesSent": _count("messages_sent"),
    "SentMessageSize": OwnMetric("Bytes", (MetricSource("bytes_sent"),)),
}

_SNS: Final[Mapping[str, OwnMetric]] = {
    "ApproximateNumberOfBytesArchived": OwnMetric("Bytes", (MetricSource("archive_bytes"),)),
    "ApproximateNumberOfMessagesArchived": _count("archive_messages"),
    "NumberOfBytesArchiveProcessing": OwnMetric("Bytes", (MetricSource("bytes_archived"),)),
    "MessagesWithFindings": _count("messages_with_findings"),
    "MessagesWithNoFindings": _count("messages_without_findings"),
    "NumberOfMessagesArchiveProcessing": _count("messages_archived"),
    "NumberOfMessagesPublished": _count("messages_published"),
    "NumberOfNotificationsDelivered": _count(
        MetricSource("deliveries_made", _WEB), MetricSource("deliveries_made", _OTHER)
    ),
    "NumberOfNotificationsFailed": _count(
        MetricSource("attempts_failed", _WEB), MetricSource("deliveries_failed", _OTHER)
    ),
    "NumberOfNotificationsFailedToRedriveToDlq": _count("dead_letters_lost"),
    "NumberOfNotificationsFilteredOut": _count(
        *(_filtered_source(verdict) for verdict in FilterVerdict if verdict is not FilterVerdict.MATCHED)
    ),
    "NumberOfNotificationsFilteredOut-InvalidAttributes": _count(
        _filtered_source(FilterVerdict.INVALID_ATTRIBUTES)
    ),
    "NumberOfNotificationsFilteredOut-InvalidMessageBody": _count(
        _filtered_source(FilterVerdict.INVALID_BODY), _filtered_source(FilterVerdict.TOO_COSTLY)
    ),
    "NumberOfNotificationsFilteredOut-MessageAttributes": _count(_filtered_source(FilterVerdict.ATTRIBUTES)),
    "NumberOfNotificationsFilteredOut-MessageBody": _count(_filtered_source(FilterVerdict.BODY)),
    "NumberOfNotificationsFilteredOut-NoMessageAttributes": _count(
        _filtered_source(FilterVerdict.NO_ATTRIBUTES)
    ),
    "NumberOfNotificationsRedrivenToDlq": _count("dead_letters_kept"),
    "NumberOfReplayedNotificationsDelivered": _count("replays_delivered"),
    "NumberOfReplayedNotificationsFailed": _count("replays_failed"),
    "PublishSize": OwnMetric("Bytes", (MetricSource("bytes_published"),)),
}


@dataclass(frozen=True, slots=True)
class OwnNamespace:
    """One of AWS's namespaces."""

    name: str  # AWS's
    series: str  # Telemetry's
    dimension: str  # Name of the AWS dimension
    thing: str  # Name of the measured thing in telemetry
    metrics: Mapping[str, OwnMetric]  # By AWS's names


NAMESPACES: Final = {
    namespace.name: namespace
    for namespace in (
        OwnNamespace("AWS/SQS", ":queue", "QueueName", "queue", _SQS),
        OwnNamespace("AWS/SNS", ":topic", "TopicName", "topic", _SNS),
    )
}
_BY_SERIES: Final = {namespace.series: namespace for namespace in NAMESPACES.values()}


def series_of(account: str, region: str, metric: MetricName) -> list[Series]:
    """The series that a metric's points are stored under: Redrive's own metrics have the names of telemetry."""
    namespace = NAMESPACES.get(metric.namespace)
    if namespace is None:
        return [Series(account, region, *metric)]
    # Metrics of text messages and of applications, which telemetry names as AWS does.
    if tuple(name for name, _ in metric.dimensions) in _NO_TOPICS.get(metric.name, ()):
        return [Series(account, region, namespace.series, metric.name, metric.dimensions)]
    own_metric = namespace.metrics.get(metric.name)
    if own_metric is None or [name for name, _ in metric.dimensions] != [namespace.dimension]:
        return []
    ((_, resource),) = metric.dimensions
    label = (namespace.thing, resource)
    return [
        Series(account, region, namespace.series, source.name, tuple(sorted((*source.labels, label))))
        for source in own_metric.sources
    ]


def unit_of(metric: MetricName) -> str | None:
    """The unit of all points of a metric of AWS's; None where each point has its own."""
    namespace = NAMESPACES.get(metric.namespace)
    own_metric = None if namespace is None else namespace.metrics.get(metric.name)
    if namespace is NAMESPACES["AWS/SNS"] and own_metric is None:
        return _TEXT_UNITS.get(metric.name)
    return None if own_metric is None else own_metric.unit


def names_of(series: Series) -> list[MetricName]:
    """The metrics that a series gives points to."""
    namespace = _BY_SERIES.get(series.namespace)
    if namespace is None:
        return [MetricName(series.namespace, series.name, series.dimensions)]
    if series.name in _NO_TOPICS:
        return [MetricName(namespace.name, series.name, series.dimensions)]
    resources = [value for label, value in series.dimensions if label == namespace.thing]
    other_labels = tuple((label, value) for label, value in series.dimensions if label != namespace.thing)
    source = MetricSource(series.name, other_labels)
    return [
        MetricName(namespace.name, name, ((namespace.dimension, resource),))
        for name, metric in namespace.metrics.items()
        if source in metric.sources
        for resource in resources
    ]
