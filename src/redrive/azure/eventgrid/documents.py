"""Event Grid's own documents: namespaces and system topics, with the names of what belongs to them in the engine.

A namespace's topics are engine topics `namespaces:n:t`, and an event subscription in queue mode is an engine queue
`namespaces:n:t:s`, which publications are routed into at once. Their account and region are the Azure subscription and
resource group, in lower case, as `redrive.azure.eventgrid.names` has it. A system topic is a name for what publishes
events by itself, here a storage account.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

import orjson

from redrive.azure.eventgrid import names, settings
from redrive.azure.wire.arm_id import ArmId
from redrive.engine.ports import DocumentKind
from redrive.model.document import Document
from redrive.model.names import ResourceName

_BESIDE: Final = "resource"


@dataclass(frozen=True, slots=True)
class SystemTopic:
    """A system topic."""

    name: ResourceName  # The place of the document; see `system_topic_name`
    # The ARM id as it was spelt, `properties` and what stands beside them, as those of a topic are kept.
    attributes: Mapping[str, str]

    @property
    def source(self) -> str:
        """The ARM id of what publishes the events."""
        source: str = orjson.loads(self.attributes[settings.PROPERTIES])["source"]
        return source

    def to_document(self) -> dict[str, Any]:
        """The system topic as a JSON-ready document."""
        properties = orjson.loads(self.attributes[settings.PROPERTIES])
        return {
            "id": self.attributes[settings.ID],
            "source": properties["source"],
            "topic_type": properties["topicType"],
            "document": orjson.loads(self.attributes[_BESIDE]),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote, as JSON gave it back."""
        resource = ArmId.parse(document["id"])
        if resource is None:
            raise ValueError(f"not a resource id: {document['id']}")
        properties = {"source": document["source"], "topicType": document["topic_type"]}
        attributes = {
            settings.ID: document["id"],
            settings.PROPERTIES: orjson.dumps(properties).decode(),
            _BESIDE: orjson.dumps(document["document"]).decode(),
        }
        return cls(system_topic_name(resource), attributes)


SYSTEM_TOPIC: Final = DocumentKind.of("eventgrid_system_topic", SystemTopic)


def system_topic_name(resource: ArmId) -> ResourceName:
    """The place of a system topic's document, by its ARM id."""
    return names.place_of(resource, resource.name)


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
