"""Blobs: requests written to Azure's storage accounts, to S3, or to a folder with the same layout."""

import asyncio
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from obstore.exceptions import BaseError
from obstore.store import AzureStore
from typing_extensions import override

from redrive.endpoints import blob_verdicts, verdicts
from redrive.endpoints.azure.storage_accounts import Container, read_connection_string, read_container
from redrive.endpoints.azure.storage_verdicts import BY_STATUS
from redrive.endpoints.blob_store import NAME, ONCE, BlobStore, client_of, put
from redrive.endpoints.containers import BlobContainers
from redrive.endpoints.timed import TimedEndpoint
from redrive.endpoints.verdicts import ACCEPTED, Verdict
from redrive.engine.ports import PushRequest

if TYPE_CHECKING:  # the library has these names for type checkers alone
    from obstore.store import AzureConfig

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
        self._store = BlobStore(store, ca_file)
        self._ca_file = ca_file
        self._azure = lru_cache(_STORES_MAX)(self._opened_azure)
        self._containers = BlobContainers(store)

    @override
    async def close(self) -> None:
        """Let go of connections."""
        self._azure.cache_clear()
        await self._store.close()

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

    def _opened_azure(self, connection_string: str, container: str) -> AzureStore:
        account = read_connection_string(connection_string)
        config: AzureConfig = {"account_name": account.name, "endpoint": account.blob_url}
        if account.key:
            config["account_key"] = account.key
        if account.signature:
            config["sas_key"] = account.signature
        return AzureStore(
            container, config=config, client_options=client_of(self._ca_file), retry_config=ONCE
        )
