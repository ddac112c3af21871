"""Amazon CloudWatch: the operations on metrics, alarms and dashboards."""

from collections.abc import Awaitable, Callable

from redrive.aws.cloudwatch.alarms.part import Alarms
from redrive.aws.cloudwatch.dashboards import DashboardOperations
from redrive.aws.cloudwatch.metrics.datapoints import Datapoints
from redrive.aws.cloudwatch.metrics.listing import MetricListing
from redrive.aws.cloudwatch.metrics.putting import PutMetricOperations
from redrive.aws.cloudwatch.metrics.queries import Queries
from redrive.aws.cloudwatch.metrics.reading import MetricReader
from redrive.aws.cloudwatch.service import SERVICE
from redrive.aws.kit.operations import operations_of
from redrive.aws.kit.service import OfferedService
from redrive.engine.engine import Engine
from redrive.engine.ports import TelemetryStore


class CloudWatch(OfferedService):
    """CloudWatch on a store of metrics."""

    def __init__(
        self,
        store: TelemetryStore,
        engine: Engine,
        settle: Callable[[], Awaitable[None]],
        alarms: Alarms,
    ) -> None:
        """Speak for this store.

        Args:
            store: Where metrics are.
            engine: Where dashboards and alarms are.
            settle: Flushes this node's counts to the store before a read.
            alarms: The alarms.
        """
        reading = MetricReader(store, settle)
        super().__init__(
            SERVICE,
            engine,
            operations_of(
                "cloudwatch",
                Queries(reading),
                Datapoints(reading),
                MetricListing(store, reading),
                PutMetricOperations(store),
                DashboardOperations(engine.resources.documents),
                *alarms.operations,
            ),
        )
