"""Delivery-status logging: the entries in CloudWatch Logs of topics, devices and telephones alike.

An owner asks for them by three attributes: with a role for failures every failed attempt is written down, with one for
successes so many percent of the deliveries. The roles themselves are not asked for permission.
"""

import random
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import orjson

from redrive.engine.ports import LogSink
from redrive.engine.ports.facts import Attempted
from redrive.model.attempt import Attempt
from redrive.model.names import ResourceName

FAILURES: Final = "/Failure"  # after the name of the group, for attempts that failed


class Feedback(NamedTuple):
    """The names of the three attributes; without a role, or without a rate for successes, nothing is asked for."""

    success_role: str
    failure_role: str
    sample_rate: str


def feedback(beginning: str = "") -> Feedback:
    """The attributes as SNS calls them, for topics behind the name of a protocol."""
    kinds = ("SuccessFeedbackRoleArn", "FailureFeedbackRoleArn", "SuccessFeedbackSampleRate")
    return Feedback(*(f"{beginning}{kind}" for kind in kinds))


class DeliveryLog:
    """Writes attempts to log groups."""

    def __init__(self, sink: LogSink, rng: random.Random, stream: str) -> None:
        """Log sampled deliveries to a sink.

        Args:
            sink: Takes the lines.
            rng: Chooses the samples.
            stream: The stream of this node in every group.
        """
        self._sink = sink
        self._rng = rng
        self._stream = stream

    def wants(self, names: Feedback, attributes: Mapping[str, str], attempt: Attempt) -> bool:
        """Decide by the owner's sampling attributes, and a random draw, if an attempt is logged."""
        if not attempt.delivered:
            return bool(attributes.get(names.failure_role))
        if not attributes.get(names.success_role):
            return False
        return self._rng.random() * 100 < float(attributes.get(names.sample_rate) or 0)

    def write(
        self,
        group: ResourceName,
        attempt: Attempt,
        at: int,
        notification: Mapping[str, Any],
        delivery: Mapping[str, Any],
    ) -> None:
        """Write an entry to a group, or to the group beside it for failures.

        Args:
            group: Account, region and the group's name.
            attempt: The attempt, which says whether it is a success.
            at: When it ended (ms).
            notification: What the entry says of the message.
            delivery: What the entry says of the attempt.
        """
        status = "SUCCESS" if attempt.delivered else "FAILURE"
        name = group.name if attempt.delivered else f"{group.name}{FAILURES}"
        entry = {"notification": notification, "delivery": delivery, "status": status}
        self._sink.write(group._replace(name=name), self._stream, at, orjson.dumps(entry).decode())


def dwell_ms(fact: Attempted) -> int:
    """From the publication to just before the hand-over ("Amazon SNS message delivery status")."""
    return max(0, fact.at - fact.attempt.duration_ms - fact.delivery.sent_at)


def log_group(topic: ResourceName) -> ResourceName:
    """The log group of a topic's deliveries; that of those that failed has `FAILURES` behind its name."""
    return topic._replace(name=f"sns/{topic.region}/{topic.account}/{topic.name}")


def log_timestamp(at: int) -> str:
    """A time (ms) as SNS writes it in its logs: `2026-01-02 03:04:05.006`."""
    seconds, milliseconds = divmod(at, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{milliseconds:03d}"
