"""Azure Event Grid: its delivery profiles, what is measured of it, and the services behind Azure's interfaces."""

from functools import partial

from redrive.composition.core import Core
from redrive.composition.extension import Extension
from redrive.endpoints.containers import BlobContainers
from redrive.protocols.azure.arm.event_sources import EventSources
from redrive.protocols.azure.arm.operations import KINDS, build_operations
from redrive.protocols.azure.arm.service import Arm
from redrive.protocols.azure.arm.storage import StorageOperations
from redrive.protocols.azure.arm.storage_accounts import StorageAccounts
from redrive.protocols.azure.arm.subscribers import Subscribers
from redrive.protocols.azure.blob_access import BlobAccess
from redrive.protocols.azure.blob_service import BlobService
from redrive.protocols.azure.entra import Entra
from redrive.protocols.azure.eventgrid import dialect
from redrive.protocols.azure.eventgrid.credentials import Credentials
from redrive.protocols.azure.eventgrid.failure_log import FailureLog
from redrive.protocols.azure.eventgrid.insights import Insights
from redrive.protocols.azure.eventgrid.measures import Measures
from redrive.protocols.azure.eventgrid.names import DIALECT
from redrive.protocols.azure.eventgrid.publishing import Publishers
from redrive.protocols.azure.eventgrid.topic_endpoint import TopicEndpoint
from redrive.protocols.azure.gateway import AzureGateway
from redrive.protocols.azure.handshake import Handshakes
from redrive.protocols.azure.namespaces.places import NAMESPACE
from redrive.protocols.azure.namespaces.service import Namespaces
from redrive.protocols.azure.storage_keys import StorageKeys
from redrive.protocols.azure.webhook_tokens import WebhookTokens
from redrive.runtime.clock import SystemClock
from redrive.settings import address_of, read_addresses


def extension(core: Core) -> Extension:
    """Event Grid on the engine."""
    tokens = WebhookTokens(SystemClock(), core.pair, core.base_url)
    telemetry = core.telemetry
    measures = Measures(telemetry.count, FailureLog(telemetry.logs, core.stream, core.settings.region))
    return Extension(
        protocols=(_gateway(core, measures, tokens),),
        profiles={DIALECT: dialect.EventGridDeliveryProfile(core.store.notes, tokens)},
        endpoints={dialect.TOPIC: TopicEndpoint(core.engine.resources.topics)},
        listeners=measures.listeners(),
        presenters={dialect.ENVELOPE: dialect.present},
        kinds=[*KINDS, NAMESPACE],
    )


def _gateway(core: Core, measures: Measures, tokens: WebhookTokens) -> AzureGateway:
    engine, clock, required = core.engine, SystemClock(), core.settings.auth == "required"
    handshakes = Handshakes(engine, {"http": core.web, "https": core.web}, tokens, clock)
    resolve = partial(address_of, read_addresses(core.settings.azure_endpoints))
    sources = EventSources(engine, Subscribers(engine))
    insights = Insights(core.store, core.telemetry.flush, sources.resource)
    containers, keys = BlobContainers(core.blob_store), StorageKeys(core.secret)
    accounts = StorageAccounts(engine)
    storage = StorageOperations(accounts, containers, keys, resolve)
    access = BlobAccess(accounts, keys, core.bearer, clock, core.refusals)
    operations = build_operations(engine, handshakes, resolve, [insights, storage])
    credentials = Credentials(core.bearer, clock, core.public_url, required=required, refusals=core.refusals)
    return AzureGateway(
        core.runtime,
        [
            Publishers(engine, credentials, measures),
            Namespaces(engine, credentials, measures, core.secret),
            Arm(core.runtime.clock, core.bearer, operations, core.public_url),
            handshakes,
            BlobService(containers, access if required else None, clock),
            Entra(clock, core.bearer, core.public_url, tokens),
        ],
    )
