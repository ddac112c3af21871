"""System topics: names for what publishes events by itself, here the storage accounts of dead letters."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final

from redrive.engine.engine import Engine
from redrive.model.errors import Conflict, NotFound
from redrive.protocols.azure.arm import documents, fields, paging
from redrive.protocols.azure.arm.call import ArmCall, Verb, check_theirs
from redrive.protocols.azure.arm.destinations import STORAGE_ACCOUNT
from redrive.protocols.azure.arm.event_sources import (
    SYSTEM_TOPIC,
    EventSources,
    SystemTopic,
    system_topic_key,
)
from redrive.protocols.azure.arm.publishers import IN_GROUP, IN_SUBSCRIPTION, PROVIDER, no_such
from redrive.protocols.azure.wire.answers import empty_answer, json_answer
from redrive.protocols.azure.wire.arm_id import ArmId
from redrive.protocols.azure.wire.errors import invalid
from redrive.protocols.http import Response

_ROUTE: Final = f"{IN_GROUP}/systemTopics"
TOPIC_TYPE: Final = "Microsoft.Storage.StorageAccounts"


class SystemTopicOperations:
    """What is done to system topics."""

    def __init__(self, engine: Engine, sources: EventSources) -> None:
        """Do it through this engine."""
        self._engine = engine
        self._sources = sources

    @property
    def routes(self) -> Mapping[str, Verb]:
        """See `Operations.routes`."""
        return {
            f"PUT {_ROUTE}/{{systemTopic}}": self.put,
            f"GET {_ROUTE}/{{systemTopic}}": self.get,
            f"PATCH {_ROUTE}/{{systemTopic}}": self.patch,
            f"DELETE {_ROUTE}/{{systemTopic}}": self.delete,
            f"GET {_ROUTE}": self.list,
            f"GET {IN_SUBSCRIPTION}/systemTopics": self.list,
        }

    async def put(self, call: ArmCall) -> Response:
        """Make it, or replace what can be replaced: its source cannot."""
        resource = _resource(call)
        documents.check_name(resource.name)
        wanted = _accepted(resource, call.document)
        source = await self._sources.resource(_source(wanted), wanted.source)
        check_theirs(call, source)
        topic = await self._sources.wanted(source)
        written = await self._written(system_topic_key(resource), wanted)
        await self._sources.ensured(topic)
        return json_answer(_shown(written), HTTPStatus.CREATED)

    async def _written(self, key: str, wanted: SystemTopic) -> SystemTopic:
        documents = self._engine.resources.documents
        while True:
            try:
                if await documents.get(SYSTEM_TOPIC, key) is not None:
                    return await documents.update(
                        SYSTEM_TOPIC, key, lambda current: _in_place_of(current, wanted)
                    )
                await documents.create(SYSTEM_TOPIC, key, wanted)
            except (Conflict, NotFound):
                continue  # somebody was faster: look again
            return wanted

    async def get(self, call: ArmCall) -> Response:
        """Show it."""
        return json_answer(_shown(await self._found(_resource(call))))

    async def patch(self, call: ArmCall) -> Response:
        """Change its tags and its identity."""
        resource = _resource(call)
        await self._found(resource)
        change = {name: value for name, value in call.document.items() if name in ("tags", "identity")}
        changed = await self._engine.resources.documents.update(
            SYSTEM_TOPIC,
            system_topic_key(resource),
            lambda current: replace(current, document={**current.document, **fields.present(change)}),
        )
        return json_answer(_shown(changed))

    async def delete(self, call: ArmCall) -> Response:
        """Remove the name; the source keeps its event subscriptions."""
        await self._engine.resources.documents.remove(SYSTEM_TOPIC, system_topic_key(_resource(call)))
        return empty_answer(HTTPStatus.NO_CONTENT)

    async def list(self, call: ArmCall) -> Response:
        """Those of a group, or of the whole Azure subscription."""
        group = call.params.get("group", "")
        prefix = f"{call.params['subscription']}/{group}".lower() + ("/" if group else "")

        async def fetch(after: str, limit: int) -> Sequence[SystemTopic]:
            return await self._engine.resources.documents.find(SYSTEM_TOPIC, prefix, after, limit)

        return await paging.page(
            call, fetch, lambda one: one.key, lambda one: one.id.rpartition("/")[2], _shown
        )

    async def _found(self, resource: ArmId) -> SystemTopic:
        found = await self._engine.resources.documents.get(SYSTEM_TOPIC, system_topic_key(resource))
        if found is None:
            raise no_such(resource)
        return found


def _resource(call: ArmCall) -> ArmId:
    return call.resource(PROVIDER, "systemTopics")


def _source(topic: SystemTopic) -> ArmId:
    source = ArmId.parse(topic.source)
    if source is None or source.type != STORAGE_ACCOUNT:
        raise invalid(
            f"The source '{topic.source}' is not the id of a storage account; no other publishes events."
        )
    return source


def _accepted(resource: ArmId, document: Mapping[str, Any]) -> SystemTopic:
    properties = fields.part(document, "properties") or {}
    if not fields.text(document, "location"):
        raise invalid("The location property is required for this definition.", "LocationRequired")
    source = fields.text(properties, "source")
    if not source:
        raise invalid("The property 'source' is missing.")
    topic_type = fields.one_of(properties, "topicType", (TOPIC_TYPE,)) or TOPIC_TYPE
    kept = {
        name: value
        for name, value in fields.present(document).items()
        if name in ("location", "tags", "identity")
    }
    return SystemTopic(resource.text, source, topic_type, kept)


def _in_place_of(current: SystemTopic, wanted: SystemTopic) -> SystemTopic:
    if current.source.lower() != wanted.source.lower():
        raise invalid(f"The property 'source' is '{current.source}' and cannot be changed.")
    return replace(wanted, id=current.id)


def _shown(topic: SystemTopic) -> Mapping[str, Any]:
    return {
        "id": topic.id,
        "name": topic.id.rpartition("/")[2],
        "type": "Microsoft.EventGrid/systemTopics",
        **topic.document,
        "properties": {
            "provisioningState": "Succeeded",
            "source": topic.source,
            "topicType": topic.topic_type,
            "metricResourceId": str(uuid.uuid5(uuid.NAMESPACE_URL, topic.id.lower())),
        },
    }
