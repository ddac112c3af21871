"""Topics and domains: made, shown, changed, removed, and their keys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

from redrive.engine.engine import Engine
from redrive.model.errors import AlreadyExists, NotFound
from redrive.model.queue import ResourceName
from redrive.model.topic import Topic
from redrive.protocols.azure.arm import documents, keys, paging
from redrive.protocols.azure.arm.call import ArmCall, Verb, begun
from redrive.protocols.azure.arm.subscribers import Subscribers
from redrive.protocols.azure.eventgrid import names, settings
from redrive.protocols.azure.wire.answers import empty_answer, json_answer
from redrive.protocols.azure.wire.arm_id import ArmId
from redrive.protocols.azure.wire.errors import AzureError, not_found
from redrive.protocols.http import Response

PROVIDER: Final = "Microsoft.EventGrid"
IN_SUBSCRIPTION: Final = f"/subscriptions/{{subscription}}/providers/{PROVIDER}"
IN_GROUP: Final = f"/subscriptions/{{subscription}}/resourceGroups/{{group}}/providers/{PROVIDER}"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of thing that events are published to.

    Attributes:
        plural: `topics`.
        name: `topic`: what the routes call it.
    """

    plural: str
    name: str


TOPICS: Final = Kind("topics", "topic")
DOMAINS: Final = Kind("domains", "domain")


class PublisherOperations:
    """What is done to topics, or to domains: the interface is the same."""

    def __init__(self, engine: Engine, subscribers: Subscribers, kind: Kind) -> None:
        """Do it through this engine.

        Args:
            engine: Keeps them.
            subscribers: Who goes with them.
            kind: Which of the two.
        """
        self._engine = engine
        self._subscribers = subscribers
        self._kind = kind

    @property
    def routes(self) -> Mapping[str, Verb]:
        """See `Operations.routes`."""
        several = self._kind.plural
        one = f"{IN_GROUP}/{several}/{{{self._kind.name}}}"
        return {
            f"PUT {one}": self.put,
            f"GET {one}": self.get,
            f"PATCH {one}": self.patch,
            f"DELETE {one}": self.delete,
            f"POST {one}/listKeys": self.list_keys,
            f"POST {one}/regenerateKey": self.regenerate_key,
            f"GET {IN_GROUP}/{several}": self.list,
            f"GET {IN_SUBSCRIPTION}/{several}": self.list,
        }

    async def put(self, call: ArmCall) -> Response:
        """Make it, or replace what can be replaced."""
        resource, name = self._place(call)
        documents.check_name(resource.name)
        document = call.document
        while True:
            try:
                if await self._engine.resources.topics.get(name) is None:
                    new = documents.accepted(self._new(resource, name), document)
                    topic = await self._engine.resources.topics.create(new)
                else:
                    topic = await self._engine.resources.topics.update(
                        name, lambda current: documents.accepted(current, document)
                    )
            except (AlreadyExists, NotFound):
                continue  # somebody was faster: look again
            return self._written(call, topic, "Creating")

    async def get(self, call: ArmCall) -> Response:
        """Show it."""
        return json_answer(documents.shown(await self._found(call), call.base_url))

    async def patch(self, call: ArmCall) -> Response:
        """Change some of it."""
        topic, document = await self._found(call), call.document
        changed = await self._engine.resources.topics.update(
            topic.name, lambda current: documents.patched(current, document)
        )
        return self._written(call, changed, "Updating")

    async def delete(self, call: ArmCall) -> Response:
        """Remove it with its event subscriptions; a domain with its topics."""
        _, name = self._place(call)
        topic = await self._engine.resources.topics.get(name)
        if topic is not None:
            within = name._replace(name=f"{name.name}:")
            for child in [*await self._engine.resources.topics.find(within), topic]:
                await self._subscribers.remove_all(child)
                await self._engine.resources.topics.delete(child)
        return empty_answer(HTTPStatus.NO_CONTENT)

    async def list(self, call: ArmCall) -> Response:
        """Those of a group, or of the whole Azure subscription."""
        subscription, group = call.params["subscription"].lower(), call.params.get("group", "").lower()

        async def fetch(after: str, limit: int) -> Sequence[Topic]:
            return await self._engine.resources.topics.of_account(subscription, group, after, limit)

        return await paging.page(
            call,
            fetch,
            lambda topic: topic.name.key,
            self._listed_name,
            lambda topic: documents.shown(topic, call.base_url),
        )

    async def list_keys(self, call: ArmCall) -> Response:
        """Its two access keys."""
        return json_answer(keys.of((await self._found(call)).attributes))

    async def regenerate_key(self, call: ArmCall) -> Response:
        """Another key in the place of one of the two."""
        topic = await self._found(call)
        fresh = {keys.asked_for(call): keys.new(self._engine.runtime.chance)}
        changed = await self._engine.resources.topics.update(
            topic.name, lambda current: replace(current, attributes={**current.attributes, **fresh})
        )
        return json_answer(keys.of(changed.attributes))

    def _written(self, call: ArmCall, topic: Topic, state: str) -> Response:
        """A topic as it was written; one that has a mapping in it is asked for again."""
        shown = documents.shown(topic, call.base_url)
        mapped = "inputSchemaMapping" in shown["properties"]
        return json_answer(begun(shown, state) if mapped else shown, HTTPStatus.CREATED)

    def _place(self, call: ArmCall) -> tuple[ArmId, ResourceName]:
        resource = call.resource(PROVIDER, self._kind.plural)
        name = names.topic_name(resource)
        if name is None:
            raise ValueError(f"no kind of topic: {resource.type}")
        return resource, name

    async def _found(self, call: ArmCall) -> Topic:
        resource, name = self._place(call)
        topic = await self._engine.resources.topics.get(name)
        if topic is None:
            raise no_such(resource)
        return topic

    def _new(self, resource: ArmId, name: ResourceName) -> Topic:
        made = keys.pair(self._engine.runtime.chance)
        return Topic(0, name, names.DIALECT, attributes={settings.ID: resource.text, **made})

    def _listed_name(self, topic: Topic) -> str | None:
        """A topic's own name, if it is of this kind: `topics:t`, but not `domains:d:t`."""
        kind, _, rest = topic.name.name.partition(":")
        if topic.dialect != names.DIALECT or kind != self._kind.plural or ":" in rest:
            return None
        return topic.attributes[settings.ID].rpartition("/")[2]


def no_such(resource: ArmId) -> AzureError:
    """A resource that is not there."""
    kind = "/".join((resource.provider, *resource.parts[::2]))
    return not_found(
        f"The Resource '{kind}/{'/'.join(resource.names)}' under resource group '{resource.group}' was not found. "
        "For more details please go to https://aka.ms/ARMResourceNotFoundFix"
    )
