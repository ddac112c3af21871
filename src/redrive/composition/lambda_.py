"""AWS Lambda: functions that this server runs, in processes of their own."""

from collections.abc import Callable, Mapping
from functools import partial

from typing_extensions import override

from redrive.aws.encryption.encryption import Encryption
from redrive.aws.gateway.rounds import Rounds
from redrive.aws.lambda_.documents.backlogs import DIALECT, TO_FUNCTION, TO_TARGET
from redrive.aws.lambda_.documents.lookup import Lookup
from redrive.aws.lambda_.documents.records import CODE_PATH
from redrive.aws.lambda_.facade import Lambda
from redrive.aws.lambda_.functions.archives import Archives, Downloads
from redrive.aws.lambda_.functions.configurations import offered_runtimes
from redrive.aws.lambda_.functions.execution_roles import ExecutionRoles
from redrive.aws.lambda_.functions.sealed_variables import SealedVariables
from redrive.aws.lambda_.functions.settings import CONCURRENT_MAX
from redrive.aws.lambda_.invocations.events import AsyncInvocations
from redrive.aws.lambda_.invocations.execution import Executor
from redrive.aws.lambda_.invocations.metrics import EventMetrics, InvocationMetrics
from redrive.aws.lambda_.invocations.provisioned import Warmth
from redrive.aws.lambda_.invocations.pushing import FunctionSubscriber, InvocationEndpoint, TargetEndpoint
from redrive.aws.lambda_.mappings.consuming import (
    SIMULATED_WAIT_MS,
    WAIT_MS,
    MappingConsumer,
    MappingConsumers,
    Show,
)
from redrive.aws.lambda_.service import RUNTIMES_PATH
from redrive.aws.lambda_.urls.front import FunctionUrls
from redrive.aws.sqs.handles import Handles
from redrive.aws.sqs.receiving import ATTRIBUTES, Readers, Showing
from redrive.aws.wire.shapes import Structure
from redrive.composition.core import Core, remote_endpoints
from redrive.composition.extension import DeliveryParts, Extension, Interface, Lifecycle, Presenter
from redrive.engine.ports import Endpoint, LogSink
from redrive.functions import isolation, processes
from redrive.functions.code import CODE, FunctionCode, LiveFolders
from redrive.functions.pool import FunctionPool
from redrive.functions.setting import Setting
from redrive.model.delivery import Delivery
from redrive.model.function import Isolation
from redrive.model.http import Request, Response
from redrive.model.names import ResourceName, id_text
from redrive.model.queue import Queue
from redrive.runtime.machine import SystemClock
from redrive.runtime.simulated import SimulatedClock
from redrive.server.owned import json_answer, parameters


