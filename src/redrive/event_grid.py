"""Event Grid put together: what is measured of it, and the services that callers of Azure's interfaces come to."""

from collections.abc import Mapping
from functools import partial

from redrive.engine.engine import Engine
from redrive.engine.ports import Endpoint, NodeStore, Runtime
from redrive.protocols.azure.arm.event_sources import EventSources
from redrive.protocols.azure.arm.operations import build_operations
from redrive.protocols.azure.arm.service import Arm
from redrive.protocols.azure.arm.subscribers import Subscribers
from redrive.protocols.azure.entra import Entra
from redrive.protocols.azure.eventgrid.credentials import Credentials
from redrive.protocols.azure.eventgrid.failure_log import FailureLog
from redrive.protocols.azure.eventgrid.insights import Insights
from redrive.protocols.azure.eventgrid.measures import Measures
from redrive.protocols.azure.eventgrid.publishing import Publishers
from redrive.protocols.azure.gateway import AzureGateway, Service
from redrive.protocols.azure.handshake import Handshakes
from redrive.protocols.azure.namespaces.service import Namespaces
from redrive.protocols.azure.webhook_tokens import WebhookTokens
from redrive.protocols.azure.wire import bearer
from redrive.runtime.clock import SystemClock
from redrive.settings import Settings, address_of, read_addresses
from redrive.telemetry.telemetry import Telemetry


class EventGrid:
    """Event Grid on an engine."""

    def __init__(
        self, settings: Settings, engine: Engine, store: NodeStore, telemetry: Telemetry, stream: str
    ) -> None:
        """Speak for this engine.

        Args:
            settings: How.
            engine: The engine.
            store: Its store, where metrics are read.
            telemetry: Takes what is counted and logged.
            stream: The stream of this node in every log group.
        """
        self._settings = settings
        self._engine = engine
        self._measures = Measures(telemetry.count, FailureLog(telemetry.logs, stream, settings.region))
        self._measures.listen_to(engine)
        sources = EventSources(engine, Subscribers(engine))
        self._insights = Insights(store, telemetry.flush, sources.resource)

    def gateway(
        self,
        runtime: Runtime,
        authentication: bearer.Authentication,
        endpoints: Mapping[str, Endpoint],
        webhook_tokens: WebhookTokens,
    ) -> AzureGateway:
        """The way in.

        Args:
            runtime: The engine's.
            authentication: Tells who calls the resource manager.
            endpoints: What is pushed to, by protocol: for handshakes.
            webhook_tokens: Tells webhooks who calls them.
        """
        settings, engine = self._settings, self._engine
        public_url = settings.public_url.rstrip("/") or None
        required = settings.auth == "required"
        handshakes = Handshakes(engine, endpoints, webhook_tokens, SystemClock())
        resolve = partial(address_of, read_addresses(settings.azure_endpoints))
        operations = build_operations(engine, handshakes, resolve, [self._insights])
        credentials = Credentials(authentication, SystemClock(), public_url, required=required)
        services: list[Service] = [
            Publishers(engine, credentials, self._measures),
            Namespaces(engine, credentials, self._measures),
            Arm(runtime.clock, authentication, operations, public_url),
            handshakes,
            Entra(SystemClock(), authentication, public_url, webhook_tokens),
        ]
        return AzureGateway(runtime, services)
