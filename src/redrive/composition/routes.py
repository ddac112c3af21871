"""The ways in: control routes, the paths and protocols of extensions, and Amazon's services for everything else."""

from collections.abc import Awaitable, Callable, Mapping
from itertools import chain
from urllib.parse import urlsplit

from redrive.aws.gateway.gateway import Gateway
from redrive.aws.gateway.s3_routes import is_for_s3
from redrive.composition.core import Core
from redrive.composition.extensions import ExtensionRegistry
from redrive.composition.simulated_time import SimulatedTime
from redrive.console import PATH as CONSOLE_PATH
from redrive.model.http import Request, Response
from redrive.server.app import Answer, Recognising, Router
from redrive.server.auditing import audit_of
from redrive.server.control import Control, Reset
from redrive.server.endpoints import PATH as ENDPOINTS_PATH
from redrive.server.endpoints import EndpointRoutes
from redrive.server.exposition import Exposition
from redrive.server.guard import BrowserGuard, Scrapers, known_hosts
from redrive.server.landing import PATH as DOCUMENTATION_PATH
from redrive.server.landing import DocumentationSite
from redrive.server.localstack import PREFIXES as EMULATOR_PREFIXES
from redrive.server.localstack import EmulatorRoutes, InitScripts
from redrive.server.redriving import PATH as DEAD_LETTER_PATH
from redrive.server.resources import PATHS as RESOURCE_PATHS
from redrive.server.resources import DeadLetterRoutes, ResourceRoutes


def make_router(
    core: Core,
    extensions: ExtensionRegistry,
    time: SimulatedTime | None,
    provision: Callable[[], Awaitable[None]],
    exposition: Exposition,
    scripts: InitScripts,
) -> Router:
    """The router of a server; `time` moves a simulated clock, `provision` makes what the settings declare anew."""

    async def reset() -> None:
        await _reset(core, extensions)
        await provision()

    allowed_reset = reset if core.settings.allow_reset else None
    emulator = EmulatorRoutes(
        dict.fromkeys(sorted(core.services), "running"), allowed_reset, scripts, core.authentication
    )
    paths: dict[str, Answer] = {}
    gateway = Gateway(core.runtime, core.authentication, core.services, core.public_url)
    protocols: list[Recognising] = [_ObjectRequests(gateway)]
    for extension in extensions.extensions:
        paths |= extension.interface.paths
        protocols += extension.interface.protocols
    guard = BrowserGuard(known_hosts(core.settings), core.refusals)
    required = core.settings.auth == "required"
    return Router(
        _control(core, time, allowed_reset, guard, exposition),
        {**paths, **_own_paths(core), **dict.fromkeys(EMULATOR_PREFIXES, emulator.answer)},
        protocols,
        gateway,
        needs_credential=required,
        guard=None if required else guard,
        hosted=[
            extension.interface.hosted
            for extension in extensions.extensions
            if extension.interface.hosted is not None
        ],
        console=_console_path(core),
        services=sorted(core.services),
    )


class _ObjectRequests:
    """Requests for S3, which say so by their signature or host: their paths may look like anybody's."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def handles(self, request: Request) -> bool:
        """See `Recognising.handles`."""
        return is_for_s3(request)

    def answer(self, request: Request) -> Awaitable[Response]:
        """See `Fallback.answer`."""
        return self._gateway.answer(request)

    def body_bytes_max(self, request: Request) -> int:
        """See `Fallback.body_bytes_max`."""
        return self._gateway.body_bytes_max(request)


def _console_path(core: Core) -> str:
    """The web console's path as browsers see it; empty: it is off."""
    prefix = urlsplit(core.settings.public_url).path.rstrip("/")
    return "" if core.settings.console == "off" else f"{prefix}{CONSOLE_PATH}/"


def _control(
    core: Core, time: SimulatedTime | None, reset: Reset | None, guard: BrowserGuard, exposition: Exposition
) -> Control:
    return Control(
        core.engine,
        None if time is None else time.advance,
        reset,
        core.authentication,
        exposition,
        Scrapers(core.settings.metrics_token, guard, core.refusals, runs_functions=_runs_functions(core)),
        core.siblings,
    )


def _runs_functions(core: Core) -> bool:
    """True if callers run programs here who may not see the names of other accounts."""
    return core.settings.runs_functions and core.settings.auth == "required"


def _own_paths(core: Core) -> Mapping[str, Answer]:
    """Redrive's own routes, besides those of `Control`."""
    engine, authentication = core.engine, core.authentication
    docs = core.settings.docs
    audit = audit_of(core.audit, engine.clock)
    return {
        **({DOCUMENTATION_PATH: DocumentationSite(docs).answer} if docs else {}),
        DEAD_LETTER_PATH: DeadLetterRoutes(engine, authentication, audit).answer,
        ENDPOINTS_PATH: EndpointRoutes(engine, authentication, audit).answer,
        **dict.fromkeys(RESOURCE_PATHS, ResourceRoutes(engine, authentication).answer),
    }


async def _reset(core: Core, extensions: ExtensionRegistry) -> None:
    """Remove all that callers made; access keys and the signing key stay."""
    await extensions.open_all()  # each knows what it keeps
    await core.engine.reset()
    await core.telemetry.flush()  # first: it may make log groups
    interfaces = [extension.interface for extension in extensions.extensions]
    await core.engine.resources.documents.clear(*chain.from_iterable(each.kinds for each in interfaces))
    for interface in interfaces:
        for remove in interface.reset:
            await remove()
    await core.telemetry.reset()
