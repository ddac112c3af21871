"""The composition root: the only file that knows every concrete part."""

import asyncio
import logging
import signal
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import uvloop

from redrive.access.keyring import Keyring
from redrive.engine.engine import Engine
from redrive.engine.ports import Clock, Runtime, Store
from redrive.model.delivery import Delivery
from redrive.protocols.aws.authentication import Authentication, Believing, Verifying
from redrive.protocols.aws.gateway import Gateway
from redrive.protocols.aws.sqs.facade import Sqs
from redrive.protocols.aws.sqs.peek import PATH as PEEK_PATH
from redrive.protocols.aws.sqs.peek import Peek
from redrive.runtime.chance import real_runtime
from redrive.runtime.clock import SystemClock
from redrive.runtime.simulated import SimulatedClock
from redrive.server.app import Router
from redrive.server.control import Advance, Control
from redrive.server.dead_letters import PATH as DEAD_LETTER_PATH
from redrive.server.dead_letters import DeadLetterRoutes
from redrive.server.http import HttpFront
from redrive.server.limits import HttpLimits
from redrive.server.tls import local_authority, server_context
from redrive.settings import Settings
from redrive.stores.sqlite.store import SqliteStore

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 10  # what is under way when SIGTERM comes may take so long to be answered


def open_store(url: str, runtime: Runtime) -> Store:
    """The store that a URL names, not opened yet."""
    if url == "sqlite://:memory:":
        return SqliteStore(None)
    if url.startswith("sqlite://"):
        return SqliteStore(Path(url.removeprefix("sqlite:///").removeprefix("sqlite://")))
    from redrive.stores.postgres.store import PostgresStore  # noqa: PLC0415 - asyncpg is needed by this store alone

    return PostgresStore(url, runtime.clock, runtime.node)


class App:
    """A server put together from settings."""

    def __init__(self, settings: Settings) -> None:
        """Put it together; nothing is opened yet."""
        self._settings = settings
        clock: Clock = SimulatedClock() if settings.clock == "simulated" else SystemClock()
        runtime = real_runtime(clock)
        self.engine = Engine(open_store(settings.store, runtime), runtime)
        self._presenters: dict[str, Callable[[Delivery], tuple[str, Mapping[str, Any]]]] = {}
        authentication = self._authentication()
        gateway = Gateway(
            runtime,
            authentication,
            {"sqs": Sqs(self.engine, self._presenters, fifo_quotas=settings.fifo_quotas)},
            settings.public_url.rstrip("/") or None,
        )
        control = Control(
            self.engine, {"sqs": "running"}, self._advance(clock), allow_reset=settings.allow_reset
        )
        paths = {
            PEEK_PATH: Peek(self.engine, authentication, self._presenters).answer,
            DEAD_LETTER_PATH: DeadLetterRoutes(self.engine, authentication).answer,
        }
        router = Router(control, paths, gateway.answer)
        self.front = HttpFront(
            router.answer, HttpLimits(), now=clock.now, new_request_id=lambda: runtime.message_id().hex()
        )

    def _authentication(self) -> Authentication:
        if self._settings.auth == "off":
            return Believing(self._settings.region)
        return Verifying(Keyring(self.engine.store, SystemClock()), SystemClock())

    def _advance(self, clock: Clock) -> Advance | None:
        if not isinstance(clock, SimulatedClock):
            return None

        async def advance(milliseconds: int) -> int:
            before = self.engine.dispatcher.attempts
            await clock.advance(milliseconds, self.engine.quiet)
            await self._tidy()
            return self.engine.dispatcher.attempts - before

        return advance

    async def _tidy(self) -> None:
        """One round of upkeep.

        On a simulated clock once after each advance: nobody can look in between, and a year has a million rounds.
        """
        await self.engine.redriver.take_up()
        await self.engine.sweeper.round()

    async def run(self, ready: Callable[[str], None]) -> None:
        """Serve until SIGTERM or SIGINT, then answer what is under way and close.

        Args:
            ready: Called with the server's URL when it accepts requests.
        """
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        await self.engine.open()
        try:
            context = self._ssl_context()
            await self.front.start(self._settings.host, self._settings.port, context)
            ready(f"{'https' if context else 'http'}://{_in_url(self._settings.host)}:{self.front.port}")
            simulated = isinstance(self.engine.clock, SimulatedClock)
            async with asyncio.TaskGroup() as group:
                upkeep = group.create_task(
                    self._tidy() if simulated else self.engine.run(), name="redrive-upkeep"
                )
                await stop.wait()
                upkeep.cancel()
        finally:
            self.engine.receiver.close()
            await self.front.drain(DRAIN_SECONDS)
            await self.engine.close()

    def _ssl_context(self) -> ssl.SSLContext | None:
        settings = self._settings
        if settings.tls_cert:
            return server_context(Path(settings.tls_cert), Path(settings.tls_key))
        if settings.tls == "off":
            return None
        certificate = local_authority(Path("redrive-tls"), [settings.host], self.engine.clock.now())
        logger.warning("%s", certificate.advice)
        return server_context(certificate.server_file, certificate.server_file)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def serve(settings: Settings, ready: Callable[[str], None]) -> None:
    """Serve until told to stop."""

    async def run() -> None:
        await App(settings).run(ready)

    uvloop.run(run())
