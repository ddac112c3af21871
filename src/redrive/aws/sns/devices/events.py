"""Application events: what happens to the devices of an application, published to the topics it names for that.

Sources: "Amazon SNS application event notifications", the failure types in "Using Google Firebase Cloud Messaging
v1 payloads in Amazon SNS", and two recorded notifications of failed deliveries, which subject, members and texts are as.
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from uuid import UUID, uuid5

import orjson

from redrive.aws.sns.devices import platform
from redrive.aws.sns.devices.platform import APPLICATION, ApplicationName, Device
from redrive.aws.sns.documents.names import FIFO_SUFFIX, arn_of
from redrive.aws.sns.notifications.notification import PublishedMessage, timestamp
from redrive.aws.wire.arn import read_arn
from redrive.engine.engine import Engine
from redrive.engine.ports import FollowUp
from redrive.engine.ports.facts import Attempted
from redrive.model.attempt import Attempt, Reason
from redrive.model.delivery import Outcome
from redrive.model.names import ResourceName, id_text
from redrive.model.topic import Publication

logger = logging.getLogger(__name__)

CREATED: Final = "EndpointCreated"
DELETED: Final = "EndpointDeleted"
UPDATED: Final = "EndpointUpdated"
FAILED: Final = "DeliveryFailure"
NAMES: Final = frozenset(f"Event{kind}" for kind in (CREATED, DELETED, UPDATED, FAILED))

#: The identifier of an attempt that says which topic hears of the delivery's failure: an ARN.
FAILURES_TO: Final = "failures_to"

# Marks the envelope of an event. An event that cannot be delivered causes no other: where devices receive events, they
# would go on for ever.
_EVENT_MARK: Final = b',"application_event":true}'

# Namespace of events' ids: an event's id is made from that of the failed delivery, so it is the same however often.
_EVENT: Final = UUID("0f0b7a0e-8f0c-5a51-9d1a-5d6f2f8f4c11")
_ENDED: Final = (Outcome.DEAD_LETTERED, Outcome.DROPPED, Outcome.EXPIRED)

_UNEXPECTED: Final = (
    "UnexpectedFailure",
    "Unexpected failure; please contact Amazon. Failure phrase [Internal Error]",
)
_UNAVAILABLE: Final = ("DependencyUnavailable", "Dependency is not available")
_INVALID: Final = ("InvalidNotification", "Notification body is invalid")
_FAILURES: Final[Mapping[Reason, tuple[str, str]]] = {
    Reason.CLIENT_ERROR: _INVALID,
    Reason.CONNECTION: _UNAVAILABLE,
    Reason.DENIED: ("InvalidCredentials", "Platform application credentials are not valid"),
    Reason.DISABLED: ("EndpointDisabled", "Endpoint is disabled"),
    Reason.EXPIRED: ("NotificationTTLExpired", "Notification TTL is expired"),  # the text is chosen
    Reason.MISSING: ("InvalidPlatformToken", "Platform token associated with the endpoint is not valid"),
    Reason.NAME_NOT_RESOLVED: _UNAVAILABLE,
    Reason.SERVER_ERROR: _UNAVAILABLE,
    Reason.THROTTLED: ("Throttled", "Request throttled by [{}]"),
    Reason.TIMED_OUT: _UNAVAILABLE,
    Reason.TLS: _UNAVAILABLE,
    Reason.TOO_LARGE: _INVALID,
}


def topic_at(arn: str) -> ResourceName | None:
    """The topic that an event's attribute names; None if it cannot be one: it names no topic, or an ordered one."""
    parsed = read_arn(arn)
    if parsed is None or parsed.service != "sns" or {":", "/"} & set(parsed.resource):
        return None
    if parsed.resource.endswith(FIFO_SUFFIX):
        return None
    return ResourceName(parsed.account, parsed.region, parsed.resource)


class Events:
    """Publishes events of devices: created, updated, deleted."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def tell(self, device: Device, kind: str) -> None:
        """Publish an event of a device to the topic that its application names for such events, if there is one."""
        application = await self._engine.resources.documents.get(APPLICATION, device.application.key)
        arn = "" if application is None else application.attributes.get(f"Event{kind}", "")
        name = topic_at(arn)
        if name is None:
            return
        topic = await self._engine.resources.topics.get(name)
        if topic is None:
            logger.warning("platform.event_unheard topic=%s event=%s: there is no such topic", arn, kind)
            return
        runtime = self._engine.runtime
        now = runtime.clock.now()
        message = _event_text(device.application, device.arn, kind, now)
        publication = _publication(runtime.message_id(), name, device.application, kind, message, now)
        await self._engine.messages.publish(topic, [publication])


def failure_follow_ups(fact: Attempted) -> tuple[FollowUp, ...]:
    """The event of a delivery to a device that failed for good, if the application names a topic for such events."""
    headers = fact.delivery.headers or b"{}"
    device = platform.device_at(fact.subscription.endpoint)
    topic = topic_at(dict(fact.attempt.identifiers).get(FAILURES_TO, ""))
    if device is None or topic is None or fact.transition.outcome not in _ENDED:
        return ()
    if headers.endswith(_EVENT_MARK):  # an event that cannot be delivered causes no other
        return ()
    failure_type, template = failure_of(fact.attempt)
    message = _event_text(
        device.application,
        device.arn,
        FAILED,
        fact.at,
        DeliveryAttempts=fact.delivery.attempts,
        FailureMessage=template.format(device.application.platform.lower()),
        FailureType=failure_type,
        MessageId=PublishedMessage.unpack(headers).id,
    )
    event_id = uuid5(_EVENT, fact.delivery.message_id.hex()).bytes  # a subscriber's delivery has its own id
    return (FollowUp(topic, _publication(event_id, topic, device.application, FAILED, message, fact.at)),)


def failure_of(attempt: Attempt) -> tuple[str, str]:
    """SNS's name and text for a failure; `{}` in the text stands for the platform."""
    if attempt.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return _UNEXPECTED
    return _FAILURES.get(attempt.reason, _UNEXPECTED)


def _event_text(name: ApplicationName, endpoint: str, kind: str, now: int, **other_members: Any) -> str:
    members = {
        **other_members,
        "EndpointArn": endpoint,
        "EventType": kind,
        "Resource": name.arn,
        "Service": "SNS",
        "Time": timestamp(now),
    }
    return orjson.dumps(members, option=orjson.OPT_SORT_KEYS).decode()


def _publication(
    message_id: bytes, topic: ResourceName, name: ApplicationName, kind: str, message: str, now: int
) -> Publication:
    subject = f"{kind} event for app {name.name} ({name.platform})"[:100]
    published = PublishedMessage(id_text(message_id), arn_of(topic), now, subject=subject)
    envelope = published.envelope()[:-1] + _EVENT_MARK
    return Publication(message_id, message, {}, {}, envelope, len(message.encode()))
