"""Storage accounts, their keys and their containers, as far as dead letters are written to them.

An account that the settings name is somewhere else, and whatever is asked of it there is taken to be there. Any other
is the server's own: it needs no making, and its containers are those of the blob store.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Protocol

from redrive.azure.arm import schema
from redrive.azure.arm.call import ArmCall, Verb
from redrive.azure.arm.destinations import EndpointResolver, check_container, check_storage_account
from redrive.azure.recognise import BLOBS
from redrive.azure.storage_keys import NAMES, StorageKeys
from redrive.azure.wire.answers import conflict, empty_answer, invalid, json_answer, not_found
from redrive.azure.wire.arm_id import ArmId
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.model.http import Response

# Owners of the server's own storage accounts. Names are everybody's: whoever names an account first has it.

_ACCOUNT_DIGITS: Final = 12  # at the end of an Azure subscription's GUID


@dataclass(frozen=True, slots=True)
class StorageAccountRecord:
    """One storage account."""

    account: str  # Storage account of the access keys
    id: str = ""  # Its ARM id, as it was spelt when it was made; empty: it was never made, and is in no list

    def as_document(self) -> Mapping[str, Any]:
        """The form that is stored."""
        return {"account": self.account, **({"id": self.id} if self.id else {})}

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> "StorageAccountRecord":
        """Read the form that is stored."""
        return StorageAccountRecord(document["account"], document.get("id", ""))


STORAGE_ACCOUNT: Final[DocumentKind[StorageAccountRecord]] = DocumentKind(
    "azure_storage_account", StorageAccountRecord.as_document, StorageAccountRecord.from_document
)


class StorageAccounts:
    """The storage accounts of the server's own."""

    def __init__(self, engine: Engine) -> None:
        self._documents = engine.resources.documents

    async def record(self, resource: ArmId) -> None:
        """Keep an account's id for lists; the account is whose the Azure subscription is.

        Raises:
            AzureError: It is another's.
        """
        account = resource.subscription[-_ACCOUNT_DIGITS:]
        new_record = StorageAccountRecord(account, resource.text)
        await self._check(resource.name, account, new_record)
        await self._documents.update_or_create(
            STORAGE_ACCOUNT,
            resource.name.lower(),
            new_record,
            lambda record: record if record.id else new_record,
        )

    async def check_owner(self, name: str, account: str) -> None:
        """Let an account of access keys have a storage account that it names first.

        Raises:
            AzureError: It is another's.
        """
        await self._check(name, account, StorageAccountRecord(account))

    async def in_subscription(self, subscription: str, group: str | None) -> list[ArmId]:
        """The ids of those that were made in an Azure subscription, or in one of its resource groups."""
        accounts = await self._documents.entries(STORAGE_ACCOUNT)
        ids = [ArmId.parse(account.id) for _, account in accounts if account.id]
        return [
            each
            for each in ids
            if each is not None
            and each.subscription.lower() == subscription.lower()
            and (group is None or each.group.lower() == group.lower())
        ]

    async def _check(self, name: str, account: str, first: StorageAccountRecord) -> None:
        """Refuse an account that does not own the storage account; nobody's becomes the `first` record's."""
        record = await self._documents.get(STORAGE_ACCOUNT, name.lower())
        if record is None:
            record = await self._documents.update_or_create(
                STORAGE_ACCOUNT, name.lower(), first, lambda current: current
            )
        if record.account != account:
            raise conflict(
                f"The storage account named {name} is already taken.", "StorageAccountAlreadyTaken"
            )


_SUBSCRIPTION: Final = "/subscriptions/{subscription}"
_ACCOUNT: Final = (
    f"{_SUBSCRIPTION}/resourceGroups/{{group}}/providers/Microsoft.Storage/storageAccounts/{{storageAccount}}"
)
_BLOB_SERVICE: Final = f"{_ACCOUNT}/blobServices/default"
_CONTAINERS: Final = f"{_BLOB_SERVICE}/containers"
_CONTAINER: Final = f"{_CONTAINERS}/{{container}}"


class Containers(Protocol):
    """The containers of the server's own blob store, by their accounts' names and their own."""

    async def make(self, account: str, container: str) -> bool:
        """Make a container; False: it was there."""
        ...

    async def is_there(self, account: str, container: str) -> bool:
        """True if blobs can be written to it."""
        ...

    async def names(self, account: str) -> list[str]:
        """The containers of an account."""
        ...

    async def remove(self, account: str, container: str) -> bool:
        """Remove a container with its blobs; False: it was not there."""
        ...


