"""Namespaces: made, shown, changed, removed, and their keys."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from redrive.engine.engine import Engine
from redrive.model.errors import Conflict, NotFound
from redrive.model.queue import ResourceName
from redrive.protocols.azure.arm import documents, keys, namespace_documents, paging
from redrive.protocols.azure.arm.call import ArmCall, Verb
from redrive.protocols.azure.arm.namespace_subscriptions import NamespaceSubscribers
from redrive.protocols.azure.arm.publishers import IN_GROUP, IN_SUBSCRIPTION, PROVIDER, no_such
from redrive.protocols.azure.eventgrid import settings
from redrive.protocols.azure.namespaces.places import NAMESPACE, Namespace, namespace_name, within
from redrive.protocols.azure.wire.answers import empty_answer, json_answer
from redrive.protocols.azure.wire.arm_id import ArmId
from redrive.protocols.http import Response

ONE: Final = f"{IN_GROUP}/namespaces/{{namespace}}"


class NamespaceOperations:
    """What is done to namespaces."""

    def __init__(self, engine: Engine, subscribers: NamespaceSubscribers) -> None:
        """Do it through this engine; `subscribers` go with the topics of what is removed."""
        self._engine = engine
        self._documents = engine.resources.documents
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
            f"GET {IN_GROUP}/namespaces": self.list,
            f"GET {IN_SUBSCRIPTION}/namespaces": self.list,
        }

    async def put(self, call: ArmCall) -> Response:
        """Make it, or replace what can be replaced."""
        resource, name = _place(call)
        documents.check_name(resource.name)
        document = call.document
        while True:
            try:
                if await self._documents.get(NAMESPACE, name.key) is None:
                    status = HTTPStatus.CREATED
                    made = namespace_documents.accepted(self._new(resource, name, call.now), document)
                    await self._documents.create(NAMESPACE, name.key, made)
                else:
                    status = HTTPStatus.OK
                    made = await self._documents.update(
                        NAMESPACE, name.key, lambda one: namespace_documents.accepted(one, document)
                    )
            except (Conflict, NotFound):
                continue  # somebody was faster: look again
            return json_answer(namespace_documents.shown(made, call.base_url), status)

    async def get(self, call: ArmCall) -> Response:
        """Show it."""
        return json_answer(namespace_documents.shown(await self._found(call), call.base_url))

    async def patch(self, call: ArmCall) -> Response:
        """Change some of it."""
        namespace, document = await self._found(call), call.document
        changed = await self._documents.update(
            NAMESPACE, namespace.name.key, lambda one: namespace_documents.patched(one, document)
        )
        return json_answer(namespace_documents.shown(changed, call.base_url))

    async def delete(self, call: ArmCall) -> Response:
        """Remove it with its topics and their event subscriptions, the namespace last: a deletion can be repeated."""
        _, name = _place(call)
        for topic in await self._engine.resources.topics.find(within(name)):
            await self._subscribers.remove_all(topic)
            await self._engine.resources.topics.delete(topic)
        await self._documents.remove(NAMESPACE, name.key)
        return empty_answer(HTTPStatus.NO_CONTENT)

    async def list(self, call: ArmCall) -> Response:
        """Those of a group, or of the whole Azure subscription."""
        group = call.params.get("group")
        prefix = f"{call.params['subscription']}/" + (f"{group}/" if group else "")

        async def fetch(after: str, limit: int) -> Sequence[Namespace]:
            return await self._documents.find(NAMESPACE, prefix.lower(), after, limit)

        return await paging.page(
            call,
            fetch,
            lambda one: one.name.key,
            lambda one: namespace_documents.id_of(one.attributes).name,
            lambda one: namespace_documents.shown(one, call.base_url),
        )

    async def list_keys(self, call: ArmCall) -> Response:
        """Its two access keys."""
        return json_answer(keys.of((await self._found(call)).attributes))

    async def regenerate_key(self, call: ArmCall) -> Response:
        """Another key in the place of one of the two."""
        namespace = await self._found(call)
        fresh = {keys.asked_for(call): keys.new(self._engine.runtime.chance)}
        changed = await self._documents.update(
            NAMESPACE,
            namespace.name.key,
            lambda one: replace(one, attributes={**one.attributes, **fresh}),
        )
        return json_answer(keys.of(changed.attributes))

    async def _found(self, call: ArmCall) -> Namespace:
        resource, name = _place(call)
        namespace = await self._documents.get(NAMESPACE, name.key)
        if namespace is None:
            raise no_such(resource)
        return namespace

    def _new(self, resource: ArmId, name: ResourceName, now: int) -> Namespace:
        made = keys.pair(self._engine.runtime.chance)
        return Namespace(name, {settings.ID: resource.text, **made}, now)


def _place(call: ArmCall) -> tuple[ArmId, ResourceName]:
    resource = call.resource(PROVIDER, "namespaces")
    return resource, namespace_name(resource)
