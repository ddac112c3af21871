"""The alarms of a server, put together: what answers callers, what evaluates, and what delivers actions."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Self

from redrive.aws.cloudwatch.alarms.composites import Composites
from redrive.aws.cloudwatch.alarms.delivering import ActionEndpoint
from redrive.aws.cloudwatch.alarms.describing import Describing
from redrive.aws.cloudwatch.alarms.evaluator import Evaluator
from redrive.aws.cloudwatch.alarms.history import History
from redrive.aws.cloudwatch.alarms.operations import AlarmOperations
from redrive.aws.cloudwatch.alarms.readings import AlarmReadings
from redrive.aws.cloudwatch.alarms.registry import AlarmRegistry
from redrive.aws.cloudwatch.alarms.tags import TAGS, AlarmTags
from redrive.aws.cloudwatch.alarms.transitions import Transitions
from redrive.aws.cloudwatch.alarms.turns import EvaluationTurns
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.kit.service import Facades
from redrive.engine.engine import Engine
from redrive.engine.ports import TelemetryStore


@dataclass(frozen=True, slots=True)
class Alarms:
    """The parts."""

    operations: tuple[object, ...]  # Those whose methods are operations of CloudWatch
    evaluator: Evaluator  # Evaluates
    endpoint: ActionEndpoint  # Endpoint that actions are pushed to

    @classmethod
    def of(
        cls,
        engine: Engine,
        store: TelemetryStore,
        settle: Callable[[], Awaitable[None]],
        services: Facades,
        *,
        leaps: bool,
        open_functions: bool,
    ) -> Self:
        """The alarms of a server.

        Args:
            engine: What they are built on; not open yet.
            store: Where metrics are.
            settle: Lets what this node has counted arrive there.
            services: What actions call; those that are added later are found as well.
            leaps: Whether the clock leaps, as a simulated one does.
            open_functions: See `ActionEndpoint`.
        """
        documents, transitions = engine.resources.documents, Transitions(engine)
        history, registry = History(documents), AlarmRegistry(documents)
        composites = Composites(engine, registry, transitions)
        evaluator = Evaluator(
            registry,
            AlarmReadings(store),
            transitions,
            EvaluationTurns(documents, engine.runtime),
            composites,
            history,
            engine.clock,
            settle,
            leaps=leaps,
        )
        operations = (
            AlarmOperations(engine, registry, transitions, composites.settle),
            composites,
            Describing(documents),
            history,
            TAGS.operations(AlarmTags(documents)),
        )
        calls = InnerCalls(services, engine.runtime)
        endpoint = ActionEndpoint(calls, documents, open_functions=open_functions)
        return cls(operations, evaluator, endpoint)
