"""Messages of notifications: the record of an event, and the test of a destination.

Source: "Event message structure", user guide, versions 2.1 and, of tags, 2.3.
"""

from typing import Any, Final
from urllib.parse import quote_plus

from redrive.aws.kit.call import Call
from redrive.aws.s3.documents.records import Bucket, ObjectRecord
from redrive.aws.s3.notifications.rules import CREATED, TAGGED
from redrive.aws.wire.timestamps import to_iso8601

SUBJECT: Final = "Amazon S3 Notification"
_VERSION: Final = "2.1"
_VERSION_OF_TAGS: Final = "2.3"


def test_message(bucket: str, call: Call) -> dict[str, Any]:
    """The message that tries a queue or a topic when it becomes a destination."""
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
    """The message of an event.

    Args:
        call: That caused it.
        event: `s3:ObjectCreated:Put` …
        bucket: Where it happened.
        rule: The id of the rule that it is told by.
        record: The object, as it came to be or as it was.
        sequencer: Greater than those of earlier events of the same key, as texts.
    """
    described = {
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
                "s3": described,
            }
        ]
    }


def _object(event: str, record: ObjectRecord, sequencer: str) -> dict[str, Any]:
    key = {"key": quote_plus(record.key, safe="/*")}
    if event.startswith(CREATED):
        return {**key, "size": record.size, "eTag": record.etag, "sequencer": sequencer}
    if event.startswith(TAGGED):
        return {**key, "eTag": record.etag}
    return {**key, "sequencer": sequencer}