class StorageOperations:
    """The operations on storage accounts and containers."""

    def __init__(
        self, accounts: StorageAccounts, containers: Containers, keys: StorageKeys, resolve: EndpointResolver
    ) -> None:
        self._accounts = accounts
        self._containers = containers
        self._keys = keys
        self._resolve = resolve

    @property
    def routes(self) -> Mapping[str, Verb]:
        """The handlers by method and path (`Operations.routes`)."""
        return {
            f"POST {_SUBSCRIPTION}/providers/Microsoft.Storage/checkNameAvailability": self.name_available,
            f"GET {_SUBSCRIPTION}/providers/Microsoft.Storage/storageAccounts": self.accounts,
            f"GET {_SUBSCRIPTION}/resourceGroups/{{group}}/providers/Microsoft.Storage/storageAccounts": self.accounts,
            f"PUT {_ACCOUNT}": self.put_account,
            f"GET {_ACCOUNT}": self.account,
            f"POST {_ACCOUNT}/listKeys": self.list_keys,
            f"PUT {_BLOB_SERVICE}": self.blob_service,
            f"GET {_BLOB_SERVICE}": self.blob_service,
            f"GET {_CONTAINERS}": self.containers,
            f"PUT {_CONTAINER}": self.put_container,
            f"GET {_CONTAINER}": self.container,
            f"DELETE {_CONTAINER}": self.delete_container,
        }

    async def name_available(self, call: ArmCall) -> Response:
        """Tell that a storage account may have a name, which `az storage account create` asks first."""
        schema.text(call.document, "name")
        return json_answer({"nameAvailable": True})

    async def accounts(self, call: ArmCall) -> Response:
        """List the accounts that were made in an Azure subscription or a resource group."""
        accounts = await self._accounts.in_subscription(call.params["subscription"], call.params.get("group"))
        return json_answer({"value": [self._body(call, resource) for resource in accounts]})

    async def put_account(self, call: ArmCall) -> Response:
        """Make a storage account, which is there already; from now on it is in lists."""
        resource = await self._account(call)
        await self._accounts.record(resource)
        return json_answer(self._body(call, resource))

    async def account(self, call: ArmCall) -> Response:
        """Show a storage account: one that the settings name, or the server's own, which needs no making."""
        return json_answer(self._body(call, await self._account(call)))

    def _body(self, call: ArmCall, resource: ArmId) -> Mapping[str, Any]:
        """A storage account as it is shown; only one of this server has an address of blobs."""
        is_own = self._is_own(resource)
        blobs = {"primaryEndpoints": {"blob": f"{call.base_url}{BLOBS}{resource.name}/"}} if is_own else {}
        return {
            "id": resource.text,
            "name": resource.name,
            "type": "Microsoft.Storage/storageAccounts",
            "location": "local",
            "kind": "StorageV2",
            "sku": {"name": "Standard_LRS", "tier": "Standard"},
            "tags": {"redrive": "own" if is_own else "named"},
            "properties": {"provisioningState": "Succeeded", **blobs},
        }

    async def list_keys(self, call: ArmCall) -> Response:
        """Show the keys of an account of the server's own; of another the settings have one, which nobody is shown."""
        resource = await self._account(call)
        if not self._is_own(resource):
            raise invalid(f"The keys of the storage account '{resource.name}' are not this server's.")
        keys = zip(NAMES, self._keys.of(resource.name), strict=True)
        items = [{"keyName": name, "value": key, "permissions": "FULL"} for name, key in keys]
        return json_answer({"keys": items})

    async def blob_service(self, call: ArmCall) -> Response:
        """Show the Blob service, which templates name between an account and its containers; it has no settings here."""
        account = await self._account(call)
        if call.request.method == "PUT" and call.document.get("properties"):
            raise invalid("The Blob service of a storage account has no settings here.")
        service = account.child("blobServices", "default")
        kind = "Microsoft.Storage/storageAccounts/blobServices"
        return json_answer({"id": service.text, "name": "default", "type": kind, "properties": {}})

    async def containers(self, call: ArmCall) -> Response:
        """List the containers of an account of the server's own; of another none are known."""
        account = await self._account(call)
        names = await self._containers.names(account.name) if self._is_own(account) else []
        return json_answer({"value": [_body(_container(account, name)) for name in names]})

    async def put_container(self, call: ArmCall) -> Response:
        """Make a container; whatever stands in it stays."""
        account, container = await self._account_and_container(call)
        is_new = self._is_own(account) and await self._containers.make(account.name, container.name)
        return json_answer(_body(container), HTTPStatus.CREATED if is_new else HTTPStatus.OK)

    async def container(self, call: ArmCall) -> Response:
        """Show a container."""
        account, container = await self._account_and_container(call)
        if self._is_own(account) and not await self._containers.is_there(account.name, container.name):
            raise not_found("The specified container does not exist.", "ContainerNotFound")
        return json_answer(_body(container))

    async def delete_container(self, call: ArmCall) -> Response:
        """Remove a container with its blobs, which an account elsewhere does itself."""
        account, container = await self._account_and_container(call)
        removed = self._is_own(account) and await self._containers.remove(account.name, container.name)
        return empty_answer(HTTPStatus.OK if removed else HTTPStatus.NO_CONTENT)

    def _is_own(self, account: ArmId) -> bool:
        return self._resolve(account.text) is None

    async def _account(self, call: ArmCall) -> ArmId:
        """The storage account that a call names: the caller's, from the first call on that names it.

        Raises:
            AzureError: It is another's: the names of storage accounts are everybody's.
        """
        account = ArmId(
            call.params["subscription"],
            call.params["group"],
            "Microsoft.Storage",
            ("storageAccounts", call.params["storageAccount"]),
        )
        check_storage_account(account)
        caller = call.caller.account
        if caller is not None and self._is_own(account):
            await self._accounts.check_owner(account.name, caller)
        return account

    async def _account_and_container(self, call: ArmCall) -> tuple[ArmId, ArmId]:
        account, name = await self._account(call), call.params["container"]
        check_container(name)
        return account, _container(account, name)


def _container(account: ArmId, name: str) -> ArmId:
    return account.child("blobServices", "default").child("containers", name)


def _body(container: ArmId) -> Mapping[str, Any]:
    """A container as it is shown."""
    return {
        "id": container.text,
        "name": container.name,
        "type": "Microsoft.Storage/storageAccounts/blobServices/containers",
        "properties": {"publicAccess": "None"},
    }
