"""System topics as they are kept: names for what publishes events by itself, here storage accounts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import orjson

from redrive.azure.eventgrid import names, settings
from redrive.azure.wire.arm_id import ArmId
from redrive.engine.ports import DocumentKind
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
