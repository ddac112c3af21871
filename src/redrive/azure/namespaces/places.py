"""Names of a namespace's topics and queues in the engine.

A namespace is its own document; its topics are engine topics `namespaces:n:t`, and an event subscription in queue
mode is an engine queue `namespaces:n:t:s`, which publications are routed into at once. Their account and region are the
Azure subscription and resource group, in lower case, as `redrive.azure.eventgrid.names` has it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from redrive.azure.eventgrid import names
from redrive.azure.wire.arm_id import ArmId
from redrive.engine.ports import DocumentKind
from redrive.model.document import Document
from redrive.model.names import ResourceName

PROVIDER: Final = "Microsoft.EventGrid"


@dataclass(frozen=True, slots=True)
class NamespacePlace(Document):
    """One namespace as configured."""

    restored: ClassVar = {"name": ResourceName._make}

    name: ResourceName  # The Azure subscription, the resource group and its own name, in lower case
    # As a topic's, see `redrive.azure.eventgrid.settings`: its ARM id as it was spelt, its properties and the
    # rest of the resource as JSON, and its two access keys.
    attributes: Mapping[str, str] = field(default_factory=dict)
    created_at: int = 0  # Time of creation (ms)


NAMESPACE: Final = DocumentKind.of("eventgrid_namespace", NamespacePlace)


def namespace_id(subscription: str, group: str, name: str) -> ArmId:
    """The ARM id of a namespace."""
    return ArmId(subscription, group, PROVIDER, ("namespaces", name))


def namespace_name(resource: ArmId) -> ResourceName:
    """The name of a namespace's document; `resource` is its ARM id, or that of a resource within it."""
    return names.place_of(resource, resource.names[0])


def topic_name(resource: ArmId) -> ResourceName:
    """The engine topic of a namespace's topic."""
    return names.place_of(resource, ":".join(("namespaces", *resource.names[:2])))


def queue_name(topic: ResourceName, subscription: str) -> ResourceName:
    """The queue of an event subscription in queue mode."""
    return topic._replace(name=f"{topic.name}:{subscription}")


def path_of(resource: ArmId) -> str:
    """The beginning of the paths of a namespace's own routes, below the server's URL."""
    return f"/eventgrid/{resource.subscription}/{resource.group}/{resource.names[0]}"


def topics_prefix(namespace: ResourceName) -> ResourceName:
    """The prefix of the names of a namespace's topics."""
    return namespace._replace(name=f"namespaces:{namespace.name}:")
