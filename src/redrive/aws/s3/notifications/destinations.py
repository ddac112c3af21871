"""Destinations of notifications: queues, topics and functions, called as `s3.amazonaws.com` for a bucket.

Messages: "Event message structure", user guide, versions 2.1 and, of tags, 2.3.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Self
from urllib.parse import quote_plus

import orjson

from redrive.access.principals import service_acting_for
from redrive.aws.gateway.inner_calls import BASE_URL, InnerCalls
from redrive.aws.gateway.owed_calls import account_and_region_of, backlog_in, make_call
from redrive.aws.gateway.rounds import TRACE, Rounds
from redrive.aws.kit.call import Call
from redrive.aws.s3.documents.access import BucketAccess
from redrive.aws.s3.documents.errors import invalid
from redrive.aws.s3.documents.records import DIALECT, TO_DESTINATION, Bucket, ObjectRecord
from redrive.aws.s3.notifications.rules import CREATED, TAGGED, normalized, rules_of
from redrive.aws.wire.arn import parse_arn
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.aws.wire.timestamps import to_iso8601
from redrive.engine.engine import Engine
from redrive.engine.ports import PushRequest
from redrive.engine.resources import Draft
from redrive.model.attempt import Attempt

SUBJECT: Final = "Amazon S3 Notification"
_VERSION: Final = "2.1"
_VERSION_OF_TAGS: Final = "2.3"
logger = logging.getLogger(__name__)
_SERVICE: Final = "s3"  # that policies let in
_KINDS: Final = {"sqs": "queue", "sns": "topic"}
_ABSENT: Final = frozenset(
    {"QueueDoesNotExist", "NotFound", "NotFoundException", "ResourceNotFoundException"}
)
_DENIED: Final = ("AccessDenied", "AuthorizationError", "KMS")


def test_message(bucket: str, call: Call) -> dict[str, Any]:
    """The message that tests a queue or a topic as a destination."""
    return {
        "Service": "Amazon S3",
        "Event": "s3:TestEvent",
        "Time": to_iso8601(call.now),
        "Bucket": bucket,
        "RequestId": call.id,
        "HostId": call.id,
    }


def event_message(
    call: Call, event: str, bucket: Bucket, rule: str, record: ObjectRecord, sequencer: str
) -> dict[str, Any]:
    """The message of an event (`s3:ObjectCreated:Put` …) that matches a rule.

    - `rule`: its id.
    - `sequencer`: greater, as a text, than those of earlier events of the same key.
    """
    description = {
        "s3SchemaVersion": "1.0",
        "configurationId": rule,
        "bucket": {"name": bucket.name, "ownerIdentity": {"principalId": bucket.account}, "arn": bucket.arn},
        "object": _object(event, record, sequencer),
    }
    return {
        "Records": [
            {
                "eventVersion": _VERSION_OF_TAGS if event.startswith(TAGGED) else _VERSION,
                "eventSource": "aws:s3",
                "awsRegion": bucket.region,
                "eventTime": to_iso8601(call.now),
                "eventName": event.removeprefix("s3:"),
                "userIdentity": {"principalId": f"AWS:{call.principal.keys.get('aws:userid', call.account)}"},
                "requestParameters": {"sourceIPAddress": call.request.client_host},
                "responseElements": {"x-amz-request-id": call.id, "x-amz-id-2": call.id},
                "s3": description,
            }
        ]
    }


def _object(event: str, record: ObjectRecord, sequencer: str) -> dict[str, Any]:
    """The object as an event describes it; of one that is deleted neither size nor ETag."""
    key = {"key": quote_plus(record.key, safe="/*")}
    if event.startswith(CREATED):
        return {**key, "size": record.size, "eTag": record.etag, "sequencer": sequencer}
    if event.startswith(TAGGED):
        return {**key, "eTag": record.etag}
    return {**key, "sequencer": sequencer}


@dataclass(frozen=True, slots=True)
class OwedNotification:
    """A notification to be sent."""

    bucket: str  # The bucket's name
    arn: str  # ARN of the destination
    message: Mapping[str, Any]  # See `event_message`
    trace: str  # The trace header of the request that caused it; empty: it had none

    def pack(self) -> str:
        """The notification as the body of a delivery."""
        return orjson.dumps(asdict(self)).decode()

    @classmethod
    def unpack(cls, body: bytes) -> Self:
        """Read what `pack` wrote."""
        return cls(**orjson.loads(body))


class Destinations:
    """Sends notifications to queues, topics and functions (`redrive.engine.ports.Endpoint`)."""

    def __init__(self, calls: InnerCalls, rounds: Rounds, *, is_open: bool) -> None:
        self._calls = calls
        # Count runs in a row: a function is stopped whose objects run it again and again
        self._rounds = rounds
        # Whether what has no policy takes events of its own account's buckets. Amazon's does not: its
        # policy has to let `s3.amazonaws.com` in
        self._is_open = is_open

    async def push(self, push_request: PushRequest) -> Attempt:
        """Send a notification; a refusal is final, and logged."""
        account, region = account_and_region_of(push_request)
        notification = OwedNotification.unpack(push_request.body)
        bucket = Bucket(notification.bucket, account, region, 0)
        sending = self._send(bucket, notification.arn, notification.message, notification.trace)
        service = parse_arn(notification.arn).service
        error, attempt = await make_call(
            sending, service, lambda refused: f"{refused.message} ({refused.code})"
        )
        if error is not None:
            record = notification.message["Records"][0]
            logger.warning(
                "s3.notification_failed bucket=%s destination=%s event=%s key=%s error=%s",
                notification.bucket,
                notification.arn,
                record["eventName"],
                record["s3"]["object"]["key"],
                error,
            )
        return attempt

    async def close(self) -> None:
        """Nothing is held."""

    async def fault(self, call: Call, bucket: Bucket, arn: str) -> str | None:
        """Test a destination, queues and topics by the test message; returns why it cannot be one, None if it can.

        Raises:
            StoreUnavailable: The test was not possible.
        """
        service = parse_arn(arn).service
        try:
            await self._send(bucket, arn, test_message(bucket.name, call), is_test=True)
        except KeyError:
            return f"This server does not offer {service}"
        except AwsError as refusal:
            if not refusal.sender:
                raise
            return _fault(refusal, service, arn)
        return None

    async def _send(
        self, bucket: Bucket, arn: str, message: Mapping[str, Any], trace: str = "", *, is_test: bool = False
    ) -> None:
        """Send a message to a queue, topic or function; a function is tested without a message. Raises AwsError."""
        destination, text = parse_arn(arn), orjson.dumps(message).decode()
        service = destination.service
        caller = service_acting_for(
            _SERVICE, bucket.region, bucket.arn, bucket.account, for_owner=self._is_open
        )
        if service == "lambda":
            invocation: Structure = {"FunctionName": arn, "InvocationType": "DryRun"}
            if not is_test:
                invocation |= {"InvocationType": "Event", "Payload": text.encode()}
            headers = {TRACE: self._rounds.following(trace)}
            await self._calls.call(service, "Invoke", invocation, caller, bucket.region, headers)
        elif service == "sns":
            params = {"TopicArn": arn, "Subject": SUBJECT, "Message": text}
            await self._calls.call(service, "Publish", params, caller, bucket.region)
        else:
            url = f"{BASE_URL}/{destination.account}/{destination.resource}"
            params = {"QueueUrl": url, "MessageBody": text}
            await self._calls.call(service, "SendMessage", params, caller, bucket.region)


def _fault(refusal: AwsError, service: str, arn: str) -> str:
    """The text that S3 has for the refusal of a destination."""
    is_absent = refusal.code in _ABSENT
    if not (is_absent or refusal.code.startswith(_DENIED)):
        return refusal.message
    if service == "lambda":
        return f"Not authorized to invoke function [{arn}]"
    kind = _KINDS[service]
    if is_absent:
        return f"The destination {kind} does not exist"
    return f"Permissions on the destination {kind} do not allow S3 to publish notifications from this bucket"


_NOTIFICATIONS: Final = "notifications"  # the subscription that is the backlog
_COUNT_BITS: Final = 16


class NotificationSettings:
    """Puts and shows the notifications of buckets."""

    def __init__(self, access: BucketAccess, destinations: Destinations, new_id: Callable[[], str]) -> None:
        self._access = access
        self._destinations = destinations
        self._new_id = new_id

    async def get_bucket_notification_configuration(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.bucket(call, params, "GetBucketNotification")
        return dict(bucket.notifications)

    async def put_bucket_notification_configuration(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.bucket(call, params, "PutBucketNotification")
        configuration = normalized(params["NotificationConfiguration"], bucket.region, self._new_id)
        if not params.get("SkipDestinationValidation"):
            await self._check_destinations(call, bucket, configuration)
        return await self._access.change(
            bucket, lambda current: replace(current, notifications=configuration)
        )

    async def _check_destinations(self, call: Call, bucket: Bucket, configuration: Structure) -> None:
        """Test each destination once.

        Raises:
            AwsError: `InvalidArgument`, with the destinations that failed, and why.
        """
        faults: dict[str, str] = {}
        for arn in dict.fromkeys(rule.arn for rule in rules_of(configuration)):
            fault = await self._destinations.fault(call, bucket, arn)
            if fault is not None:
                number = len(faults) // 2 + 1  # each destination has a name and a value
                faults |= {f"ArgumentName{number}": arn, f"ArgumentValue{number}": fault}
        if faults:
            raise invalid("Unable to validate the following destination configurations", **faults)


class Notifier:
    """Owes notifications of events."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._last = 0

    async def owe_in(
        self, draft: Draft, call: Call, event: str, bucket: Bucket, record: ObjectRecord
    ) -> None:
        """Owe the notification of an event (`s3:ObjectCreated:Put` …), if a rule of the bucket matches; two never do."""
        rule = next((rule for rule in rules_of(bucket.notifications) if rule.is_for(event, record.key)), None)
        if rule is None:
            return
        backlog = await backlog_in(
            draft, self._engine, bucket.account, bucket.region, DIALECT, _NOTIFICATIONS, TO_DESTINATION
        )
        message = event_message(call, event, bucket, rule.id, record, self._sequencer(call.now))
        notification = OwedNotification(bucket.name, rule.arn, message, call.request.headers.get(TRACE, ""))
        self._engine.messages.publish_alone_in(draft, *backlog, notification.pack(), headers=b"")

    def _sequencer(self, now: int) -> str:
        """A number greater than all earlier ones; those of several nodes follow their clocks.

        A write that conflicts with another is repeated after it, with a later number.
        """
        self._last = max(self._last + 1, now << _COUNT_BITS)
        return f"{self._last:018X}"
