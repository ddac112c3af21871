"""A flush: what waits in a stream is claimed, becomes an object of S3, and is settled when that is on disk.

Until it is settled a record stays in the store: a flush that is cut short leaves its claims to run out, and the records
to the next one. So each record comes to S3 at least once, and twice only where a node dies between the object and the
settlement.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from redrive.aws.firehose import configuration, objects
from redrive.aws.firehose.monitoring import S3, ErrorLog, StreamMetrics
from redrive.aws.firehose.objects import PROCESSING_FAILED, ObjectWriter
from redrive.aws.firehose.records import DeliveryStream, WaitingRecord, unpack
from redrive.aws.firehose.transforming import Transformation, TransformationResult
from redrive.aws.wire.errors import AwsError
from redrive.engine.engine import Engine
from redrive.model.delivery import Delivery, is_sealed
from redrive.model.names import id_text
from redrive.model.queue import Queue

logger = logging.getLogger(__name__)

#: A flush has so long before its records are offered again; one with a function as long as functions may run, and more.
LEASE_MS: Final = 2 * 60_000
_LEASE_WITH_FUNCTION_MS: Final = 20 * 60_000
_FIRST_CLAIMS: Final = 8  # deliveries of up to 4 MiB; how large they are is known then
_CLAIMS_AT_ONCE: Final = 500
#: Of one object, however small they are: each is a row to be settled.
_CLAIMS_MAX: Final = 50_000
_SETTLED_AT_ONCE: Final = 500


class FlushFailed(Exception):  # noqa: N818 - what happened, as the log says it
    """The records could not be delivered now."""


@dataclass(slots=True)
class FlushBatch:
    """The claimed deliveries of a flush, with the records in them."""

    deliveries: list[Delivery] = field(default_factory=list)  # In order of arrival
    records: list[WaitingRecord] = field(default_factory=list)  # The records in them
    size: int = 0  # Size of their records (bytes)

    def add(self, deliveries: Sequence[Delivery]) -> None:
        """Add more deliveries."""
        self.deliveries += deliveries
        for delivery in deliveries:
            records = unpack(delivery)
            self.size += sum(len(record.data) for record in records)
            self.records += records

    @property
    def claims(self) -> list[tuple[int, int]]:
        """The claims, to settle them by."""
        return [(delivery.seq, delivery.token or 0) for delivery in self.deliveries]


class Flusher:
    """Delivers what waits in streams."""

    def __init__(
        self,
        engine: Engine,
        transformation: Transformation,
        writer: ObjectWriter,
        log: ErrorLog,
        metrics: StreamMetrics,
    ) -> None:
        self._engine = engine
        self._transformation = transformation
        self._writer = writer
        self._log = log
        self._metrics = metrics

    async def flush(self, stream: DeliveryStream, queue: Queue) -> int:
        """Deliver one object's worth of records; returns their bytes, 0 if nothing could be claimed.

        Raises:
            FlushFailed: S3 or a key refuses; the records are offered again.
        """
        batch = await self._gather(stream, queue)
        if not batch.deliveries:
            return 0
        try:
            await self._deliver(stream, batch)
        except AwsError as refusal:
            now = self._engine.clock.now()
            code = f"{S3}.{refusal.code}"
            self._log.write(stream, code, refusal.message or refusal.code, now)
            self._metrics.add(stream, {"DeliveryToS3.Success": 0}, now)
            await self._release(queue, batch.claims)
            raise FlushFailed(code) from refusal
        await self._settle(queue, batch.claims)
        return max(batch.size, 1)  # 0 would mean that nothing could be claimed

    # ---- claims ------------------------------------------------------------------------------------------

    async def _gather(self, stream: DeliveryStream, queue: Queue) -> FlushBatch:
        """Claim records up to the stream's size of an object; each claim is as large as may still fit."""
        lease_ms = LEASE_MS if stream.processor("Lambda") is None else _LEASE_WITH_FUNCTION_MS
        batch, limit = FlushBatch(), _FIRST_CLAIMS
        while batch.size < stream.bytes_max and len(batch.deliveries) < _CLAIMS_MAX:
            deliveries = await self._engine.messages.receive(queue, limit, lease_ms=lease_ms, wait_ms=0)
            if not deliveries:
                break
            await self._fail_if_sealed(stream, queue, batch, deliveries)
            batch.add(deliveries)
            average_bytes = max(1, batch.size // len(batch.deliveries))
            limit = max(1, min(_CLAIMS_AT_ONCE, (stream.bytes_max - batch.size) // average_bytes))
        return batch

    async def _fail_if_sealed(
        self, stream: DeliveryStream, queue: Queue, batch: FlushBatch, deliveries: Sequence[Delivery]
    ) -> None:
        """Release all claims and raise FlushFailed if a record is still encrypted: its key cannot be used now."""
        if not any(is_sealed(delivery) for delivery in deliveries):
            return
        text = "The key that records are encrypted with cannot be used."
        self._log.write(stream, "KMS.KeyUnusable", text, self._engine.clock.now())
        claims = [(delivery.seq, delivery.token or 0) for delivery in deliveries]
        await self._release(queue, [*batch.claims, *claims])
        raise FlushFailed(text)

    async def _release(self, queue: Queue, claims: Sequence[tuple[int, int]]) -> None:
        for begin in range(0, len(claims), _SETTLED_AT_ONCE):
            await self._engine.messages.release(queue, claims[begin : begin + _SETTLED_AT_ONCE], delay_ms=0)

    async def _settle(self, queue: Queue, claims: Sequence[tuple[int, int]]) -> None:
        for begin in range(0, len(claims), _SETTLED_AT_ONCE):
            await self._engine.messages.delete(queue, claims[begin : begin + _SETTLED_AT_ONCE])

    # ---- objects -----------------------------------------------------------------------------------------

    async def _deliver(self, stream: DeliveryStream, batch: FlushBatch) -> None:
        """Write a batch as one object, and what could not be transformed as another."""
        result = await self._transformation.apply(stream, batch.records)
        oldest, written_bytes = min(record.at for record in batch.records), 0
        rng, object_id = self._engine.runtime.rng, self._object_id
        if result.contents:
            key = objects.key_of(stream, oldest, object_id(), rng)
            written_bytes += await self._put(stream, key, _join(stream, result))
        if result.failed:
            key = objects.error_key_of(stream, PROCESSING_FAILED, oldest, object_id(), rng)
            written_bytes += await self._put(stream, key, b"".join(result.failed))
        self._metrics.count_delivery(
            stream,
            records=len(result.contents),
            size=written_bytes,
            oldest=oldest,
            objects=bool(result.contents) + bool(result.failed),
            at=self._engine.clock.now(),
        )

    def _object_id(self) -> str:
        return id_text(self._engine.runtime.message_id())

    async def _put(self, stream: DeliveryStream, key: str, content: bytes) -> int:
        compressed_content = await asyncio.to_thread(objects.compress, stream, key, content)
        await self._writer.put(stream, key, compressed_content)
        return len(compressed_content)


def _join(stream: DeliveryStream, result: TransformationResult) -> bytes:
    """The contents of an object, with a delimiter after each record if the stream appends one."""
    processor = stream.processor("AppendDelimiterToRecord")
    if processor is None:
        return b"".join(result.contents)
    delimiter = configuration.delimiter(processor.parameters)
    return b"".join([content + delimiter for content in result.contents])
