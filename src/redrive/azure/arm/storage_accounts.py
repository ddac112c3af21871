"""Owners of the server's own storage accounts. Names are everybody's: whoever names an account first has it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from redrive.azure.wire.arm_id import ArmId
from redrive.azure.wire.errors import conflict
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind

_ACCOUNT_DIGITS: Final = 12  # at the end of an Azure subscription's GUID


@dataclass(frozen=True, slots=True)
class StorageAccountRecord:
    """One storage account.

    Attributes:
        account: Of the access keys that it belongs to.
        id: Its ARM id, as it was spelt when it was made; empty: it was never made, and is in no list.
    """

    account: str
    id: str = ""

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

    async def made(self, resource: ArmId) -> None:
        """Keep an account's id for lists; the account is whose the Azure subscription is.

        Raises:
            AzureError: It is another's.
        """
        account = resource.subscription[-_ACCOUNT_DIGITS:]
        first = StorageAccountRecord(account, resource.text)
        await self._check(resource.name, account, first)
        await self._documents.update_or_create(
            STORAGE_ACCOUNT, resource.name.lower(), first, lambda kept: kept if kept.id else first
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
        kept = await self._documents.get(STORAGE_ACCOUNT, name.lower())
        if kept is None:
            kept = await self._documents.update_or_create(
                STORAGE_ACCOUNT, name.lower(), first, lambda current: current
            )
        if kept.account != account:
            raise conflict(
                f"The storage account named {name} is already taken.", "StorageAccountAlreadyTaken"
            )
