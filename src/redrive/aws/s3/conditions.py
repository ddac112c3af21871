"""Conditions and ranges of requests for objects (RFC 9110, sections 13 and 14, as S3 has them)."""

import re
from typing import Final, NamedTuple

from redrive.aws.s3.documents.access import unquoted
from redrive.aws.s3.documents.errors import error, unmet
from redrive.aws.s3.documents.records import ObjectRecord
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure

_RANGE: Final = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
_NOT_MODIFIED: Final = 304


class ByteRange(NamedTuple):
    """A range of an object's bytes."""

    first: int
    length: int

    def header(self, size: int) -> str:
        """The Content-Range header, for an object of a size."""
        return f"bytes {self.first}-{self.first + self.length - 1}/{size}"


def check_readable(params: Structure, object_record: ObjectRecord) -> None:
    """Refuse to read an object that does not meet the conditions of a request.

    Raises:
        AwsError: `PreconditionFailed`, or 304.
    """
    modified_at = object_record.modified_at // 1000 * 1000  # in the precision of Last-Modified
    etag, excluded_etag = params.get("IfMatch"), params.get("IfNoneMatch")
    modified_since, unmodified_since = params.get("IfModifiedSince"), params.get("IfUnmodifiedSince")
    if etag is not None:
        if not _matches_etag(etag, object_record.etag):
            raise unmet("If-Match")
    elif unmodified_since is not None and modified_at > unmodified_since:
        raise unmet("If-Unmodified-Since")
    if excluded_etag is not None:
        if _matches_etag(excluded_etag, object_record.etag):
            raise _not_modified(object_record)
    elif modified_since is not None and modified_at <= modified_since:
        raise _not_modified(object_record)


def check_copyable(conditions: Structure, object_record: ObjectRecord) -> None:
    """Refuse to copy an object that does not meet the conditions of a request; 304 is no answer to a copy.

    Raises:
        AwsError: `PreconditionFailed`.
    """
    try:
        check_readable(conditions, object_record)
    except AwsError as refusal:
        if refusal.status == _NOT_MODIFIED:
            raise unmet("x-amz-copy-source-If-None-Match") from None
        raise


def check_writable(params: Structure, object_record: ObjectRecord | None, key: str) -> None:
    """Refuse to replace or remove an object (None: there is none) that does not meet the conditions of a request.

    Raises:
        AwsError: `PreconditionFailed`, `NoSuchKey` or `NotImplemented`.
    """
    etag, excluded_etag = params.get("IfMatch"), params.get("IfNoneMatch")
    if excluded_etag is not None:
        if excluded_etag != "*":
            text = "A header you provided implies functionality that is not implemented"
            raise error("NotImplemented", text, 501, Header="If-None-Match")
        if object_record is not None:
            raise unmet("If-None-Match")
    if etag is None:
        return
    if object_record is None:
        raise error("NoSuchKey", "The specified key does not exist.", 404, Key=key)
    if not _matches_etag(etag, object_record.etag):
        raise unmet("If-Match")


def requested_range(params: Structure, object_record: ObjectRecord) -> ByteRange | None:
    """The requested range; None: the whole object. Raises AwsError (`InvalidRange` or `InvalidPartNumber`)."""
    if params.get("PartNumber") is not None:
        return _part_range(params["PartNumber"], object_record)
    match = _RANGE.fullmatch((params.get("Range") or "").strip())
    first_text, last_text = match.groups() if match else ("", "")
    if not first_text and not last_text:
        return None  # several ranges, or a malformed one: S3 answers with the whole object
    size = object_record.size
    if first_text:
        first, last = int(first_text), min(int(last_text or size), size - 1)
        if last_text and int(last_text) < first:
            return None
    else:  # `bytes=-5`: the last five
        first, last = max(size - int(last_text), 0), size - 1
    if first > last:
        text = "The requested range is not satisfiable"
        raise error("InvalidRange", text, 416, RangeRequested=params["Range"], ActualObjectSize=str(size))
    return ByteRange(first, last - first + 1)


def _part_range(number: int, object_record: ObjectRecord) -> ByteRange | None:
    """The range of a part; None: all of an object that was uploaded in one. Raises AwsError."""
    if number == 1 and not object_record.parts:
        return None
    if not 1 <= number <= object_record.parts:
        text = "The requested partnumber is not satisfiable"
        raise error(
            "InvalidPartNumber",
            text,
            416,
            PartNumberRequested=str(number),
            ActualPartCount=str(object_record.parts),
        )
    first = sum(segment.size for segment in object_record.segments[: number - 1])
    return ByteRange(first, object_record.segments[number - 1].size)


def _matches_etag(condition: str, etag: str) -> bool:
    return any(each.strip() == "*" or unquoted(each) == etag for each in condition.split(","))


def _not_modified(object_record: ObjectRecord) -> AwsError:
    return error("NotModified", "Not Modified", _NOT_MODIFIED, ETag=f'"{object_record.etag}"')
