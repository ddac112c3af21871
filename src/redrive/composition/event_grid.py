"""Azure Event Grid: its delivery profiles, what is measured of it, and the services behind Azure's interfaces."""

from functools import partial

from redrive.azure.arm.event_sources import EventSources
from redrive.azure.arm.insights import Insights
from redrive.azure.arm.service import KINDS, Arm, build_operations
from redrive.azure.arm.storage import BLOBS, StorageAccounts, StorageOperations
from redrive.azure.arm.subscribers import Subscribers
from redrive.azure.blob_service import BlobService
from redrive.azure.entra import Entra
from redrive.azure.eventgrid import dialect
from redrive.azure.eventgrid.credentials import PublisherCredentials
from redrive.azure.eventgrid.failure_log import FailureLog
from redrive.azure.eventgrid.measures import Measures
from redrive.azure.eventgrid.names import DIALECT
from redrive.azure.eventgrid.publishing import Publishers, TopicEndpoint
from redrive.azure.gateway import AzureGateway
from redrive.azure.handshake import Handshakes
from redrive.azure.namespaces.places import NAMESPACE
from redrive.azure.namespaces.service import Namespaces
from redrive.azure.shared_access import BlobAccess
from redrive.azure.storage_keys import StorageKeys
from redrive.azure.webhook_tokens import WebhookTokens
from redrive.composition.core import Core
from redrive.composition.extension import DeliveryParts, Extension, Interface
from redrive.endpoints.blob import read_connection_string, read_container
from redrive.endpoints.blob_store import BlobStore
from redrive.endpoints.containers import BlobContainers
from redrive.runtime.clock import SystemClock
from redrive.settings import address_of, read_addresses


def extension(core: Core) -> Extension:
    """Event Grid on the engine."""
    tokens = WebhookTokens(SystemClock(), core.pair, core.base_url)
    telemetry = core.telemetry
    measures = Measures(telemetry.add, FailureLog(telemetry.logs, core.stream, core.settings.region))
    return Extension(
        interface=Interface(
            protocols=(_gateway(core, measures, tokens),),
            kinds=[*KINDS, NAMESPACE],
        ),
        delivery=DeliveryParts(
            profiles={
                DIALECT: dialect.EventGridDeliveryProfile(core.store.notes, tokens, partial(_url_of, core))
            },
            endpoints={dialect.TOPIC: TopicEndpoint(core.engine.resources.topics)},
            listeners=measures.listeners(),
            presenters={dialect.ENVELOPE: dialect.present},
        ),
    )


def _url_of(core: Core, container: str) -> str:
    """The URL of a container: at the account's own Blob service, or at this server's."""
    addresses = address_of(read_addresses(core.settings.azure_endpoints), container)
    container_name = read_container(container)
    if addresses is not None:
        return f"{read_connection_string(addresses).blob_url}/{container_name.name}"
    return f"{core.base_url}{BLOBS}{container_name.account}/{container_name.name}"


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
    credentials = PublisherCredentials(
        core.bearer, clock, core.public_url, required=required, refusals=core.refusals
    )
    return AzureGateway(
        core.runtime,
        [
            Publishers(engine, credentials, measures),
            Namespaces(engine, credentials, measures, core.secret),
            Arm(core.runtime.clock, core.bearer, operations, core.public_url, engine.resources.documents),
            handshakes,
            BlobService(
                containers, BlobStore(core.blob_store, core.ca_file), access if required else None, clock
            ),
            Entra(clock, core.bearer, core.public_url, tokens),
        ],
    )
