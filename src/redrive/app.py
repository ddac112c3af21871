"""The composition root: with `destinations.py` and `event_grid.py` the only place that knows every concrete part."""

import asyncio
import gc
import logging
import resource
import signal
import ssl
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvloop

from redrive.access.keyring import Keyring
from redrive.access.keys import ANY_ACCOUNT, chosen_access_key
from redrive.access.signing_pair import SigningPair, signing_pair
from redrive.destinations import connect_telephones, make_endpoints
from redrive.engine.engine import ROUND_MS, Engine
from redrive.engine.ports import Clock, DeliveryProfile, DocumentKind, NodeStore, Runtime
from redrive.event_grid import EventGrid
from redrive.model.delivery import Delivery
from redrive.model.errors import StoreUnavailable
from redrive.model.ids import id_text
from redrive.protocols.aws.authentication import Authentication, SigV4Verifier, TrustAll
from redrive.protocols.aws.call import Facade
from redrive.protocols.aws.cloudwatch.facade import CloudWatch
from redrive.protocols.aws.gateway import Gateway
from redrive.protocols.aws.logs.facade import Logs
from redrive.protocols.aws.sns.certificate import PATH_BEGINNING as CERTIFICATE_PATH
from redrive.protocols.aws.sns.certificate import certificate_path
from redrive.protocols.aws.sns.devices.log import DeviceLog
from redrive.protocols.aws.sns.devices.push import DeviceEndpoint
from redrive.protocols.aws.sns.dialect import SnsDeliveryProfile
from redrive.protocols.aws.sns.facade import Sns
from redrive.protocols.aws.sns.notification import Links
from redrive.protocols.aws.sns.notification_renderer import NotificationRenderer
from redrive.protocols.aws.sns.protection.audit import AuditLog
from redrive.protocols.aws.sns.published import CONFIRMATION_ENVELOPE, ENVELOPE
from redrive.protocols.aws.sns.signing import Signer
from redrive.protocols.aws.sns.sms.attributes import SMS_ATTRIBUTES
from redrive.protocols.aws.sns.sms.log import TextMessageLog
from redrive.protocols.aws.sns.sms.text_messages import TextMessages
from redrive.protocols.aws.sns.status_log import StatusLog
from redrive.protocols.aws.sqs.facade import Sqs
from redrive.protocols.aws.sqs.peek import PATH as PEEK_PATH
from redrive.protocols.aws.sqs.peek import Peek
from redrive.protocols.aws.sts.facade import Sts
from redrive.protocols.azure.arm.operations import KINDS as AZURE_KINDS
from redrive.protocols.azure.eventgrid import dialect as eventgrid
from redrive.protocols.azure.eventgrid.names import DIALECT as EVENT_GRID
from redrive.protocols.azure.eventgrid.topic_endpoint import TopicEndpoint
from redrive.protocols.azure.namespaces.places import NAMESPACE
from redrive.protocols.azure.webhook_tokens import WebhookTokens
from redrive.protocols.azure.wire import bearer
from redrive.protocols.http import Request, Response
from redrive.provisioning import Provisioner, check_keys
from redrive.runtime.chance import real_runtime
from redrive.runtime.clock import SystemClock, warn_of_jumps
from redrive.runtime.simulated import SimulatedClock
from redrive.server.app import Router
from redrive.server.control import Advance, Control
from redrive.server.dead_letters import PATH as DEAD_LETTER_PATH
from redrive.server.dead_letters import DeadLetterRoutes
from redrive.server.endpoints import PATH as ENDPOINTS_PATH
from redrive.server.endpoints import EndpointRoutes
from redrive.server.http import HttpFront
from redrive.server.limits import HttpLimits
from redrive.server.resources import PATHS as RESOURCE_PATHS
from redrive.server.resources import ResourceRoutes
from redrive.server.tls import local_authority, server_context
from redrive.settings import Settings, risks
from redrive.settings.declared import read_declared
from redrive.stores.seal import UNSEALED, Seal, read_keys
from redrive.stores.sqlite.store import SqliteStore
from redrive.telemetry.loss_log import LossLog
from redrive.telemetry.telemetry import Telemetry

logger = logging.getLogger(__name__)

_MOMENT: DocumentKind[int] = DocumentKind(
    "simulated_clock", lambda now: {"now": now}, lambda document: int(document["now"])
)
DRAIN_SECONDS = (
    10  # what is under way when SIGTERM comes, requests and pushes, may take so long to be answered
)


