"""The web console."""

from collections.abc import Mapping

from redrive.composition.core import Core
from redrive.composition.extension import Extension
from redrive.console.console import PATH, Console, ConsoleOptions
from redrive.console.session import Sessions
from redrive.protocols.aws.call import Facade
from redrive.protocols.aws.inner_calls import InnerCalls
from redrive.runtime.clock import SystemClock
from redrive.runtime.simulated import SimulatedClock


def extension(core: Core, services: Mapping[str, Facade]) -> Extension:
    """The console over the engine, which sends and publishes by these services; nothing where it is off."""
    settings = core.settings
    if settings.console == "off":
        return Extension()
    writes = settings.console == "full"
    options = ConsoleOptions(
        writes=writes,
        bodies_shown=settings.console_bodies == "shown",
        needs_sign_in=settings.auth == "required",
        public_url=settings.public_url,
        simulated=isinstance(core.runtime.clock, SimulatedClock),
    )
    sessions = Sessions(core.keyring, SystemClock(), writes=writes)
    console = Console(core.engine, sessions, InnerCalls(services, core.runtime), options)
    return Extension(paths={PATH: console.answer}, close=[console.close])
