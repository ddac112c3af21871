"""The server, put together in phases: bind, open the store, build the engine, the facades and the front, serve, close.

Each part is whole when it is handed on. What the parts are is the business of `redrive.composition`.
"""

import asyncio
import functools
import gc
import logging
import resource
import signal
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import uvloop

from redrive.access.keys import ANY_ACCOUNT
from redrive.access.refusals import Refusals
from redrive.access.secret import installation_secret
from redrive.access.signing_pair import signing_pair
from redrive.composition import (
    console,
    destinations,
    functions,
    key_uses,
    kms,
    opentelemetry,
    sns,
    sqs,
)
from redrive.composition.core import Core, make_authentication, make_keyring, make_sessions, web_endpoint
from redrive.composition.event_grid import DeferredEventGrid
from redrive.composition.extension import Extension, Presenter
from redrive.composition.extensions import ExtensionRegistry, deferred_extensions
from redrive.composition.routes import make_router
from redrive.composition.simulated_time import SimulatedTime
from redrive.composition.store import kind_of, open_store, root_key, seal_of
from redrive.engine.engine import ROUND_MS, Engine
from redrive.engine.ports import NodeStore, Runtime
from redrive.model.names import id_text
from redrive.provisioning import Provisioner, check_keys
from redrive.runtime.machine import SystemClock, monotonic, real_runtime, warn_of_jumps, watch_loop
from redrive.runtime.simulated import SimulatedClock
from redrive.server.app import Router
from redrive.server.exposition import Exposition
from redrive.server.http import HttpFront, bound, url_of
from redrive.server.limits import HttpLimits
from redrive.server.localstack import InitScripts
from redrive.server.request_log import RequestLog
from redrive.server.siblings import ALONE, Siblings
from redrive.settings import Origin, Settings, risks, summary
from redrive.settings.declared import Declarations, read_declarations
from redrive.telemetry.audit import AuditTrail
from redrive.telemetry.loss_log import LossLog
from redrive.telemetry.meters import NodeMeters
from redrive.telemetry.telemetry import Telemetry
from redrive.workers.worker import Worker

logger = logging.getLogger(__name__)

# What is under way when SIGTERM comes, requests and pushes, may take so long to be answered.
DRAIN_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class Server:
    """A server with its store open and every part in its place; it accepts no requests before `serve`."""

    core: Core  # Parts that all facades share
    parts: ExtensionRegistry  # The facades, and their parts
    router: Router  # Says which part a request is for
    front: HttpFront  # Speaks HTTP
    time: SimulatedTime | None  # Moves the clock, where that is a simulated one
    provision: Callable[[], Awaitable[None]]  # Makes what the settings declare
    exposition: Exposition  # Writes the metrics
    scripts: InitScripts  # Run once requests are answered

    @property
    def extensions(self) -> Sequence[Extension]:
        """The facades, and their parts; services are loaded at their first request."""
        return self.parts.extensions

    async def open(self) -> None:
        """Take up the backlogs, and connect to what wants to be connected to."""
        if self.time is not None:
            await self.time.take_up()
        await self.parts.prepare()
        await self.core.engine.open()
        self.parts.start()
        await self.provision()

    async def serve(self, url: str, stop: asyncio.Event) -> None:
        """Do what goes on beside requests at this URL, until told to stop."""
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._keep_up(), name="redrive-upkeep"),
                group.create_task(self.core.telemetry.run(), name="redrive-telemetry"),
                group.create_task(warn_of_jumps(SystemClock().now), name="redrive-clock"),
                group.create_task(watch_loop(self.core.meters.loop_lag.observe), name="redrive-loop"),
                group.create_task(self.scripts.run(url, self.core.settings.region), name="redrive-init"),
            ]
            await stop.wait()
            for task in tasks:
                task.cancel()

    async def close(self) -> None:
        """Answer what is under way, let attempts end, and close."""
        engine = self.core.engine
        engine.stop_receiving()
        self.parts.end_streams()
        await asyncio.gather(self.front.drain(DRAIN_SECONDS), engine.drain(DRAIN_SECONDS))
        await self.parts.stop()
        await self.core.telemetry.close()
        await engine.close()
        await self.parts.close()

    async def _keep_up(self) -> None:
        """Upkeep for as long as the server runs; failures are logged, and do not end the service."""
        engine = self.core.engine
        upkeep = engine.run if self.time is None else engine.tidy
        while True:
            try:
                await upkeep()
            except Exception:
                logger.exception("upkeep.failed: retried in the next round")
            else:
                return  # once, on a simulated clock
            await engine.clock.sleep_until(engine.clock.now() + ROUND_MS)


