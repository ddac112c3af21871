"""The web console: before the first visit only its listeners and heartbeats exist."""

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import Any

from redrive import __version__
from redrive.composition.core import Core
from redrive.composition.extension import DeliveryParts, Extension, Interface, Lifecycle
from redrive.console import PATH
from redrive.console.clock_control import ClockControl
from redrive.console.nodes import Node, Nodes
from redrive.console.tail import Tail
from redrive.console.views import SAVED_VIEWS
from redrive.endpoints.kept_connection import SingleFlight
from redrive.model.http import Request, Response
from redrive.runtime.machine import SystemClock
from redrive.runtime.simulated import SimulatedClock
from redrive.settings import origins_of


def extension(core: Core, store_bytes: Callable[[], int | None]) -> Extension:
    """The console over the engine; nothing if it is off. See `Installation.store_bytes`."""
    if core.settings.console == "off":
        return Extension()
    clock = core.runtime.clock
    clock_control = (
        ClockControl(clock.now, core.engine.operations.next_attempt_at)
        if isinstance(clock, SimulatedClock)
        else None
    )
    nodes, tail = _nodes(core), Tail(core.engine.watch, core.engine.unwatch, SystemClock().now)
    console = _DeferredConsole(core, store_bytes, nodes, tail, clock_control)
    return Extension(
        interface=Interface(paths={PATH: console.answer}, kinds=[SAVED_VIEWS], reset=[nodes.reset]),
        delivery=DeliveryParts(listeners=[(tail.losses, ())]),
        lifecycle=Lifecycle(
            start=[nodes.start],
            stop=[nodes.stop],
            close=[console.close],
            drives=[clock_control.drive] if clock_control else [],
        ),
    )


class _DeferredConsole:
    """The console's pages, imported at the first visit: 60 modules, and few servers have visitors."""

    def __init__(
        self,
        core: Core,
        store_bytes: Callable[[], int | None],
        nodes: Nodes,
        tail: Tail,
        clock_control: ClockControl | None,
    ) -> None:
        self._arguments = core, store_bytes, nodes, tail, clock_control
        self._console: SingleFlight[None, Any] = SingleFlight(lambda _: True)
        self._is_open = False

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        response: Response = await (await self._console.of(None, self._open)).answer(request)
        return response

    async def _open(self) -> Any:
        module = await asyncio.to_thread(import_module, "redrive.composition.console_pages")
        self._is_open = True
        return module.console_pages(*self._arguments)

    async def close(self) -> None:
        """Close the console, if there was a visit."""
        if self._is_open:
            await (await self._console.of(None, self._open)).close()


def _nodes(core: Core) -> Nodes:
    """This node with its settings, and those that share its store."""
    now = SystemClock().now()
    settings = [
        (origin.name, origin.masked, origin.source) for origin in core.origins or origins_of(core.settings)
    ]
    node = Node(core.runtime.node, __version__, now, now, settings)
    return Nodes(core.engine.resources.documents, SystemClock(), node, shared=core.settings.store_is_shared)
