"""Blobs in a folder or in a bucket of S3: written whole, on disk when they are answered, and listed by name."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import NotFoundError
from obstore.store import LocalStore, S3Store

from redrive.model.errors import NotFound

if TYPE_CHECKING:  # the library has these names for type checkers alone
    from obstore import GetOptions, GetResult, ObjectMeta
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

# A push that fails is an attempt, and the schedule says when the next one is. A push has its own time-out, so that the
# library's is only what ends an abandoned request.
ONCE: Final["RetryConfig"] = {"max_retries": 0, "retry_timeout": timedelta(minutes=5)}
_PIECE_BYTES: Final = 128 * 1024
_REQUEST_MAX: Final = timedelta(minutes=5)

#: Segments that mean the same in a URL and in a file system. Nothing that a name leads out of the folder by.
NAME: Final = re.compile(r"(?!(?:.*/)?\.{1,2}(?:/|$))[\w.$-]+(?:/[\w.$-]+)*", re.ASCII)

BlobDescription = tuple[str, int, int, str]
"""A blob's name in its container, its bytes, the time of its last change (ms), and its entity tag."""


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
        """Write a blob, over the one that is there, and return its entity tag."""
        store = self._store()
        tag = await put(store, path, content, content_type)
        if isinstance(store, LocalStore):
            await asyncio.to_thread(_sync, self._folder, path)
        return tag

    async def read(self, path: str, first: int, length: int) -> bytes:
        """Some bytes of a blob; raises NotFound if it is not there (any more)."""
        if not length:
            return b""
        try:
            return bytes(await obstore.get_range_async(self._store(), path, start=first, length=length))
        except (NotFoundError, FileNotFoundError):
            raise NotFound(f"the blob {path}") from None

    async def stream(self, path: str, first: int, length: int) -> AsyncGenerator[bytes]:
        """As `read`, in pieces of 128 KiB; a folder's blob may be removed meanwhile.

        Raises:
            NotFound: It is not there (any more).
        """
        span: GetOptions = {"range": (first, first + length)}
        try:
            result = await obstore.get_async(self._store(), path, options=span)
        except (NotFoundError, FileNotFoundError):
            raise NotFound(f"the blob {path}") from None
        return _pieces(result)

    async def describe(self, container: str, name: str) -> BlobDescription | None:
        """A blob without its bytes; None: it is not there, or no blob can have such a name."""
        if not NAME.fullmatch(name):
            return None
        try:
            meta = await obstore.head_async(self._store(), f"{container}/{name}")
        except (NotFoundError, FileNotFoundError):
            return None
        return _describe(meta, container)

    async def page(
        self, container: str, prefix: str, after: str, limit: int, *, by_folder: bool
    ) -> tuple[list[BlobDescription], list[str], str]:
        """A page of a container, in order of names.

        Args:
            container: Where it is in the store.
            prefix: What names begin with.
            after: The name behind which the page begins.
            limit: At most so many blobs and folders.
            by_folder: Names that have a slash behind the prefix are shown as far as that, once each.

        Returns:
            Blobs, folders, and the name that the next page begins behind; empty: this is the last page.
        """
        if isinstance(store := self._store(), LocalStore):
            root = self._folder / container
            walk = _names_in(root, "", prefix, after, by_folder=by_folder)
            names = await asyncio.to_thread(lambda: list(islice(walk, limit + 1)))
            page_names = names[:limit]
            descriptions = [
                await self.describe(container, name) for name in page_names if not name.endswith("/")
            ]
            blobs = [blob for blob in descriptions if blob is not None]
            folders = [name for name in page_names if name.endswith("/")]
            return blobs, folders, page_names[-1] if len(names) > limit else ""
        blobs, folders = await _list_bucket(store, container, prefix, by_folder=by_folder)
        blobs_by_name = {blob[0]: blob for blob in blobs if blob[0] > after}
        names = sorted([*blobs_by_name, *(folder for folder in folders if folder > after)])
        page_names = names[:limit]
        return (
            [blobs_by_name[name] for name in page_names if name in blobs_by_name],
            [name for name in page_names if name not in blobs_by_name],
            page_names[-1] if len(names) > limit else "",
        )

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


async def _pieces(result: "GetResult") -> AsyncGenerator[bytes]:
    async for piece in result.stream(min_chunk_size=_PIECE_BYTES):
        yield bytes(piece)


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


def _describe(meta: "ObjectMeta", container: str) -> BlobDescription:
    name = meta["path"].removeprefix(f"{container}/")
    tag = (meta["e_tag"] or "").strip('"')
    return name, meta["size"], int(meta["last_modified"].timestamp() * 1000), tag


async def _list_bucket(
    store: S3Store, container: str, prefix: str, *, by_folder: bool
) -> tuple[list[BlobDescription], list[str]]:
    """All blobs and folders of a bucket that begin so: it cannot be asked for those behind a name."""
    folder, _, beginning = f"{container}/{prefix}".rpartition("/")
    if not NAME.fullmatch(folder):
        return [], []
    if by_folder:
        listing = await obstore.list_with_delimiter_async(store, folder)
        blobs, folders = listing["objects"], listing["common_prefixes"]
    else:
        blobs, folders = await obstore.list(store, folder).collect_async(), []
    start = f"{folder}/{beginning}"
    described = [_describe(blob, container) for blob in blobs if blob["path"].startswith(start)]
    subfolders = [f"{path.removeprefix(f'{container}/')}/" for path in folders if path.startswith(start)]
    return described, subfolders


def _names_in(root: Path, folder: str, prefix: str, after: str, *, by_folder: bool) -> Iterator[str]:
    """The names in a folder that begin so, in order and behind another; no folder is opened that has none of them."""
    try:
        entries = [
            (f"{folder}{entry.name}{'/' if entry.is_dir() else ''}") for entry in os.scandir(root / folder)
        ]
    except FileNotFoundError:
        return
    for name in sorted(entries):
        if not name.endswith("/"):
            if name.startswith(prefix) and name > after and NAME.fullmatch(name):
                yield name
        elif by_folder and name.startswith(prefix) and name != prefix:
            if name > after:
                yield name
        elif _may_hold(name, prefix, after):
            yield from _names_in(root, name, prefix, after, by_folder=by_folder)


def _may_hold(folder: str, prefix: str, after: str) -> bool:
    """True if names in a folder may begin so, behind another."""
    return (folder.startswith(prefix) or prefix.startswith(folder)) and (
        folder > after or after.startswith(folder)
    )


def _sync(folder: Path, path: str) -> None:
    """Wait until a file, and the folders above it, are on disk: the library leaves that to the system."""
    file = folder / path
    for path_above in (file, *file.parents[: path.count("/") + 1], folder.parent):
        descriptor = os.open(path_above, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
