"""Event Grid's resources: as topics of the engine's, and as documents of the facade's own kinds."""

from collections.abc import Callable, Mapping, Sequence

from typing_extensions import override

from redrive.azure.arm import specs
from redrive.azure.arm.call import ArmCall, check_theirs
from redrive.azure.arm.collection import Accept, ArmCollection
from redrive.azure.arm.event_sources import EventSources, domain_topic
from redrive.azure.arm.resource import PROVIDER, ArmResourceSpec, R, no_such, properties_of
from redrive.azure.arm.subscribers import Subscribers
from redrive.azure.eventgrid import names
from redrive.azure.eventgrid.documents import (
    NAMESPACE,
    SYSTEM_TOPIC,
    NamespacePlace,
    SystemTopic,
    namespace_name,
    system_topic_name,
    topics_prefix,
)
from redrive.azure.wire.arm_id import ArmId
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.engine.resources import Draft
from redrive.model.names import ResourceName
from redrive.model.topic import Topic


class TopicCollection(ArmCollection[Topic]):
    """Topics and domains."""

    def __init__(self, engine: Engine, spec: ArmResourceSpec, subscribers: Subscribers) -> None:
        """Keep topics or domains in this engine; `subscribers` removes them with their event subscriptions."""
        super().__init__(engine, spec)
        self._topics = engine.resources.topics
        self._subscribers = subscribers

    @override
    async def _get(self, resource: ArmId) -> Topic | None:
        return await self._topics.get(names.topic_name_of(resource))

    @override
    def _new(self, resource: ArmId, attributes: Mapping[str, str], now: int) -> Topic:
        return Topic(0, names.topic_name_of(resource), names.DIALECT, attributes=attributes)

    @override
    async def _put(self, call: ArmCall, resource: ArmId, accept: Accept[Topic]) -> tuple[Topic, bool]:
        """Make or replace a topic in one transaction; True: it is new."""
        name = names.topic_name_of(resource)

        async def write(draft: Draft) -> tuple[Topic, bool]:
            if await self._topics.get_in(draft, name) is None:
                return await self._topics.create_in(draft, accept(None)), True
            return await self._update_in(draft, name, accept), False

        return await self._resources.write(write)

    @override
    async def _update(self, record: Topic, change: Callable[[Topic], Topic]) -> Topic:
        return await self._resources.write(lambda draft: self._update_in(draft, record.name, change))

    async def _update_in(self, draft: Draft, name: ResourceName, change: Callable[[Topic], Topic]) -> Topic:
        return await self._topics.update_in(draft, name, change)

    @override
    async def _remove(self, resource: ArmId) -> None:
        """Remove a topic that the store has, with its event subscriptions."""
        if await self._get(resource) is None:  # which is never remembered
            return
        topic = await self._topics.get_stored(names.topic_name_of(resource))
        if topic is not None:
            await self._subscribers.remove_topic(topic)

    @override
    async def _find(self, call: ArmCall, after: str, limit: int) -> Sequence[Topic]:
        return await self._topics.of_account(*call.account_and_group, after, limit)

    @override
    def _lists(self, record: Topic) -> bool:
        """`topics:t` is a topic and `domains:d` a domain, but not `domains:d:t`."""
        kind, _, rest = record.name.name.partition(":")
        return record.dialect == names.DIALECT and kind == self._spec.types[0] and ":" not in rest


class DomainTopicCollection(TopicCollection):
    """Topics of domains; their documents say nothing."""

    def __init__(self, engine: Engine, subscribers: Subscribers, sources: EventSources) -> None:
        """Keep topics in this engine, in the domains among these sources."""
        super().__init__(engine, specs.DOMAIN_TOPICS, subscribers)
        self._sources = sources

    @override
    async def _put(self, call: ArmCall, resource: ArmId, accept: Accept[Topic]) -> tuple[Topic, bool]:
        domain = await self._sources.domain(resource)
        return await self._sources.ensure(domain_topic(resource, properties_of(domain))), True

    @override
    async def _find(self, call: ArmCall, after: str, limit: int) -> Sequence[Topic]:
        domain = await self._sources.domain(call.resource(PROVIDER, "domains"))
        return await self._topics.find(names.within(domain.name), after, limit)

    @override
    def _lists(self, record: Topic) -> bool:
        return True


