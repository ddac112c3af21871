"""Objects: written, read, tagged and deleted."""

import asyncio
import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.s3.checksums import verified_checksums
from redrive.aws.s3.conditions import ByteRange, check_readable, check_writable, requested_range
from redrive.aws.s3.documents.access import BucketAccess, check_key
from redrive.aws.s3.documents.contents import Contents
from redrive.aws.s3.documents.errors import (
    ANSWER_BYTES_MAX,
    CONTENT_BYTES_MAX,
    DELETED_AT_ONCE_MAX,
    METADATA_BYTES_MAX,
    aborted,
    error,
    invalid,
    no_bucket,
    no_key,
    no_upload,
    too_large,
)
from redrive.aws.s3.documents.records import (
    BUCKET,
    OBJECT,
    UPLOAD,
    Bucket,
    ObjectRecord,
    Upload,
    object_key,
    upload_key,
)
from redrive.aws.s3.notifications.destinations import Notifier
from redrive.aws.s3.notifications.rules import CREATED, REMOVED, TAGGED
from redrive.aws.s3.tag_sets import BUCKET_TAGS, object_tags
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.rest.xml_input import malformed
from redrive.aws.wire.shapes import Structure
from redrive.aws.wire.timestamps import to_rfc822
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.errors import NotFound

#: Headers that an object keeps; `Response…` of a request for it overrides each in the answer.
STORED_HEADERS: Final = (
    "CacheControl",
    "ContentDisposition",
    "ContentEncoding",
    "ContentLanguage",
    "ContentType",
    "Expires",
)
_DEFAULT_TYPE: Final = "binary/octet-stream"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_CHUNKED: Final = "aws-chunked"
#: A larger object is streamed, no faster than the client reads it.
_AT_ONCE_BYTES: Final = 128 * 1024


class Objects:
    """Objects of all buckets, for the operations on them."""

    def __init__(self, engine: Engine, contents: Contents, notifier: Notifier) -> None:
        self._engine = engine
        self._notifier = notifier
        self._documents = engine.resources.documents
        self.contents = contents

    async def get(self, bucket: Bucket, key: str) -> ObjectRecord:
        """An object; raises AwsError (`NoSuchKey`)."""
        record = await self._documents.get(OBJECT, object_key(bucket.name, key))
        if record is None:
            raise no_key(key)
        return record

    async def put(
        self,
        call: Call,
        event: str,
        bucket: Bucket,
        new: ObjectRecord,
        params: Structure,
        upload: Upload | None = None,
    ) -> None:
        """Write an object, whose content is stored already, if the conditions in `params` hold.

        - `event`: `Put`, `Copy` or `CompleteMultipartUpload`.
        - `upload`: ends with the same write; None: the object is not that of an upload.

        Raises:
            AwsError: `NoSuchBucket`, `PreconditionFailed`, `NoSuchUpload`; content that is no upload's is then removed.
        """

        async def decide(draft: Draft) -> ObjectRecord | None:
            current_bucket, record = await self._bucket_and_object(draft, bucket, new.key)
            check_writable(params, record, new.key)
            if upload is not None:
                await _end_upload(draft, upload)
            draft.put(OBJECT, object_key(bucket.name, new.key), new)
            await self._notifier.owe_in(draft, call, f"{CREATED}:{event}", current_bucket, new)
            return record

        try:
            old_record = await self._engine.resources.write(decide)
        except AwsError:
            if upload is None:
                await self.contents.remove(new.blobs)
            raise
        if old_record is not None:
            await self.contents.remove(old_record.blobs)

    async def remove(self, call: Call, bucket: Bucket, key: str, params: Structure) -> None:
        """Delete an object, if it exists and meets the conditions of a request.

        Raises:
            AwsError: `NoSuchBucket`, `PreconditionFailed`, `NoSuchKey` if a condition requires an object.
        """

        async def decide(draft: Draft) -> ObjectRecord | None:
            current_bucket, record = await self._bucket_and_object(draft, bucket, key)
            check_writable(params, record, key)
            if record is not None:
                draft.remove(OBJECT, object_key(bucket.name, key))
                await self._notifier.owe_in(draft, call, REMOVED, current_bucket, record)
            return record

        old_record = await self._engine.resources.write(decide)
        if old_record is not None:
            await self.contents.remove(old_record.blobs)

    async def tag(self, call: Call, event: str, bucket: Bucket, key: str, tags: Mapping[str, str]) -> None:
        """Replace the tags of an object; `event` is `Put` or `Delete`.

        Raises:
            AwsError: `NoSuchBucket`, `NoSuchKey`.
        """

        async def decide(draft: Draft) -> None:
            current_bucket, record = await self._bucket_and_object(draft, bucket, key)
            if record is None:
                raise no_key(key)
            draft.put(OBJECT, object_key(bucket.name, key), replace(record, tags=tags))
            await self._notifier.owe_in(draft, call, f"{TAGGED}:{event}", current_bucket, record)

        await self._engine.resources.write(decide)

    async def _bucket_and_object(
        self, draft: Draft, bucket: Bucket, key: str
    ) -> tuple[Bucket, ObjectRecord | None]:
        """A bucket, which has to exist until the draft is written, and an object of it."""
        current_bucket = await draft.get(BUCKET, bucket.name)
        if current_bucket is None:
            raise no_bucket(bucket.name)
        return current_bucket, await draft.get(OBJECT, object_key(bucket.name, key))


