"""Topics of namespaces: made, shown, changed, removed, and their keys."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from redrive.engine.engine import Engine
from redrive.model.errors import AlreadyExists, NotFound
from redrive.model.queue import ResourceName
from redrive.model.topic import Topic
from redrive.protocols.azure.arm import documents, keys, namespace_documents, paging
from redrive.protocols.azure.arm.call import ArmCall, Verb
from redrive.protocols.azure.arm.namespace_subscriptions import NamespaceSubscribers
from redrive.protocols.azure.arm.publishers import IN_GROUP, PROVIDER, no_such
from redrive.protocols.azure.eventgrid import names, settings
from redrive.protocols.azure.namespaces.places import NAMESPACE, namespace_name, topic_name, within
from redrive.protocols.azure.wire.answers import empty_answer, json_answer
from redrive.protocols.azure.wire.arm_id import ArmId
from redrive.protocols.http import Response

SEVERAL: Final = f"{IN_GROUP}/namespaces/{{namespace}}/topics"
ONE: Final = f"{SEVERAL}/{{topic}}"


class NamespaceTopicOperations:
    """What is done to topics of namespaces."""

    def __init__(self, engine: Engine, subscribers: NamespaceSubscribers) -> None:
        """Do it through this engine; `subscribers` go with what is removed."""
        self._engine = engine
        self._topics = engine.resources.topics
        self._subscribers = subscribers

    @property
    def routes(self) -> Mapping[str, Verb]:
        """See `Operations.routes`."""
        return {
            f"PUT {ONE}": self.put,
            f"GET {ONE}": self.get,
            f"PATCH {ONE}": self.patch,
            f"DELETE {ONE}": self.delete,
            f"POST {ONE}/listKeys": self.list_keys,
            f"POST {ONE}/regenerateKey": self.regenerate_key,
            f"GET {SEVERAL}": self.list,
        }

    async def put(self, call: ArmCall) -> Response:
        """Make it, or replace what can be replaced."""
        resource, name = await self._place(call)
        documents.check_name(resource.name)
        document = call.document
        while True:
            try:
                if await self._topics.get(name) is None:
                    status = HTTPStatus.CREATED
                    new = namespace_documents.accepted_topic(self._new(resource, name), document)
                    topic = await self._topics.create(new)
                else:
                    status = HTTPStatus.OK
                    topic = await self._topics.update(
                        name, lambda one: namespace_documents.accepted_topic(one, document)
                    )
            except (AlreadyExists, NotFound):
                continue  # somebody was faster: look again
            await self._subscribers.follow(topic)
            return json_answer(namespace_documents.shown_topic(topic), status)

    async def get(self, call: ArmCall) -> Response:
        """Show it."""
        return json_answer(namespace_documents.shown_topic(await self._found(call)))

    async def patch(self, call: ArmCall) -> Response:
        """Change some of it: how long it keeps events, also those that it has."""
        topic, document = await self._found(call), call.document
        changed = await self._topics.update(
            topic.name, lambda one: namespace_documents.patched_topic(one, document)
        )
        await self._subscribers.follow(changed)
        return json_answer(namespace_documents.shown_topic(changed))

    async def delete(self, call: ArmCall) -> Response:
        """Remove it with its event subscriptions."""
        _, name = await self._place(call)
        topic = await self._topics.get(name)
        if topic is not None:
            await self._subscribers.remove_all(topic)
            await self._topics.delete(topic)
        return empty_answer(HTTPStatus.NO_CONTENT)

    async def list(self, call: ArmCall) -> Response:
        """A namespace's topics."""
        name = await self._namespace(call)

        async def fetch(after: str, limit: int) -> Sequence[Topic]:
            return await self._topics.find(within(name), after, limit)

        return await paging.page(
            call,
            fetch,
            lambda one: one.name.key,
            lambda one: namespace_documents.id_of(one.attributes).name,
            namespace_documents.shown_topic,
        )

    async def list_keys(self, call: ArmCall) -> Response:
        """Its two access keys."""
        return json_answer(keys.of((await self._found(call)).attributes))

    async def regenerate_key(self, call: ArmCall) -> Response:
        """Another key in the place of one of the two."""
        topic = await self._found(call)
        fresh = {keys.asked_for(call): keys.new(self._engine.runtime.chance)}
        changed = await self._topics.update(
            topic.name, lambda one: replace(one, attributes={**one.attributes, **fresh})
        )
        return json_answer(keys.of(changed.attributes))

    async def _namespace(self, call: ArmCall) -> ResourceName:
        resource = call.resource(PROVIDER, "namespaces")
        name = namespace_name(resource)
        if await self._engine.resources.documents.get(NAMESPACE, name.key) is None:
            raise no_such(resource)
        return name

    async def _place(self, call: ArmCall) -> tuple[ArmId, ResourceName]:
        await self._namespace(call)
        resource = call.resource(PROVIDER, "namespaces", "topics")
        return resource, topic_name(resource)

    async def _found(self, call: ArmCall) -> Topic:
        resource, name = await self._place(call)
        topic = await self._topics.get(name)
        if topic is None:
            raise no_such(resource)
        return topic

    def _new(self, resource: ArmId, name: ResourceName) -> Topic:
        made = keys.pair(self._engine.runtime.chance)
        return Topic(0, name, names.DIALECT, attributes={settings.ID: resource.text, **made})