# ---- the phases ------------------------------------------------------------------------------------------------------


async def run(
    settings: Settings,
    ready: Callable[[str], None],
    origins: Sequence[Origin] = (),
    worker: Worker | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then answer what is under way and close.

    Args:
        settings: How.
        ready: Called with the server's URL when it accepts requests.
        origins: Where the settings come from, where that is known.
        worker: This process as one of several, which tells its supervisor when it accepts requests.
    """
    stop = _told_to_stop()
    for risk in risks(settings):
        logger.warning("%s", risk)
    tls = _tls_context(settings)
    sockets = await bound(settings.host, settings.port) if worker is None else worker.sockets
    url = url_of(settings.host, sockets, encrypted=tls is not None)
    try:
        async with assembled(settings, url, origins, worker or ALONE) as server:
            await server.open()
            await server.front.listen(sockets, tls)
            await _warn_without_keys(server.core)
            gc.freeze()  # what stands now stays: looking at it again and again took a tenth of a receive's time
            logger.info(
                "server.started", extra={"fields": summary(settings, _addresses(sockets), ANY_ACCOUNT)}
            )
            if worker is None:
                ready(url)
            else:
                await worker.attend(server.exposition.text, server.front.retire, stop)
            await server.serve(url, stop)
            if worker is not None:
                await worker.say_last(await server.exposition.text())
    finally:
        for each in sockets:
            each.close()


async def _warn_without_keys(core: Core) -> None:
    """Log that there is no access key yet, and how to create one."""
    settings = core.settings
    if settings.auth == "required" and not settings.insecure_test_keys and not await core.keyring.all():
        logger.warning(
            "server.no_keys: --auth required, and there is no access key yet, so every request is refused;"
            " redrive keys create --account ACCOUNT --store %s%s creates one",
            "URL" if "@" in settings.store else settings.store,  # a password stays out of logs
            f" --store-key-file {settings.store_key_file}" if settings.store_key_file else "",
        )


@asynccontextmanager
async def assembled(
    settings: Settings, url: str, origins: Sequence[Origin] = (), siblings: Siblings = ALONE
) -> AsyncIterator[Server]:
    """A server with its store open and every part in its place, closed in the end.

    Args:
        settings: How.
        url: Where it will be reached; links that lead back begin so, unless the settings have a public URL.
        origins: Where the settings come from, where that is known.
        siblings: The processes that serve the same address.
    """
    declared = read_declarations(settings.resources)
    check_keys(declared.keys, settings)
    runtime = real_runtime(SimulatedClock() if settings.clock == "simulated" else SystemClock())
    meters = NodeMeters(monotonic)
    store = open_store(settings, runtime, alone=True, meter=meters.commits)
    engine = Engine(store, runtime)
    await engine.connect()
    try:
        core = await _core(settings, runtime, store, engine, meters, url)
        core = replace(core, origins=origins, siblings=siblings)
        collector = opentelemetry.Collector(core)
        server = _server(core, _extensions(core, collector), declared, collector)
    except BaseException:
        await engine.close()
        raise
    try:
        yield server
    finally:
        await server.close()


async def _core(
    settings: Settings, runtime: Runtime, store: NodeStore, engine: Engine, meters: NodeMeters, url: str
) -> Core:
    resources = engine.resources
    telemetry = Telemetry(
        store,
        runtime.clock,
        resources.queues,
        resources.topics,
        engine.messages.archive_size,
        resources.subscriptions.of_backlog,
        simulated=isinstance(runtime.clock, SimulatedClock),
    )
    engine.add_listener(telemetry.metrics)
    resources.documents.on_write(telemetry.document_changed)
    engine.add_listener(meters)
    engine.add_listener(LossLog(runtime.clock))
    keyring = make_keyring(settings, store, runtime.clock)
    refusals = Refusals(SystemClock())
    secret = await installation_secret(store, runtime.rng)
    sessions = make_sessions(settings, resources.documents, secret, runtime)
    stream = id_text(runtime.message_id())
    return Core(
        settings=settings,
        runtime=runtime,
        store=store,
        engine=engine,
        telemetry=telemetry,
        meters=meters,
        web=web_endpoint(settings, runtime),
        keyring=keyring,
        sessions=sessions,
        authentication=make_authentication(settings, keyring, sessions, refusals),
        refusals=refusals,
        pair=await signing_pair(store, SystemClock().now()),
        secret=secret,
        root_key=root_key(settings, runtime, secret.key("root key of KMS")),
        seal_by=lambda key: seal_of(key, runtime),
        base_url=settings.public_url.rstrip("/") or url,
        stream=stream,
        audit=AuditTrail(store, telemetry.logs, stream, telemetry.flush),
    )


def _extensions(core: Core, collector: opentelemetry.Collector) -> ExtensionRegistry:
    """The facades and their parts; they call each other by `core.services`, once all of them are made."""
    parts = [make(core) for make in (sns.mobile_push, sns.text_messages, sns.data_protection)]
    remotes, keys = destinations.extension(core), kms.extension(core)
    encryption = keys.delivery.encryption
    topics = sns.extension(
        core, [part.delivery.sns for part in parts if part.delivery.sns is not None], encryption
    )
    facades, grid = [remotes, keys, topics, *parts], DeferredEventGrid(core)
    presenters: dict[str, Presenter] = {}
    for facade in (*facades, grid.stand_in):
        presenters |= facade.delivery.presenters
    store_kind = kind_of(core.settings)
    others = [
        sqs.extension(core, presenters, encryption),
        console.extension(core, lambda: store_kind.bytes),
        collector.extension(),
        key_uses.extension(core),
    ]
    setting = functions.prepare(core) if core.settings.runs_functions else None
    services = deferred_extensions(core, setting, remotes.delivery.endpoints, presenters, encryption)
    return ExtensionRegistry(core, [*facades, *others], [grid, *services])


def _server(
    core: Core, extensions: ExtensionRegistry, declared: Declarations, collector: opentelemetry.Collector
) -> Server:
    provisioner = Provisioner(core.services, core.keyring, core.runtime, core.settings.region)
    provision = functools.partial(provisioner.apply, declared)
    clock = core.runtime.clock
    time = None
    if isinstance(clock, SimulatedClock):
        time = SimulatedTime(clock, core.engine, core.telemetry, extensions.clock_driven)
        for extension in extensions.extensions:
            for drive in extension.lifecycle.drives:
                drive(time.advance)
    exposition = Exposition(core.engine, core.telemetry, core.meters, core.refusals.totals)
    scripts = InitScripts(core.settings.init_scripts)
    router = make_router(core, extensions, time, provision, exposition, scripts)
    answer = collector.with_spans(router.answer)
    request_log = RequestLog(answer, monotonic) if core.settings.request_log else None
    front = HttpFront(
        answer if request_log is None else request_log.answer,
        HttpLimits(),
        now=clock.now,
        new_request_id=lambda: core.runtime.message_id().hex(),
        body_bound=router.body_bytes_max,
        on_refused=None if request_log is None else request_log.refused,
    )
    return Server(core, extensions, router, front, time, provision, exposition, scripts)


# ---- the process -----------------------------------------------------------------------------------------------------


def _told_to_stop() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def _tls_context(settings: Settings) -> ssl.SSLContext | None:
    if settings.tls == "off" and not settings.tls_cert:
        return None
    from redrive.server.tls import local_authority, server_context  # noqa: PLC0415 - which brings X.509

    if settings.tls_cert:
        return server_context(Path(settings.tls_cert), Path(settings.tls_key))
    certificate = local_authority(Path("redrive-tls"), _names(settings), SystemClock().now())
    logger.warning("%s", certificate.advice)
    return server_context(certificate.server_file, certificate.server_file)


def _names(settings: Settings) -> list[str]:
    """The host names that clients may use for this server."""
    public = urlsplit(settings.public_url).hostname
    return [settings.host, *([public] if public else [])]


def _addresses(sockets: Sequence[socket.socket]) -> list[str]:
    names = [each.getsockname()[:2] for each in sockets]
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in names]


def serve(
    settings: Settings,
    ready: Callable[[str], None],
    origins: Sequence[Origin] = (),
    worker: Worker | None = None,
) -> None:
    """Serve until told to stop; see `run`."""
    # The commit thread wants the interpreter's lock for a moment, twice a group; by default it waits up to 5 ms for it.
    # And a request leaves some hundred objects that die by themselves: to look for cycles every 700 is to look for
    # nothing. Together a tenth more messages a second at 128 connections.
    sys.setswitchinterval(0.0005)
    # Each client, endpoint and file is one; the soft limit is often 1,024, from times when `select` counted them.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    gc.set_threshold(20_000, 20, 50)
    uvloop.run(run(settings, ready, origins, worker))
