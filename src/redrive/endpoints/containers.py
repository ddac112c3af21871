"""The containers of the blob store: folders of a folder, or beginnings of paths in a bucket.

A folder's container is there when its folder is, whoever made that. A bucket's needs no making and cannot be removed.
"""

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

_S3: Final = "s3://"


class BlobContainers:
    """Makes, finds and removes containers; callers have checked that names stay inside the folder."""

    def __init__(self, store: str) -> None:
        """Look into this store: a folder, or `s3://BUCKET[/PREFIX]`."""
        self._folder = None if store.startswith(_S3) else Path(store.removeprefix("file://")).absolute()

    async def make(self, account: str, container: str) -> bool:
        """Make a container; False: it was there.

        Raises:
            OSError: The disk is full, or the folder is not to be written to.
        """
        return await asyncio.to_thread(self._make, self._folder_of(account, container))

    async def is_there(self, account: str, container: str) -> bool:
        """True if blobs can be written to it."""
        folder = self._folder_of(account, container)
        return folder is None or await asyncio.to_thread(folder.is_dir)

    async def names(self, account: str) -> list[str]:
        """The containers of an account; none of a bucket, which knows no containers without blobs."""
        if self._folder is None:
            return []
        return await asyncio.to_thread(_folders_in, self._folder / account.lower())

    async def remove(self, account: str, container: str) -> bool:
        """Remove a container with its blobs; False: it was not there, or cannot be removed.

        Raises:
            OSError: The folder is not to be written to.
        """
        folder = self._folder_of(account, container)
        if folder is None or not await asyncio.to_thread(folder.is_dir):
            return False
        await asyncio.to_thread(shutil.rmtree, folder, onerror=_raise_unless_missing)
        return True

    async def newest(
        self, account: str, container: str, folder: str, limit: int
    ) -> Sequence[tuple[str, int]] | None:
        """The blobs whose names begin with a folder's, as names and bytes, those of the latest day first.

        Only as many folders are opened as that takes. None: the store is a bucket, or there is no such container.
        """
        directory = self._folder_of(account, container)
        if directory is None or not await asyncio.to_thread(directory.is_dir):
            return None
        return await asyncio.to_thread(lambda: list(islice(_blobs_in(directory / folder, directory), limit)))

    def _folder_of(self, account: str, container: str) -> Path | None:
        return None if self._folder is None else self._folder / account.lower() / container.lower()

    def _make(self, folder: Path | None) -> bool:
        if folder is None or folder.is_dir():
            return False
        folder.mkdir(parents=True, exist_ok=True)
        return True


def _raise_unless_missing(_: object, __: str, failure: tuple[object, BaseException, object]) -> None:
    """Raise the failure of a removal, unless somebody else removed the same thing (an `onerror` of `shutil.rmtree`)."""
    if not isinstance(failure[1], FileNotFoundError):
        raise failure[1]


def _entries(folder: Path) -> list[Path]:
    """The entries of a folder; none of one that does not exist (any more)."""
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _folders_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in _entries(folder) if entry.is_dir())


def _blobs_in(folder: Path, root: Path) -> Iterator[tuple[str, int]]:
    """The blobs below a folder, the newest first.

    Folders are named after years, months, days and hours, without leading zeros: the longer number is the later one.
    """
    for entry_path in sorted(_entries(folder), key=lambda entry: (len(entry.name), entry.name), reverse=True):
        if entry_path.is_dir():
            yield from _blobs_in(entry_path, root)
        else:
            with suppress(FileNotFoundError):  # it was removed meanwhile
                yield str(entry_path.relative_to(root)), entry_path.stat().st_size
