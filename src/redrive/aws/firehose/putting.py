"""Records on their way in: on disk before the caller is answered."""

from collections.abc import Sequence
from typing import Final

from redrive.aws.firehose import packing
from redrive.aws.firehose.delivering import Deliveries
from redrive.aws.firehose.errors import invalid, no_such_stream, slow_down
from redrive.aws.firehose.metrics import StreamMetrics
from redrive.aws.firehose.records import DeliveryStream, buffer_of
from redrive.aws.firehose.streams import DeliveryStreamOperations
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.model.message import Message
from redrive.model.queue import Queue

BATCH_BYTES_MAX: Final = 4 * 1024 * 1024
_BUSY: Final = "ServiceUnavailableException"


class PutRecordOperations:
    """The operations that bring records."""

    def __init__(
        self,
        engine: Engine,
        streams: DeliveryStreamOperations,
        deliveries: Deliveries,
        metrics: StreamMetrics,
    ) -> None:
        """Put records into streams.

        Args:
            engine: Where they wait.
            streams: Finds the streams.
            deliveries: Told of what waits.
            metrics: Counts what comes.
        """
        self._engine = engine
        self._streams = streams
        self._deliveries = deliveries
        self._metrics = metrics

    async def put_record(self, call: Call, params: Structure) -> Structure:
        stream = await self._streams.existing_stream(call, params)
        if self._fails(stream):
            raise slow_down()
        (record_id,) = await self._put(call, stream, [params["Record"]["Data"]])
        self._metrics.count_call(stream, "PutRecord", 1, len(params["Record"]["Data"]), call.now)
        return {"RecordId": record_id, "Encrypted": bool(stream.encryption)}

    async def put_record_batch(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/firehose/latest/APIReference/API_PutRecordBatch.html.

        All records of a call enter the store in one transaction, so all are taken; where a fault is injected for the
        stream, every second one is not, or the only one.
        """
        stream = await self._streams.existing_stream(call, params)
        records = [record["Data"] for record in params["Records"]]
        size = sum(map(len, records))
        if size > BATCH_BYTES_MAX:
            raise invalid(f"Records size exceeds 4 MB limit: {size}")
        failing = self._fails(stream)
        left_out = {number for number in range(len(records)) if failing and number % 2 == len(records) % 2}
        taken = [record for number, record in enumerate(records) if number not in left_out]
        ids = iter(await self._put(call, stream, taken) if taken else ())
        self._metrics.count_call(stream, "PutRecordBatch", len(taken), sum(map(len, taken)), call.now)
        failure = {"ErrorCode": _BUSY, "ErrorMessage": slow_down().message}
        answers = [
            failure if number in left_out else {"RecordId": next(ids)} for number in range(len(records))
        ]
        return {
            "FailedPutCount": len(left_out),
            "Encrypted": bool(stream.encryption),
            "RequestResponses": answers,
        }

    def _fails(self, stream: DeliveryStream) -> bool:
        return self._engine.operations.fault_of(stream.arn) is not None

    async def _put(self, call: Call, stream: DeliveryStream, records: Sequence[bytes]) -> list[str]:
        queue = await self._buffer(stream)
        message = Message(self._engine.runtime.message_id(), packing.packed(records), b"{}")
        await self._engine.messages.send(queue, [message])
        self._deliveries.added(stream, sum(map(len, records)), call.now)
        return [packing.record_id(message.id, number) for number in range(len(records))]

    async def _buffer(self, stream: DeliveryStream) -> Queue:
        queues, name = self._engine.resources.queues, buffer_of(stream.resource)
        queue = queues.known(name) or await queues.get(name)
        if queue is None:  # removed meanwhile
            raise no_such_stream(stream.resource)
        return queue
