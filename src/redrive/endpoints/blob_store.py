"""Blobs in a folder or in a bucket of S3: written whole, and on disk when they are answered."""

import asyncio
import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import NotFoundError
from obstore.store import LocalStore, S3Store

from redrive.model.errors import NotFound

if TYPE_CHECKING:  # the library has these names for type checkers alone
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

# A push that fails is an attempt, and the schedule says when the next one is. A push has its own time-out, so that the
# library's is only what ends a request that nobody waits for any more.
ONCE: Final["RetryConfig"] = {"max_retries": 0, "retry_timeout": timedelta(minutes=5)}
_REQUEST_MAX: Final = timedelta(minutes=5)


class BlobStore:
    """A folder, or a bucket of S3.

    A blob of a folder is on disk, and so is every entry that leads to it, when `put` returns; a blob of S3 is as durable
    as S3's own answer says.

    Args:
        url: A folder, or `s3://BUCKET[/PREFIX]`.
        ca_file: Certificates in PEM that are trusted besides the system's.
    """

    def __init__(self, url: str, ca_file: Path | None = None) -> None:
        self._url = url
        self._ca_file = ca_file
        self._opened: LocalStore | S3Store | None = None

    async def put(self, path: str, content: bytes, content_type: str = "") -> str:
        """Write a blob, over the one that is there; its entity tag."""
        store = self._store()
        tag = await put(store, path, content, content_type)
        if isinstance(store, LocalStore):
            await asyncio.to_thread(_settle, self._folder, path)
        return tag

    async def read(self, path: str, first: int, length: int) -> bytes:
        """Some bytes of a blob.

        Raises:
            NotFound: It is not there (any more).
        """
        if not length:
            return b""
        try:
            return bytes(await obstore.get_range_async(self._store(), path, start=first, length=length))
        except (NotFoundError, FileNotFoundError):
            raise NotFound(f"the blob {path}") from None

    async def remove(self, paths: Sequence[str]) -> None:
        """Remove blobs; those that are not there are no error."""
        for path in paths:
            try:
                await obstore.delete_async(self._store(), path)
            except (NotFoundError, FileNotFoundError):
                continue

    async def close(self) -> None:
        """Let go of connections."""
        self._opened = None

    @property
    def _folder(self) -> Path:
        return Path(self._url.removeprefix("file://")).absolute()

    def _store(self) -> LocalStore | S3Store:
        self._opened = self._opened or self._open()
        return self._opened

    def _open(self) -> LocalStore | S3Store:
        if not self._url.startswith("s3://"):
            return LocalStore(self._folder, mkdir=True)
        return S3Store.from_url(self._url, client_options=client_of(self._ca_file), retry_config=ONCE)


def client_of(ca_file: Path | None) -> "ClientConfig":
    """The options of the library's client."""
    options: ClientConfig = {"timeout": _REQUEST_MAX, "allow_http": True}  # where the settings say http
    if ca_file is not None:
        options["root_certificate"] = ca_file.read_bytes()
    return options


async def put(store: "ObjectStore", path: str, content: bytes, content_type: str) -> str:
    """Write a blob into a store that is open; its entity tag."""
    attributes = {} if isinstance(store, LocalStore) or not content_type else {"Content-Type": content_type}
    written = await obstore.put_async(store, path, content, attributes=attributes, use_multipart=False)
    return (written["e_tag"] or "").strip('"')


def _settle(folder: Path, path: str) -> None:
    """Wait until a file, and every entry that leads to it, is on disk: the library leaves that to the system."""
    file = folder / path
    for place in (file, *file.parents[: path.count("/") + 1], folder.parent):
        descriptor = os.open(place, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