def extension(
    core: Core,
    setting: Setting,
    remote: Endpoint | None,
    presenters: Mapping[str, Presenter],
    encryption: Encryption | None = None,
) -> Extension:
    """Functions, which are run as `setting` says; those of other servers, if the settings name any, are `remote`.

    Presenters are for messages of queues that other services sent, by envelope.
    """
    folder = processes.new_folder(setting.isolation)
    live = LiveFolders(core.settings.functions_live_folder)
    code, clock = FunctionCode(core.store, folder, live, _group_of(setting)), core.runtime.clock
    pool = FunctionPool(setting, core.runtime, _sink(core), folder / "environments", lambda _: CONCURRENT_MAX)
    metrics = InvocationMetrics(core.telemetry.add, clock.now)
    documents = core.engine.resources.documents
    rounds, lookup = Rounds(core.secret, core.runtime.rng), Lookup(documents)
    roles = ExecutionRoles(core.sessions.identities, core.engine.resources, clock)
    variables = SealedVariables(core.calls, None if encryption is None else encryption.inside)
    executor = Executor(documents, code, pool, clock, metrics, rounds, roles, variables)
    downloads = Downloads(code, core.secret, SystemClock())
    warmth = Warmth(core.engine, lookup, executor, pool)
    invocations = AsyncInvocations(core.engine, metrics, rounds)
    show, simulated = _message_renderer(core, presenters), isinstance(clock, SimulatedClock)
    wait_ms = SIMULATED_WAIT_MS if simulated else WAIT_MS
    readers = None if encryption is None else Readers(core.engine, encryption)
    consumers = MappingConsumers(
        core.engine,
        lambda mapping: MappingConsumer(
            core.engine, lookup, executor, show, mapping, metrics, roles, wait_ms, readers
        ),
        simulated=simulated,
    )
    facade = Lambda(
        core.engine,
        lookup,
        Archives(core.calls, live.archive),
        code,
        pool,
        executor,
        invocations,
        downloads,
        consumers.follow,
        warmth,
        roles,
        variables,
        ended_runtimes=core.settings.functions_ended_runtimes == "run",
    )
    return Extension(
        interface=Interface(
            services={"lambda": facade},
            paths={CODE_PATH: downloads.answer, RUNTIMES_PATH: _answer_runtimes},
            hosted=FunctionUrls(core.engine, lookup, executor, core.authentication, metrics),
            kinds=(CODE,),
        ),
        delivery=DeliveryParts(
            endpoints={
                "lambda": _subscriber(core, lookup, invocations, remote),
                TO_FUNCTION: InvocationEndpoint(lookup, executor, core.runtime.rng),
                TO_TARGET: TargetEndpoint(core.calls, rounds, lookup, roles),
            },
            listeners=[(EventMetrics(metrics), (DIALECT,))],
        ),
        lifecycle=_lifecycle(consumers, warmth, pool, code),
    )


def _lifecycle(
    consumers: MappingConsumers, warmth: Warmth, pool: FunctionPool, code: FunctionCode
) -> Lifecycle:
    return Lifecycle(
        start=(consumers.start, warmth.start),
        clock_driven=(consumers,),
        stop=(consumers.close, warmth.close),
        close=(pool.close, code.close),
    )


def _subscriber(
    core: Core, lookup: Lookup, invocations: AsyncInvocations, remote: Endpoint | None
) -> FunctionSubscriber:
    """The endpoint that takes messages of topics for functions."""
    return FunctionSubscriber(
        lookup,
        invocations,
        SystemClock(),
        lambda: id_text(core.runtime.message_id()),
        remote_endpoint_of=remote_endpoints(core, remote),
        open_functions=core.settings.auth == "off",
    )


async def _answer_runtimes(request: Request) -> Response:
    choice = parameters(request).get("filter", "supported")
    names = offered_runtimes(ended=False) if choice != "deprecated" else []
    names += offered_runtimes(ended=True) if choice != "supported" else []
    return json_answer(200, {"Runtimes": names})


def _group_of(setting: Setting) -> Callable[[ResourceName], int] | None:
    """The group of each function, where each has one."""
    return partial(isolation.group_of, key=setting.user_key) if setting.isolation is Isolation.USER else None


def _message_renderer(core: Core, presenters: Mapping[str, Presenter]) -> Show:
    """A function that renders a claimed delivery as SQS does for receivers, with all attributes."""
    messages, handles = Showing(core.engine, presenters), Handles(core.secret)

    async def show(queue: Queue, delivery: Delivery) -> Structure:
        claimed_at = delivery.available_at - queue.lease_ms
        handle = handles.write(delivery, claimed_at)
        sources = await messages.sources([delivery])
        return messages.to_structure(queue, delivery, ATTRIBUTES, ("All",), handle, sources)

    return show


def _sink(core: Core) -> LogSink:
    clock, logs = core.runtime.clock, core.telemetry.logs
    return _SimulatedSink(logs, clock) if isinstance(clock, SimulatedClock) else logs


class _SimulatedSink(LogSink):
    """Writes lines down at the simulated moment: processes live in real time, and their logs beside all others."""

    def __init__(self, sink: LogSink, clock: SimulatedClock) -> None:
        self._sink = sink
        self._clock = clock

    @override
    def write(self, group: ResourceName, stream: str, at: int, message: str, rounds: int = 0) -> None:
        self._sink.write(group, stream, self._clock.now(), message, rounds)
