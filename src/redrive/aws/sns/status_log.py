"""Delivery-status logging: the results of deliveries, in the JSON that SNS writes to CloudWatch Logs.

A topic asks for it by three attributes a protocol (`SQSSuccessFeedbackRoleArn`, `SQSFailureFeedbackRoleArn`,
`SQSSuccessFeedbackSampleRate`): with a role for failures every failed attempt is written down, with one for successes
that many percent of the deliveries (`DeliveryLog`, which devices and telephones share). The roles themselves are not
asked for permission.

The members and their order are those of the entries in the AWS blog's article on dead-letter queues and of recorded
ones; a dead letter has its own entry, which counts its time from when it was handed over.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import md5
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid5

import orjson
from typing_extensions import override

from redrive.aws.sns.devices.push import PUSHED_TO
from redrive.aws.sns.documents.destinations import PROTOCOLS
from redrive.aws.sns.documents.names import arn_of
from redrive.aws.sns.documents.subscription_attributes import REDRIVE_POLICY
from redrive.aws.sns.notifications.notification import PublishedMessage, is_confirmation
from redrive.engine.ports import LogSink
from redrive.engine.ports.facts import Accepted, Attempted, DeadLettered, Listener
from redrive.model.attempt import Attempt, Reason
from redrive.model.delivery import Delivery
from redrive.model.http import PHRASES
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription, Topic

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


#: A topic's attributes, by protocol; the other protocols are not logged.
_FEEDBACK: Final[Mapping[str, Feedback]] = {
    name: feedback(protocol.feedback) for name, protocol in PROTOCOLS.items() if protocol.feedback
}
_QUEUE_FEEDBACK: Final = _FEEDBACK["sqs"]

# Namespaces of deliveries' ids, which are made from the message's id: retries share one, a dead letter has another.
_DELIVERY: Final = UUID("6adf232e-fb12-5062-a564-27ff3741051f")
_DEAD_LETTER: Final = UUID("a877c79f-a3ee-5105-9bbd-92596eae0232")

#: The codes of services behind managed endpoints, where the attempt brought no text of theirs.
_CODES: Final[Mapping[Reason, str]] = {
    Reason.DENIED: "AccessDenied",
    Reason.MISSING: "ResourceNotFoundException",
    Reason.THROTTLED: "Throttling",
    Reason.TIMED_OUT: "RequestTimeout",
    Reason.TOO_LARGE: "InvalidParameterValue",
}


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry, but for what it says of the message."""

    id: UUID  # Id of the delivery
    began_at: int  # When it was due to begin (ms)
    destination: str  # Destination of the delivery
    protocol: str  # How
    attempt: Attempt  # Outcome of the attempt
    attempts: int  # Number of attempts
    # From its publication to just before it was handed over ("Amazon SNS message delivery status"); of a dead
    # letter until the queue had it.
    dwell_ms: int
    # The subscription's, where there is one and this is not the dead letter itself.
    redrive_policy: str | None = None


