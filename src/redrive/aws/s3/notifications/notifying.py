"""Notifications of a bucket: which it is set to send, and those that it owes.

What a change of an object has to be told enters a backlog in the transaction of that change.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from redrive.aws.gateway.owed_calls import backlog_in
from redrive.aws.gateway.rounds import TRACE
from redrive.aws.kit.call import Call
from redrive.aws.s3.documents.access import BucketAccess
from redrive.aws.s3.documents.errors import invalid
from redrive.aws.s3.documents.records import DIALECT, TO_DESTINATION, Bucket, ObjectRecord
from redrive.aws.s3.notifications.destinations import Destinations, OwedNotification, event_message
from redrive.aws.s3.notifications.rules import checked, rules_of
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft

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
        configuration = checked(params["NotificationConfiguration"], bucket.region, self._new_id)
        if not params.get("SkipDestinationValidation"):
            await self._check_destinations(call, bucket, configuration)
        return await self._access.change(
            bucket, lambda current: replace(current, notifications=configuration)
        )

    async def _check_destinations(self, call: Call, bucket: Bucket, configuration: Structure) -> None:
        """Try each destination once.

        Raises:
            AwsError: `InvalidArgument`, with each that cannot be one, and why.
        """
        faults: dict[str, str] = {}
        for arn in dict.fromkeys(rule.arn for rule in rules_of(configuration)):
            fault = await self._destinations.fault(call, bucket, arn)
            if fault is not None:
                number = len(faults) // 2 + 1
                faults |= {f"ArgumentName{number}": arn, f"ArgumentValue{number}": fault}
        if faults:
            raise invalid("Unable to validate the following destination configurations", **faults)


class Notifier:
    """Owes notifications."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._last = 0

    async def owe_in(
        self, draft: Draft, call: Call, event: str, bucket: Bucket, record: ObjectRecord
    ) -> None:
        """Owe what a bucket's rules say of an event (`s3:ObjectCreated:Put` …); no two of them are for the same."""
        rule = next((rule for rule in rules_of(bucket.notifications) if rule.is_for(event, record.key)), None)
        if rule is None:
            return
        backlog = await backlog_in(
            draft, self._engine, bucket.account, bucket.region, DIALECT, _NOTIFICATIONS, TO_DESTINATION
        )
        message = event_message(call, event, bucket, rule.id, record, self._sequencer(call.now))
        owed = OwedNotification(bucket.name, rule.arn, message, call.request.headers.get(TRACE, ""))
        self._engine.messages.publish_alone_in(draft, *backlog, owed.pack(), b"")

    def _sequencer(self, now: int) -> str:
        """A number greater than all before; among nodes, by their clocks.

        Whoever writes an object after another begins anew with what that left, so its number is drawn later.
        """
        self._last = max(self._last + 1, now << _COUNT_BITS)
        return f"{self._last:018X}"
