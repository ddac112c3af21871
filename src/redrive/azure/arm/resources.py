"""Resources of all types: the lists of a group and of an Azure subscription, and the types that providers have.

A list asks the lists of the types, through the same routes and as the same caller.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from redrive.azure.arm.call import ArmCall, Verb
from redrive.azure.wire.answers import json_answer
from redrive.azure.wire.errors import invalid
from redrive.model.http import Request, Response

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
        chosen = [
            item for item in items if all(_value(item, name) == text for name, text in conditions.items())
        ]
        return json_answer({"value": sorted(chosen, key=lambda item: str(item["id"]).lower())})

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
    for part in re.split(r"\s+and\s+", text.strip(), flags=re.IGNORECASE) if text.strip() else ():
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
