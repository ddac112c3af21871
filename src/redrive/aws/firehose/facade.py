"""Amazon Data Firehose on an engine."""

from collections.abc import Callable

from redrive.aws.firehose.delivering import Deliveries
from redrive.aws.firehose.errors import unassumable
from redrive.aws.firehose.flushing import Flusher
from redrive.aws.firehose.monitoring import Count, ErrorLog, StreamMetrics
from redrive.aws.firehose.objects import ObjectWriter
from redrive.aws.firehose.putting import PutRecordOperations, SubscribedStreams
from redrive.aws.firehose.service import SERVICE
from redrive.aws.firehose.streams import DeliveryStreamOperations
from redrive.aws.firehose.transforming import Transformation
from redrive.aws.gateway.authorization import ServiceRoles
from redrive.aws.gateway.identities import Identities
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.kit.service import OfferedService, operations_of
from redrive.engine.engine import Engine
from redrive.engine.ports import Endpoint, LogSink
from redrive.model.names import id_text


class Firehose(OfferedService):
    """Delivery streams.

    Attributes:
        deliveries: Bring what waits to S3.
        endpoint: Takes what topics have for streams.
    """

    def __init__(
        self,
        engine: Engine,  # where streams are documents, and records deliveries
        calls: InnerCalls,
        identities: Identities,
        count: Count,
        sink: LogSink,
        remote_endpoint_of: Callable[[str], Endpoint | None],  # see `SubscribedStreams`
        *,
        sole_node: bool,  # no other node can be at this store
    ) -> None:
        roles = ServiceRoles(identities, "firehose", "redrive-firehose", unassumable)
        log, metrics = ErrorLog(sink), StreamMetrics(count)
        transformation = Transformation(calls, roles, engine.runtime, log, metrics)
        flusher = Flusher(engine, transformation, ObjectWriter(calls, roles), log, metrics)
        self.deliveries = Deliveries(engine, flusher, sole_node=sole_node)
        self.endpoint = SubscribedStreams(
            calls,
            ServiceRoles(identities, "sns", "redrive-sns", unassumable),
            remote_endpoint_of,
            lambda: id_text(engine.runtime.message_id()),
        )
        streams = DeliveryStreamOperations(engine, calls, roles, self.deliveries)
        putting = PutRecordOperations(engine, streams, self.deliveries, metrics)
        super().__init__(SERVICE, engine, operations_of("firehose", streams, putting))
