"""What the resource manager offers of namespaces, put together."""

from redrive.engine.engine import Engine
from redrive.protocols.azure.arm.destinations import Where
from redrive.protocols.azure.arm.namespace_subscriptions import (
    NamespaceSubscribers,
    NamespaceSubscriptionOperations,
)
from redrive.protocols.azure.arm.namespace_topics import NamespaceTopicOperations
from redrive.protocols.azure.arm.namespaces import NamespaceOperations
from redrive.protocols.azure.arm.room import Operations
from redrive.protocols.azure.arm.subscribers import Subscribers
from redrive.protocols.azure.handshake import Handshakes


def namespaces_offered(engine: Engine, handshakes: Handshakes, where: Where) -> list[Operations]:
    """Everything that is done to namespaces and to what is within them.

    Args:
        engine: Carries it out.
        handshakes: Asks endpoints whether they agree.
        where: What stands behind the resource ids of destinations.
    """
    subscribers = NamespaceSubscribers(engine, Subscribers(engine))
    return [
        NamespaceOperations(engine, subscribers),
        NamespaceTopicOperations(engine, subscribers),
        NamespaceSubscriptionOperations(engine, subscribers, handshakes, where),
    ]
