"""What the resource manager offers, put together."""

from collections.abc import Sequence
from typing import Any, Final

from redrive.engine.directory import Kind
from redrive.engine.engine import Engine
from redrive.protocols.azure.arm.accounts import GROUP, AccountOperations
from redrive.protocols.azure.arm.destinations import Where
from redrive.protocols.azure.arm.domain_topics import DomainTopicOperations
from redrive.protocols.azure.arm.event_subscriptions import EventSubscriptionOperations
from redrive.protocols.azure.arm.everywhere import EverywhereOperations
from redrive.protocols.azure.arm.publishers import DOMAINS, TOPICS, PublisherOperations
from redrive.protocols.azure.arm.room import Operations
from redrive.protocols.azure.arm.sources import SYSTEM_TOPIC, Sources
from redrive.protocols.azure.arm.subscribers import Subscribers
from redrive.protocols.azure.arm.system_topics import SystemTopicOperations
from redrive.protocols.azure.handshake import QUESTION, Handshakes

KINDS: Final[Sequence[Kind[Any]]] = (GROUP, SYSTEM_TOPIC, QUESTION)  # of documents that a reset removes


def offered(
    engine: Engine, handshakes: Handshakes, where: Where, others: Sequence[Operations] = ()
) -> list[Operations]:
    """Everything, in the order in which routes are tried.

    Args:
        engine: Carries it out.
        handshakes: Asks endpoints whether they agree.
        where: What stands behind the resource ids of destinations.
        others: Operations on resources that have routes of their own.
    """
    subscribers = Subscribers(engine)
    sources = Sources(engine, subscribers)
    return [
        AccountOperations(engine, subscribers, where),
        PublisherOperations(engine, subscribers, TOPICS),
        PublisherOperations(engine, subscribers, DOMAINS),
        DomainTopicOperations(engine, subscribers, sources),
        SystemTopicOperations(engine, sources),
        *others,
        EverywhereOperations(engine, sources),
        EventSubscriptionOperations(engine, subscribers, sources, handshakes, where),
    ]