class StatusLog(Listener):
    """Writes the deliveries of topics that ask for it to their log groups.

    Their ends are not among them (`Listener.expired`): no schedule of SNS's has one but its last attempt.
    """

    def __init__(
        self,
        sink: LogSink,
        rng: random.Random,
        stream: str,
        protocol_logs: Mapping[str, Listener] | None = None,
    ) -> None:
        """Write to this sink; see `DeliveryLog`.

        Args:
            sink: Takes the lines.
            rng: Chooses the samples.
            stream: The stream of this node in every group.
            protocol_logs: By protocol, listeners to its attempts, and to what is published to one destination alone.
        """
        self._log = DeliveryLog(sink, rng, stream)
        self._protocol_logs = protocol_logs or {}

    @override
    def published(self, topic: Topic, messages: int, matched: int, body_bytes: int, now: int) -> None:
        """Not logged; see `protocol_logs`."""
        if topic.name.private:
            for log in self._protocol_logs.values():
                log.published(topic, messages, matched, body_bytes, now)

    @override
    def attempted(self, fact: Attempted) -> None:
        """Log an attempt, if the topic wants those of its protocol and result."""
        protocol_log = self._protocol_logs.get(fact.subscription.protocol)
        if protocol_log is not None:
            protocol_log.attempted(fact)
        if not self._wants(fact.topic, fact.subscription, fact.attempt):
            return
        entry = _Entry(
            id=uuid5(_DELIVERY, fact.delivery.message_id.hex()),
            began_at=fact.delivery.sent_at,
            destination=fact.subscription.endpoint_shown,
            protocol=fact.subscription.protocol,
            attempt=fact.attempt,
            attempts=fact.delivery.attempts,
            dwell_ms=dwell_ms(fact),
            redrive_policy=_redrive_policy(fact.subscription),
        )
        self._write(fact.topic, fact.delivery, entry, fact.at)

    @override
    def accepted(self, fact: Accepted) -> None:
        if fact.topic.attributes.get(_QUEUE_FEEDBACK.success_role):
            for attempt in fact.attempts():
                self.attempted(attempt)

    @override
    def dead_lettered(self, fact: DeadLettered) -> None:
        """Log a message that went to a dead-letter queue, as a delivery to that queue."""
        name = fact.subscription.dead_letter
        if name is None or not self._wants(fact.topic, fact.subscription, fact.attempt):
            return
        entry = _Entry(
            id=uuid5(_DEAD_LETTER, fact.delivery.message_id.hex()),
            began_at=fact.at - fact.attempt.duration_ms,
            destination=_queue_arn(name),
            protocol="sqs",
            attempt=fact.attempt,
            attempts=1,
            dwell_ms=fact.attempt.duration_ms,
        )
        self._write(fact.topic, fact.delivery, entry, fact.at)

    # ---- inside ------------------------------------------------------------------------------------------

    def _wants(self, topic: Topic, subscription: Subscription, attempt: Attempt) -> bool:
        names = _FEEDBACK.get(subscription.protocol)
        return names is not None and self._log.wants(names, topic.attributes, attempt)

    def _write(self, topic: Topic, delivery: Delivery, entry: _Entry, at: int) -> None:
        headers = delivery.headers or b"{}"
        if is_confirmation(headers):
            return
        notification = {
            "messageMD5Sum": md5(delivery.body.encode(), usedforsecurity=False).hexdigest(),
            "messageId": PublishedMessage.unpack(headers).id,
            "topicArn": arn_of(topic.name),
            "timestamp": log_timestamp(entry.began_at),
        }
        self._log.write(log_group(topic.name), entry.attempt, at, notification, _as_json(entry))


def _as_json(entry: _Entry) -> dict[str, Any]:
    delivery: dict[str, Any] = {"deliveryId": str(entry.id)}
    if entry.redrive_policy is not None:
        delivery["redrivePolicy"] = entry.redrive_policy
    delivery["destination"] = entry.destination
    if entry.protocol == "application":
        delivery["token"] = dict(entry.attempt.identifiers).get(PUSHED_TO, "")
    delivery["providerResponse"] = _provider_response(entry)
    delivery["dwellTimeMs"] = entry.dwell_ms
    if entry.protocol != "lambda":  # recorded: a function's entry does not count attempts
        delivery["attempts"] = entry.attempts
    delivery["statusCode"] = entry.attempt.status
    return delivery


def _redrive_policy(subscription: Subscription) -> str | None:
    """The policy as it was given."""
    return subscription.attributes.get(REDRIVE_POLICY) if subscription.dead_letter is not None else None


def _queue_arn(queue: ResourceName) -> str:
    return f"arn:aws:sqs:{queue.region}:{queue.account}:{queue.name}"


# ---- what the endpoint said --------------------------------------------------------------------------------------


def _provider_response(entry: _Entry) -> str:
    """The endpoint's answer: its text, or for AWS's own services the names they gave, in JSON."""
    if entry.attempt.reason is Reason.WITHHELD:  # no other endpoint was asked
        return entry.attempt.response
    if PROTOCOLS[entry.protocol].of_service:
        return _service_response(entry)
    return entry.attempt.response or PHRASES.get(entry.attempt.status, "")


def _service_response(entry: _Entry) -> str:
    request_name = f"{entry.protocol}RequestId"
    if not entry.attempt.delivered:
        return _failure(entry, request_name)
    identifiers = dict(entry.attempt.identifiers)
    request_id = identifiers.get("request_id") or str(uuid5(entry.id, str(entry.attempts)))
    members = {request_name: request_id}
    if entry.protocol == "sqs":
        members["sqsMessageId"] = identifiers.get("message_id", "")
    return orjson.dumps(members).decode()


def _failure(entry: _Entry, request_name: str) -> str:
    """A service's refusal, with the one blank that the real text has."""
    code, message = _error_code_and_text(entry.attempt)
    first, second = orjson.dumps(code).decode(), orjson.dumps(message).decode()
    return f'{{"ErrorCode":{first}, "ErrorMessage":{second},"{request_name}":"Unrecoverable"}}'


def _error_code_and_text(attempt: Attempt) -> tuple[str, str]:
    try:
        answer = orjson.loads(attempt.response)
        return str(answer["ErrorCode"]), str(answer["ErrorMessage"])
    except (ValueError, TypeError, KeyError):  # not a service's own words
        return _CODES.get(attempt.reason, "ServiceUnavailable"), attempt.response
