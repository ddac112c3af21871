"""Amazon CloudWatch: the operations on metrics, alarms and dashboards."""

from collections.abc import Awaitable, Callable

from redrive.aws.cloudwatch.alarms.composites import Composites
from redrive.aws.cloudwatch.alarms.delivering import ActionEndpoint
from redrive.aws.cloudwatch.alarms.describing import Describing, History
from redrive.aws.cloudwatch.alarms.evaluator import EvaluationTurns, Evaluator
from redrive.aws.cloudwatch.alarms.operations import TAGS, AlarmOperations, AlarmTags
from redrive.aws.cloudwatch.alarms.readings import AlarmReadings
from redrive.aws.cloudwatch.alarms.transitions import Transitions
from redrive.aws.cloudwatch.alarms.watch import AlarmRegistry
from redrive.aws.cloudwatch.dashboards import DashboardOperations
from redrive.aws.cloudwatch.metrics.listing import MetricListing
from redrive.aws.cloudwatch.metrics.putting import PutMetricOperations
from redrive.aws.cloudwatch.metrics.queries import Queries
from redrive.aws.cloudwatch.metrics.reading import Datapoints, MetricReader
from redrive.aws.cloudwatch.service import SERVICE
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.kit.service import Facades, OfferedService, operations_of
from redrive.engine.engine import Engine
from redrive.engine.ports import TelemetryStore


class CloudWatch(OfferedService):
    """CloudWatch on a store of metrics.

    Attributes:
        evaluator: Evaluates alarms.
        endpoint: What their actions are pushed to.
    """

    def __init__(
        self,
        store: TelemetryStore,
        engine: Engine,
        settle: Callable[[], Awaitable[None]],
        services: Facades,
        *,
        simulated: bool,
        open_functions: bool,
    ) -> None:
        """Build it on an engine that need not be open; `settle` has the store hold what this node has counted."""
        documents, transitions = engine.resources.documents, Transitions(engine)
        reading, history, registry = MetricReader(store, settle), History(documents), AlarmRegistry(documents)
        composites = Composites(engine, registry, transitions)
        self.evaluator = Evaluator(
            registry,
            AlarmReadings(store),
            transitions,
            EvaluationTurns(documents, engine.runtime),
            composites,
            history,
            engine.clock,
            settle,
            simulated=simulated,
        )
        calls = InnerCalls(services, engine.runtime)
        self.endpoint = ActionEndpoint(calls, documents, open_functions=open_functions)
        super().__init__(
            SERVICE,
            engine,
            operations_of(
                "cloudwatch",
                Queries(reading),
                Datapoints(reading),
                MetricListing(store, reading),
                PutMetricOperations(store),
                DashboardOperations(documents),
                AlarmOperations(engine, registry, transitions, composites.settle),
                composites,
                Describing(documents),
                history,
                TAGS.operations(AlarmTags(documents)),
            ),
        )
