"""Topics of domains: made by hand, shown and removed."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import orjson

from redrive.engine.engine import Engine
from redrive.model.topic import Topic
from redrive.protocols.azure.arm import documents, paging
from redrive.protocols.azure.arm.call import ArmCall, Verb
from redrive.protocols.azure.arm.event_sources import EventSources, domain_topic
from redrive.protocols.azure.arm.publishers import IN_GROUP, PROVIDER, no_such
from redrive.protocols.azure.arm.subscribers import Subscribers
from redrive.protocols.azure.eventgrid import settings
from redrive.protocols.azure.wire.answers import empty_answer, json_answer
from redrive.protocols.azure.wire.arm_id import ArmId
from redrive.protocols.http import Response

_ROUTE: Final = f"{IN_GROUP}/domains/{{domain}}/topics"


class DomainTopicOperations:
    """What is done to topics of domains."""

    def __init__(self, engine: Engine, subscribers: Subscribers, sources: EventSources) -> None:
        """Do it through this engine."""
        self._engine = engine
        self._subscribers = subscribers
        self._sources = sources

    @property
    def routes(self) -> Mapping[str, Verb]:
        """See `Operations.routes`."""
        return {
            f"PUT {_ROUTE}/{{topic}}": self.put,
            f"GET {_ROUTE}/{{topic}}": self.get,
            f"DELETE {_ROUTE}/{{topic}}": self.delete,
            f"GET {_ROUTE}": self.list,
        }

    async def put(self, call: ArmCall) -> Response:
        """Make it; there is nothing to say about it."""
        resource = _resource(call)
        documents.check_name(resource.name)
        domain = await self._sources.domain(resource)
        properties = orjson.loads(domain.attributes[settings.PROPERTIES])
        topic = await self._sources.ensured(domain_topic(resource, properties))
        return json_answer(_shown(topic), HTTPStatus.CREATED)

    async def get(self, call: ArmCall) -> Response:
        """Show it."""
        resource = _resource(call)
        topic = await self._sources.topic(resource)
        if topic is None:
            raise no_such(resource)
        return json_answer(_shown(topic))

    async def delete(self, call: ArmCall) -> Response:
        """Remove it with its event subscriptions."""
        topic = await self._sources.topic(_resource(call))
        if topic is not None:
            await self._subscribers.remove_all(topic)
            await self._engine.resources.topics.delete(topic)
        return empty_answer(HTTPStatus.NO_CONTENT)

    async def list(self, call: ArmCall) -> Response:
        """Those of a domain."""
        domain = await self._sources.domain(call.resource(PROVIDER, "domains"))
        within = domain.name._replace(name=f"{domain.name.name}:")

        async def fetch(after: str, limit: int) -> Sequence[Topic]:
            return await self._engine.resources.topics.find(within, after, limit)

        return await paging.page(call, fetch, lambda topic: topic.name.key, _name, _shown)


def _resource(call: ArmCall) -> ArmId:
    return call.resource(PROVIDER, "domains", "topics")


def _name(topic: Topic) -> str:
    return topic.attributes[settings.ID].rpartition("/")[2]


def _shown(topic: Topic) -> Mapping[str, Any]:
    return {
        "id": topic.attributes[settings.ID],
        "name": _name(topic),
        "type": "Microsoft.EventGrid/domains/topics",
        "properties": {"provisioningState": "Succeeded"},
    }
