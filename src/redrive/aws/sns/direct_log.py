"""The logs of what is published to devices and telephones: entries in CloudWatch Logs, and metrics.

An application asks for entries of pushes by three attributes of its own (`SuccessFeedbackRoleArn`,
`FailureFeedbackRoleArn`, `SuccessFeedbackSampleRate`), whichever way its devices were published to; what a topic asks for
is `status_log`'s. Members are those of "Amazon SNS mobile app attributes".

    NumberOfMessagesPublished, PublishSize    of what is published to a device alone
    NumberOfNotificationsDelivered            handed over to a push service
    NumberOfNotificationsFailed               given up

are counted by `Application`, by `Platform`, and by both.

An account asks for entries of text messages by `SetSMSAttributes`: with `DeliveryStatusIAMRole` every failed attempt is
written down, and of the successes as many percent as `DeliveryStatusSuccessSamplingRate` says. Members and their order
are those of "Viewing CloudWatch metrics and logs for SMS deliveries"; what a message centre does not tell is said as
there where it is unknown: no carrier, and the codes 0. Receipts of telephones are not asked for, so no entry has
`dwellTimeMsUntilDeviceAck`.

    SMSSuccessRate            1 for a text that the centre took, 0 for one given up; by `SMSType`, and by `PhoneNumber`
                              where there is no topic
    SMSMonthToDateSpentUSD    after each text that cost something
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final
from uuid import UUID, uuid5

from typing_extensions import override

from redrive.aws.sns.devices import platform
from redrive.aws.sns.devices.platform import Application, ApplicationName
from redrive.aws.sns.devices.push import PUSHED_TO
from redrive.aws.sns.documents.names import arn_of
from redrive.aws.sns.notifications.notification import PublishedMessage
from redrive.aws.sns.sms.attributes import ROLE, SAMPLING_RATE
from redrive.aws.sns.sms.text_messages import PROMOTIONAL, account_and_region_of
from redrive.aws.sns.status_log import DeliveryLog, Feedback, dwell_ms, feedback, log_timestamp
from redrive.engine.ports import LogSink
from redrive.engine.ports.facts import Attempted, Listener
from redrive.model.delivery import Outcome
from redrive.model.metric import MINUTE_MS, MetricPoint, Series, Statistics
from redrive.model.names import ResourceName
from redrive.model.text_parts import parts_of
from redrive.model.topic import Topic

NAMESPACE: Final = ":topic"  # of metrics, as telemetry calls that of SNS

# ---- pushes to devices ---------------------------------------------------------------------------------------------

_PUSH_FEEDBACK: Final = feedback()
_PUSH: Final = UUID("4f1d2c1e-7a55-5d0e-8b0c-0f6f0f6a3b11")


class DeviceLog(Listener):
    """Writes down what came of pushes to devices."""

    def __init__(
        self,
        sink: LogSink,
        rng: random.Random,
        stream: str,
        application_of: Callable[[str], Application | None],
        count: Callable[[Sequence[MetricPoint]], None],
    ) -> None:
        """Log deliveries to devices.

        Args:
            sink: Takes the lines.
            rng: Chooses the samples.
            stream: The stream of this node in every group.
            application_of: The application of a platform endpoint's ARN, if this node remembers it: who pushes has just
                asked.
            count: Takes points of metrics.
        """
        self._log = DeliveryLog(sink, rng, stream)
        self._application_of = application_of
        self._count = count

    @override
    def published(self, topic: Topic, messages: int, matched: int, body_bytes: int, now: int) -> None:
        """Count publications straight to a device; those to a topic are not counted here."""
        application = platform.application_behind(topic.name)
        if application is None or not messages:
            return
        sizes = Statistics.of(body_bytes / messages, messages)
        points = [*_push_points(application, "NumberOfMessagesPublished", Statistics.of(messages), now)]
        points += _push_points(application, "PublishSize", sizes, now)
        self._count(points)

    @override
    def attempted(self, fact: Attempted) -> None:
        """Count and log an attempt to push to a device."""
        device = platform.device_at(fact.subscription.endpoint)
        if device is None:
            return
        name = device.application
        if fact.attempt.delivered or fact.transition.outcome is not Outcome.RETRY:
            metric = "Delivered" if fact.attempt.delivered else "Failed"
            self._count([*_push_points(name, f"NumberOfNotifications{metric}", Statistics.of(1), fact.at)])
        application = self._application_of(fact.subscription.endpoint)
        attributes = {} if application is None else application.attributes
        if self._log.wants(_PUSH_FEEDBACK, attributes, fact.attempt):
            group = f"sns/{name.region}/{name.account}/app/{name.platform}/{name.name}"
            self._log.write(
                ResourceName(name.account, name.region, group),
                fact.attempt,
                fact.at,
                {
                    "messageId": PublishedMessage.unpack(fact.delivery.headers or b"{}").id,
                    "timestamp": log_timestamp(fact.delivery.sent_at),
                },
                _push_as_json(fact),
            )


def _push_as_json(fact: Attempted) -> dict[str, Any]:
    delivery, attempt = fact.delivery, fact.attempt
    return {
        "deliveryId": str(uuid5(_PUSH, delivery.message_id.hex())),
        "destination": fact.subscription.endpoint,
        "token": dict(attempt.identifiers).get(PUSHED_TO, ""),
        "providerResponse": attempt.response,
        "dwellTimeMs": dwell_ms(fact),
        "attempts": delivery.attempts,
        "statusCode": attempt.status,
    }


def _push_points(
    name: ApplicationName, metric: str, statistics: Statistics, now: int
) -> Iterator[MetricPoint]:
    application, kind = ("Application", name.name), ("Platform", name.platform)
    for dimensions in ((application,), (application, kind), (kind,)):
        series = Series(name.account, name.region, NAMESPACE, metric, dimensions)
        yield MetricPoint(series, now - now % MINUTE_MS, "", statistics)


# ---- text messages -------------------------------------------------------------------------------------------------

DIRECT: Final = "DirectPublishToPhoneNumber"
_TEXT_FEEDBACK: Final = Feedback(ROLE, ROLE, SAMPLING_RATE)
_ACCEPTED: Final = "Message has been accepted by phone carrier"
_UNKNOWN_CARRIER: Final = "Unknown Carrier"


class TextMessageLog(Listener):
    """Writes down what came of text messages."""

    def __init__(
        self,
        sink: LogSink,
        rng: random.Random,
        stream: str,
        attributes: Callable[[str], Mapping[str, str] | None],
        count: Callable[[Sequence[MetricPoint]], None],
    ) -> None:
        """Log text messages to a sink.

        Args:
            sink: Takes the lines.
            rng: Chooses the samples.
            stream: The stream of this node in every group.
            attributes: What is set for the text messages of an account's region (`123456789012/us-east-1`), if this node
                remembers it: who pushes one has just asked.
            count: Takes points of metrics.
        """
        self._log = DeliveryLog(sink, rng, stream)
        self._attributes = attributes
        self._count = count

    @override
    def attempted(self, fact: Attempted) -> None:
        """Count and log an attempt to send a text message."""
        account, region = account_and_region_of(fact.subscription)
        attributes = self._attributes(f"{account}/{region}") or {}
        if self._log.wants(_TEXT_FEEDBACK, attributes, fact.attempt):
            group = f"sns/{region}/{account}/{DIRECT if fact.topic.name.private else fact.topic.name.name}"
            self._log.write(
                ResourceName(account, region, group),
                fact.attempt,
                fact.at,
                _notification(fact),
                _text_as_json(fact),
            )
        self._count(_text_points(fact, account, region))


def _notification(fact: Attempted) -> dict[str, str]:
    published = PublishedMessage.unpack(fact.delivery.headers or b"{}")
    notification = {"messageId": published.id, "timestamp": log_timestamp(fact.delivery.sent_at)}
    if not fact.topic.name.private:
        notification["topicArn"] = arn_of(fact.topic.name)
    return notification


def _text_as_json(fact: Attempted) -> dict[str, Any]:
    attempt = fact.attempt
    identifiers = dict(attempt.identifiers)
    return {
        "phoneCarrier": _UNKNOWN_CARRIER,
        "mnc": 0,
        "numberOfMessageParts": int(identifiers.get("parts") or len(parts_of(fact.delivery.body).parts)),
        "destination": fact.subscription.endpoint,
        "priceInUSD": float(identifiers.get("price", "0")),
        "smsType": identifiers.get("type", PROMOTIONAL),
        "mcc": 0,
        "providerResponse": _ACCEPTED if attempt.delivered else attempt.response,
        "dwellTimeMs": dwell_ms(fact),
    }


def _text_points(fact: Attempted, account: str, region: str) -> list[MetricPoint]:
    """The points of an attempt at a text message: its success, once it has ended, and the month's spending so far."""
    at, identifiers = fact.at - fact.at % MINUTE_MS, dict(fact.attempt.identifiers)

    def point(name: str, value: float, *dimensions: tuple[str, str]) -> MetricPoint:
        return MetricPoint(Series(account, region, NAMESPACE, name, dimensions), at, "", Statistics.of(value))

    points = []
    if fact.transition.outcome is not Outcome.RETRY:
        success = float(fact.attempt.delivered)  # 0 or 1: the metric's average is the rate
        points.append(point("SMSSuccessRate", success, ("SMSType", identifiers.get("type", PROMOTIONAL))))
        if fact.topic.name.private:  # sent to a number, not to a topic
            points.append(point("SMSSuccessRate", success, ("PhoneNumber", fact.subscription.endpoint)))
    if "spent" in identifiers:
        points.append(point("SMSMonthToDateSpentUSD", float(Decimal(identifiers["spent"]))))
    return points
