"""What event subscriptions are made at: topics, domains, their topics, storage accounts, and system topics.

A domain topic comes with its first event subscription and goes with its last, unless the domain says otherwise. A
storage account is known from its first event subscription or system topic on; a system topic is a name for it.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

import orjson

from redrive.engine.engine import Engine
from redrive.engine.ports import Kind
from redrive.model.errors import AlreadyExists
from redrive.model.queue import ResourceName
from redrive.model.topic import Topic
from redrive.protocols.azure.arm.destinations import STORAGE_ACCOUNT, check_storage_account
from redrive.protocols.azure.arm.documents import RESOURCE, check_name
from redrive.protocols.azure.arm.publishers import no_such
from redrive.protocols.azure.arm.subscribers import Subscribers
from redrive.protocols.azure.eventgrid import names, settings
from redrive.protocols.azure.wire.arm_id import ArmId
from redrive.protocols.azure.wire.errors import AzureError, invalid

DOMAIN_TOPIC: Final = "microsoft.eventgrid/domains/topics"
NAMESPACE_TOPIC: Final = "microsoft.eventgrid/namespaces/topics"
SYSTEM_TOPIC_TYPE: Final = "microsoft.eventgrid/systemtopics"
_CREATES: Final = "autoCreateTopicWithFirstSubscription"
_DELETES: Final = "autoDeleteTopicWithLastSubscription"


@dataclass(frozen=True, slots=True)
class SystemTopic:
    """A name for a source of events.

    Attributes:
        id: Its ARM id.
        source: The source's.
        topic_type: `Microsoft.Storage.StorageAccounts`.
        document: What stands beside its properties: location, tags, identity.
    """

    id: str
    source: str
    topic_type: str
    document: Mapping[str, Any]

    @property
    def key(self) -> str:
        """What the directory keeps it under."""
        resource = ArmId.parse(self.id)
        if resource is None:
            raise ValueError(f"no resource id: {self.id}")
        return system_topic_key(resource)

    def to_document(self) -> dict[str, Any]:
        """The system topic as a JSON-ready document."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_document` wrote, as JSON gave it back."""
        return cls(**document)


SYSTEM_TOPIC: Final[Kind[SystemTopic]] = Kind(
    "eventgrid_system_topic", SystemTopic.to_document, SystemTopic.from_document
)


class EventSources:
    """Finds what event subscriptions are made at, makes it where that is due, and clears it away."""

    def __init__(self, engine: Engine, subscribers: Subscribers) -> None:
        """Look in this engine, whose topics have these subscribers."""
        self._engine = engine
        self._subscribers = subscribers

    async def resource(self, scope: ArmId | None, spelt: str) -> ArmId:
        """The source of events that a scope is, or is a name for.

        Args:
            scope: What the path names.
            spelt: The same as it was spelt, for a refusal.

        Raises:
            AzureError: There is no such system topic, or the scope publishes nothing here.
        """
        if scope is not None and scope.type == SYSTEM_TOPIC_TYPE:
            system_topic = await self._engine.resources.documents.get(SYSTEM_TOPIC, system_topic_key(scope))
            if system_topic is None:
                raise no_such(scope)
            scope = ArmId.parse(system_topic.source)
        if scope is None or names.topic_name(scope) is None:
            raise _publishes_nothing(spelt)
        if scope.type == STORAGE_ACCOUNT:
            check_storage_account(scope)
        if scope.type == DOMAIN_TOPIC:
            check_name(scope.name)
        return scope

    async def topic(self, resource: ArmId) -> Topic | None:
        """The engine's topic of a source, if it stands."""
        return await self._engine.resources.topics.get(_name(resource))

    async def wanted(self, resource: ArmId) -> Topic:
        """The engine's topic of a source: the one that stands, or the one that `ensured` is to make.

        Raises:
            AzureError: It does not stand, and does not come by itself.
        """
        name = _name(resource)
        topic = await self._engine.resources.topics.get(name)
        if topic is not None:
            return topic
        if resource.type == STORAGE_ACCOUNT:
            return new_topic(resource, {"inputSchema": settings.EVENT_GRID_SCHEMA})
        if resource.type == DOMAIN_TOPIC:
            domain = await self.domain(resource)
            properties = orjson.loads(domain.attributes[settings.PROPERTIES])
            if properties.get(_CREATES, True):
                return domain_topic(resource, properties)
        raise no_such(resource)

    async def ensured(self, wanted: Topic) -> Topic:
        """The topic, made if it does not stand."""
        topics = self._engine.resources.topics
        while True:
            topic = await topics.get(wanted.name)
            if topic is not None:
                return topic
            with contextlib.suppress(AlreadyExists):
                return await topics.create(wanted)

    async def cleared(self, topic: Topic) -> None:
        """Take a domain topic away when its last event subscription went, unless its domain keeps it."""
        resource = ArmId.parse(topic.attributes[settings.ID])
        if resource is None or resource.type != DOMAIN_TOPIC or await self._subscribers.of(topic):
            return
        domain = await self.domain(resource)
        if orjson.loads(domain.attributes[settings.PROPERTIES]).get(_DELETES, True):
            await self._engine.resources.topics.delete(topic)

    async def domain(self, resource: ArmId) -> Topic:
        """The domain that a domain topic is in.

        Raises:
            AzureError: There is none.
        """
        parent = resource._replace(parts=resource.parts[:2])
        domain = await self._engine.resources.topics.get(_name(parent))
        if domain is None:
            raise no_such(parent)
        return domain


def system_topic_key(resource: ArmId) -> str:
    """What the directory keeps a system topic under."""
    return names.place_of(resource, resource.name).key


def domain_topic(resource: ArmId, domain_properties: Mapping[str, Any]) -> Topic:
    """A new topic of a domain: what comes in, comes in as the domain has it."""
    inherited = ("inputSchema", "inputSchemaMapping")
    return new_topic(
        resource, {name: domain_properties[name] for name in inherited if name in domain_properties}
    )


def new_topic(resource: ArmId, properties: Mapping[str, Any]) -> Topic:
    """A new topic that nobody publishes to directly: it has no keys."""
    attributes = {
        settings.ID: resource.text,
        settings.PROPERTIES: orjson.dumps(properties).decode(),
        RESOURCE: "{}",
    }
    return Topic(0, _name(resource), names.DIALECT, attributes=attributes)


def _name(resource: ArmId) -> ResourceName:
    name = names.topic_name(resource)
    if name is None:
        raise _publishes_nothing(resource.text)
    return name


def _publishes_nothing(scope: str) -> AzureError:
    return invalid(
        f"Nothing publishes events at the scope '{scope}' of this server. It has events of topics, domains, domain "
        "topics and system topics, and of storage accounts that dead letters are written to."
    )
