"""Archives of code: where they come from, whether they can be unpacked, and links to them, valid for ten minutes.

Whether they can be unpacked is tried without writing anything.
"""

import asyncio
import io
import lzma
import stat
import zipfile
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import parse_qs, quote

from redrive.access.secret import InstallationSecret
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents.errors import invalid, unoffered
from redrive.aws.lambda_.documents.ports import CodeKeeper
from redrive.aws.lambda_.documents.records import CODE_PATH
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import Clock
from redrive.model.errors import NotFound
from redrive.model.http import Request, Response
from redrive.model.names import ResourceName

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
_VALID_MS: Final = 10 * 60 * 1000  # as long as Amazon's links
_PURPOSE: Final = "links to the code of functions"
_PARTS: Final = 4


class Archive(NamedTuple):
    """An archive that can be unpacked."""

    content: bytes  # As it was given
    unpacked_bytes: int  # The size of what is in it, as it says itself


class Archives:
    """Reads the archives that callers give: in the request, or in a bucket of this server."""

    def __init__(self, calls: InnerCalls, live: Callable[[str], bytes | None]) -> None:
        self._calls = calls
        # The archive that stands for a folder of this machine; None: no function may run from that
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
        with zipfile.ZipFile(io.BytesIO(archive)) as zip_file:
            entries = zip_file.infolist()
            size = sum(entry.file_size for entry in entries)
            if size > UNZIPPED_BYTES_MAX:
                raise _too_large()
            if not _can_be_laid_out(entries):
                raise _unreadable()
            for entry in entries:
                _check_entry(zip_file, entry)
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


def _check_entry(zip_file: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    """Read an entry to its end, which alone shows a size or a checksum that is not true."""
    size = 0
    if not entry.is_dir():
        with zip_file.open(entry) as content:
            while piece := content.read(_READ_BYTES):
                size += len(piece)
    if size != entry.file_size:
        raise zipfile.BadZipFile


def _can_be_laid_out(entries: Sequence[zipfile.ZipInfo]) -> bool:
    """True if every entry has its own place: none is outside, too long, encrypted, or both a file and a folder."""
    tree: _Tree = {}
    return all(
        _stays_inside(entry.filename) and not entry.flag_bits & _ENCRYPTED and _enter_in_tree(entry, tree)
        for entry in entries
    )


def _enter_in_tree(entry: zipfile.ZipInfo, tree: "_Tree") -> bool:
    """Enter an entry in the tree of folders and files (None); False: one of its names is taken by another kind."""
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
    """True if a file of this name is unpacked inside its folder, and a file system takes the name."""
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


class Downloads:
    """Makes links to archives, and answers whoever follows them."""

    def __init__(self, code: CodeKeeper, secret: InstallationSecret, clock: Clock) -> None:
        self._code = code
        self._secret = secret
        self._clock = clock

    def url(self, base_url: str, name: ResourceName, digest: str) -> str:
        """The link to an archive: the name it is kept under, and its SHA-256 in base64."""
        path = f"{name.key}/{b64decode(digest).hex()}.zip"
        expires = str(self._clock.now() + _VALID_MS)
        token = self._secret.tag(_PURPOSE, f"{path}?{expires}")
        return f"{base_url}{CODE_PATH}{quote(path)}?expires={expires}&token={token}"

    async def answer(self, request: Request) -> Response:
        """Answer a request below CODE_PATH: with the archive, or with 403 or 404."""
        path = request.path.removeprefix(CODE_PATH)
        query = parse_qs(request.query)
        expires, token = query.get("expires", ["0"])[0], query.get("token", [""])[0]
        if not self._secret.is_tag(_PURPOSE, f"{path}?{expires}", token) or int(expires) < self._clock.now():
            return Response(403, b"This link has expired, or was never given.\n", "text/plain")
        account, region, name, file = path.split("/", _PARTS - 1)
        digest = b64encode(bytes.fromhex(file.removesuffix(".zip"))).decode()
        try:
            archive = await self._code.archive(ResourceName(account, region, name), digest)
        except NotFound:
            return Response(404, b"This code is not there any more.\n", "text/plain")
        return Response(200, archive, "application/zip")
