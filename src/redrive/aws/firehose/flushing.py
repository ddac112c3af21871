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
from redrive.aws.firehose.records import DeliveryStream, WaitingRecord, unpacked
from redrive.aws.firehose.transforming import Transformation, Transformed
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
class Gathered:
    """The deliveries of a flush, claimed."""

    deliveries: list[Delivery] = field(default_factory=list)  # In order of arrival
    records: list[WaitingRecord] = field(default_factory=list)  # The records in them
    size: int = 0  # Size of their records (bytes)

    def add(self, deliveries: Sequence[Delivery]) -> None:
        """Take some more."""
        self.deliveries += deliveries
        for delivery in deliveries:
            records = unpacked(delivery)
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
        """Deliver one object's worth of records; how many bytes of them there were, 0: nothing could be claimed.

        Raises:
            FlushFailed: S3 or a key refuses; the records are offered again.
        """
        gathered = await self._gather(stream, queue)
        if not gathered.deliveries:
            return 0
        try:
            await self._deliver(stream, gathered)
        except AwsError as refused:
            now = self._engine.clock.now()
            code = f"{S3}.{refused.code}"
            self._log.write(stream, code, refused.message or refused.code, now)
            self._metrics.add(stream, {"DeliveryToS3.Success": 0}, now)
            await self._release(queue, gathered.claims)
            raise FlushFailed(code) from refused
        await self._settle(queue, gathered.claims)
        return max(gathered.size, 1)

    # ---- claims ------------------------------------------------------------------------------------------

    async def _gather(self, stream: DeliveryStream, queue: Queue) -> Gathered:
        lease_ms = LEASE_MS if stream.processor("Lambda") is None else _LEASE_WITH_FUNCTION_MS
        gathered, limit = Gathered(), _FIRST_CLAIMS
        while gathered.size < stream.bytes_max and len(gathered.deliveries) < _CLAIMS_MAX:
            deliveries = await self._engine.messages.receive(queue, limit, lease_ms=lease_ms, wait_ms=0)
            if not deliveries:
                break
            await self._refuse_sealed(stream, queue, gathered, deliveries)
            gathered.add(deliveries)
            each = max(1, gathered.size // len(gathered.deliveries))
            limit = max(1, min(_CLAIMS_AT_ONCE, (stream.bytes_max - gathered.size) // each))
        return gathered

    async def _refuse_sealed(
        self, stream: DeliveryStream, queue: Queue, gathered: Gathered, deliveries: Sequence[Delivery]
    ) -> None:
        """Give all claims back where a key that records are sealed with cannot be used now."""
        if not any(is_sealed(delivery) for delivery in deliveries):
            return
        text = "The key that records are encrypted with cannot be used."
        self._log.write(stream, "KMS.KeyUnusable", text, self._engine.clock.now())
        claims = [(delivery.seq, delivery.token or 0) for delivery in deliveries]
        await self._release(queue, [*gathered.claims, *claims])
        raise FlushFailed(text)

    async def _release(self, queue: Queue, claims: Sequence[tuple[int, int]]) -> None:
        for begin in range(0, len(claims), _SETTLED_AT_ONCE):
            await self._engine.messages.release(queue, claims[begin : begin + _SETTLED_AT_ONCE], 0)

    async def _settle(self, queue: Queue, claims: Sequence[tuple[int, int]]) -> None:
        for begin in range(0, len(claims), _SETTLED_AT_ONCE):
            await self._engine.messages.delete(queue, claims[begin : begin + _SETTLED_AT_ONCE])

    # ---- objects -----------------------------------------------------------------------------------------

    async def _deliver(self, stream: DeliveryStream, gathered: Gathered) -> None:
        transformed = await self._transformation.apply(stream, gathered.records)
        oldest, written = min(record.at for record in gathered.records), 0
        rng, object_id = self._engine.runtime.rng, self._object_id
        if transformed.contents:
            key = objects.key_of(stream, oldest, object_id(), rng)
            written += await self._put(stream, key, _joined(stream, transformed))
        if transformed.failed:
            key = objects.error_key_of(stream, PROCESSING_FAILED, oldest, object_id(), rng)
            written += await self._put(stream, key, b"".join(transformed.failed))
        self._metrics.count_delivery(
            stream,
            len(transformed.contents),
            written,
            oldest,
            bool(transformed.contents) + bool(transformed.failed),
            self._engine.clock.now(),
        )

    def _object_id(self) -> str:
        return id_text(self._engine.runtime.message_id())

    async def _put(self, stream: DeliveryStream, key: str, content: bytes) -> int:
        packed = await asyncio.to_thread(objects.compressed, stream, key, content)
        await self._writer.put(stream, key, packed)
        return len(packed)


def _joined(stream: DeliveryStream, transformed: Transformed) -> bytes:
    delimiting = stream.processor("AppendDelimiterToRecord")
    if delimiting is None:
        return b"".join(transformed.contents)
    delimiter = configuration.delimiter(delimiting.parameters)
    return b"".join([content + delimiter for content in transformed.contents])
