"""All extensions of a server: made at the start, or imported and made when they are first asked for.

To import and make all of them takes a second of a processor and 50 MB, which most servers need for few of them. Until a
deferred one is asked for, a placeholder stands for it.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from typing_extensions import override

from redrive.aws.encryption.encryption import Encryption
from redrive.aws.kit.service import AwsService, UnopenedService, offered, service_of
from redrive.aws.services import FOLDERS
from redrive.aws.wire.hosted_urls import HostedUrls
from redrive.aws.wire.service import Service
from redrive.composition.core import Core
from redrive.composition.destinations import ELSEWHERE, STREAMS_ELSEWHERE
from redrive.composition.extension import ClockDriven, DeliveryParts, Extension, Interface, Presenter
from redrive.endpoints.kept_connection import SingleFlight
from redrive.engine.ports import DirectEndpoint, DocumentKind, Endpoint, PushRequest
from redrive.functions.setting import Setting
from redrive.model.attempt import Attempt
from redrive.model.errors import StoreUnavailable
from redrive.model.http import Request, Response
from redrive.model.log import LogEvent
from redrive.server.app import Answer

Make = Callable[[ModuleType], Extension]


def _maker(core: Core) -> Make:
    """A function that makes the extension of a module of `redrive.composition`."""

    def make(module: ModuleType) -> Extension:
        extension: Extension = module.extension(core)
        return extension

    return make


class Deferred(ABC):
    """An extension that is imported and made when something of it is first asked for.

    Attributes:
        name: What it is called.
        stand_in: What stands for it; each part of that opens it.
        wakes: Documents for which it has work that goes on by itself: where there are any, it is made with the server.
        is_open: Whether it was made.
        on_opened: Awaited with the extension, once it is made, before anybody gets it.
    """

    name: str
    stand_in: Extension
    wakes: Sequence[DocumentKind[Any]] = ()

    def __init__(self) -> None:
        self._extension: SingleFlight[None, Extension] = SingleFlight(lambda _: True)
        self.on_opened: Callable[[Extension], Awaitable[None]] | None = None
        self.is_open = False

    async def open(self) -> Extension:
        """The extension. One caller begins to make it; a caller that is cancelled leaves it to the others."""
        return await self._extension.of(None, self._open)

    async def _open(self) -> Extension:
        """Load what was deferred, beside the event loop, and make it."""
        # Up to 0.3 s of imports and of reading published models, for which nobody else waits.
        make = await asyncio.to_thread(self._load)
        extension = make()
        if self.on_opened is not None:
            await self.on_opened(extension)
        self.is_open = True
        return extension

    @abstractmethod
    def _load(self) -> Callable[[], Extension]:
        """Import what it needs, in a thread; returns the function that makes the extension on the event loop."""


class DeferredServices(Deferred):
    """An extension for some of Amazon's services, whose folders say what stands for them.

    Attributes:
        services: What it offers.
    """

    def __init__(self, core: Core, module: str, names: Sequence[str], make: Make | None = None) -> None:
        """Defer the services of these names (botocore's), and their module in `redrive.composition`, if they have one.

        `make` makes the extension of the module, where that takes more than the core.
        """
        super().__init__()
        self._core = core
        self._module = module
        self._make = _maker(core) if make is None else make
        self.services: Sequence[AwsService] = [service_of(name) for name in names]
        self.name = names[0]
        self.wakes = [kind for service in self.services for kind in service.outline.wakes]
        self.stand_in = self._stand_in()

    @override
    def _load(self) -> Callable[[], Extension]:
        for service in self.services:
            Service.load(service.name)
        if self._module:
            return partial(self._make, import_module(f"redrive.composition.{self._module}"))
        services = {service.name: offered(service, self._core) for service in self.services}
        return lambda: Extension(Interface(services))

    # ---- what stands for it ----------------------------------------------------------------------------------------

    def _stand_in(self) -> Extension:
        """The extension that stands for the services until one is asked for; at most one has a hosted protocol."""
        outlines = [service.outline for service in self.services]
        hosted = [_DeferredHosted(self, each.hosted) for each in outlines if each.hosted is not None]
        return Extension(
            interface=Interface(
                services={service.name: UnopenedService(self._opener(service)) for service in self.services},
                paths={path: self._answer(path) for each in outlines for path in each.paths},
                hosted=hosted[0] if hosted else None,
                kinds=[kind for service in self.services for kind in service.documents],
            ),
            delivery=DeliveryParts(
                profiles={
                    name: profile for each in outlines for name, profile in each.profiles(self._core).items()
                },
                endpoints={
                    name: _DeferredEndpoint(self, name) for each in outlines for name in each.endpoints
                },
            ),
        )

    def _opener(self, service: AwsService) -> Callable[[], Awaitable[Any]]:
        async def open_service() -> Any:
            return (await self.open()).interface.services[service.name]

        return open_service

    def _answer(self, path: str) -> Answer:
        async def answer(request: Request) -> Response:
            return await (await self.open()).interface.paths[path](request)

        return answer


class _DeferredEndpoint(DirectEndpoint):
    """An endpoint of an extension (`redrive.engine.ports.Endpoint`)."""

    def __init__(self, deferred: Deferred, protocol: str) -> None:
        self._deferred = deferred
        self._protocol = protocol
        self._endpoint: Endpoint | None = None  # The extension's own, once it was asked for

    @override
    def begin(self, push_request: PushRequest, take: Callable[[Attempt], None]) -> Callable[[], None] | None:
        """See `DirectEndpoint.begin`."""
        endpoint: object = self._endpoint
        return endpoint.begin(push_request, take) if isinstance(endpoint, DirectEndpoint) else None

    async def push(self, push_request: PushRequest) -> Attempt:
        """See `Endpoint.push`."""
        if self._endpoint is None:
            self._endpoint = (await self._deferred.open()).delivery.endpoints[self._protocol]
        return await self._endpoint.push(push_request)

    async def close(self) -> None:
        """See `Endpoint.close`; the extension's own is closed with it."""


class _DeferredHosted:
    """The hosted protocol of an extension (`redrive.server.app.HostedProtocol`)."""

    def __init__(self, deferred: Deferred, urls: HostedUrls) -> None:
        self._deferred = deferred
        self.urls = urls

    async def answer(self, request: Request, refusal: Callable[[Request], Response | None]) -> Response:
        """See `HostedProtocol.answer`."""
        hosted = (await self._deferred.open()).interface.hosted
        if hosted is None:
            raise RuntimeError("an outline promises a hosted protocol that its extension has not")
        return await hosted.answer(request, refusal)


# ---- those that there are --------------------------------------------------------------------------------------------


def deferred_extensions(
    core: Core,
    setting: Setting | None,
    destinations: Mapping[str, Endpoint],
    presenters: Mapping[str, Presenter],
    encryption: Encryption | None,
) -> list[Deferred]:
    """The extensions that are made when they are first asked for; without `setting`, functions are not run.

    Destinations are endpoints on other servers, by protocol; presenters are for messages of queues that other services
    sent, by envelope.
    """
    elsewhere, streams_elsewhere = destinations.get(ELSEWHERE), destinations.get(STREAMS_ELSEWHERE)
    logs = DeferredServices(core, "logs", ["logs"])
    with_modules = [
        DeferredServices(core, "apigateway", ["apigateway", "apigatewayv2"]),
        DeferredServices(core, "cloudformation", ["cloudformation"]),
        DeferredServices(core, "cloudwatch", ["cloudwatch"]),
        DeferredServices(
            core, "firehose", ["firehose"], lambda module: module.extension(core, streams_elsewhere)
        ),
        logs,
        DeferredServices(core, "s3", ["s3"]),
    ]
    if setting is not None:

        def functions(module: ModuleType) -> Extension:
            extension: Extension = module.extension(core, setting, elsewhere, presenters, encryption)
            return extension

        with_modules.append(DeferredServices(core, "lambda_", ["lambda"], functions))

    async def write_down(events: Sequence[LogEvent], streams: Mapping[int, str]) -> None:
        await logs.open()  # which replaces this function by its own
        await core.telemetry.logs.write_down(events, streams)

    core.telemetry.logs.write_down = write_down
    names = {service.name for each in with_modules for service in each.services}
    operations_only = [name for name in FOLDERS if service_of(name).operations is not None]
    return [
        *with_modules,
        *(DeferredServices(core, "", [name]) for name in operations_only if name not in names),
    ]


logger = logging.getLogger(__name__)

_RETRY_MS: Final = 1_000  # after which a store that was away is asked again


class ExtensionRegistry:
    """The extensions of a server.

    Attributes:
        extensions: Those that were made, and the placeholders of the others.
        deferred: Those that are made when they are first asked for.
        clock_driven: What the passing of simulated time sets off by itself; grows when an extension is made.
    """

    def __init__(self, core: Core, extensions: Sequence[Extension], deferred: Sequence[Deferred]) -> None:
        """Offer the services of both, and tell the engine of them, which is not open yet."""
        self._core = core
        self.deferred = deferred
        self._started = self._stopped = False
        self._is_outdated = False  # a document was written since `wake` began
        self._waker: asyncio.Task[None] | None = None
        self.extensions = [*extensions, *(each.stand_in for each in deferred)]
        self.clock_driven: list[ClockDriven] = []
        for each in deferred:
            each.on_opened = self._add
        for extension in self.extensions:
            extension.register(core.engine)
            self._offer(extension)
        core.engine.resources.documents.on_change_elsewhere(self._note_foreign_write)

    def _offer(self, extension: Extension) -> None:
        self._core.services.update(extension.interface.services)
        self.clock_driven += extension.lifecycle.clock_driven

    async def _add(self, extension: Extension) -> None:
        """Register an extension that was made just now; if the server has started, begin its work."""
        for listener, names in extension.delivery.listeners:
            self._core.engine.watch(listener, *names)
        self.extensions.append(extension)
        self._offer(extension)
        if self._started and not self._stopped:
            for begin in extension.lifecycle.start:
                begin()

    # ---- those that work by themselves -----------------------------------------------------------------------------

    async def wake(self) -> None:
        """Make the deferred extensions for which the store has work."""
        for each in self.deferred:
            if not each.is_open and await self._has_work(each):
                await each.open()

    async def _has_work(self, deferred: Deferred) -> bool:
        """True if the store holds a document that means work for what is deferred."""
        documents = self._core.engine.resources.documents
        for kind in deferred.wakes:
            if await documents.find(kind, "", limit=1):
                return True
        return False

    def _note_foreign_write(self, kind: str, _key: str) -> None:
        """Another node wrote a document: it may be the first that means work."""
        kinds = {wake.name for each in self.deferred if not each.is_open for wake in each.wakes}
        if kind in kinds or (not kind and kinds):
            self._is_outdated = True
            if self._waker is None or self._waker.done():
                self._waker = asyncio.get_running_loop().create_task(self._wake_again(), name="redrive-wake")

    async def _wake_again(self) -> None:
        """Look for work until nothing was written meanwhile: `wake` asks for one kind of documents after another."""
        while self._is_outdated:
            self._is_outdated = False
            try:
                await self.wake()
            except StoreUnavailable as error:
                logger.warning("services.unopened error=%s", error)
                self._is_outdated = True
                clock = self._core.runtime.clock
                await clock.sleep_until(clock.now() + _RETRY_MS)
            except Exception:  # a fault of ours: the next news, or the next request, tries again
                logger.exception("services.unopened: background work is not resumed here yet")

    async def open_all(self) -> None:
        """Make all extensions that are not made yet."""
        for each in self.deferred:
            await each.open()

    # ---- their life ------------------------------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Prepare the store, before any work is resumed; then make the extensions that have work."""
        for extension in list(self.extensions):
            for prepare in extension.lifecycle.prepare:
                await prepare()
        await self.wake()

    def start(self) -> None:
        """Begin the work that extensions do by themselves."""
        self._started = True
        for extension in self.extensions:
            for begin in extension.lifecycle.start:
                begin()

    def end_streams(self) -> None:
        """End streams of answers."""
        for extension in self.extensions:
            for end in extension.lifecycle.end_streams:
                end()

    async def stop(self) -> None:
        """End the work that extensions do by themselves, which calls the engine."""
        self._stopped = True
        if self._waker is not None:
            self._waker.cancel()
        for extension in list(self.extensions):
            for stop in extension.lifecycle.stop:
                await stop()

    async def close(self) -> None:
        """Close the endpoints, and the other resources of extensions."""
        for extension in list(self.extensions):
            for endpoint in extension.delivery.endpoints.values():
                await endpoint.close()
            for close in extension.lifecycle.close:
                await close()
