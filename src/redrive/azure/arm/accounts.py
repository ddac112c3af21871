"""Surroundings of Event Grid's resources: Azure subscriptions, tenants, providers and resource groups.

As much of it as `az` asks for around its Event Grid commands. An Azure subscription is the account of the caller, so
there is one for each access key; every provider is registered; groups are known once they were made, and nothing needs
them to be.
"""

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from redrive.access.keys import ANY_ACCOUNT
from redrive.azure.arm import paging, schema
from redrive.azure.arm.call import ArmCall, Verb
from redrive.azure.arm.listings import types_of
from redrive.azure.arm.resource import location
from redrive.azure.arm.schema import Document, DocumentSchema, SchemaField
from redrive.azure.arm.subscribers import Subscribers
from redrive.azure.eventgrid import names
from redrive.azure.eventgrid.documents import NAMESPACE, SYSTEM_TOPIC
from redrive.azure.wire.answers import empty_answer, invalid, json_answer, not_found
from redrive.azure.wire.arm_id import ArmId
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.engine.resources import Draft
from redrive.model.http import Response

Group = Mapping[str, Any]  # as it is shown

GROUP: Final[DocumentKind[Group]] = DocumentKind("azure_resource_group", dict, dict)
TENANT: Final = "00000000-0000-0000-0000-000000000000"
_SUBSCRIPTION: Final = "/subscriptions/{subscription}"
_GROUP: Final = f"{_SUBSCRIPTION}/resourceGroups/{{group}}"
_GROUP_CHARS_MAX: Final = 90
_GROUP_NAME: Final = re.compile(rf"[\w.()-]{{1,{_GROUP_CHARS_MAX}}}(?<!\.)")


def _tags(document: Document, name: str) -> Document | None:
    tags = schema.part(document, name) or {}
    for tag in tags:
        schema.text(tags, tag)
    return tags or None


_GROUP_SCHEMA: Final = DocumentSchema(
    (SchemaField("location", schema.text), SchemaField("managedBy", schema.text), SchemaField("tags", _tags)),
    closed=True,
)


