"""The resource manager's operations, put together."""

from collections.abc import Sequence
from typing import Any, Final

from redrive.azure.arm import specs
from redrive.azure.arm.accounts import GROUP, SubscriptionOperations
from redrive.azure.arm.deployments import DEPLOYMENT
from redrive.azure.arm.destinations import EndpointResolver
from redrive.azure.arm.event_sources import EventSources
from redrive.azure.arm.event_subscriptions import EventSubscriptionOperations
from redrive.azure.arm.listings import ListingOperations
from redrive.azure.arm.resource_types import (
    DomainTopicCollection,
    NamespaceCollection,
    NamespaceTopicCollection,
    SystemTopicCollection,
    TopicCollection,
)
from redrive.azure.arm.service import ArmOperations
from redrive.azure.arm.storage_accounts import STORAGE_ACCOUNT
from redrive.azure.arm.subscribers import Subscribers
from redrive.azure.arm.system_topic import SYSTEM_TOPIC
from redrive.azure.handshake import QUESTION, Handshakes
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind

# Of documents that a reset removes.
KINDS: Final[Sequence[DocumentKind[Any]]] = (GROUP, STORAGE_ACCOUNT, SYSTEM_TOPIC, QUESTION, DEPLOYMENT)


def build_operations(
    engine: Engine, handshakes: Handshakes, resolve: EndpointResolver, others: Sequence[ArmOperations] = ()
) -> list[ArmOperations]:
    """All operations, in the order in which their routes are tried.

    Args:
        engine: Carries them out.
        handshakes: Asks endpoints whether they agree.
        resolve: What stands behind the resource ids of destinations.
        others: Operations on resources that have routes of their own.
    """
    subscribers = Subscribers(engine)
    sources = EventSources(engine, subscribers)
    return [
        SubscriptionOperations(engine, subscribers),
        TopicCollection(engine, specs.TOPICS, subscribers),
        TopicCollection(engine, specs.DOMAINS, subscribers),
        DomainTopicCollection(engine, subscribers, sources),
        SystemTopicCollection(engine, sources),
        NamespaceCollection(engine, subscribers),
        NamespaceTopicCollection(engine, subscribers),
        *others,
        ListingOperations(engine, sources),
        EventSubscriptionOperations(engine, subscribers, sources, handshakes, resolve),
    ]
