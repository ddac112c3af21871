"""The web console."""

from collections.abc import Mapping

from redrive.composition.core import Core
from redrive.composition.extension import Extension
from redrive.console.clock_hands import ClockHands
from redrive.console.console import PATH, Console, ConsoleOptions
from redrive.console.installation import Installation
from redrive.console.session import Sessions
from redrive.console.tail import Tail
from redrive.endpoints.containers import BlobContainers
from redrive.protocols.aws.call import Facade
from redrive.protocols.aws.inner_calls import InnerCalls
from redrive.runtime.clock import SystemClock
from redrive.runtime.simulated import SimulatedClock
from redrive.settings import origins_of


def extension(core: Core, services: Mapping[str, Facade]) -> Extension:
    """The console over the engine; nothing where it is off.

    Args:
        core: What it is built on.
        services: Called by pages; those that are added later are found as well.
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
    )
    sessions = Sessions(core.keyring, SystemClock(), writes=writes)
    clock = core.runtime.clock
    hands = ClockHands(clock.now, clock.next_at) if isinstance(clock, SimulatedClock) else None
    tail = Tail(core.engine.watch, core.engine.unwatch, SystemClock().now)
    installation = Installation(
        services=InnerCalls(services, core.runtime),
        telemetry=core.store,
        settle=core.telemetry.flush,
        keyring=core.keyring,
        containers=BlobContainers(core.blob_store),
        tail=tail,
        hands=hands,
        origins=core.origins or origins_of(settings),
    )
    console = Console(core.engine, sessions, installation, options)
    return Extension(
        paths={PATH: console.answer},
        listeners=[(tail.losses, ())],
        close=[console.close],
        drives=[hands.drive] if hands else [],
    )
