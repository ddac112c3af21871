"""Amazon Data Firehose on an engine."""

from collections.abc import Callable

from redrive.aws.firehose.delivering import Deliveries
from redrive.aws.firehose.error_log import ErrorLog
from redrive.aws.firehose.errors import unassumable
from redrive.aws.firehose.flushing import Flusher
from redrive.aws.firehose.metrics import Count, StreamMetrics
from redrive.aws.firehose.putting import PutRecordOperations
from redrive.aws.firehose.service import SERVICE
from redrive.aws.firehose.streams import DeliveryStreamOperations
from redrive.aws.firehose.subscribed import SubscribedStreams
from redrive.aws.firehose.transforming import Transformation
from redrive.aws.firehose.writing import ObjectWriter
from redrive.aws.gateway.identities import Identities
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.gateway.service_roles import ServiceRoles
from redrive.aws.kit.operations import operations_of
from redrive.aws.kit.service import OfferedService
from redrive.engine.engine import Engine
from redrive.engine.ports import Endpoint, LogSink
from redrive.model.ids import id_text


class Firehose(OfferedService):
    """Delivery streams.

    Attributes:
        deliveries: Bring what waits to S3.
        endpoint: Takes what topics have for streams.
    """

    def __init__(
        self,
        engine: Engine,
        calls: InnerCalls,
        identities: Identities,
        count: Count,
        sink: LogSink,
        elsewhere: Callable[[str], Endpoint | None],
        *,
        alone: bool,
    ) -> None:
        """Speak for this engine.

        Args:
            engine: Where streams are documents, and records deliveries.
            calls: Call S3, Lambda, and Firehose itself.
            identities: The roles of streams.
            count: Takes points of metrics.
            sink: Takes errors for log groups.
            elsewhere: See `SubscribedStreams`.
            alone: No other node can be at this store.
        """
        roles = ServiceRoles(identities, "firehose", "redrive-firehose", unassumable)
        log, metrics = ErrorLog(sink), StreamMetrics(count)
        transformation = Transformation(calls, roles, engine.runtime, log, metrics)
        flusher = Flusher(engine, transformation, ObjectWriter(calls, roles), log, metrics)
        self.deliveries = Deliveries(engine, flusher, alone=alone)
        self.endpoint = SubscribedStreams(
            calls,
            ServiceRoles(identities, "sns", "redrive-sns", unassumable),
            elsewhere,
            lambda: id_text(engine.runtime.message_id()),
        )
        streams = DeliveryStreamOperations(engine, calls, roles, self.deliveries)
        putting = PutRecordOperations(engine, streams, self.deliveries, metrics)
        super().__init__(SERVICE, engine, operations_of("firehose", streams, putting))
