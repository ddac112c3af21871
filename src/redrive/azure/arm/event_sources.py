"""Event sources: what event subscriptions are made at.

Topics, domains and their topics, topics of namespaces, storage accounts, and system topics. A domain topic comes with
its first event subscription and goes with its last, unless the domain says otherwise. A storage account is known from
its first event subscription or system topic on; a system topic is a name for it.
"""

import contextlib
from collections.abc import Mapping
from typing import Any, Final

import orjson

from redrive.azure.arm.destinations import STORAGE_ACCOUNT, check_storage_account
from redrive.azure.arm.resource import BESIDE, check_name, id_of, no_such, properties_of
from redrive.azure.arm.subscribers import Subscribers
from redrive.azure.eventgrid import names, settings
from redrive.azure.eventgrid.documents import SYSTEM_TOPIC, system_topic_name
from redrive.azure.wire.answers import invalid
from redrive.azure.wire.arm_id import ArmId
from redrive.engine.engine import Engine
from redrive.model.errors import AlreadyExists
from redrive.model.topic import Topic

DOMAIN_TOPIC: Final = "microsoft.eventgrid/domains/topics"
NAMESPACE_TOPIC: Final = "microsoft.eventgrid/namespaces/topics"
SYSTEM_TOPIC_TYPE: Final = "microsoft.eventgrid/systemtopics"
_CREATES: Final = "autoCreateTopicWithFirstSubscription"
_DELETES: Final = "autoDeleteTopicWithLastSubscription"
_INHERITED: Final = ("inputSchema", "inputSchemaMapping")


class EventSources:
    """Finds event sources, makes those that come by themselves, and clears them away."""

    def __init__(self, engine: Engine, subscribers: Subscribers) -> None:
        self._topics = engine.resources.topics
        self._documents = engine.resources.documents
        self._subscribers = subscribers

    async def resource(self, scope: ArmId | None, scope_text: str) -> ArmId:
        """The event source that a scope is, or is a name for; refusals repeat the `scope_text`.

        Raises:
            AzureError: There is no such system topic, or the scope publishes nothing here.
        """
        if scope is not None and scope.type == SYSTEM_TOPIC_TYPE:
            system_topic = await self._documents.get(SYSTEM_TOPIC, system_topic_name(scope).key)
            if system_topic is None:
                raise no_such(scope)
            scope = ArmId.parse(system_topic.source)
        if scope is None or names.topic_name(scope) is None:
            raise invalid(
                f"Nothing publishes events at the scope '{scope_text}' of this server. It has events of topics, "
                "domains, "
                "domain topics and system topics, and of storage accounts that dead letters are written to."
            )
        if scope.type == STORAGE_ACCOUNT:
            check_storage_account(scope)
        if scope.type == DOMAIN_TOPIC:
            check_name(scope.name)
        return scope

    async def topic(self, resource: ArmId) -> Topic | None:
        """The engine's topic of a source, if it exists."""
        return await self._topics.get(names.topic_name_of(resource))

    async def topic_or_new(self, resource: ArmId) -> Topic:
        """The engine's topic of a source: the existing one, or the one that `ensure` is to make.

        Raises:
            AzureError: It does not exist, and does not come by itself.
        """
        topic = await self.topic(resource)
        if topic is not None:
            return topic
        if resource.type == STORAGE_ACCOUNT:
            return new_topic(resource, {"inputSchema": settings.EVENT_GRID_SCHEMA})
        if resource.type == DOMAIN_TOPIC:
            properties = properties_of(await self.domain(resource))
            if properties.get(_CREATES, True):
                return domain_topic(resource, properties)
        raise no_such(resource)

    async def ensure(self, source_topic: Topic) -> Topic:
        """The topic, made if it does not exist."""
        while True:
            topic = await self._topics.get_stored(source_topic.name)
            if topic is not None:
                return topic
            with contextlib.suppress(AlreadyExists):
                return await self._subscribers.make_topic(source_topic)

    async def is_removed_with_its_last(self, topic: Topic) -> bool:
        """True if a topic is removed with its last event subscription: a domain topic is, unless its domain keeps it."""
        resource = id_of(topic.attributes)
        if resource.type != DOMAIN_TOPIC:
            return False
        domain = await self.topic(_domain_of(resource))
        return domain is None or bool(properties_of(domain).get(_DELETES, True))

    async def domain(self, resource: ArmId) -> Topic:
        """The domain that a domain topic is in; raises AzureError if the domain does not exist."""
        parent = _domain_of(resource)
        domain = await self.topic(parent)
        if domain is None:
            raise no_such(parent)
        return domain


def _domain_of(resource: ArmId) -> ArmId:
    return resource._replace(parts=resource.parts[:2])


def domain_topic(resource: ArmId, domain_properties: Mapping[str, Any]) -> Topic:
    """A new topic of a domain, which takes events as the domain does."""
    return new_topic(
        resource, {name: domain_properties[name] for name in _INHERITED if name in domain_properties}
    )


def new_topic(resource: ArmId, properties: Mapping[str, Any]) -> Topic:
    """A new topic without keys, which is not published to directly."""
    attributes = {
        settings.ID: resource.text,
        settings.PROPERTIES: orjson.dumps(properties).decode(),
        BESIDE: "{}",
    }
    return Topic(0, names.topic_name_of(resource), names.DIALECT, attributes=attributes)
