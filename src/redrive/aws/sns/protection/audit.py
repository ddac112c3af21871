"""Findings of data protection, written down in the JSON that SNS writes to CloudWatch Logs, and counted.

The members and their order are those of "Audit destination log example". A detection's place is counted from 0 in the
characters of the text it was found in, its end the first character behind it; AWS says neither.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from redrive.aws.sns.documents.names import arn_of
from redrive.aws.sns.protection.policy import Audit
from redrive.engine.ports import LogSink
from redrive.model.metric import MINUTE_MS, MetricPoint, Series, Statistics
from redrive.model.protection import Found, Text
from redrive.model.topic import Topic

Inspected = Sequence[tuple[Text, Found]]
"""The texts of one message, and what was found in each."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The sample of one publication that is logged."""

    topic: Topic  # Topic of the publication, accepted or denied
    message_id: str  # As publishers see it
    caller: str  # The publisher's ARN
    at: int  # When (ms)
    identifiers: Sequence[str]  # Data identifiers that were looked for
    inspected: Inspected  # Where, and what was found


class AuditLog:
    """Writes findings to log groups."""

    def __init__(
        self,
        sink: LogSink,
        count: Callable[[Sequence[MetricPoint]], None],
        rng: random.Random,
        stream: str,
    ) -> None:
        """Log findings to a sink.

        Args:
            sink: Takes the lines.
            count: Takes points of metrics.
            rng: Chooses the samples.
            stream: The stream of this node in every group.
        """
        self._sink = sink
        self._count = count
        self._rng = rng
        self._stream = stream

    def write(self, audit: Audit, sample: Sample) -> None:
        """Log and count the findings in a publication, if it is in the sample and the policy names a destination."""
        if self._rng.random() * 100 >= audit.sample_rate:
            return
        entries = [_as_structure(name, sample.inspected) for name in sample.identifiers]
        findings = [each for each in entries if each["count"]]
        group = audit.findings if findings else audit.no_findings
        if group is None:
            return
        self._count([_point(sample, "messages_with_findings" if findings else "messages_without_findings")])
        if not group:  # a destination without a log group: it is counted only
            return
        record = {
            "messageId": sample.message_id,
            "auditTimestamp": f"{datetime.fromtimestamp(sample.at // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}",
            "callerPrincipal": sample.caller,
            "resourceArn": arn_of(sample.topic.name),
            "dataIdentifiers": findings,
        }
        name = sample.topic.name._replace(name=group)
        self._sink.write(name, self._stream, sample.at, orjson.dumps(record).decode())


def _point(sample: Sample, name: str) -> MetricPoint:
    topic = sample.topic.name
    series = Series(topic.account, topic.region, ":topic", name, (("topic", topic.name),))
    return MetricPoint(series, sample.at - sample.at % MINUTE_MS, "", Statistics.of(1.0))


def _as_structure(name: str, inspected: Inspected) -> dict[str, Any]:
    detections = [
        {"start": text.source_index(start), "end": text.source_index(end)}
        for text, matches in inspected
        for start, end in matches.get(name, ())
    ]
    return {"name": name, "count": len(detections), "detections": detections}
