"""The services behind Azure's interfaces: the resource manager, publishing, namespaces, blobs and the authority."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from redrive.azure.arm.event_sources import EventSources
from redrive.azure.arm.insights import Insights
from redrive.azure.arm.service import KINDS, Arm, build_operations
from redrive.azure.arm.storage import StorageAccounts, StorageOperations
from redrive.azure.arm.subscribers import Subscribers
from redrive.azure.blob_service import BlobService
from redrive.azure.entra import Entra
from redrive.azure.eventgrid.credentials import PublisherCredentials
from redrive.azure.eventgrid.documents import NAMESPACE
from redrive.azure.eventgrid.publishing import Publishers
from redrive.azure.gateway import AzureGateway
from redrive.azure.handshake import Handshakes
from redrive.azure.namespaces.service import Namespaces
from redrive.azure.shared_access import BlobAccess
from redrive.azure.storage_keys import StorageKeys
from redrive.azure.wire.bearer import BearerAuthentication, BearerVerifier, TrustAllBearers
from redrive.composition.core import Core
from redrive.composition.event_grid_delivery import EventGridDelivery
from redrive.endpoints.blob_store import BlobStore
from redrive.endpoints.containers import BlobContainers
from redrive.engine.ports import DocumentKind
from redrive.runtime.machine import SystemClock
from redrive.settings import address_of, read_addresses

#: Documents that callers make through them.
DOCUMENTS: Final[Sequence[DocumentKind[Any]]] = (*KINDS, NAMESPACE)


def azure_gateway(core: Core, delivery: EventGridDelivery) -> AzureGateway:
    """The services on a server's core, whose events are delivered by these parts."""
    engine, clock, required = core.engine, SystemClock(), core.settings.auth == "required"
    measures, tokens, bearer = delivery.measures, delivery.tokens, _authentication(core)
    handshakes = Handshakes(engine, {"http": core.web, "https": core.web}, tokens, clock)
    resolve = partial(address_of, read_addresses(core.settings.azure_endpoints))
    sources = EventSources(engine, Subscribers(engine))
    insights = Insights(core.store, core.telemetry.flush, sources.resource)
    containers, keys = BlobContainers(core.settings.blobs_at), StorageKeys(core.secret)
    accounts = StorageAccounts(engine)
    storage = StorageOperations(accounts, containers, keys, resolve)
    access = BlobAccess(accounts, keys, bearer, clock, core.refusals)
    operations = build_operations(engine, handshakes, resolve, [insights, storage])
    credentials = PublisherCredentials(
        bearer, clock, core.public_url, required=required, refusals=core.refusals
    )
    return AzureGateway(
        core.runtime,
        [
            Publishers(engine, credentials, measures),
            Namespaces(engine, credentials, measures, core.secret),
            Arm(core.runtime.clock, bearer, operations, core.public_url, engine.resources.documents),
            handshakes,
            BlobService(
                containers,
                BlobStore(core.settings.blobs_at, core.ca_file),
                access if required else None,
                clock,
            ),
            Entra(clock, bearer, core.public_url, tokens),
        ],
    )


def _authentication(core: Core) -> BearerAuthentication:
    if core.settings.auth == "off":
        return TrustAllBearers()
    return BearerVerifier(core.keyring, SystemClock(), core.refusals)
