"""Blobs: requests written to Azure's storage accounts, to S3, or to a folder with the same layout."""

import asyncio
import os
import re
from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import BaseError
from obstore.store import AzureStore, LocalStore, S3Store
from typing_extensions import override

from redrive.endpoints import blob_verdicts, verdicts
from redrive.endpoints.azure.storage_accounts import Container, read_connection_string, read_container
from redrive.endpoints.azure.storage_verdicts import BY_STATUS
from redrive.endpoints.containers import BlobContainers
from redrive.endpoints.timed import TimedEndpoint
from redrive.endpoints.verdicts import ACCEPTED, Verdict
from redrive.engine.ports import PushRequest

if TYPE_CHECKING:  # the library has these names for type checkers alone
    from obstore.store import AzureConfig, ClientConfig, ObjectStore, RetryConfig

CONTAINER: Final = "container"  # a header
REQUIRED: Final = "required"
_CREATED: Final = 201
_NOT_FOUND: Final = 404
_STORES_MAX: Final = 1000  # open at once, one a container; each keeps its connections

# Segments that mean the same in a URL and in a file system. Nothing that a name leads out of the folder by.
_PATH: Final = re.compile(r"(?!(?:.*/)?\.{1,2}(?:/|$))[\w.$-]+(?:/[\w.$-]+)*", re.ASCII)

# A push that fails is an attempt, and the schedule says when the next one is. A push has its own time-out, so that the
# library's is only what ends a request that nobody waits for any more.
_ONCE: Final["RetryConfig"] = {"max_retries": 0, "retry_timeout": timedelta(minutes=5)}
_REQUEST_MAX: Final = timedelta(minutes=5)


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
        connection_string: Of the storage account of a resource id; None where the settings name none. Such blobs go to
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
        self._store = store
        self._ca_file = ca_file
        self._azure = lru_cache(_STORES_MAX)(self._opened_azure)
        self._shared: LocalStore | S3Store | None = None
        self._containers = BlobContainers(store)

    @override
    async def close(self) -> None:
        """Let go of connections."""
        self._azure.cache_clear()
        self._shared = None

    @override
    async def _verdict(self, push_request: PushRequest) -> Verdict:
        try:
            async with asyncio.timeout(push_request.timeout_ms / 1000):
                tag = await self._write(push_request)
        except _ContainerMissing as missing:
            return verdicts.of_status(_NOT_FOUND, str(missing), BY_STATUS)
        except (BaseError, OSError, ValueError) as error:
            return blob_verdicts.of_failure(error)
        known = {"etag": tag, "content-length": str(len(push_request.body))}
        kept = tuple((name, known[name]) for name in push_request.headers_kept if name in known)
        return ACCEPTED.verdict(_CREATED, identifiers=kept)

    async def _write(self, push_request: PushRequest) -> str:
        """Write it; its entity tag."""
        container, path = read_container(push_request.endpoint), push_request.headers["path"]
        if not _PATH.fullmatch(path):
            raise ValueError(f"{path!r} is not a blob's name that every store can keep")
        connection_string = self._connection_string(push_request.endpoint)
        if connection_string is not None:
            return await _put(self._azure(connection_string, container.name), path, push_request)
        if push_request.headers.get(CONTAINER) == REQUIRED:
            await self._check(container)
        store = self._shared = self._shared or self._opened_shared()
        shared_path = f"{container.account}/{container.name}/{path}"
        tag = await _put(store, shared_path, push_request)
        if isinstance(store, LocalStore):
            await asyncio.to_thread(_settle, self._folder, shared_path)
        return tag

    async def _check(self, container: Container) -> None:
        if not await self._containers.is_there(container.account, container.name):
            raise _ContainerMissing(
                f"ContainerNotFound: {container.account}/{container.name} does not exist."
            )

    @property
    def _folder(self) -> Path:
        return Path(self._store.removeprefix("file://")).absolute()

    def _opened_azure(self, connection_string: str, container: str) -> AzureStore:
        account = read_connection_string(connection_string)
        config: AzureConfig = {"account_name": account.name, "endpoint": account.blob_url}
        if account.key:
            config["account_key"] = account.key
        if account.signature:
            config["sas_key"] = account.signature
        return AzureStore(container, config=config, client_options=self._client(), retry_config=_ONCE)

    def _opened_shared(self) -> LocalStore | S3Store:
        if not self._store.startswith("s3://"):
            return LocalStore(self._folder, mkdir=True)
        return S3Store.from_url(self._store, client_options=self._client(), retry_config=_ONCE)

    def _client(self) -> "ClientConfig":
        options: ClientConfig = {"timeout": _REQUEST_MAX, "allow_http": True}  # where the settings say http
        if self._ca_file is not None:
            options["root_certificate"] = self._ca_file.read_bytes()
        return options


async def _put(store: "ObjectStore", path: str, push_request: PushRequest) -> str:
    attributes = {} if isinstance(store, LocalStore) else {"Content-Type": push_request.content_type}
    put = await obstore.put_async(store, path, push_request.body, attributes=attributes, use_multipart=False)
    return (put["e_tag"] or "").strip('"')


def _settle(folder: Path, path: str) -> None:
    """Wait until a file, and every entry that leads to it, is on disk: the library leaves that to the system."""
    file = folder / path
    for place in (file, *file.parents[: path.count("/") + 1], folder.parent):
        descriptor = os.open(place, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
