"""Lists across types: event subscriptions, the types of topics and events, and the resources of a group.

A list of resources asks the lists of the types, through the same routes and as the same caller.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from redrive.azure.arm import paging
from redrive.azure.arm.call import ArmCall, Verb
from redrive.azure.arm.destinations import STORAGE_ACCOUNT
from redrive.azure.arm.event_sources import EventSources
from redrive.azure.arm.event_subscriptions import listed_name
from redrive.azure.arm.resource import IN_GROUP, IN_SUBSCRIPTION, is_same_location, location_of, properties_of
from redrive.azure.arm.subscription_forms import EXTENSION, SubscriptionForm
from redrive.azure.eventgrid import settings
from redrive.azure.eventgrid.documents import SYSTEM_TOPIC
from redrive.azure.wire.answers import invalid, json_answer, not_found
from redrive.azure.wire.arm_id import ArmId
from redrive.engine.engine import Engine
from redrive.model.http import Request, Response
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
        """The handlers by method and path (`Operations.routes`)."""
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
        topic = await self._sources.topic_or_new(resource)
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
    """The topic type that the path names, as it is spelt here; raises AzureError if it is unknown."""
    name = call.params["topicType"].lower()
    for kind in _TOPIC_TYPES:
        if kind.lower() == name:
            return kind
    raise not_found(f"The topic type '{call.params['topicType']}' was not found.")


def _topic_type(kind: str) -> Mapping[str, Any]:
    """A topic type as it is shown."""
    _, display_name = _TOPIC_TYPES[kind]
    return {
        "id": f"providers/Microsoft.EventGrid/topicTypes/{kind}",
        "name": kind,
        "type": "Microsoft.EventGrid/topicTypes",
        "properties": {
            "provider": kind.rpartition(".")[0],
            "displayName": display_name,
            "description": f"{display_name} of this server.",
            "resourceRegionType": "RegionalResource",
            "provisioningState": "Succeeded",
            "supportedScopesForSource": ["Resource"],
        },
    }


def _event_type(name: str, details: Mapping[str, Any]) -> Mapping[str, Any]:
    """An event type as it is shown; `details`: what a topic says of it."""
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


Ask = Callable[[Request], Awaitable[Response]]

#: The types of providers, and the newest version of their interface that is taken: a request may name any.
TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "Microsoft.EventGrid": (
        *("topics", "domains", "domains/topics", "systemTopics", "systemTopics/eventSubscriptions"),
        *("namespaces", "namespaces/topics", "namespaces/topics/eventSubscriptions", "eventSubscriptions"),
        *("topics/eventSubscriptions", "domains/eventSubscriptions", "domains/topics/eventSubscriptions"),
    ),
    "Microsoft.Storage": (
        *("storageAccounts", "storageAccounts/blobServices", "storageAccounts/blobServices/containers"),
    ),
    "Microsoft.Resources": ("resourceGroups", "deployments"),
}
_VERSIONS: Final[Mapping[str, str]] = {
    "Microsoft.EventGrid": "2025-02-15",
    "Microsoft.Storage": "2023-05-01",
    "Microsoft.Resources": "2024-03-01",
}
#: Of what a list has; the rest stands in another resource.
_LISTED: Final = (
    *("Microsoft.EventGrid/topics", "Microsoft.EventGrid/domains", "Microsoft.EventGrid/systemTopics"),
    *("Microsoft.EventGrid/namespaces", "Microsoft.Storage/storageAccounts"),
)
_SHOWN: Final = ("id", "name", "type", "location", "kind", "sku", "identity", "tags")
_EQUALS: Final = re.compile(
    r"\s*(resourceType|name|resourceGroup|location)\s+eq\s+'([^']*)'\s*", re.IGNORECASE
)
_MEMBERS: Final = {"resourcetype": "type", "name": "name", "resourcegroup": "group", "location": "location"}
_IN_SUBSCRIPTION: Final = "/subscriptions/{subscription}/resources"
_IN_GROUP: Final = "/subscriptions/{subscription}/resourceGroups/{group}/resources"


class ArmResourceOperations:
    """The operations on resources whatever their type (`redrive.azure.arm.service.Operations`)."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    @property
    def routes(self) -> Mapping[str, Verb]:
        """See `Operations.routes`."""
        return {f"GET {_IN_SUBSCRIPTION}": self.list, f"GET {_IN_GROUP}": self.list}

    async def list(self, call: ArmCall) -> Response:
        """List the resources of a group, or of all groups, by type, name, group and location."""
        conditions = dict(_conditions(call.query.get("$filter", "")))
        types = [kind for kind in _LISTED if conditions.get("type", kind.lower()) == kind.lower()]
        group = f"/resourceGroups/{call.params['group']}" if "group" in call.params else ""
        items: list[dict[str, Any]] = []
        for kind in types:
            path = f"/subscriptions/{call.params['subscription']}{group}/providers/{kind}"
            items += [item async for item in self._all(call, path)]
        matches = [
            item for item in items if all(_value(item, name) == text for name, text in conditions.items())
        ]
        return json_answer({"value": sorted(matches, key=lambda item: str(item["id"]).lower())})

    async def _all(self, call: ArmCall, path: str) -> Any:
        """The resources of a list, page by page."""
        query = ""
        while True:
            request = replace(call.request, method="GET", path=path, query=query, body=b"")
            answer = orjson.loads((await self._ask(request)).body)
            for resource in answer["value"]:
                yield {name: resource[name] for name in _SHOWN if resource.get(name) is not None}
            query = str(answer.get("nextLink") or "").partition("?")[2]
            if not query:
                return


def types_of(provider: str) -> list[dict[str, Any]]:
    """The types of a provider, as it is shown."""
    type_name = next((name for name in TYPES if name.lower() == provider.lower()), None)
    if type_name is None:
        return []
    return [
        {"resourceType": kind, "locations": ["local"], "apiVersions": [_VERSIONS[type_name]]}
        for kind in TYPES[type_name]
    ]


def _conditions(text: str) -> Iterator[tuple[str, str]]:
    """The members and values, in lower case, of `NAME eq 'VALUE' and …`; raises AzureError."""
    if not text.strip():
        return
    for part in re.split(r"\s+and\s+", text.strip(), flags=re.IGNORECASE):
        match = _EQUALS.fullmatch(part)
        if match is None:
            raise invalid(
                f"The filter '{part}' is not of the form NAME eq 'VALUE'.", "InvalidFilterInQueryString"
            )
        yield _MEMBERS[match[1].lower()], match[2].lower()


def _value(item: Mapping[str, Any], name: str) -> str:
    if name == "group":
        return str(item["id"]).split("/")[4].lower()
    return str(item.get(name, "")).lower()
