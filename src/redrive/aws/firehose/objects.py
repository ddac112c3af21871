"""Objects: what records become together, the keys under which they are put, and the calls of S3 that put them.

Expressions in prefixes are evaluated for each object
(https://docs.aws.amazon.com/firehose/latest/dev/s3-prefixes.html): `!{timestamp:PATTERN}` in the letters of Java's
`DateTimeFormatter`, `!{firehose:random-string}`, and in the prefix of errors `!{firehose:error-output-type}`.
"""

import gzip
import io
import re
import zipfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from random import Random
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from redrive.aws.firehose.errors import invalid, unoffered
from redrive.aws.firehose.records import DeliveryStream
from redrive.aws.gateway.authorization import ServiceRoles
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure

PROCESSING_FAILED: Final = "processing-failed"
_EXPRESSION: Final = re.compile(r"!\{([^:{}]*):([^{}]*)\}")
_ERROR_TYPE: Final = "error-output-type"
_RANDOM: Final = "random-string"
_DEFAULT: Final = "!{timestamp:yyyy/MM/dd/HH}/"
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_RANDOM_CHARS: Final = 11
_TOKEN: Final = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+")
# Letters of patterns and the directives of `strftime` that they stand for; `_NAMES` by letter and number of letters.
_NUMBERS: Final = {"M": "%m", "d": "%d", "H": "%H", "h": "%I", "m": "%M", "s": "%S", "D": "%j"}
_NAMES: Final = {"MMM": "%b", "MMMM": "%B", "E": "%a", "EE": "%a", "EEE": "%a", "EEEE": "%A", "a": "%p"}
_NUMBER_CHARS: Final = {"D": 3}
_SHORT_YEAR_CHARS: Final = 2
# 47 ms for 5 MiB of JSON, and 8 % larger than by level 6, which takes twice as long.
_GZIP_LEVEL: Final = 3
#: Of one request to this server's S3; what is larger goes in parts.
_PART_BYTES: Final = 8 * 1024 * 1024
_TYPE: Final = "application/octet-stream"
Ask = Callable[..., Awaitable[Structure]]


def check_prefixes(prefix: str, error_prefix: str) -> None:
    """Refuse prefixes with expressions that are unknown, or not for this prefix; raises AwsError."""
    for text, for_errors in ((prefix, False), (error_prefix, True)):
        for namespace, value in _EXPRESSION.findall(text):
            _check_expression(namespace, value, for_errors=for_errors)
        if "!{" in _EXPRESSION.sub("", text):
            raise invalid(f"The prefix {text} has an expression that is not closed.")
    if _EXPRESSION.search(prefix) and _ERROR_TYPE not in error_prefix:
        raise invalid(
            "ErrorOutputPrefix must contain !{firehose:error-output-type} when Prefix contains expressions."
        )


def _check_expression(namespace: str, value: str, *, for_errors: bool) -> None:
    """Refuse an expression `!{namespace:value}` in a prefix of objects' keys."""
    if namespace.startswith("partitionKeyFrom"):
        raise unoffered(f"the expression !{{{namespace}:…}}, since it does not offer dynamic partitioning")
    if namespace == "timestamp":
        format_moment(value, datetime(2000, 1, 1, tzinfo=UTC))
    elif namespace != "firehose" or value not in (_RANDOM, _ERROR_TYPE):
        raise invalid(f"The expression !{{{namespace}:{value}}} is not valid.")
    elif value == _ERROR_TYPE and not for_errors:
        raise invalid("!{firehose:error-output-type} is valid in ErrorOutputPrefix only.")


def zone_of(name: str) -> tzinfo:
    """The time zone of a name; empty: UTC. Raises AwsError if no time zone has that name."""
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise invalid(f"CustomTimeZone {name} is not valid.") from None


def evaluate(prefix: str, oldest: datetime, rng: Random) -> str:
    """The prefix of an object, whose oldest record came at a moment of the stream's time zone.

    Without a timestamp the hour is added.
    """
    if "!{timestamp:" not in prefix:
        prefix += _DEFAULT
    return _evaluate(prefix, oldest, rng)


def evaluate_for_errors(prefix: str, error_prefix: str, kind: str, oldest: datetime, rng: Random) -> str:
    """The prefix of an object with what could not be processed.

    Without a prefix of their own, errors of a kind (`processing-failed`) are in a folder of the prefix of whole records.
    """
    text = error_prefix or f"{prefix}!{{firehose:{_ERROR_TYPE}}}/{_DEFAULT}"
    if _ERROR_TYPE not in text:
        text += f"{kind}/{_DEFAULT}"
    return _evaluate(text.replace(f"!{{firehose:{_ERROR_TYPE}}}", kind), oldest, rng)


def _evaluate(text: str, oldest: datetime, rng: Random) -> str:
    """A prefix with the values of its expressions: parts of the oldest record's time, and random letters."""

    def value(match: re.Match[str]) -> str:
        if match[1] == "timestamp":
            return format_moment(match[2], oldest)
        return "".join(rng.choice(_LETTERS) for _ in range(_RANDOM_CHARS))

    return _EXPRESSION.sub(value, text)


