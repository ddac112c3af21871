"""Lists of event subscriptions across topics, and what there is to subscribe to: topic types and event types."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from redrive.azure.arm import paging
from redrive.azure.arm.call import ArmCall, Verb
from redrive.azure.arm.destinations import STORAGE_ACCOUNT
from redrive.azure.arm.event_sources import EventSources
from redrive.azure.arm.event_subscriptions import listed_name
from redrive.azure.arm.resource import IN_GROUP, IN_SUBSCRIPTION, is_same_location, location_of, properties_of
from redrive.azure.arm.subscription_forms import EXTENSION, SubscriptionForm
from redrive.azure.arm.system_topic import SYSTEM_TOPIC
from redrive.azure.eventgrid import settings
from redrive.azure.wire.answers import json_answer
from redrive.azure.wire.arm_id import ArmId
from redrive.azure.wire.errors import not_found
from redrive.engine.engine import Engine
from redrive.model.http import Response
from redrive.model.topic import Subscription, Topic

_TYPES: Final = "/providers/Microsoft.EventGrid/topicTypes"
_BLOB_CREATED: Final = "Microsoft.Storage.BlobCreated"
_TOPIC_TYPES: Final = {
    # Topic type: the beginning of the names of its topics in the engine, and its name for people.
    "Microsoft.EventGrid.Topics": ("topics:", "Event Grid Topics"),
    "Microsoft.EventGrid.Domains": ("domains:", "Event Grid Domains"),
    "Microsoft.Storage.StorageAccounts": ("storageaccounts:", "Storage Accounts"),
}


class ListingOperations:
    """The operations on more than one source of events."""

    def __init__(self, engine: Engine, sources: EventSources) -> None:
        self._engine = engine
        self._sources = sources

    @property
    def routes(self) -> Mapping[str, Verb]:
        """See `Operations.routes`."""
        routes: dict[str, Verb] = {
            f"GET {_TYPES}": self.topic_types,
            f"GET {_TYPES}/{{topicType}}": self.topic_type,
            f"GET {_TYPES}/{{topicType}}/eventTypes": self.event_types_of_type,
            "GET /{scope...}/providers/Microsoft.EventGrid/eventTypes": self.event_types,
            "GET /{scope...}/providers/Microsoft.EventGrid/extensionTopics/default": self.extension_topic,
        }
        for beginning in (IN_SUBSCRIPTION, IN_GROUP):
            for location in ("", "/locations/{location}"):
                for topic_type in ("", "/topicTypes/{topicType}"):
                    routes[f"GET {beginning}{location}{topic_type}/eventSubscriptions"] = self.list
        return routes

    async def list(self, call: ArmCall) -> Response:
        """List event subscriptions of a group or an Azure subscription, of one location or topic type or of all."""
        account, group = call.account_and_group
        beginnings = self._beginnings(call)
        elsewhere = await self._topics_elsewhere(account, group, call.params.get("location"))

        async def fetch(after: str, limit: int) -> Sequence[Subscription]:
            return await self._engine.resources.subscriptions.of_account(account, group, after, limit)

        def name(subscription: Subscription) -> str | None:
            if not subscription.topic.name.startswith(beginnings) or subscription.topic.key in elsewhere:
                return None
            return listed_name(subscription, call.now)

        return await paging.page(
            call, fetch, lambda record: record.key, name, lambda record: _body(record, call.now)
        )

    def _beginnings(self, call: ArmCall) -> tuple[str, ...]:
        prefix = call.params.get("topicType", "").lower()
        return tuple(begins for kind, (begins, _) in _TOPIC_TYPES.items() if prefix in ("", kind.lower()))

    async def _topics_elsewhere(self, account: str, group: str, location: str | None) -> frozenset[str]:
        """The keys of topics in another location; a topic without a location is in all of them."""
        if location is None:
            return frozenset()
        topics = await self._engine.resources.topics.of_account(account, group)
        return frozenset(topic.name.key for topic in topics if _is_elsewhere(topic, location))

    async def topic_types(self, _: ArmCall) -> Response:
        """List the types of what publishes events."""
        return json_answer({"value": [_topic_type(kind) for kind in _TOPIC_TYPES]})

    async def topic_type(self, call: ArmCall) -> Response:
        """Show a topic type."""
        return json_answer(_topic_type(_known_type(call)))

    async def event_types_of_type(self, call: ArmCall) -> Response:
        """List the events that a topic type publishes by itself."""
        stores = _known_type(call) == "Microsoft.Storage.StorageAccounts"
        return json_answer({"value": [_event_type(_BLOB_CREATED, {})] if stores else []})

    async def event_types(self, call: ArmCall) -> Response:
        """List the events that a resource publishes: for a topic, those that it says it has."""
        resource = await self._sources.resource(ArmId.parse(call.params["scope"]), call.params["scope"])
        if resource.type == STORAGE_ACCOUNT:
            return json_answer({"value": [_event_type(_BLOB_CREATED, {})]})
        topic = await self._sources.wanted(resource)
        info = properties_of(topic).get("eventTypeInfo") or {}
        inline = info.get("inlineEventTypes") or {}
        return json_answer({"value": [_event_type(name, details or {}) for name, details in inline.items()]})

    async def extension_topic(self, call: ArmCall) -> Response:
        """Show what a resource publishes by itself, with the system topic that is a name for it, if there is one."""
        resource = await self._sources.resource(ArmId.parse(call.params["scope"]), call.params["scope"])
        if resource.type != STORAGE_ACCOUNT:
            raise not_found(f"The resource '{resource.text}' publishes no events by itself.")
        beginning = f"{resource.subscription}/".lower()
        system_topics = await self._engine.resources.documents.find(SYSTEM_TOPIC, beginning)
        ids = [
            topic.attributes[settings.ID] for topic in system_topics if topic.source.lower() == resource.key
        ]
        properties = {"description": resource.text, "systemTopic": ids[0] if ids else None}
        item = {
            "id": f"{resource.text}/providers/Microsoft.EventGrid/extensionTopics/default",
            "name": "default",
            "type": "Microsoft.EventGrid/extensionTopics",
            "properties": properties,
        }
        return json_answer(item)


def _body(subscription: Subscription, now: int) -> Mapping[str, Any]:
    topic_id = subscription.attributes[settings.ID].partition(f"/{EXTENSION}")[0]
    return SubscriptionForm().to_document(subscription, topic_id, None, now)


def _is_elsewhere(topic: Topic, location: str) -> bool:
    return not is_same_location(location_of(topic) or location, location)


def _known_type(call: ArmCall) -> str:
    name = call.params["topicType"].lower()
    for kind in _TOPIC_TYPES:
        if kind.lower() == name:
            return kind
    raise not_found(f"The topic type '{call.params['topicType']}' was not found.")


def _topic_type(kind: str) -> Mapping[str, Any]:
    return {
        "id": f"providers/Microsoft.EventGrid/topicTypes/{kind}",
        "name": kind,
        "type": "Microsoft.EventGrid/topicTypes",
        "properties": {
            "provider": kind.rpartition(".")[0],
            "displayName": _TOPIC_TYPES[kind][1],
            "description": f"{_TOPIC_TYPES[kind][1]} of this server.",
            "resourceRegionType": "RegionalResource",
            "provisioningState": "Succeeded",
            "supportedScopesForSource": ["Resource"],
        },
    }


def _event_type(name: str, details: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "id": f"providers/Microsoft.EventGrid/eventTypes/{name}",
        "name": name,
        "type": "Microsoft.EventGrid/topicTypes/eventTypes",
        "properties": {
            "displayName": details.get("displayName") or name,
            "description": details.get("description") or name,
            "schemaUrl": details.get("dataSchemaUrl"),
            "isInDefaultSet": True,
        },
    }
