"""The web console."""

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import Any

from redrive import __version__
from redrive.aws.cloudformation.documents.records import STACK
from redrive.aws.cloudwatch.alarms.records import ALARMS
from redrive.aws.lambda_.documents.records import FUNCTION
from redrive.composition.core import Core
from redrive.composition.extension import DeliveryParts, Extension, Interface, Lifecycle
from redrive.console.clock_hands import ClockHands
from redrive.console.doctor import Doctor, Examine
from redrive.console.installation import PATH, ConsoleOptions, Installation, stack_in_trouble
from redrive.console.nodes import Node, Nodes
from redrive.console.remembered import Remembered
from redrive.console.session import ConsoleSessions
from redrive.console.tail import Tail
from redrive.console.views import SAVED_VIEWS
from redrive.endpoints.containers import BlobContainers
from redrive.endpoints.kept_connection import SingleFlight
from redrive.engine.engine import Engine
from redrive.engine.operations import TASK
from redrive.model.http import Request, Response
from redrive.runtime.clock import SystemClock, monotonic
from redrive.runtime.simulated import SimulatedClock
from redrive.server.hosts import known_hosts
from redrive.settings import origins_of
from redrive.settings.hardening import findings


def extension(core: Core, store_bytes: Callable[[], int | None], examine: Examine) -> Extension:
    """The console over the engine; nothing where it is off.

    Args:
        core: What it is built on.
        store_bytes: See `Installation`.
        examine: Examines the store.
    """
    settings = core.settings
    if settings.console == "off":
        return Extension()
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
    sessions = ConsoleSessions(
        core.keyring, core.engine.resources.documents, SystemClock(), core.runtime.chance, writes=writes
    )
    nodes = _nodes(core)
    clock = core.runtime.clock
    hands = (
        ClockHands(clock.now, core.engine.operations.next_attempt_at)
        if isinstance(clock, SimulatedClock)
        else None
    )
    tail = Tail(core.engine.watch, core.engine.unwatch, SystemClock().now)
    installation = Installation(
        services=core.calls,
        telemetry=core.store,
        settle=core.telemetry.flush,
        keyring=core.keyring,
        containers=BlobContainers(core.blob_store),
        tail=tail,
        hands=hands,
        nodes=nodes,
        store_bytes=store_bytes,
        queue_levels=lambda: core.telemetry.queue_levels,
        alarms=Remembered(core.engine.resources.documents, ALARMS),
        stacks=Remembered(core.engine.resources.documents, STACK, stack_in_trouble),
        redrives=Remembered(core.engine.resources.documents, TASK, lambda task: task.state.active),
        functions=Remembered(core.engine.resources.documents, FUNCTION),
        web=core.web,
        monotonic=monotonic,
        audit=core.audit,
        doctor=Doctor(lambda: findings(settings), examine, SystemClock()),
        commit_seconds=core.meters.commits.seconds.median_bound,
    )
    console = _DeferredConsole(core.engine, sessions, installation, options)
    return Extension(
        interface=Interface(
            paths={PATH: console.answer},
            kinds=[SAVED_VIEWS],
            reset=[nodes.reset],
        ),
        delivery=DeliveryParts(
            listeners=[(tail.losses, ())],
        ),
        lifecycle=Lifecycle(
            start=[nodes.start],
            stop=[nodes.stop],
            close=[console.close],
            drives=[hands.drive] if hands else [],
        ),
    )


class _DeferredConsole:
    """The console, imported at the first visit: 60 modules of pages, and few servers have visitors."""

    def __init__(
        self, engine: Engine, sessions: ConsoleSessions, installation: Installation, options: ConsoleOptions
    ) -> None:
        self._parts = engine, sessions, installation, options
        self._console: SingleFlight[None, Any] = SingleFlight(lambda _: True)
        self._is_open = False

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        response: Response = await (await self._console.of(None, self._open)).answer(request)
        return response

    async def _open(self) -> Any:
        module = await asyncio.to_thread(import_module, "redrive.console.console")
        self._is_open = True
        return module.Console(*self._parts)

    async def close(self) -> None:
        """Let go of what pages are rendered by, where there was a visit."""
        if self._is_open:
            await (await self._console.of(None, self._open)).close()


def _nodes(core: Core) -> Nodes:
    """This node with its settings, and those that share its store."""
    now = SystemClock().now()
    settings = [
        (origin.name, origin.shown, origin.source) for origin in core.origins or origins_of(core.settings)
    ]
    own = Node(core.runtime.node, __version__, now, now, settings)
    shared = not core.settings.store.startswith("sqlite:")  # such a store belongs to one process
    return Nodes(core.engine.resources.documents, SystemClock(), own, shared=shared)