class ObjectOperations:
    """The operations on single objects, and the removal of several."""

    def __init__(self, objects: Objects, access: BucketAccess) -> None:
        self._objects = objects
        self._access = access

    async def put_object(self, call: Call, params: Structure) -> Structure:
        key, content = params["Key"], params["Body"]
        # `Tagging` is offered here, unlike in other operations.
        other_params = {name: value for name, value in params.items() if name != "Tagging"}
        bucket = await self._access.bucket(call, other_params, "PutObject", key)
        if params.get("Tagging"):
            await self._access.bucket(call, other_params, "PutObjectTagging", key)
        check_key(key)
        headers, metadata, tags = headers_of(params), metadata_of(params), object_tags(params)
        checksums, etag = await checksums_and_etag(params, content)
        segment = await self._objects.contents.add(content)
        new = ObjectRecord(headers, metadata, key, etag, call.now, (segment,), checksums=checksums, tags=tags)
        await self._objects.put(call, "Put", bucket, new, params)
        return {
            "ETag": f'"{etag}"',
            **checksums,
            **({"ChecksumType": new.checksum_type} if checksums else {}),
        }

    async def head_object(self, call: Call, params: Structure) -> Structure:
        record, byte_range = await self._read(call, params)
        return _as_structure(record, params, byte_range)

    async def get_object(self, call: Call, params: Structure) -> Structure:
        try:
            return await self._get_object(call, params)
        except NotFound:  # overwritten between the reads of its document and of its content
            return await self._get_object(call, params)

    async def _get_object(self, call: Call, params: Structure) -> Structure:
        record, byte_range = await self._read(call, params)
        first, length = byte_range or ByteRange(0, record.size)
        if length > ANSWER_BYTES_MAX:
            raise _answer_too_large(length)
        contents = self._objects.contents
        read = contents.stream if length > _AT_ONCE_BYTES else contents.read
        body = await read(record.segments, first, length)
        return {**_as_structure(record, params, byte_range), "Body": body}

    async def delete_object(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.bucket(call, params, "DeleteObject", params["Key"])
        await self._objects.remove(call, bucket, params["Key"], params)
        return {}

    async def delete_objects(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.unchecked_bucket(params)
        identifiers = params["Delete"]["Objects"]
        if not 1 <= len(identifiers) <= DELETED_AT_ONCE_MAX:
            raise malformed()
        deleted, errors = [], []
        for each in identifiers:
            key = each["Key"]
            try:
                self._access.check_offered(each)
                await self._access.bucket(call, params, "DeleteObject", key)
                await self._objects.remove(call, bucket, key, {"IfMatch": each.get("ETag")})
            except AwsError as refusal:
                errors.append({"Key": key, "Code": refusal.code, "Message": refusal.message})
            else:
                deleted.append({"Key": key})
        return {"Deleted": [] if params["Delete"].get("Quiet") else deleted, "Errors": errors}

    async def _read(self, call: Call, params: Structure) -> tuple[ObjectRecord, ByteRange | None]:
        """The requested object, and the requested range of it."""
        bucket = await self._access.bucket(call, params, "GetObject", params["Key"])
        record = await self._objects.get(bucket, params["Key"])
        check_readable(params, record)
        return record, requested_range(params, record)


async def _end_upload(draft: Draft, upload: Upload) -> None:
    """End an upload; raises AwsError if it has ended already, or one of its parts was replaced meanwhile."""
    key = upload_key(upload.bucket, upload.id)
    current = await draft.get(UPLOAD, key)
    if current is None:
        raise no_upload(upload.id)
    if current != upload:
        raise aborted()
    draft.remove(UPLOAD, key)


async def checksums_and_etag(params: Structure, content: bytes) -> tuple[dict[str, str], str]:
    """The verified checksums of a request's content, and the content's entity tag.

    Raises:
        AwsError: The content is too large, or a checksum is wrong.
    """
    if len(content) > CONTENT_BYTES_MAX:
        raise too_large(len(content), CONTENT_BYTES_MAX)
    return await asyncio.to_thread(_checksums_and_etag, params, content)  # 16 MiB take 30 ms and more


def _checksums_and_etag(params: Structure, content: bytes) -> tuple[dict[str, str], str]:
    return verified_checksums(params, content), hashlib.md5(content, usedforsecurity=False).hexdigest()


def headers_of(params: Structure) -> dict[str, str]:
    """The headers of a request that are stored with its object."""
    headers = {name: _text(params[name]) for name in STORED_HEADERS if params.get(name)}
    coding = headers.pop("ContentEncoding", "")
    remaining = ",".join(each.strip() for each in coding.split(",") if each.strip().lower() != _CHUNKED)
    return {"ContentType": _DEFAULT_TYPE, **headers, **({"ContentEncoding": remaining} if remaining else {})}


def metadata_of(params: Structure) -> dict[str, str]:
    """The caller's metadata for an object; raises AwsError (`MetadataTooLarge`)."""
    metadata: dict[str, str] = params.get("Metadata") or {}
    size = sum(len(name) + len(text) for name, text in metadata.items())
    if size > METADATA_BYTES_MAX:
        text = "Your metadata headers exceed the maximum allowed metadata size"
        raise error("MetadataTooLarge", text, Size=str(size), MaxSizeAllowed=str(METADATA_BYTES_MAX))
    return metadata


def _as_structure(record: ObjectRecord, params: Structure, byte_range: ByteRange | None) -> Structure:
    description: Structure = {
        **record.headers,
        **_overrides(params),
        "Metadata": record.metadata,
        "AcceptRanges": "bytes",
        "ETag": f'"{record.etag}"',
        "LastModified": record.modified_at,
        "ContentLength": record.size if byte_range is None else byte_range.length,
    }
    if byte_range is not None:
        description["ContentRange"] = byte_range.header(record.size)
    if params.get("PartNumber") is not None and record.parts:
        description["PartsCount"] = record.parts
    if byte_range is None and params.get("ChecksumMode") == "ENABLED" and record.checksums:
        description |= {**record.checksums, "ChecksumType": record.checksum_type}
    return description


def _overrides(params: Structure) -> Structure:
    """The headers that a request wants in the answer instead of the stored ones; raises AwsError."""
    parameters = {name: params.get(f"Response{name}") for name in STORED_HEADERS}
    overrides = {name: _text(value) for name, value in parameters.items() if value}
    if any(_CONTROL.search(text) or not text.isascii() for text in overrides.values()):
        raise invalid("Header value cannot be represented using ISO-8859-1.")
    return overrides


def _text(value: str | int) -> str:
    """The value of a header as text; that of Expires is a moment (ms)."""
    return value if isinstance(value, str) else to_rfc822(value)


def _answer_too_large(length: int) -> AwsError:
    text = (
        f"Redrive's S3 answers with {ANSWER_BYTES_MAX} bytes of an object at most: ask for ranges, as the AWS CLI and"
        " SDKs' transfers do."
    )
    return error("EntityTooLarge", text, ProposedSize=str(length), MaxSizeAllowed=str(ANSWER_BYTES_MAX))


# ---- tags of objects -------------------------------------------------------------------------------------------------


class ObjectTags:
    """The operations on tags of objects."""

    def __init__(self, objects: Objects, access: BucketAccess) -> None:
        self._objects = objects
        self._access = access

    async def get_object_tagging(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.bucket(call, params, "GetObjectTagging", params["Key"])
        document = await self._objects.get(bucket, params["Key"])
        return {"TagSet": BUCKET_TAGS.as_list(document.tags)}

    async def put_object_tagging(self, call: Call, params: Structure) -> Structure:
        return await self._set(call, params, "Put", object_tags(params))

    async def delete_object_tagging(self, call: Call, params: Structure) -> Structure:
        return await self._set(call, params, "Delete", {})

    async def _set(self, call: Call, params: Structure, event: str, tags: Mapping[str, str]) -> Structure:
        bucket = await self._access.bucket(call, params, f"{event}ObjectTagging", params["Key"])
        await self._objects.tag(call, event, bucket, params["Key"], tags)
        return {}
