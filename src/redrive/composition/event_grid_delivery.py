"""Event Grid's part in delivering events: the profile of its subscriptions, and what is measured of it."""

from dataclasses import dataclass
from functools import partial

from redrive.azure.entra import WebhookTokens
from redrive.azure.eventgrid.dialect import EventGridDeliveryProfile, present
from redrive.azure.eventgrid.measures import FailureLog, Measures, PullMeasures
from redrive.azure.eventgrid.publishing import TopicEndpoint
from redrive.azure.recognise import BLOBS
from redrive.composition.core import Core
from redrive.composition.extension import Presenter
from redrive.endpoints.blob import read_connection_string, read_container
from redrive.runtime.machine import SystemClock
from redrive.settings import address_of, read_addresses


@dataclass(frozen=True, slots=True, kw_only=True)
class EventGridDelivery:
    """The part in delivering."""

    profile: EventGridDeliveryProfile  # Delivery profile of its topics
    endpoint: TopicEndpoint  # Topics of this server as destinations
    measures: Measures  # Hears of its topics' deliveries
    pull_measures: PullMeasures  # Hears of what is dropped from queues
    tokens: WebhookTokens  # Issues those that webhooks want
    present: Presenter  # See `Presenter`


def event_grid_delivery(core: Core) -> EventGridDelivery:
    """The parts on a server's core; the engine tells `measures` what happens from now on."""
    tokens = WebhookTokens(SystemClock(), core.pair, core.base_url)
    telemetry = core.telemetry
    measures = Measures(telemetry.add, FailureLog(telemetry.logs, core.stream, core.settings.region))
    for listener, names in measures.listeners():
        core.engine.watch(listener, *names)
    return EventGridDelivery(
        profile=EventGridDeliveryProfile(core.store.notes, tokens, partial(_url_of, core)),
        endpoint=TopicEndpoint(core.engine.resources.topics),
        measures=measures,
        pull_measures=PullMeasures(measures.counter),
        tokens=tokens,
        present=present,
    )


def _url_of(core: Core, container: str) -> str:
    """The URL of a container: at the account's own Blob service, or at this server's."""
    addresses = address_of(read_addresses(core.settings.azure_endpoints), container)
    container_name = read_container(container)
    if addresses is not None:
        return f"{read_connection_string(addresses).blob_url}/{container_name.name}"
    return f"{core.base_url}{BLOBS}{container_name.account}/{container_name.name}"
