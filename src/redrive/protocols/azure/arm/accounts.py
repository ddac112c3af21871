"""What surrounds Event Grid's resources: Azure subscriptions, tenants, providers, resource groups, storage accounts.

As much of it as `az` asks for around its Event Grid commands. An Azure subscription is the account of whoever calls, so
there is one for each access key; the provider is always registered; groups are known once somebody has made them, and
nothing needs them to be.
"""

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from redrive.access.keys import ANY_ACCOUNT
from redrive.engine.engine import Engine
from redrive.engine.ports import Kind
from redrive.model.errors import Conflict, NotFound
from redrive.protocols.azure.arm import fields, paging
from redrive.protocols.azure.arm.call import ArmCall, Verb
from redrive.protocols.azure.arm.destinations import EndpointResolver
from redrive.protocols.azure.arm.event_sources import SYSTEM_TOPIC
from redrive.protocols.azure.arm.subscribers import Subscribers
from redrive.protocols.azure.eventgrid import names
from redrive.protocols.azure.namespaces.places import NAMESPACE
from redrive.protocols.azure.wire.answers import empty_answer, json_answer
from redrive.protocols.azure.wire.arm_id import ArmId
from redrive.protocols.azure.wire.errors import invalid, not_found
from redrive.protocols.http import Response

Group = Mapping[str, Any]  # as it is shown

GROUP: Final[Kind[Group]] = Kind("azure_resource_group", dict, dict)
TENANT: Final = "00000000-0000-0000-0000-000000000000"
_SUBSCRIPTION: Final = "/subscriptions/{subscription}"
_GROUP: Final = f"{_SUBSCRIPTION}/resourceGroups/{{group}}"
_STORAGE: Final = f"{_GROUP}/providers/Microsoft.Storage/storageAccounts/{{storageAccount}}"
_GROUP_CHARS_MAX: Final = 90
_GROUP_NAME: Final = re.compile(rf"[\w.()-]{{1,{_GROUP_CHARS_MAX}}}(?<!\.)")
_KEPT: Final = ("location", "tags", "managedBy")


