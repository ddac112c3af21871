"""Names of Event Grid's resources within the engine.

An engine topic is whatever events are published to and subscribed at. Its account is the Azure subscription, its
region the resource group, its name the short kind and the names, in lower case and with colons between them, which
no name of Azure's or Amazon's holds:

    …/Microsoft.EventGrid/topics/T                      topics:t
    …/Microsoft.EventGrid/domains/D                     domains:d
    …/Microsoft.EventGrid/domains/D/topics/T            domains:d:t
    …/Microsoft.EventGrid/namespaces/N/topics/T         namespaces:n:t
    …/Microsoft.Storage/storageAccounts/S               storageaccounts:s

A system topic is a name for its source: who subscribes at either subscribes at the same engine topic.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple

from redrive.azure.wire.arm_id import ArmId
from redrive.engine.resources import Documents
from redrive.model.names import ResourceName

DIALECT: Final = (
    "eventgrid"  # what topics are kept under, and the profile of topics' and domains' event subscriptions
)
NAMESPACES: Final = "eventgrid.namespaces"  # the profile of namespaces' event subscriptions
DEAD_LETTER_STORES: Final = "eventgrid.dead-letters"  # the profile of the stores of both kinds' dead letters
DEAD_LETTERS: Final = "dead-letters"
ENVELOPE: Final = "eventgrid"  # of the headers that deliveries carry
TOPIC: Final = "topic"  # the protocol of topics of this server as destinations
_OF_NAMESPACE: Final = "namespaces:"

_KINDS: Final = {
    "microsoft.eventgrid/topics": "topics",
    "microsoft.eventgrid/domains": "domains",
    "microsoft.eventgrid/domains/topics": "domains",
    "microsoft.eventgrid/namespaces/topics": "namespaces",
    "microsoft.storage/storageaccounts": "storageaccounts",
}


def is_event_topic(topic: ResourceName) -> bool:
    """True for an engine topic that Event Grid's events are published to."""
    return topic.name.partition(":")[0] in _KINDS.values()


def is_name(text: str) -> bool:
    """True if something can be called so, as far as the engine goes; percent-encoded, a path can hold anything.

    A colon is what the engine has between names, and not every store keeps a key with a NUL in it.
    """
    return ":" not in text and text.isprintable()


def topic_name(resource: ArmId) -> ResourceName | None:
    """The engine topic that a resource's events are published to; None: it sends none."""
    kind = _KINDS.get(resource.type)
    if kind is None:
        return None
    return place_of(resource, ":".join((kind, *resource.names)))


def topic_name_of(resource: ArmId) -> ResourceName:
    """The engine topic of a resource that is known to have one; raises ValueError if the resource publishes no events."""
    name = topic_name(resource)
    if name is None:
        raise ValueError(f"not a resource that publishes events: {resource.text}")
    return name


def within(name: ResourceName) -> ResourceName:
    """The beginning of the names of the engine topics in a domain, `domains:d:`, or in a namespace."""
    return name._replace(name=f"{name.name}:")


def domain_of(topic: ResourceName) -> ResourceName | None:
    """The name of the domain that an engine topic is in: of `domains:d:t` it is `domains:d`."""
    domain, _, topic_name = topic.name.rpartition(":")
    return topic._replace(name=domain) if topic_name and domain.startswith("domains:") else None


def publishing_path(resource: ArmId) -> str:
    """The path for publishing to a topic or a domain, below the server's URL; each has its own.

    /eventgrid/{subscription}/{group}/{topic}/api/events, /eventgrid/{subscription}/{group}/domains/{domain}/api/events
    """
    kind = "domains/" if resource.type == "microsoft.eventgrid/domains" else ""
    return f"/eventgrid/{resource.subscription}/{resource.group}/{kind}{resource.name}/api/events"


def place_of(resource: ArmId, name: str) -> ResourceName:
    """A name within a resource's group."""
    return ResourceName(resource.subscription.lower(), resource.group.lower(), name.lower())


def subscription_id(name: str) -> str:
    """An event subscription's id within its engine topic; its own name is kept beside it as it was spelt."""
    return name.lower()


def dead_letter_queue(topic: ResourceName, subscription: str) -> ResourceName:
    """The queue that holds a subscription's dead letters until they are redriven."""
    return topic._replace(name=f"{DEAD_LETTERS}:{topic.name}:{subscription}")


def dead_letter_store(subscription: str) -> str:
    """The id, beside that of an event subscription, of the one whose endpoint is its dead-letter container.

    It is never confirmed, so nothing published reaches it: only dead letters are sent there.
    """
    return f"{subscription}:{DEAD_LETTERS}"


def is_dead_letter_store(subscription: str) -> bool:
    """True if this is a dead-letter container's id and no event subscription's."""
    return subscription.endswith(f":{DEAD_LETTERS}")


def of_dead_letter_store(store: str) -> str:
    """The id of the event subscription that a dead-letter container's id was made from."""
    return store.removesuffix(f":{DEAD_LETTERS}")


def is_namespace_topic(topic: ResourceName) -> bool:
    """True if an engine topic is a namespace's."""
    return topic.name.startswith(_OF_NAMESPACE)


# Topics, domains and namespaces by the hosts that they have in Azure: `{name}.{region}.eventgrid.…`.
#
# A host says neither the Azure subscription nor the group, so the names of all are read together, once, and again only
# when one is asked for that is not among them and a document has changed since: hosts that strangers make up cost a
# look at a dictionary. In Azure a name is taken where it stands; here the oldest of several with one name has the host,
# and another tenant's younger one takes no events from it.


class HostClaim(NamedTuple):
    """The beginning of a host that a resource claims; the oldest comes first."""

    created_at: int  # Of the resource (ms)
    label: str
    name: ResourceName


class HostNames:
    """Remembers the resources that hosts begin with."""

    def __init__(self, documents: Documents, read: Callable[[], Awaitable[Sequence[HostClaim]]]) -> None:
        self._documents = documents
        self._read = read  # Reads the hosts of all resources
        self._names: Mapping[str, ResourceName] = {}
        self._changes = -1
        self._reading = asyncio.Lock()  # Of many who ask for what is not known one reads

    async def find(self, host: str, exists: Callable[[ResourceName], Awaitable[bool]]) -> ResourceName | None:
        """The resource with this host, which may have a port as requests send it; None if there is none."""
        label = host.partition(".")[0].lower()
        name = self._names.get(label)
        if name is not None and await exists(name):
            return name
        async with self._reading:
            changes = self._documents.changes
            if self._changes != changes:
                hosts = sorted(await self._read(), reverse=True)
                self._names, self._changes = {host.label: host.name for host in hosts}, changes
        return self._names.get(label)
