"""Objects: what records become together, and the keys under which they are put."""

import gzip
import io
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Final

from redrive.aws.firehose import prefixes
from redrive.aws.firehose.records import DeliveryStream

# 47 ms for 5 MiB of JSON, and 8 % larger than by level 6, which takes twice as long.
_GZIP_LEVEL: Final = 3


@dataclass(frozen=True, slots=True)
class Compression:
    """A compression of objects."""

    extension: str  # Suffix of object keys
    apply: Callable[[bytes, str], bytes]  # Compresses a content, which the second argument names


def _plain(content: bytes, _: str) -> bytes:
    return content


def _gzipped(content: bytes, _: str) -> bytes:
    return gzip.compress(content, _GZIP_LEVEL, mtime=0)


def _zipped(content: bytes, name: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=_GZIP_LEVEL) as archive:
        archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


COMPRESSIONS: Final[Mapping[str, Compression]] = {
    "UNCOMPRESSED": Compression("", _plain),
    "GZIP": Compression(".gz", _gzipped),
    "ZIP": Compression(".zip", _zipped),
}


def compressed(stream: DeliveryStream, key: str, content: bytes) -> bytes:
    """The content of an object as the stream wants it."""
    name = key.rpartition("/")[2].removesuffix(_extension(stream))
    return COMPRESSIONS[stream.destination["CompressionFormat"]].apply(content, name)


def key_of(stream: DeliveryStream, oldest: int, object_id: str, rng: Random) -> str:
    """The key of an object.

    Args:
        stream: Whose records.
        oldest: When the oldest of them came (ms).
        object_id: Nobody else's.
        rng: For prefixes with something random.
    """
    moment = _moment(stream, oldest)
    prefix = prefixes.evaluated(stream.destination.get("Prefix") or "", moment, rng)
    return prefix + _suffix(stream, moment, object_id)


def error_key_of(stream: DeliveryStream, kind: str, oldest: int, object_id: str, rng: Random) -> str:
    """The key of an object with what could not be processed; see `key_of`."""
    moment, settings = _moment(stream, oldest), stream.destination
    own, errors = settings.get("Prefix") or "", settings.get("ErrorOutputPrefix") or ""
    return prefixes.evaluated_for_errors(own, errors, kind, moment, rng) + _suffix(stream, moment, object_id)


def _moment(stream: DeliveryStream, at: int) -> datetime:
    zone = prefixes.zone_of(stream.destination.get("CustomTimeZone") or "")
    return datetime.fromtimestamp(at / 1000, UTC).astimezone(zone)


def _suffix(stream: DeliveryStream, moment: datetime, object_id: str) -> str:
    begin = f"{stream.name}-{stream.version}-{moment:%Y-%m-%d-%H-%M-%S}-{object_id}"
    return begin + _extension(stream)


def _extension(stream: DeliveryStream) -> str:
    chosen = stream.destination.get("FileExtension") or ""
    return chosen or COMPRESSIONS[stream.destination["CompressionFormat"]].extension