class AccountOperations:
    """What is done to what surrounds Event Grid's resources."""

    def __init__(self, engine: Engine, subscribers: Subscribers, resolve: EndpointResolver) -> None:
        """Do it through this engine.

        Args:
            engine: Keeps groups.
            subscribers: Who goes with a group's topics.
            resolve: What stands behind the id of a storage account.
        """
        self._engine = engine
        self._subscribers = subscribers
        self._resolve = resolve

    @property
    def routes(self) -> Mapping[str, Verb]:
        """See `Operations.routes`."""
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
            f"GET {_STORAGE}": self.storage_account,
        }

    # ---- whose ---------------------------------------------------------------------------------------------------

    async def tenants(self, _: ArmCall) -> Response:
        """The one there is."""
        shown = {"id": f"/tenants/{TENANT}", "tenantId": TENANT, "displayName": "Redrive"}
        return json_answer({"value": [shown]})

    async def subscriptions(self, call: ArmCall) -> Response:
        """The caller's: its GUID ends in the account of the access key."""
        return json_answer({"value": [_subscription(f"{TENANT[:-12]}{call.caller.account or ANY_ACCOUNT}")]})

    async def subscription(self, call: ArmCall) -> Response:
        """One that the caller has."""
        return json_answer(_subscription(call.params["subscription"]))

    async def locations(self, call: ArmCall) -> Response:
        """The one there is; resources may say that they are in others."""
        shown = {"id": f"{call.request.path}/local", "name": "local", "displayName": "Local"}
        return json_answer({"value": [shown]})

    async def provider(self, call: ArmCall) -> Response:
        """A provider of resources, registered."""
        name = call.params["provider"]
        shown = {
            "id": f"/subscriptions/{call.params['subscription']}/providers/{name}",
            "namespace": name,
            "registrationState": "Registered",
            "registrationPolicy": "RegistrationRequired",
            "resourceTypes": [],
        }
        return json_answer(shown)

    # ---- groups --------------------------------------------------------------------------------------------------

    async def put_group(self, call: ArmCall) -> Response:
        """Make a group, or change its tags."""
        documents, key, document = self._engine.resources.documents, _group_key(call), call.document
        _check_group(call.params["group"], document)
        said = {name: value for name, value in fields.present(document).items() if name in _KEPT}
        while True:
            try:
                if await documents.get(GROUP, key) is not None:
                    changed = await documents.update(GROUP, key, lambda current: {**current, **said})
                    return json_answer(changed)
                if not said.get("location"):
                    raise invalid(
                        "The location property is required for this definition.", "LocationRequired"
                    )
                await documents.create(GROUP, key, made := _group(call, said))
            except (Conflict, NotFound):
                continue  # somebody was faster: look again
            return json_answer(made, HTTPStatus.CREATED)

    async def group(self, call: ArmCall) -> Response:
        """Show a group."""
        found = await self._engine.resources.documents.get(GROUP, _group_key(call))
        if found is None:
            name = call.params["group"]
            raise not_found(f"Resource group '{name}' could not be found.", "ResourceGroupNotFound")
        return json_answer(found)

    async def has_group(self, call: ArmCall) -> Response:
        """Whether there is a group of that name."""
        found = await self._engine.resources.documents.get(GROUP, _group_key(call))
        return empty_answer(HTTPStatus.NOT_FOUND if found is None else HTTPStatus.NO_CONTENT)

    async def groups(self, call: ArmCall) -> Response:
        """All of an Azure subscription."""
        prefix = f"{call.params['subscription']}/".lower()

        async def fetch(after: str, limit: int) -> Sequence[Group]:
            return await self._engine.resources.documents.find(GROUP, prefix, after, limit)

        return await paging.page(
            call, fetch, lambda one: f"{prefix}{one['name'].lower()}", _name, lambda one: one
        )

    async def delete_group(self, call: ArmCall) -> Response:
        """Remove a group with all that is in it."""
        documents, key = self._engine.resources.documents, _group_key(call)
        for topic in await self._engine.resources.topics.of_account(*_account_and_group(call)):
            if topic.dialect == names.DIALECT:
                await self._subscribers.remove_all(topic)
                await self._engine.resources.topics.delete(topic)
        for system_topic in await documents.find(SYSTEM_TOPIC, f"{key}/"):
            await documents.remove(SYSTEM_TOPIC, system_topic.key)
        for namespace in await documents.find(NAMESPACE, f"{key}/"):
            await documents.remove(NAMESPACE, namespace.name.key)
        await documents.remove(GROUP, key)
        return empty_answer(HTTPStatus.OK)

    # ---- storage accounts ----------------------------------------------------------------------------------------

    async def storage_account(self, call: ArmCall) -> Response:
        """A storage account, so that its id can be asked for: one that the settings name, or the server's own."""
        resource = ArmId(
            call.params["subscription"],
            call.params["group"],
            "Microsoft.Storage",
            ("storageAccounts", call.params["storageAccount"]),
        )
        own = self._resolve(resource.text) is None
        shown = {
            "id": resource.text,
            "name": resource.name,
            "type": "Microsoft.Storage/storageAccounts",
            "location": "local",
            "kind": "StorageV2",
            "sku": {"name": "Standard_LRS", "tier": "Standard"},
            "tags": {"redrive": "own" if own else "named"},
            "properties": {"provisioningState": "Succeeded"},
        }
        return json_answer(shown)


def _subscription(guid: str) -> Mapping[str, Any]:
    return {
        "id": f"/subscriptions/{guid}",
        "subscriptionId": guid,
        "tenantId": TENANT,
        "displayName": "Redrive",
        "state": "Enabled",
        "subscriptionPolicies": {"quotaId": "Redrive", "spendingLimit": "Off"},
        "authorizationSource": "RoleBased",
    }


def _check_group(name: str, document: fields.Document) -> None:
    if not _GROUP_NAME.fullmatch(name):
        raise invalid(
            f"The resource group's name '{name}' must be 1 to {_GROUP_CHARS_MAX} letters, digits and any of -_.() "
            "and not end with a period.",
            "InvalidResourceGroup",
        )
    for text in ("location", "managedBy"):
        fields.text(document, text)
    tags = fields.part(document, "tags") or {}
    for tag in tags:
        fields.text(tags, tag)


def _account_and_group(call: ArmCall) -> tuple[str, str]:
    return call.params["subscription"].lower(), call.params["group"].lower()


def _group_key(call: ArmCall) -> str:
    return "/".join(_account_and_group(call))


def _group(call: ArmCall, said: Mapping[str, Any]) -> Group:
    resource = ArmId(call.params["subscription"], call.params["group"])
    return {
        "id": resource.text,
        "name": resource.name,
        "type": "Microsoft.Resources/resourceGroups",
        **said,
        "properties": {"provisioningState": "Succeeded"},
    }


def _name(group: Group) -> str:
    name: str = group["name"]
    return name
