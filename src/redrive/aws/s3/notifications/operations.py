"""The operations on notifications of a bucket."""

from collections.abc import Callable
from dataclasses import replace

from redrive.aws.kit.call import Call
from redrive.aws.s3.documents.access import BucketAccess
from redrive.aws.s3.documents.errors import invalid
from redrive.aws.s3.documents.records import Bucket
from redrive.aws.s3.notifications.destinations import Destinations
from redrive.aws.s3.notifications.rules import checked, rules_of
from redrive.aws.wire.shapes import Structure


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