def open_store(settings: Settings, runtime: Runtime, *, alone: bool = False) -> NodeStore:
    """The store that the settings name, not opened yet; `alone` for a server, which shares a file with no other.

    Raises:
        StoreUnavailable: The file with its keys cannot be used.
    """
    url, seal = settings.store, _seal(settings.store_key_file, runtime)
    if url == "sqlite://:memory:":
        return SqliteStore(None)
    if url.startswith("sqlite://"):
        path = Path(url.removeprefix("sqlite:///").removeprefix("sqlite://"))
        return SqliteStore(path, alone=alone, seal=seal)
    from redrive.stores.postgres.store import PostgresStore  # noqa: PLC0415 - asyncpg is needed by this store alone

    return PostgresStore(url, runtime.clock, runtime.node, seal=seal)


def _seal(file: str, runtime: Runtime) -> Seal:
    if not file:
        return UNSEALED
    try:
        return Seal(read_keys(Path(file).read_text()), runtime.chance.randbytes)
    except (OSError, ValueError) as error:
        raise StoreUnavailable(f"store_key_file {file} cannot be used: {error}") from None


def _front(router: Router, runtime: Runtime) -> HttpFront:
    return HttpFront(
        router.answer,
        HttpLimits(),
        now=runtime.clock.now,
        new_request_id=lambda: runtime.message_id().hex(),
        body_bound=router.body_bytes_max,
    )