def format_moment(pattern: str, moment: datetime) -> str:
    """A moment by a pattern of Java's `DateTimeFormatter`, as far as its letters are of dates and times.

    Raises:
        AwsError: The pattern has another letter.
    """
    tokens = list(_TOKEN.finditer(pattern))
    if sum(len(token[0]) for token in tokens) != len(pattern):
        raise invalid(f"The timestamp pattern {pattern} is not valid.")
    return "".join(_format_token(token[0], token[1], moment) for token in tokens)


def _format_token(text: str, letter: str | None, moment: datetime) -> str:
    """The text for a token of a pattern: one letter, repeated; a text in quotes (`''` is a quote); or other signs."""
    if letter is None:
        if text[0] != "'":
            return text
        return text[1:-1].replace("''", "'") or "'"
    if letter in "yu":
        return (
            f"{moment.year % 100:02d}" if len(text) == _SHORT_YEAR_CHARS else f"{moment.year:0{len(text)}d}"
        )
    if text in _NAMES:
        return moment.strftime(_NAMES[text])
    if letter == "S":
        return f"{moment.microsecond:06d}".ljust(len(text), "0")[: len(text)]
    if letter not in _NUMBERS or len(text) > _NUMBER_CHARS.get(letter, 2):
        raise invalid(f"The letters {text} of a timestamp pattern are not supported.")
    return f"{int(moment.strftime(_NUMBERS[letter])):0{len(text)}d}"


@dataclass(frozen=True, slots=True)
class Compression:
    """A compression of objects."""

    extension: str  # Suffix of object keys
    apply: Callable[[bytes, str], bytes]  # Compresses a content, which the second argument names


def _leave_uncompressed(content: bytes, _: str) -> bytes:
    return content


def _gzip(content: bytes, _: str) -> bytes:
    return gzip.compress(content, _GZIP_LEVEL, mtime=0)


def _zip(content: bytes, name: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=_GZIP_LEVEL) as archive:
        archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


COMPRESSIONS: Final[Mapping[str, Compression]] = {
    "UNCOMPRESSED": Compression("", _leave_uncompressed),
    "GZIP": Compression(".gz", _gzip),
    "ZIP": Compression(".zip", _zip),
}


def compress(stream: DeliveryStream, key: str, content: bytes) -> bytes:
    """The content of an object, compressed as the stream's settings say."""
    name = key.rpartition("/")[2].removesuffix(_extension(stream))
    return COMPRESSIONS[stream.destination["CompressionFormat"]].apply(content, name)


def key_of(stream: DeliveryStream, oldest: int, object_id: str, rng: Random) -> str:
    """The key of an object, whose oldest record came at a moment (ms)."""
    moment = _moment(stream, oldest)
    prefix = evaluate(stream.destination.get("Prefix") or "", moment, rng)
    return prefix + _suffix(stream, moment, object_id)


def error_key_of(stream: DeliveryStream, kind: str, oldest: int, object_id: str, rng: Random) -> str:
    """The key of an object with what could not be processed; see `key_of`."""
    moment, settings = _moment(stream, oldest), stream.destination
    prefix, error_prefix = settings.get("Prefix") or "", settings.get("ErrorOutputPrefix") or ""
    return evaluate_for_errors(prefix, error_prefix, kind, moment, rng) + _suffix(stream, moment, object_id)


def _moment(stream: DeliveryStream, at: int) -> datetime:
    zone = zone_of(stream.destination.get("CustomTimeZone") or "")
    return datetime.fromtimestamp(at / 1000, UTC).astimezone(zone)


def _suffix(stream: DeliveryStream, moment: datetime, object_id: str) -> str:
    stem = f"{stream.name}-{stream.version}-{moment:%Y-%m-%d-%H-%M-%S}-{object_id}"
    return stem + _extension(stream)


def _extension(stream: DeliveryStream) -> str:
    extension = stream.destination.get("FileExtension") or ""
    return extension or COMPRESSIONS[stream.destination["CompressionFormat"]].extension


class ObjectWriter:
    """Puts objects into the buckets of streams."""

    def __init__(self, calls: InnerCalls, roles: ServiceRoles) -> None:
        self._calls = calls
        self._roles = roles

    async def put(self, stream: DeliveryStream, key: str, content: bytes) -> None:
        """Put an object, whole and on disk when this returns; raises AwsError if S3 refuses."""
        principal = await self._roles.role_principal(stream.account, stream.role, stream.region)
        target = {"Bucket": stream.bucket, "Key": key}

        async def ask(operation: str, **params: Any) -> Structure:
            return await self._calls.call("s3", operation, {**target, **params}, principal, stream.region)

        if len(content) <= _PART_BYTES:
            await ask("PutObject", Body=content, ContentType=_TYPE)
        else:
            await _put_parts(ask, content)


async def _put_parts(ask: Ask, content: bytes) -> None:
    upload_id = (await ask("CreateMultipartUpload", ContentType=_TYPE))["UploadId"]
    parts: list[Mapping[str, Any]] = []
    try:
        for begin in range(0, len(content), _PART_BYTES):
            number, body = len(parts) + 1, content[begin : begin + _PART_BYTES]
            answer = await ask("UploadPart", UploadId=upload_id, PartNumber=number, Body=body)
            parts.append({"PartNumber": number, "ETag": answer["ETag"]})
        await ask("CompleteMultipartUpload", UploadId=upload_id, MultipartUpload={"Parts": parts})
    except AwsError:
        await ask("AbortMultipartUpload", UploadId=upload_id)
        raise