class NamespaceTopicCollection(TopicCollection):
    """Topics of namespaces; the queues of their event subscriptions keep events as long as they do."""

    def __init__(self, engine: Engine, subscribers: Subscribers) -> None:
        """Keep topics in this engine; `subscribers` follows their changes."""
        super().__init__(engine, specs.NAMESPACE_TOPICS, subscribers)

    @override
    async def _get(self, resource: ArmId) -> Topic | None:
        await self._check_namespace(resource)
        return await super()._get(resource)

    @override
    async def _put(self, call: ArmCall, resource: ArmId, accept: Accept[Topic]) -> tuple[Topic, bool]:
        await self._check_namespace(resource)
        return await super()._put(call, resource, accept)

    @override
    async def _update_in(self, draft: Draft, name: ResourceName, change: Callable[[Topic], Topic]) -> Topic:
        topic = await super()._update_in(draft, name, change)
        await self._subscribers.follow_in(draft, topic)
        return topic

    @override
    async def _find(self, call: ArmCall, after: str, limit: int) -> Sequence[Topic]:
        namespace = call.resource(PROVIDER, "namespaces")
        await self._check_namespace(namespace)
        return await self._topics.find(topics_prefix(namespace_name(namespace)), after, limit)

    @override
    def _lists(self, record: Topic) -> bool:
        return True

    async def _check_namespace(self, resource: ArmId) -> None:
        if await self._resources.documents.get(NAMESPACE, namespace_name(resource).key) is None:
            raise no_such(resource._replace(parts=resource.parts[:2]))


class DocumentCollection(ArmCollection[R]):
    """Resources that are documents of a kind of their own."""

    def __init__(self, engine: Engine, spec: ArmResourceSpec, kind: DocumentKind[R]) -> None:
        super().__init__(engine, spec)
        self._documents = engine.resources.documents
        self._kind: DocumentKind[R] = kind

    @override
    async def _get(self, resource: ArmId) -> R | None:
        return await self._documents.get(self._kind, _key(resource))

    @override
    async def _put(self, call: ArmCall, resource: ArmId, accept: Accept[R]) -> tuple[R, bool]:
        """Make or replace a resource in one transaction; True: it is new."""

        async def write(draft: Draft) -> tuple[R, bool]:
            existing = await draft.get(self._kind, _key(resource))
            record = accept(existing)
            draft.put(self._kind, _key(resource), record)
            return record, existing is None

        return await self._documents.transact(write)

    @override
    async def _update(self, record: R, change: Callable[[R], R]) -> R:
        return await self._documents.update(self._kind, record.name.key, change)

    @override
    async def _remove(self, resource: ArmId) -> None:
        await self._documents.remove(self._kind, _key(resource))

    @override
    async def _find(self, call: ArmCall, after: str, limit: int) -> Sequence[R]:
        beginning = "/".join((*filter(None, call.account_and_group), ""))
        return await self._documents.find(self._kind, beginning, after, limit)


class NamespaceCollection(DocumentCollection[NamespacePlace]):
    """Namespaces."""

    def __init__(self, engine: Engine, subscribers: Subscribers) -> None:
        """Keep namespaces in this engine; `subscribers` removes their topics."""
        super().__init__(engine, specs.NAMESPACES, NAMESPACE)
        self._subscribers = subscribers

    @override
    def _new(self, resource: ArmId, attributes: Mapping[str, str], now: int) -> NamespacePlace:
        return NamespacePlace(namespace_name(resource), attributes, now)

    @override
    async def _remove(self, resource: ArmId) -> None:
        """The namespace goes last, so that a removal that was cut short can be repeated."""
        topics = await self._resources.topics.find(topics_prefix(namespace_name(resource)))
        await self._subscribers.remove_topics(topics)
        await super()._remove(resource)


class SystemTopicCollection(DocumentCollection[SystemTopic]):
    """System topics; their sources keep the event subscriptions when they go."""

    def __init__(self, engine: Engine, sources: EventSources) -> None:
        """Keep system topics in this engine, which are names for these sources."""
        super().__init__(engine, specs.SYSTEM_TOPICS, SYSTEM_TOPIC)
        self._sources = sources

    @override
    def _new(self, resource: ArmId, attributes: Mapping[str, str], now: int) -> SystemTopic:
        return SystemTopic(system_topic_name(resource), attributes)

    @override
    async def _put(
        self, call: ArmCall, resource: ArmId, accept: Accept[SystemTopic]
    ) -> tuple[SystemTopic, bool]:
        """Make or replace a system topic, and make the engine's topic of its source, which is to exist."""
        document = accept(None)
        source = await self._sources.resource(ArmId.parse(document.source), document.source)
        check_theirs(call, source)
        topic = await self._sources.topic_or_new(source)
        record = await super()._put(call, resource, accept)
        await self._sources.ensure(topic)
        return record


def _key(resource: ArmId) -> str:
    return names.place_of(resource, resource.name).key