class AzureSubscriptionOperations:
    """The operations on what surrounds Event Grid's resources."""

    def __init__(self, engine: Engine, subscribers: Subscribers) -> None:
        self._documents = engine.resources.documents
        self._topics = engine.resources.topics
        self._subscribers = subscribers  # Removes a group's topics with their event subscriptions

    @property
    def routes(self) -> Mapping[str, Verb]:
        """The handlers by method and path (`Operations.routes`)."""
        return {
            "GET /tenants": self.tenants,
            "GET /subscriptions": self.subscriptions,
            f"GET {_SUBSCRIPTION}": self.subscription,
            f"GET {_SUBSCRIPTION}/locations": self.locations,
            f"GET {_SUBSCRIPTION}/providers/{{provider}}": self.provider,
            f"POST {_SUBSCRIPTION}/providers/{{provider}}/register": self.provider,
            f"GET {_SUBSCRIPTION}/resourceGroups": self.groups,
            f"PUT {_GROUP}": self.put_group,
            f"PATCH {_GROUP}": self.put_group,
            f"GET {_GROUP}": self.group,
            f"HEAD {_GROUP}": self.has_group,
            f"DELETE {_GROUP}": self.delete_group,
        }

    # ---- the caller's ------------------------------------------------------------------------------------------

    async def tenants(self, _: ArmCall) -> Response:
        """List the one tenant."""
        tenant = {"id": f"/tenants/{TENANT}", "tenantId": TENANT, "displayName": "Redrive"}
        return json_answer({"value": [tenant]})

    async def subscriptions(self, call: ArmCall) -> Response:
        """List the caller's Azure subscription: its GUID ends in the account of the access key."""
        return json_answer({"value": [_subscription(f"{TENANT[:-12]}{call.caller.account or ANY_ACCOUNT}")]})

    async def subscription(self, call: ArmCall) -> Response:
        """Show an Azure subscription of the caller's."""
        return json_answer(_subscription(call.params["subscription"]))

    async def locations(self, call: ArmCall) -> Response:
        """List the one location; resources may say that they are in others."""
        location = {"id": f"{call.request.path}/local", "name": "local", "displayName": "Local"}
        return json_answer({"value": [location]})

    async def provider(self, call: ArmCall) -> Response:
        """Show a provider of resources, registered."""
        name = call.params["provider"]
        provider = {
            "id": f"/subscriptions/{call.params['subscription']}/providers/{name}",
            "namespace": name,
            "registrationState": "Registered",
            "registrationPolicy": "RegistrationRequired",
            "resourceTypes": types_of(name),
        }
        return json_answer(provider)

    # ---- groups ------------------------------------------------------------------------------------------------

    async def put_group(self, call: ArmCall) -> Response:
        """Make a group, or change its tags."""
        if not _GROUP_NAME.fullmatch(call.params["group"]):
            raise invalid(
                f"The resource group's name '{call.params['group']}' must be 1 to {_GROUP_CHARS_MAX} letters, digits "
                "and any of -_.() and not end with a period.",
                "InvalidResourceGroup",
            )
        members, key = _GROUP_SCHEMA.accept(call.document), _group_key(call)

        async def write(draft: Draft) -> tuple[Group, HTTPStatus]:
            group = await draft.get(GROUP, key)
            if group is None:
                location(members, "location")  # a new one has to have it
            document = {**(group or _new_group(call)), **members}
            if group is None:
                document["properties"] = {"provisioningState": "Succeeded"}
            draft.put(GROUP, key, document)
            return document, HTTPStatus.CREATED if group is None else HTTPStatus.OK

        return json_answer(*await self._documents.transact(write))

    async def group(self, call: ArmCall) -> Response:
        """Show a group."""
        group = await self._documents.get(GROUP, _group_key(call))
        if group is None:
            name = call.params["group"]
            raise not_found(f"Resource group '{name}' could not be found.", "ResourceGroupNotFound")
        return json_answer(group)

    async def has_group(self, call: ArmCall) -> Response:
        """Tell whether there is a group of that name."""
        group = await self._documents.get(GROUP, _group_key(call))
        return empty_answer(HTTPStatus.NOT_FOUND if group is None else HTTPStatus.NO_CONTENT)

    async def groups(self, call: ArmCall) -> Response:
        """List the groups of an Azure subscription."""
        prefix = f"{call.params['subscription']}/".lower()

        async def fetch(after: str, limit: int) -> Sequence[Group]:
            return await self._documents.find(GROUP, prefix, after, limit)

        return await paging.page(
            call,
            fetch,
            lambda group: f"{prefix}{group['name'].lower()}",
            lambda group: str(group["name"]),
            dict,
        )

    async def delete_group(self, call: ArmCall) -> Response:
        """Remove a group with all that is in it."""
        key = _group_key(call)
        topics = await self._topics.of_account(*call.account_and_group)
        await self._subscribers.remove_topics([topic for topic in topics if topic.dialect == names.DIALECT])
        for system_topic in await self._documents.find(SYSTEM_TOPIC, f"{key}/"):
            await self._documents.remove(SYSTEM_TOPIC, system_topic.name.key)
        for namespace in await self._documents.find(NAMESPACE, f"{key}/"):
            await self._documents.remove(NAMESPACE, namespace.name.key)
        await self._documents.remove(GROUP, key)
        return empty_answer(HTTPStatus.OK)


def _subscription(guid: str) -> Mapping[str, Any]:
    """An Azure subscription, as it is shown; there is one for every GUID."""
    return {
        "id": f"/subscriptions/{guid}",
        "subscriptionId": guid,
        "tenantId": TENANT,
        "displayName": "Redrive",
        "state": "Enabled",
        "subscriptionPolicies": {"quotaId": "Redrive", "spendingLimit": "Off"},
        "authorizationSource": "RoleBased",
    }


def _group_key(call: ArmCall) -> str:
    return "/".join(call.account_and_group)


def _new_group(call: ArmCall) -> Group:
    resource = ArmId(call.params["subscription"], call.params["group"])
    return {"id": resource.text, "name": resource.name, "type": "Microsoft.Resources/resourceGroups"}
