"""The resource manager's operations, put together."""

from collections.abc import Sequence
from typing import Any, Final

from redrive.engine.engine import Engine
from redrive.engine.ports import Kind
from redrive.protocols.azure.arm.accounts import GROUP, AccountOperations
from redrive.protocols.azure.arm.destinations import EndpointResolver
from redrive.protocols.azure.arm.domain_topics import DomainTopicOperations
from redrive.protocols.azure.arm.event_sources import SYSTEM_TOPIC, EventSources
from redrive.protocols.azure.arm.event_subscriptions import EventSubscriptionOperations
from redrive.protocols.azure.arm.listings import ListingOperations
from redrive.protocols.azure.arm.namespace_subscriptions import (
    NamespaceSubscribers,
    NamespaceSubscriptionOperations,
)
from redrive.protocols.azure.arm.namespace_topics import NamespaceTopicOperations
from redrive.protocols.azure.arm.namespaces import NamespaceOperations
from redrive.protocols.azure.arm.publishers import DOMAINS, TOPICS, PublisherOperations
from redrive.protocols.azure.arm.service import Operations
from redrive.protocols.azure.arm.subscribers import Subscribers
from redrive.protocols.azure.arm.system_topics import SystemTopicOperations
from redrive.protocols.azure.handshake import QUESTION, Handshakes

KINDS: Final[Sequence[Kind[Any]]] = (GROUP, SYSTEM_TOPIC, QUESTION)  # of documents that a reset removes


def build_operations(
    engine: Engine, handshakes: Handshakes, resolve: EndpointResolver, others: Sequence[Operations] = ()
) -> list[Operations]:
    """All operations, in the order in which their routes are tried.

    Args:
        engine: Carries them out.
        handshakes: Asks endpoints whether they agree.
        resolve: What stands behind the resource ids of destinations.
        others: Operations on resources that have routes of their own.
    """
    subscribers = Subscribers(engine)
    of_namespaces = NamespaceSubscribers(engine, subscribers)
    sources = EventSources(engine, subscribers)
    return [
        AccountOperations(engine, subscribers, resolve),
        PublisherOperations(engine, subscribers, TOPICS),
        PublisherOperations(engine, subscribers, DOMAINS),
        DomainTopicOperations(engine, subscribers, sources),
        SystemTopicOperations(engine, sources),
        NamespaceOperations(engine, of_namespaces),
        NamespaceTopicOperations(engine, of_namespaces),
        NamespaceSubscriptionOperations(engine, of_namespaces, handshakes, resolve),
        *others,
        ListingOperations(engine, sources),
        EventSubscriptionOperations(engine, subscribers, sources, handshakes, resolve),
    ]
