"""Copies of objects within the server: contents go from segment to segment, one in memory at a time."""

import asyncio
import hashlib
import re
from dataclasses import replace
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from redrive.aws.kit.call import Call
from redrive.aws.s3.checksums import FULL_OBJECT
from redrive.aws.s3.conditions import ByteRange, check_copyable
from redrive.aws.s3.documents.access import BucketAccess, check_key
from redrive.aws.s3.documents.errors import (
    ANSWER_BYTES_MAX,
    COPY_BYTES_MAX,
    error,
    invalid,
    no_key,
    too_large,
)
from redrive.aws.s3.documents.records import ObjectRecord, Segment
from redrive.aws.s3.objects import Objects, headers_of, metadata_of
from redrive.aws.wire.shapes import Structure
from redrive.model.errors import NotFound

_SOURCE: Final = re.compile(r"/?([^/?]+)/([^?]+)(?:\?versionId=(.*))?")
_RANGE: Final = re.compile(r"bytes=([0-9]{1,18})-([0-9]{1,18})")


class ContentCopy(NamedTuple):
    """A copy of a content."""

    segments: tuple[Segment, ...]  # Segments of the copy
    etag: str  # The MD5 of the whole content


class CopySources:
    """Finds and reads the objects that are copied."""

    def __init__(self, objects: Objects, access: BucketAccess) -> None:
        self._objects = objects
        self._access = access

    async def source(self, call: Call, params: Structure) -> tuple[tuple[str, str], ObjectRecord]:
        """The object that a request copies, with its bucket and its key.

        Raises:
            AwsError: It does not exist, does not meet the conditions, or the caller may not read it.
        """
        name, key = _read_source(params["CopySource"])
        owner = params.get("ExpectedSourceBucketOwner")
        bucket = await self._access.bucket_by_name(call, name, "GetObject", key, owner)
        source = await self._objects.get(bucket, key)
        conditions = {
            condition: params.get(f"CopySource{condition}")
            for condition in ("IfMatch", "IfNoneMatch", "IfModifiedSince", "IfUnmodifiedSince")
        }
        check_copyable(conditions, source)
        return (name, key), source

    async def part(self, source: ObjectRecord, span_text: str | None) -> bytes:
        """The bytes of an object for a part of an upload.

        Raises:
            AwsError: The object does not have these bytes, or they are more than fit into memory.
        """
        span = _range_of(span_text, source)
        if span.length > ANSWER_BYTES_MAX:
            raise too_large(span.length, ANSWER_BYTES_MAX)
        try:
            return await self._objects.contents.read(source.segments, span.first, span.length)
        except NotFound:  # overwritten meanwhile
            raise no_key(source.key) from None


class Copying:
    """The operation that copies an object."""

    def __init__(self, objects: Objects, access: BucketAccess, sources: CopySources) -> None:
        self._objects = objects
        self._access = access
        self._sources = sources

    async def copy_object(self, call: Call, params: Structure) -> Structure:
        key = params["Key"]
        bucket = await self._access.bucket(call, params, "PutObject", key)
        check_key(key)
        source_bucket_and_key, source = await self._sources.source(call, params)
        if source.size > COPY_BYTES_MAX:
            raise too_large(source.size, COPY_BYTES_MAX)
        has_new_headers = _replaces_headers(params)
        if not has_new_headers and source_bucket_and_key == (bucket.name, key):
            text = (
                "This copy request is illegal because it is trying to copy an object to itself without changing the"
                " object's metadata, storage class, website redirect location or encryption attributes."
            )
            raise error("InvalidRequest", text)
        copy = await self._copy(source)
        new = replace(
            source,
            key=key,
            etag=copy.etag,
            modified_at=call.now,
            segments=copy.segments,
            parts=0,
            headers=headers_of(params) if has_new_headers else source.headers,
            metadata=metadata_of(params) if has_new_headers else source.metadata,
            checksums=source.checksums if source.checksum_type == FULL_OBJECT else {},
            checksum_type=FULL_OBJECT,
        )
        await self._objects.put(call, "Copy", bucket, new, params)
        result = {"ETag": f'"{new.etag}"', "LastModified": call.now, **new.checksums}
        return {"CopyObjectResult": result}

    async def _copy(self, source: ObjectRecord) -> ContentCopy:
        """Copy the contents of an object, piece by piece; raises AwsError if it is overwritten meanwhile."""
        digest = hashlib.md5(usedforsecurity=False)
        segments: list[Segment] = []
        try:
            async for content in self._objects.contents.each(source.segments):
                await asyncio.to_thread(digest.update, content)
                segments.append(await self._objects.contents.add(content))
        except NotFound:  # overwritten meanwhile
            await self._objects.contents.remove([segment.blob for segment in segments])
            raise no_key(source.key) from None
        return ContentCopy(tuple(segments), digest.hexdigest())


def _replaces_headers(params: Structure) -> bool:
    directive = params.get("MetadataDirective") or "COPY"
    if directive not in ("COPY", "REPLACE"):
        raise invalid("Unknown metadata directive.", ArgumentName="x-amz-metadata-directive")
    return directive == "REPLACE"


def _read_source(text: str) -> tuple[str, str]:
    """The bucket and the key that `x-amz-copy-source` names; raises AwsError."""
    match = _SOURCE.fullmatch(text)
    bucket, key, version = match.groups() if match else ("", "", "")
    if version not in (None, "null"):
        message = "Copy Source must mention the source bucket and key: sourcebucket/sourcekey"
        raise invalid(message, ArgumentName="x-amz-copy-source", ArgumentValue=text)
    try:
        return unquote_to_bytes(bucket).decode(), unquote_to_bytes(key).decode()
    except UnicodeDecodeError:
        raise invalid("Copy Source must be UTF-8", ArgumentName="x-amz-copy-source") from None


def _range_of(text: str | None, source: ObjectRecord) -> ByteRange:
    if text is None:
        return ByteRange(0, source.size)
    match = _RANGE.fullmatch(text)
    first, last = map(int, match.groups()) if match else (0, -1)
    if not first <= last < source.size:
        message = f"Range specified is not valid for source object of size: {source.size}"
        raise invalid(message, ArgumentName="x-amz-copy-source-range", ArgumentValue=text)
    return ByteRange(first, last - first + 1)
