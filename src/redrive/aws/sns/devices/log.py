"""The log of pushes to mobile devices: entries in CloudWatch Logs for their applications, and metrics.

An application asks for entries by three attributes of its own (`SuccessFeedbackRoleArn`, `FailureFeedbackRoleArn`,
`SuccessFeedbackSampleRate`), whichever way its devices were published to; what a topic asks for is `status_log`'s.
Members are those of "Amazon SNS mobile app attributes".

    NumberOfMessagesPublished, PublishSize    of what is published to a device alone
    NumberOfNotificationsDelivered            handed over to a push service
    NumberOfNotificationsFailed               given up

are counted by `Application`, by `Platform`, and by both.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final
from uuid import UUID, uuid5

from typing_extensions import override

from redrive.aws.sns.devices import platform
from redrive.aws.sns.devices.platform import Application, ApplicationName
from redrive.aws.sns.devices.push import PUSHED_TO
from redrive.aws.sns.notifications.delivery_log import DeliveryLog, dwell_ms, feedback, log_timestamp
from redrive.aws.sns.notifications.published import PublishedMessage
from redrive.aws.sns.sms.log import NAMESPACE
from redrive.engine.ports import LogSink
from redrive.engine.ports.facts import Attempted, Listener
from redrive.model.delivery import Outcome
from redrive.model.metric import MINUTE_MS, MetricPoint, Series, Statistics
from redrive.model.names import ResourceName
from redrive.model.topic import Topic

_FEEDBACK: Final = feedback()
_DELIVERY: Final = UUID("4f1d2c1e-7a55-5d0e-8b0c-0f6f0f6a3b11")


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
        """See `Listener.published`; counted where it is to a device alone."""
        application = platform.application_behind(topic.name)
        if application is None or not messages:
            return
        self._count(
            [
                *_points(application, "NumberOfMessagesPublished", Statistics.of(messages), now),
                *_points(application, "PublishSize", Statistics.of(body_bytes / messages, messages), now),
            ]
        )

    @override
    def attempted(self, fact: Attempted) -> None:
        """See `Listener.attempted`; of a push."""
        device = platform.device_at(fact.subscription.endpoint)
        if device is None:
            return
        name = device.application
        if fact.attempt.delivered or fact.transition.outcome is not Outcome.RETRY:
            metric = "Delivered" if fact.attempt.delivered else "Failed"
            self._count([*_points(name, f"NumberOfNotifications{metric}", Statistics.of(1), fact.at)])
        application = self._application_of(fact.subscription.endpoint)
        attributes = {} if application is None else application.attributes
        if self._log.wants(_FEEDBACK, attributes, fact.attempt):
            group = f"sns/{name.region}/{name.account}/app/{name.platform}/{name.name}"
            self._log.write(
                ResourceName(name.account, name.region, group),
                fact.attempt,
                fact.at,
                {
                    "messageId": PublishedMessage.unpack(fact.delivery.headers or b"{}").id,
                    "timestamp": log_timestamp(fact.delivery.sent_at),
                },
                _as_json(fact),
            )


def _as_json(fact: Attempted) -> dict[str, Any]:
    delivery, attempt = fact.delivery, fact.attempt
    return {
        "deliveryId": str(uuid5(_DELIVERY, delivery.message_id.hex())),
        "destination": fact.subscription.endpoint,
        "token": dict(attempt.identifiers).get(PUSHED_TO, ""),
        "providerResponse": attempt.response,
        "dwellTimeMs": dwell_ms(fact),
        "attempts": delivery.attempts,
        "statusCode": attempt.status,
    }


def _points(name: ApplicationName, metric: str, statistics: Statistics, now: int) -> Iterator[MetricPoint]:
    application, kind = ("Application", name.name), ("Platform", name.platform)
    for dimensions in ((application,), (application, kind), (kind,)):
        series = Series(name.account, name.region, NAMESPACE, metric, dimensions)
        yield MetricPoint(series, now - now % MINUTE_MS, "", statistics)
