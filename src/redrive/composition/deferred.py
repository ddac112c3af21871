"""Deferred extensions: something stands for them until they are first asked for.

To import and make all of them takes a second of a processor and 50 MB, which most servers need for few of them.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from typing_extensions import override

from redrive.aws.encryption.encryption import Encryption
from redrive.aws.kit.service import AwsService, UnopenedService, offered, service_of
from redrive.aws.services import FOLDERS
from redrive.aws.wire.hosted_urls import HostedUrls
from redrive.aws.wire.service import Service
from redrive.composition.core import Core
from redrive.composition.destinations import ELSEWHERE, STREAMS_ELSEWHERE
from redrive.composition.extension import DeliveryParts, Extension, Interface, Presenter
from redrive.endpoints.kept_connection import SingleFlight
from redrive.engine.ports import DocumentKind, Endpoint, PushRequest
from redrive.functions.setting import Setting
from redrive.model.attempt import Attempt
from redrive.model.http import Request, Response
from redrive.model.log import LogEvent
from redrive.server.app import Answer

Make = Callable[[ModuleType], Extension]


def _usual(core: Core) -> Make:
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
        # Up to 0.3 s of imports and of reading published models, for which nobody else waits.
        make = await asyncio.to_thread(self._load)
        extension = make()
        if self.on_opened is not None:
            await self.on_opened(extension)
        self.is_open = True
        return extension

    @abstractmethod
    def _load(self) -> Callable[[], Extension]:
        """Import what it takes, in a thread; what makes the extension then, on the event loop."""


class DeferredServices(Deferred):
    """An extension for some of Amazon's services, whose folders say what stands for them.

    Attributes:
        services: What it offers.
    """

    def __init__(self, core: Core, module: str, names: Sequence[str], make: Make | None = None) -> None:
        """Defer it.

        Args:
            core: What it is built on.
            module: Its module in `redrive.composition`; empty for services that are nothing but operations.
            names: Botocore's names of its services.
            make: Makes the extension of the module, where that takes more than the core.
        """
        super().__init__()
        self._core = core
        self._module = module
        self._make = _usual(core) if make is None else make
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


class _DeferredEndpoint:
    """An endpoint of an extension (`redrive.engine.ports.Endpoint`)."""

    def __init__(self, deferred: Deferred, protocol: str) -> None:
        self._deferred = deferred
        self._protocol = protocol

    async def push(self, push_request: PushRequest) -> Attempt:
        """See `Endpoint.push`."""
        extension = await self._deferred.open()
        return await extension.delivery.endpoints[self._protocol].push(push_request)

    async def close(self) -> None:
        """See `Endpoint.close`; the extension's own is closed with it."""


class _DeferredHosted:
    """The hosted protocol of an extension (`redrive.server.app.Hosted`)."""

    def __init__(self, deferred: Deferred, urls: HostedUrls) -> None:
        self._deferred = deferred
        self.urls = urls

    async def answer(self, request: Request, refusal: Callable[[Request], Response | None]) -> Response:
        """See `Hosted.answer`."""
        hosted = (await self._deferred.open()).interface.hosted
        if hosted is None:
            raise RuntimeError("an outline promises a hosted protocol that its extension has not")
        return await hosted.answer(request, refusal)


# ---- those that there are --------------------------------------------------------------------------------------------


def deferred(
    core: Core,
    setting: Setting | None,
    destinations: Mapping[str, Endpoint],
    presenters: Mapping[str, Presenter],
    encryption: Encryption | None,
) -> list[Deferred]:
    """The extensions that are made when they are first asked for.

    Args:
        core: What they are built on.
        setting: How functions are run; None: not at all.
        destinations: Endpoints on other servers, by protocol.
        presenters: By envelope, for messages of queues that other services sent.
        encryption: Knows the keys of queues.
    """
    elsewhere, streams_elsewhere = destinations.get(ELSEWHERE), destinations.get(STREAMS_ELSEWHERE)
    logs = DeferredServices(core, "logs", ["logs"])
    composed = [
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

        composed.append(DeferredServices(core, "lambda_", ["lambda"], functions))

    async def write_down(events: Sequence[LogEvent], streams: Mapping[int, str]) -> None:
        await logs.open()  # which puts its own in this place
        await core.telemetry.logs.write_down(events, streams)

    core.telemetry.logs.write_down = write_down
    names = {service.name for each in composed for service in each.services}
    operations_alone = [name for name in FOLDERS if service_of(name).operations is not None]
    return [
        *composed,
        *(DeferredServices(core, "", [name]) for name in operations_alone if name not in names),
    ]
