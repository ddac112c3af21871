"""Storage accounts: their connection strings, and the resource ids of what they keep."""

import re
from dataclasses import dataclass, field
from typing import Final

# What every emulator of storage accounts answers to (Azurite's documentation): the whole world knows this key.
_DEVELOPMENT: Final = {
    "defaultendpointsprotocol": "http",
    "accountname": "devstoreaccount1",
    "accountkey": (
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    ),
    "blobendpoint": "http://127.0.0.1:10000/devstoreaccount1",
    "queueendpoint": "http://127.0.0.1:10001/devstoreaccount1",
}

_CONTAINER: Final = re.compile(
    r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Storage/storageAccounts/(?P<account>[a-z0-9]+)"
    r"/blobServices/default/containers/(?P<container>[a-z0-9$-]+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Container:
    """A container for blobs."""

    account: str  # The storage account's name
    name: str  # The container's


def read_container(resource: str) -> Container:
    """The container that a resource id names, in lower case: ids are compared so, names have no upper case.

    Raises:
        ValueError: It names none.
    """
    match = _CONTAINER.fullmatch(resource)
    if match is None:
        raise ValueError(f"{resource} is not the resource id of a container")
    return Container(match["account"].lower(), match["container"].lower())


@dataclass(frozen=True, slots=True)
class StorageAccount:
    """A connection string taken apart."""

    name: str  # The account's
    blob_url: str  # Its blob service
    # In base 64; None if a signature is given, or anybody may write.
    key: str | None = field(default=None, repr=False)
    # A shared access signature, percent-encoded; None if there is none.
    signature: str | None = field(default=None, repr=False)


def read_connection_string(text: str) -> StorageAccount:
    """Take a storage account's connection string apart.

    Raises:
        ValueError: It names neither an account nor a blob service.
    """
    parts = {name.lower(): value for name, _, value in (part.partition("=") for part in text.split(";"))}
    if parts.get("usedevelopmentstorage", "").lower() == "true":
        parts = _DEVELOPMENT
    name = parts.get("accountname", "")
    url = parts.get("blobendpoint") or (name and _blob_url(name, parts))
    if not url:
        raise ValueError("A storage account's connection string has an AccountName or a BlobEndpoint")
    signature = parts.get("sharedaccesssignature")
    return StorageAccount(name or _first_label(url), url.rstrip("/"), parts.get("accountkey"), signature)


def _blob_url(name: str, parts: dict[str, str]) -> str:
    scheme = parts.get("defaultendpointsprotocol", "https")
    return f"{scheme}://{name}.blob.{parts.get('endpointsuffix', 'core.windows.net')}"


def _first_label(url: str) -> str:
    return url.partition("://")[2].partition(".")[0]
