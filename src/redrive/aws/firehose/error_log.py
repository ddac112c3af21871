"""The log of errors: what went wrong on the way to S3, in the CloudWatch Logs group that the stream names.

https://docs.aws.amazon.com/firehose/latest/dev/monitoring-with-cloudwatch-logs.html.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

import orjson

from redrive.aws.firehose.records import DeliveryStream
from redrive.engine.ports import LogSink
from redrive.model.names import ResourceName

logger = logging.getLogger(__name__)

S3: Final = "S3"
LAMBDA: Final = "Lambda"


class ErrorLog:
    """Writes down what went wrong."""

    def __init__(self, sink: LogSink) -> None:
        self._sink = sink

    def write(self, stream: DeliveryStream, code: str, message: str, at: int, processor: str = "") -> None:
        """Write down an error.

        Args:
            stream: Whose.
            code: `S3.AccessDenied`, `Lambda.FunctionError` …
            message: What the service says of it.
            at: When (ms).
            processor: The ARN of the function that failed; empty: S3 did.
        """
        logger.warning("firehose.failed stream=%s code=%s error=%s", stream.arn, code, message)
        options: Mapping[str, Any] = stream.destination["CloudWatchLoggingOptions"]
        if not options.get("Enabled"):
            return
        entry = {
            "deliveryStreamARN": stream.arn,
            "destination": stream.destination["BucketARN"],
            "deliveryStreamVersionId": stream.version,
            "message": message,
            "errorCode": code,
            **({"processor": processor} if processor else {}),
        }
        group = ResourceName(stream.account, stream.region, options["LogGroupName"])
        self._sink.write(group, options["LogStreamName"], at, orjson.dumps(entry).decode())
