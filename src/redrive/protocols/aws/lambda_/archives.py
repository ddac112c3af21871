"""Archives of code: whether a deployment package can be unpacked, without unpacking it."""

import io
import zipfile
from pathlib import PurePosixPath
from typing import Final

from redrive.protocols.aws.lambda_.errors import invalid, unoffered
from redrive.protocols.aws.wire.errors import AwsError
from redrive.protocols.aws.wire.shapes import Structure

ZIPPED_BYTES_MAX: Final = 52_428_800
UNZIPPED_BYTES_MAX: Final = 262_144_000
_ENTRIES_MAX: Final = 100_000
_ENTRY: Final = b"PK\x01\x02"  # begins each line of an archive's directory
_ENCRYPTED: Final = 1  # the first of an entry's flags
_BUCKET: Final = ("S3Bucket", "S3Key", "S3ObjectVersion")


def archive_of(code: Structure) -> bytes:
    """The archive that a caller gives, which can be unpacked.

    Reading the directory takes 5 us an entry, half a second for as many as there may be: it belongs into a thread.

    Raises:
        AwsError: There is no archive, it is too large, or it cannot be unpacked.
    """
    if code.get("ImageUri"):
        raise unoffered("ImageUri")
    if any(code.get(name) for name in _BUCKET):
        raise unoffered("S3Bucket")
    archive: bytes | None = code.get("ZipFile")
    if not archive:
        raise invalid("Please provide a source for function code.")
    if len(archive) > ZIPPED_BYTES_MAX:
        text = f"Zipped size must be smaller than {ZIPPED_BYTES_MAX} bytes"
        raise AwsError("RequestEntityTooLargeException", text, status=413)
    _check(archive)
    return archive


def _check(archive: bytes) -> None:
    if archive.count(_ENTRY) > _ENTRIES_MAX:
        raise _too_large()
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            entries = opened.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        raise _unreadable() from None
    if sum(entry.file_size for entry in entries) > UNZIPPED_BYTES_MAX:
        raise _too_large()
    if not all(_stays_inside(entry.filename) and not entry.flag_bits & _ENCRYPTED for entry in entries):
        raise _unreadable()


def _stays_inside(filename: str) -> bool:
    path = PurePosixPath(filename)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\\" not in filename


def _too_large() -> AwsError:
    return invalid(f"Unzipped size must be smaller than {UNZIPPED_BYTES_MAX} bytes")


def _unreadable() -> AwsError:
    return invalid("Could not unzip uploaded file. Please check your file, then try to upload again.")
