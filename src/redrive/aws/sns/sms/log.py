"""The log of text messages: entries in CloudWatch Logs, and metrics.

An account asks for entries by `SetSMSAttributes`: with `DeliveryStatusIAMRole` every failed attempt is written down, and
of the successes as many percent as `DeliveryStatusSuccessSamplingRate` says. Members and their order are those of
"Viewing CloudWatch metrics and logs for SMS deliveries"; what a message centre does not tell is said as there where it
is unknown: no carrier, and the codes 0. Receipts of telephones are not asked for, so no entry has
`dwellTimeMsUntilDeviceAck`.

    SMSSuccessRate            1 for a text that the centre took, 0 for one given up; by `SMSType`, and by `PhoneNumber`
                              where there is no topic
    SMSMonthToDateSpentUSD    after each text that cost something
"""

import random
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from typing_extensions import override

from redrive.aws.sns.documents.names import arn_of
from redrive.aws.sns.notifications.delivery_log import DeliveryLog, Feedback, dwell_ms, log_timestamp
from redrive.aws.sns.notifications.published import PublishedMessage
from redrive.aws.sns.sms.attributes import ROLE, SAMPLING_RATE
from redrive.aws.sns.sms.text_messages import PROMOTIONAL, place_of
from redrive.engine.ports import LogSink
from redrive.engine.ports.facts import Attempted, Listener
from redrive.model.delivery import Outcome
from redrive.model.metric import MINUTE_MS, MetricPoint, Series, Statistics
from redrive.model.names import ResourceName
from redrive.model.text_parts import parts_of

DIRECT: Final = "DirectPublishToPhoneNumber"
NAMESPACE: Final = ":topic"  # of metrics, as telemetry calls that of SNS
_FEEDBACK: Final = Feedback(ROLE, ROLE, SAMPLING_RATE)
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
        """See `Listener.attempted`; of a text message."""
        account, region = place_of(fact.subscription)
        attributes = self._attributes(f"{account}/{region}") or {}
        if self._log.wants(_FEEDBACK, attributes, fact.attempt):
            group = f"sns/{region}/{account}/{DIRECT if fact.topic.name.private else fact.topic.name.name}"
            self._log.write(
                ResourceName(account, region, group),
                fact.attempt,
                fact.at,
                _notification(fact),
                _as_json(fact),
            )
        self._count(_points(fact, account, region))


def _notification(fact: Attempted) -> dict[str, str]:
    published = PublishedMessage.unpack(fact.delivery.headers or b"{}")
    notification = {"messageId": published.id, "timestamp": log_timestamp(fact.delivery.sent_at)}
    if not fact.topic.name.private:
        notification["topicArn"] = arn_of(fact.topic.name)
    return notification


def _as_json(fact: Attempted) -> dict[str, Any]:
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


def _points(fact: Attempted, account: str, region: str) -> list[MetricPoint]:
    at, identifiers = fact.at - fact.at % MINUTE_MS, dict(fact.attempt.identifiers)

    def point(name: str, value: float, *dimensions: tuple[str, str]) -> MetricPoint:
        return MetricPoint(Series(account, region, NAMESPACE, name, dimensions), at, "", Statistics.of(value))

    points = []
    if fact.transition.outcome is not Outcome.RETRY:
        value = float(fact.attempt.delivered)
        points.append(point("SMSSuccessRate", value, ("SMSType", identifiers.get("type", PROMOTIONAL))))
        if fact.topic.name.private:
            points.append(point("SMSSuccessRate", value, ("PhoneNumber", fact.subscription.endpoint)))
    if "spent" in identifiers:
        points.append(point("SMSMonthToDateSpentUSD", float(Decimal(identifiers["spent"]))))
    return points
