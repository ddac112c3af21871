"""Archives of code: where they come from, and whether they can be unpacked, which is tried without writing anything."""

import asyncio
import io
import lzma
import stat
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple, TypeAlias

from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents.errors import invalid, unoffered
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure

LIVE_BUCKET: Final = "hot-reload"  # as LocalStack calls it, so that templates for it need no change
ZIPPED_BYTES_MAX: Final = 52_428_800
UNZIPPED_BYTES_MAX: Final = 262_144_000
_ENTRIES_MAX: Final = 100_000
_ENTRY: Final = b"PK\x01\x02"  # begins each line of an archive's directory
_PATH_BYTES_MAX: Final = 3_072  # Linux takes 4,096, with the folder before it
_NAME_BYTES_MAX: Final = 255
_READ_BYTES: Final = 1024 * 1024
_ENCRYPTED: Final = 1  # the first of an entry's flags


#: The folders of an archive by their names; None is a file.
_Tree: TypeAlias = "dict[str, _Tree | None]"


class Archive(NamedTuple):
    """An archive that can be unpacked."""

    content: bytes  # As it was given
    unpacked_bytes: int  # The size of what is in it, as it says itself


class Archives:
    """Reads the archives that callers give: in the request, or in a bucket of this server."""

    def __init__(self, calls: InnerCalls, live: Callable[[str], bytes | None]) -> None:
        """Read deployment archives.

        Args:
            calls: Fetch objects.
            live: The archive that stands for a folder of this machine; None: no function may run from that.
        """
        self._calls = calls
        self._live = live

    async def read(self, call: Call, code: Structure) -> Archive:
        """The archive that a caller gives, which can be unpacked.

        Raises:
            AwsError: There is no archive, it is too large, or it cannot be unpacked.
        """
        if code.get("ImageUri"):
            raise unoffered("ImageUri")
        archive: bytes | None = code.get("ZipFile")
        if archive is None and code.get("S3Bucket") and code.get("S3Key"):
            archive = self._live(code["S3Key"]) if code["S3Bucket"] == LIVE_BUCKET else None
            archive = archive or await self._object(call, code)
        if not archive:
            raise invalid("Please provide a source for function code.")
        if len(archive) > ZIPPED_BYTES_MAX:
            text = f"Zipped size must be smaller than {ZIPPED_BYTES_MAX} bytes"
            raise AwsError("RequestEntityTooLargeException", text, status=413)
        # Reading the directory takes 5 us an entry, half a second for as many as there may be, and the contents a second.
        return Archive(archive, await asyncio.to_thread(_unpacked_bytes, archive))

    async def _object(self, call: Call, code: Structure) -> bytes:
        """The object that is named, which the caller may read."""
        if code.get("S3ObjectVersion"):
            raise unoffered("S3ObjectVersion")
        params = {"Bucket": code["S3Bucket"], "Key": code["S3Key"]}
        try:
            answer = await self._calls.call("s3", "GetObject", params, call.principal, call.region)
        except AwsError as error:
            raise invalid(
                f"Error occurred while GetObject. S3 Error Code: {error.code}. S3 Error Message: {error.message}"
            ) from None
        archive: bytes = answer["Body"]
        return archive


def _unpacked_bytes(archive: bytes) -> int:
    """The size of what is in an archive, which can be unpacked."""
    if archive.count(_ENTRY) > _ENTRIES_MAX:
        raise _too_large()
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            entries = opened.infolist()
            size = sum(entry.file_size for entry in entries)
            if size > UNZIPPED_BYTES_MAX:
                raise _too_large()
            if not _can_be_laid_out(entries):
                raise _unreadable()
            for entry in entries:
                _try(opened, entry)
    except (
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        EOFError,
        NotImplementedError,
        OSError,
        ValueError,
    ):
        raise _unreadable() from None
    return size


def _try(opened: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    """Read an entry to its end: a size or a sum that is not true shows there, and nowhere before."""
    size = 0
    if not entry.is_dir():
        with opened.open(entry) as content:
            while piece := content.read(_READ_BYTES):
                size += len(piece)
    if size != entry.file_size:
        raise zipfile.BadZipFile


def _can_be_laid_out(entries: Sequence[zipfile.ZipInfo]) -> bool:
    """True if every entry has its own place: none is outside, too long, or both a file and a folder."""
    tree: _Tree = {}
    return all(
        _stays_inside(entry.filename) and not entry.flag_bits & _ENCRYPTED and _takes_place(entry, tree)
        for entry in entries
    )


def _takes_place(entry: zipfile.ZipInfo, tree: "_Tree") -> bool:
    if stat.S_ISLNK(entry.external_attr >> 16):
        return True  # it is left out
    *folders, name = PurePosixPath(entry.filename).parts
    for folder in folders:
        below = tree.setdefault(folder, {})
        if below is None:
            return False
        tree = below
    if entry.is_dir():
        return tree.setdefault(name, {}) is not None
    return tree.setdefault(name, None) is None


def _stays_inside(filename: str) -> bool:
    path = PurePosixPath(filename)
    if len(filename.encode()) > _PATH_BYTES_MAX or any(
        len(part.encode()) > _NAME_BYTES_MAX for part in path.parts
    ):
        return False
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\\" not in filename


def _too_large() -> AwsError:
    return invalid(f"Unzipped size must be smaller than {UNZIPPED_BYTES_MAX} bytes")


def _unreadable() -> AwsError:
    return invalid("Could not unzip uploaded file. Please check your file, then try to upload again.")
