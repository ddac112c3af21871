"""Monitoring of delivery streams: metrics in `AWS/Firehose`, and errors in the log group that a stream names.

IncomingRecords, IncomingBytes, IncomingPutRequests         what was taken
PutRecord.Requests, PutRecord.Bytes                         the same by operation
PutRecordBatch.Requests, PutRecordBatch.Bytes, PutRecordBatch.Records
DeliveryToS3.Success                                        1 for an object that was put, 0 for an attempt that failed
DeliveryToS3.Records, DeliveryToS3.Bytes, DeliveryToS3.ObjectCount
DeliveryToS3.DataFreshness (s)                              how old the oldest record was
ExecuteProcessing.Success                                   1 for an invocation of the function, 0 for one that failed
SucceedProcessing.Records, SucceedProcessing.Bytes          what the function has processed

Errors: https://docs.aws.amazon.com/firehose/latest/dev/monitoring-with-cloudwatch-logs.html.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from redrive.aws.firehose.records import DeliveryStream
from redrive.engine.ports import LogSink
from redrive.model.metric import MINUTE_MS, MetricPoint, Series, Statistics
from redrive.model.names import ResourceName

logger = logging.getLogger(__name__)

S3: Final = "S3"
LAMBDA: Final = "Lambda"
NAMESPACE: Final = "AWS/Firehose"
_UNITS: Final = {"DataFreshness": "Seconds"}
Count = Callable[[Sequence[MetricPoint]], None]


class ErrorLog:
    """Writes down what went wrong."""

    def __init__(self, sink: LogSink) -> None:
        self._sink = sink

    def write(self, stream: DeliveryStream, code: str, message: str, at: int, processor: str = "") -> None:
        """Write down an error; of a processor, by its ARN, or of S3."""
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


class StreamMetrics:
    """Counts what becomes of records."""

    def __init__(self, count: Count) -> None:
        self._count = count

    def count_call(self, stream: DeliveryStream, operation: str, records: int, size: int, at: int) -> None:
        """Count a call that was answered: its records, and their bytes."""
        values: dict[str, float] = {
            "IncomingRecords": records,
            "IncomingBytes": size,
            "IncomingPutRequests": 1,
            f"{operation}.Requests": 1,
            f"{operation}.Bytes": size,
        }
        if operation == "PutRecordBatch":
            values["PutRecordBatch.Records"] = records
        self.add(stream, values, at)

    def count_delivery(
        self, stream: DeliveryStream, records: int, size: int, oldest: int, objects: int, at: int
    ) -> None:
        """Count records, bytes and objects that were put into S3, and the age of the oldest record (ms)."""
        values: dict[str, float] = {
            "DeliveryToS3.Success": 1,
            "DeliveryToS3.Records": records,
            "DeliveryToS3.Bytes": size,
            "DeliveryToS3.ObjectCount": objects,
            "DeliveryToS3.DataFreshness": max(0, at - oldest) / 1000,
        }
        self.add(stream, values, at)

    def add(self, stream: DeliveryStream, values: Mapping[str, float], at: int) -> None:
        """Count values of some metrics at a moment (ms)."""
        minute, dimensions = at - at % MINUTE_MS, (("DeliveryStreamName", stream.name),)
        self._count(
            [
                MetricPoint(
                    Series(stream.account, stream.region, NAMESPACE, metric, dimensions),
                    minute,
                    _unit(metric),
                    Statistics.of(value),
                )
                for metric, value in values.items()
            ]
        )


def _unit(metric: str) -> str:
    kind = metric.rpartition(".")[2]
    return _UNITS.get(kind, "Bytes" if kind.endswith("Bytes") else "Count")