class App:
    """A server put together from settings."""

    def __init__(self, settings: Settings) -> None:
        """Put it together; nothing is opened yet."""
        self._settings = settings
        clock: Clock = SimulatedClock() if settings.clock == "simulated" else SystemClock()
        runtime = real_runtime(clock)
        self._sns_profile = SnsDeliveryProfile(
            open_queues=settings.auth == "off",
            client_errors_delivered=settings.client_errors_count_as_delivered,
        )
        self._endpoints = make_endpoints(settings, runtime)
        self._store = store = open_store(settings, runtime, alone=True)
        self._webhook_tokens = WebhookTokens(SystemClock())
        profiles: dict[str, DeliveryProfile] = {
            "sns": self._sns_profile,
            EVENT_GRID: eventgrid.EventGridDeliveryProfile(store.notes, self._webhook_tokens),
        }
        self.engine = Engine(store, runtime, profiles)
        self._endpoints[eventgrid.TOPIC] = TopicEndpoint(self.engine.resources.topics)
        devices = DeviceEndpoint(self.engine, self._endpoints["push"])
        self._endpoints["application"] = devices
        leaps = isinstance(clock, SimulatedClock)
        resources, size = self.engine.resources, self.engine.messages.archive_size
        self.telemetry = Telemetry(store, clock, resources.queues, resources.topics, size, leaps=leaps)
        self.engine.add_listener(self.telemetry.metrics)
        self.engine.add_listener(LossLog(clock))
        stream = id_text(runtime.message_id())
        self.engine.add_listener(self._status_log(runtime, stream, devices), "sns")
        self._message_centre = connect_telephones(settings, self.engine, self._endpoints)
        event_grid = EventGrid(settings, self.engine, store, self.telemetry, stream)
        for protocol, endpoint in self._endpoints.items():
            self.engine.add_endpoint(protocol, endpoint)
        self._presenters: dict[str, Callable[[Delivery], tuple[str, Mapping[str, Any]]]] = {
            eventgrid.ENVELOPE: eventgrid.present
        }
        self._certificates: dict[str, bytes] = {}
        self._signer: Signer | None = None
        authentication = self._authentication()
        findings = AuditLog(self.telemetry.logs, self.telemetry.count, runtime.chance, stream)
        facades = self._facades(store, findings)
        self._declared = read_declared(settings.resources)
        check_keys(self._declared.keys, settings)
        self._provisioner = Provisioner(facades, self._keyring(), runtime, settings.region)
        gateway = Gateway(runtime, authentication, facades, settings.public_url.rstrip("/") or None)
        control = Control(
            self.engine,
            dict.fromkeys(("cloudwatch", "logs", "sns", "sqs"), "running"),
            self._advance(clock),
            self._reset if settings.allow_reset else None,
            authentication,
            lambda: self.telemetry.metrics.totals,
        )
        paths = {
            PEEK_PATH: Peek(self.engine, authentication, self._presenters).answer,
            DEAD_LETTER_PATH: DeadLetterRoutes(self.engine, authentication).answer,
            ENDPOINTS_PATH: EndpointRoutes(self.engine, authentication).answer,
            **dict.fromkeys(RESOURCE_PATHS, ResourceRoutes(self.engine, authentication).answer),
            CERTIFICATE_PATH: self._certificate,
        }
        azure = event_grid.gateway(
            runtime, self._bearer_authentication(), self._endpoints, self._webhook_tokens
        )
        needs_credential = settings.auth == "required"
        router = Router(control, paths, [azure], gateway, needs_credential=needs_credential)
        self.front = _front(router, runtime)

    def _facades(self, store: NodeStore, findings: AuditLog) -> dict[str, Facade]:
        settings, flush = self._settings, self.telemetry.flush
        return {
            "cloudwatch": CloudWatch(store, flush),
            "logs": Logs(store, self.engine.resources.documents, flush),
            "sns": Sns(self.engine, findings, settings.filter_policies_max),
            "sqs": Sqs(
                self.engine,
                self._presenters,
                fifo_quotas=settings.fifo_quotas,
                queue_urls=settings.queue_urls,
                waits=not settings.skip_queue_waits,
            ),
            "sts": Sts(),
        }

    def _status_log(self, runtime: Runtime, stream: str, devices: DeviceEndpoint) -> StatusLog:
        logs, chance = self.telemetry.logs, runtime.chance
        pushes = DeviceLog(logs, chance, stream, devices.application_of, self.telemetry.count)
        attributes = partial(self.engine.resources.documents.known, SMS_ATTRIBUTES)
        texts = TextMessageLog(logs, chance, stream, attributes, self.telemetry.count)
        return StatusLog(logs, chance, stream, {"application": pushes, "sms": texts})

    async def _prepare_signers(self, url: str) -> None:
        """Let out what is signed with the installation's key, and what has links that lead back here."""
        base_url = self._settings.public_url.rstrip("/") or url
        pair = await signing_pair(self._store, SystemClock().now())
        self._webhook_tokens.prepare(pair, base_url)
        self._prepare_sns(pair, base_url)

    def _prepare_sns(self, pair: SigningPair, base_url: str) -> None:
        path = certificate_path(pair)
        self._certificates[path] = pair.pem
        self._signer = Signer(pair)
        renderer = NotificationRenderer(
            Links(base_url, path), self._signer, TextMessages(self.engine.resources.documents)
        )
        self._presenters[ENVELOPE] = self._presenters[CONFIRMATION_ENVELOPE] = renderer.present
        self._sns_profile.prepare(renderer)
        if self._message_centre is not None:
            self._message_centre.start()

    async def _certificate(self, request: Request) -> Response:
        certificate = self._certificates.get(request.path)
        if certificate is None:
            return Response(404, b"", "text/plain")
        return Response(200, certificate, "application/x-pem-file")

    def _keyring(self) -> Keyring:
        test = chosen_access_key(ANY_ACCOUNT, "test", "test", SystemClock().now())
        return Keyring(self._store, SystemClock(), unkept=[test] if self._settings.insecure_test_keys else ())

    def _authentication(self) -> Authentication:
        if self._settings.auth == "off":
            return TrustAll(self._settings.region)
        return SigV4Verifier(self._keyring(), SystemClock())

    def _bearer_authentication(self) -> bearer.Authentication:
        if self._settings.auth == "off":
            return bearer.Believing()
        return bearer.Verifying(self._keyring(), SystemClock())

    async def _reset(self) -> None:
        """Remove all that callers made; access keys and the signing key stay."""
        await self.engine.reset()
        await self.telemetry.flush()  # first: it may make log groups
        for kind in (*Sns.kinds, *Logs.kinds, *AZURE_KINDS, NAMESPACE):
            await self.engine.resources.documents.clear(kind)
        await self.telemetry.reset()
        await self._provisioner.apply(self._declared)

    def _advance(self, clock: Clock) -> Advance | None:
        if not isinstance(clock, SimulatedClock):
            return None

        async def advance(milliseconds: int) -> int:
            before = self.engine.attempts
            await clock.advance(milliseconds, self._quiet)
            await self._tidy()
            await self.telemetry.tidy()
            await self._keep_moment(clock.now())
            return self.engine.attempts - before

        return advance

    async def _keep_moment(self, now: int) -> None:
        """A kept store has moments of this clock in it: the next run goes on from here."""
        documents = self.engine.resources.documents
        if await documents.get(_MOMENT, "moment") is None:
            await documents.create(_MOMENT, "moment", now)
        else:
            await documents.update(_MOMENT, "moment", lambda _: now)

    async def _take_up_moment(self) -> None:
        clock = self.engine.clock
        if isinstance(clock, SimulatedClock):
            moment: int | None = await self.engine.resources.documents.get(_MOMENT, "moment")
            clock.take_up(moment or 0)

    async def _quiet(self) -> None:
        await self.engine.quiet()
        await self.telemetry.quiet()

    async def _tidy(self) -> None:
        """One round of upkeep.

        On a simulated clock once after each advance: nobody can look in between, and a year has a million rounds.
        """
        await self.engine.tidy()

    async def _keep_up(self) -> None:
        """Upkeep for as long as the server runs; what fails in it is told, and ends nobody's service."""
        clock = self.engine.clock
        upkeep = self._tidy if isinstance(clock, SimulatedClock) else self.engine.run
        while True:
            try:
                await upkeep()
            except Exception:
                logger.exception("upkeep.failed: taken up again in the next round")
            else:
                return  # once, on a simulated clock
            await clock.sleep_until(clock.now() + ROUND_MS)

    async def run(self, ready: Callable[[str], None]) -> None:
        """Serve until SIGTERM or SIGINT, then answer what is under way and close.

        Args:
            ready: Called with the server's URL when it accepts requests.
        """
        if self._settings.skip_queue_waits:
            logger.warning(
                "skip_queue_waits is on: queues are made again and purged again at once, where Amazon wants 60 seconds"
            )
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        for risk in risks(self._settings):
            logger.warning("%s", risk)
        await self.engine.open(self._take_up_moment)
        try:
            await self._provisioner.apply(self._declared)
            context = self._ssl_context()
            await self.front.start(self._settings.host, self._settings.port, context)
            url = f"{'https' if context else 'http'}://{_in_url(self._settings.host)}:{self.front.port}"
            await self._prepare_signers(url)
            gc.freeze()  # what stands now stays: looking at it again and again took a tenth of a receive's time
            ready(url)
            async with asyncio.TaskGroup() as group:
                upkeep = group.create_task(self._keep_up(), name="redrive-upkeep")
                recording = group.create_task(self.telemetry.run(), name="redrive-telemetry")
                watching = group.create_task(warn_of_jumps(SystemClock().now), name="redrive-clock")
                await stop.wait()
                for task in (upkeep, recording, watching):
                    task.cancel()
        finally:
            self.engine.stop_receiving()
            await asyncio.gather(self.front.drain(DRAIN_SECONDS), self.engine.drain(DRAIN_SECONDS))
            await self.telemetry.close()
            await self.engine.close()
            for endpoint in self._endpoints.values():
                await endpoint.close()
            if self._signer is not None:
                self._signer.close()

    def _ssl_context(self) -> ssl.SSLContext | None:
        settings = self._settings
        if settings.tls_cert:
            return server_context(Path(settings.tls_cert), Path(settings.tls_key))
        if settings.tls == "off":
            return None
        certificate = local_authority(Path("redrive-tls"), _names(settings), SystemClock().now())
        logger.warning("%s", certificate.advice)
        return server_context(certificate.server_file, certificate.server_file)


def _names(settings: Settings) -> list[str]:
    """The host names that clients may use for this server."""
    public = urlsplit(settings.public_url).hostname
    return [settings.host, *([public] if public else [])]


def _in_url(host: str) -> str:
    if host in ("", "0.0.0.0", "::"):  # noqa: S104 - every address: name one that can be asked for
        return "localhost"
    return f"[{host}]" if ":" in host else host


def serve(settings: Settings, ready: Callable[[str], None]) -> None:
    """Serve until told to stop."""

    async def run() -> None:
        await App(settings).run(ready)

    # The commit thread wants the interpreter's lock for a moment, twice a group; by default it waits up to 5 ms for it.
    # And a request leaves some hundred objects that die by themselves: to look for cycles every 700 is to look for
    # nothing. Together a tenth more messages a second at 128 connections.
    sys.setswitchinterval(0.0005)
    # Each client, endpoint and file is one; the soft limit is often 1,024, from times when `select` counted them.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    gc.set_threshold(20_000, 20, 50)
    uvloop.run(run())
