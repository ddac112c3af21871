"""The pages of the web console, and what they show beside the engine's things."""

from collections.abc import Callable
from functools import partial

from redrive.aws.cloudformation.documents.records import STACK
from redrive.aws.cloudwatch.alarms.records import ALARMS
from redrive.aws.lambda_.documents.records import FUNCTION
from redrive.composition.core import Core
from redrive.composition.store import examine_store
from redrive.console.busiest import Rankings
from redrive.console.clock_control import ClockControl
from redrive.console.console import Console
from redrive.console.installation import ConsoleOptions, Doctor, Installation, Remembered, stack_in_trouble
from redrive.console.nodes import Nodes
from redrive.console.session import ConsoleSessions
from redrive.console.tail import Tail
from redrive.console.views import SAVED_VIEWS
from redrive.endpoints.containers import BlobContainers
from redrive.engine.operations import TASK
from redrive.model.task import TaskState
from redrive.runtime.machine import SystemClock, monotonic
from redrive.server.guard import known_hosts
from redrive.settings.hardening import findings


def console_pages(
    core: Core,
    store_bytes: Callable[[], int | None],
    nodes: Nodes,
    tail: Tail,
    clock_control: ClockControl | None,
) -> Console:
    """The console over the engine; `clock_control` moves a simulated clock. For `store_bytes` see `Installation`."""
    settings, documents = core.settings, core.engine.resources.documents
    writes = settings.console == "full"
    options = ConsoleOptions(
        writes=writes,
        bodies_shown=settings.console_bodies == "shown",
        needs_sign_in=settings.auth == "required",
        public_url=settings.public_url,
        environment=settings.environment,
        documentation=bool(settings.docs),
        is_own_host=known_hosts(settings).__contains__ if settings.public_url else None,
    )
    installation = Installation(
        services=core.calls,
        telemetry=core.store,
        settle=core.telemetry.flush,
        keyring=core.keyring,
        containers=BlobContainers(core.settings.blobs_at),
        tail=tail,
        clock_control=clock_control,
        nodes=nodes,
        store_bytes=store_bytes,
        queue_levels=lambda: core.telemetry.queue_levels,
        alarms=Remembered(documents, ALARMS),
        stacks=Remembered(documents, STACK, stack_in_trouble),
        redrives=Remembered(
            documents, TASK, lambda task: task.state.active or task.state is TaskState.FAILED
        ),
        functions=Remembered(documents, FUNCTION),
        saved_views=Remembered(documents, SAVED_VIEWS),
        web=core.web,
        monotonic=monotonic,
        audit=core.audit,
        doctor=Doctor(lambda: findings(settings), partial(examine_store, settings), SystemClock()),
        consumers=core.consumers,
        rankings=Rankings(
            lambda: ((each.name, each.messages_sent) for each in core.engine.operations.queue_counts()),
            lambda: ((name, sum(totals.values())) for name, totals in core.telemetry.metrics.totals),
        ),
        commit_seconds=core.meters.commits.seconds.median_bound,
    )
    sessions = ConsoleSessions(core.keyring, documents, SystemClock(), core.runtime.rng, writes=writes)
    return Console(core.engine, sessions, installation, options)
