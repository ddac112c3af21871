"""Blobs: requests written to Azure's storage accounts, to S3, or to a folder with the same layout."""

import asyncio
import errno
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from obstore.exceptions import BaseError
from obstore.store import AzureStore
from typing_extensions import override

from redrive.endpoints import verdicts
from redrive.endpoints.blob_store import NAME, ONCE, BlobStore, client_of, put
from redrive.endpoints.containers import BlobContainers
from redrive.endpoints.verdicts import ACCEPTED, STORAGE_STATUSES, TimedEndpoint, Verdict
from redrive.engine.ports import PushRequest
from redrive.model.attempt import AttemptResult, Reason

if TYPE_CHECKING:  # the library has these names for type checkers alone
    from obstore.store import AzureConfig


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


CONTAINER: Final = "container"  # a header
REQUIRED: Final = "required"
_CREATED: Final = 201
_NOT_FOUND: Final = 404
_STORES_MAX: Final = 1000  # open at once, one a container; each keeps its connections


class _ContainerMissing(Exception):  # noqa: N818 - what became of the request
    """The container that a request is for does not exist."""


class BlobEndpoint(TimedEndpoint):
    """Writes each request as a blob.

    A request's endpoint is the container's resource id; of its headers, `path` is the blob's name. A blob is there whole
    or not at all, and on disk before the attempt is a success. One that is there already is replaced: an attempt whose
    success nobody heard of is repeated, and brings the same.

    A container of Azure has to be there, and one of a folder where the request has the header `container` with the value
    `required`: event subscriptions that were made when it needed no making do without. One of S3 is a beginning of paths.

    Args:
        now: Milliseconds, for durations.
        connection_string: Of the storage account of a resource id; None if the settings name none. Such blobs go to
            the store of the next argument.
        store: A folder, or `s3://BUCKET[/PREFIX]`: there the blob is at `ACCOUNT/CONTAINER/PATH`.
        ca_file: Certificates in PEM that are trusted besides the system's.
    """

    def __init__(
        self,
        now: Callable[[], int],
        connection_string: Callable[[str], str | None],
        store: str,
        ca_file: Path | None = None,
    ) -> None:
        super().__init__(now)
        self._connection_string = connection_string
        self._store = BlobStore(store, ca_file)
        self._ca_file = ca_file
        self._azure = lru_cache(_STORES_MAX)(self._open_azure)
        self._containers = BlobContainers(store)

    @override
    async def close(self) -> None:
        """Let go of connections."""
        self._azure.cache_clear()
        await self._store.close()

    @override
    async def _verdict(self, push_request: PushRequest) -> Verdict:
        """Write the blob; its ETag and length are kept as the push asks."""
        try:
            async with asyncio.timeout(push_request.timeout_ms / 1000):
                tag = await self._write(push_request)
        except _ContainerMissing as missing:
            return verdicts.of_status(_NOT_FOUND, str(missing), STORAGE_STATUSES)
        except (BaseError, OSError, ValueError) as error:
            return verdict_of_failure(error)
        known = {"etag": tag, "content-length": str(len(push_request.body))}
        headers = tuple((name, known[name]) for name in push_request.headers_kept if name in known)
        return ACCEPTED.verdict(_CREATED, identifiers=headers)

    async def _write(self, push_request: PushRequest) -> str:
        """Write the blob and return its entity tag."""
        container, path = read_container(push_request.endpoint), push_request.headers["path"]
        if not NAME.fullmatch(path):
            raise ValueError(f"{path!r} is not a blob's name that every store can keep")
        connection_string = self._connection_string(push_request.endpoint)
        if connection_string is not None:
            store = self._azure(connection_string, container.name)
            return await put(store, path, push_request.body, push_request.content_type)
        if push_request.headers.get(CONTAINER) == REQUIRED:
            await self._check(container)
        shared_path = f"{container.account}/{container.name}/{path}"
        return await self._store.put(shared_path, push_request.body, push_request.content_type)

    async def _check(self, container: Container) -> None:
        if not await self._containers.is_there(container.account, container.name):
            raise _ContainerMissing(
                f"ContainerNotFound: {container.account}/{container.name} does not exist."
            )

    def _open_azure(self, connection_string: str, container: str) -> AzureStore:
        account = read_connection_string(connection_string)
        config: AzureConfig = {"account_name": account.name, "endpoint": account.blob_url}
        if account.key:
            config["account_key"] = account.key
        if account.signature:
            config["sas_key"] = account.signature
        return AzureStore(
            container, config=config, client_options=client_of(self._ca_file), retry_config=ONCE
        )


# Verdicts on blobs that could not be written.
#
# The library says it in words, of which these are read: `… in 3ms - Server returned non-2xx status code: 404 Not Found:
# <body>`, then, after an empty line, the chain of causes by the names of their types. The contract suite has an example
# of each, so that a version which speaks otherwise is noticed.

# The beginning has the URL in it, which may have a signature in it.
_MESSAGE: Final = re.compile(r"(?:.* in [\d.]+\S* - )?(?P<message>.*?)(?:\n\nDebug source:|\Z)", re.DOTALL)
_STATUS: Final = re.compile(r".*status code: (?P<status>\d{3})[^:\n]*(?:: )?(?P<body>.*)", re.DOTALL)
_ERRNO: Final = re.compile(r"os error (?P<number>\d+)")

_BY_ERRNO: Final = {
    errno.EACCES: Reason.DENIED,
    errno.EPERM: Reason.DENIED,
    errno.EROFS: Reason.DENIED,
    errno.ENOSPC: Reason.FULL,
    errno.EDQUOT: Reason.FULL,
}
_BY_WORD: Final = {
    "dns error": Reason.NAME_NOT_RESOLVED,
    "TimedOut": Reason.TIMED_OUT,
    "Elapsed": Reason.TIMED_OUT,
    "ertificate": Reason.TLS,
    "CorruptMessage": Reason.TLS,
}


def verdict_of_failure(error: Exception) -> Verdict:
    """The verdict on an attempt that raised this error.

    A container that is not there will not be there soon: the dead letters of Event Grid that want to go there are
    dropped. Keys may be mended and disks emptied, so those are tried again.
    """
    match error:
        case OSError(errno=int() as number):
            return _of_system(number, str(error))
        case BaseError() | OSError() if not isinstance(error, TimeoutError):
            return _of_words(str(error))
        case _:
            return verdicts.of_failure(error)


def _of_system(number: int, text: str) -> Verdict:
    return Verdict(AttemptResult.FAILED, _BY_ERRNO.get(number, Reason.SERVER_ERROR), response=text)


def _of_words(text: str) -> Verdict:
    """The verdict on an error that the library has only words for: a status, an error number or a keyword in them."""
    message_match = _MESSAGE.match(text)
    words = message_match["message"] if message_match else text
    status_match = _STATUS.match(words)
    if status_match:
        return verdicts.of_status(
            int(status_match["status"]), status_match["body"] or words, STORAGE_STATUSES
        )
    system = _ERRNO.search(words)
    if system:
        return _of_system(int(system["number"]), words)
    reason = next((reason for word, reason in _BY_WORD.items() if word in text), Reason.CONNECTION)
    return Verdict(AttemptResult.FAILED, reason, response=words)
