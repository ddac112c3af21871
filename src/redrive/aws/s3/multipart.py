"""Uploads in parts: begun, completed or aborted. No content is copied when an upload is completed."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

from redrive.aws.kit.call import Call
from redrive.aws.s3 import checksums
from redrive.aws.s3.copying import CopySources
from redrive.aws.s3.documents.access import BucketAccess, check_key, unquoted
from redrive.aws.s3.documents.errors import (
    LISTED_MAX,
    PART_BYTES_MIN,
    PARTS_MAX,
    error,
    invalid,
    no_bucket,
    no_upload,
    unmet,
)
from redrive.aws.s3.documents.records import (
    BUCKET,
    PART,
    UPLOAD,
    Bucket,
    ObjectRecord,
    Upload,
    UploadPart,
    part_key,
    upload_key,
)
from redrive.aws.s3.objects import Objects, checksums_and_etag, headers_of, metadata_of
from redrive.aws.wire.rest.xml_input import malformed
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.errors import NotFound
from redrive.model.names import id_text


class Multipart:
    """The operations on uploads in parts."""

    def __init__(self, engine: Engine, objects: Objects, access: BucketAccess, sources: CopySources) -> None:
        self._engine = engine
        self._documents = engine.resources.documents
        self._objects = objects
        self._access = access
        self._sources = sources

    async def create_multipart_upload(self, call: Call, params: Structure) -> Structure:
        key = params["Key"]
        bucket = await self._access.bucket(call, params, "PutObject", key)
        check_key(key)
        algorithm = params.get("ChecksumAlgorithm") or ""
        checksums.check_algorithm(algorithm)
        kind = params.get("ChecksumType") or checksums.default_type(algorithm)
        checksums.check_type(algorithm, kind)
        identity = id_text(self._engine.runtime.message_id())
        upload = Upload(
            headers_of(params), metadata_of(params), bucket.name, key, identity, call.now, algorithm, kind
        )

        async def decide(draft: Draft) -> None:
            if await draft.get(BUCKET, bucket.name) is None:
                raise no_bucket(bucket.name)
            draft.put(UPLOAD, upload_key(bucket.name, identity), upload)

        await self._engine.resources.write(decide)
        answer: Structure = {"Bucket": bucket.name, "Key": key, "UploadId": identity}
        return answer | ({"ChecksumAlgorithm": algorithm, "ChecksumType": kind} if algorithm else {})

    async def upload_part(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.bucket(call, params, "PutObject", params["Key"])
        part = await self._store_part(call, bucket, params, params["Body"])
        return {"ETag": f'"{part.etag}"', **part.checksums}

    async def upload_part_copy(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.bucket(call, params, "PutObject", params["Key"])
        _, source = await self._sources.source(call, params)
        content = await self._sources.part(source, params.get("CopySourceRange"))
        part = await self._store_part(call, bucket, params, content)
        return {"CopyPartResult": {"ETag": f'"{part.etag}"', "LastModified": call.now, **part.checksums}}

    async def list_parts(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.bucket(call, params, "ListMultipartUploadParts", params["Key"])
        upload = await self._upload(bucket, params)
        limit = params.get("MaxParts")
        size = LISTED_MAX if limit is None else max(0, min(limit, LISTED_MAX))
        marker = int(params.get("PartNumberMarker") or 0)
        after = part_key(upload.id, marker) if marker else ""
        stored_parts = await self._documents.find(PART, f"{upload.id}/", after, size + 1)
        parts = [_as_structure(part) for part in stored_parts[:size]]
        return {
            "Bucket": bucket.name,
            "Key": upload.key,
            "UploadId": upload.id,
            "PartNumberMarker": marker,
            "NextPartNumberMarker": parts[-1]["PartNumber"] if parts else marker,
            "MaxParts": size,
            "IsTruncated": len(stored_parts) > size,
            "Parts": parts,
            "StorageClass": "STANDARD",
        }

    async def abort_multipart_upload(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.bucket(call, params, "AbortMultipartUpload", params["Key"])
        upload = await self._upload(bucket, params)
        await self._delete(bucket, upload, kept_blobs=())
        return {}

    async def complete_multipart_upload(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.bucket(call, params, "PutObject", params["Key"])
        upload = await self._upload(bucket, params)
        parts = await self._requested_parts(upload, params)
        object_checksums = await self._checksum(upload, parts)
        for name, checksum in checksums.checksums_in(params).items():
            if object_checksums.get(name) != checksum:
                raise error("BadDigest", f"The {name} you specified did not match the calculated checksum.")
        new = ObjectRecord(
            headers=upload.headers,
            metadata=upload.metadata,
            key=upload.key,
            etag=checksums.etag_of_parts(part.etag for part in parts),
            modified_at=call.now,
            segments=tuple(part.segment for part in parts),
            parts=len(parts),
            checksums=object_checksums,
            checksum_type=upload.checksum_type,
        )
        await self._objects.put(call, "CompleteMultipartUpload", bucket, new, params, upload)
        await self._delete(bucket, upload, kept_blobs=new.blobs)
        location = f"{call.base_url}/{bucket.name}/{upload.key}"
        answer = {"Location": location, "Bucket": bucket.name, "Key": upload.key, "ETag": f'"{new.etag}"'}
        return {
            **answer,
            **object_checksums,
            **({"ChecksumType": new.checksum_type} if object_checksums else {}),
        }

    async def _store_part(self, call: Call, bucket: Bucket, params: Structure, content: bytes) -> UploadPart:
        """Store a part of an upload, in place of an earlier one of its number; its content is then on disk."""
        number = params["PartNumber"]
        if not 1 <= number <= PARTS_MAX:
            text = f"Part number must be an integer between 1 and {PARTS_MAX}, inclusive"
            raise invalid(text, ArgumentName="partNumber", ArgumentValue=str(number))
        upload = await self._upload(bucket, params)
        sums, etag = await checksums_and_etag(params, content)
        member = f"Checksum{upload.algorithm}"
        if upload.algorithm and not sums:
            sums = {member: checksums.checksum_of(upload.algorithm, [content])}
        if upload.algorithm and member not in sums:
            text = f"Checksum Type mismatch occurred, expected checksum Type: {upload.algorithm.lower()}"
            raise error("InvalidRequest", text)
        segment = await self._objects.contents.add(content)
        part = UploadPart(number, etag, call.now, segment, sums)
        key = part_key(upload.id, number)

        async def decide(draft: Draft) -> UploadPart | None:
            current = await draft.get(UPLOAD, upload_key(bucket.name, upload.id))
            if current is None:
                raise no_upload(upload.id)
            old_part = await draft.get(PART, key)
            draft.put(PART, key, part)
            if old_part is not None:  # a concurrent completion, which has read the old part, has to conflict
                current = replace(current, replaced=current.replaced + 1)
                draft.put(UPLOAD, upload_key(bucket.name, upload.id), current)
            return old_part

        old_part = await self._engine.resources.write(decide)
        if old_part is not None:
            await self._objects.contents.remove([old_part.segment.blob])
        return part

    async def _upload(self, bucket: Bucket, params: Structure) -> Upload:
        upload = await self._documents.get(UPLOAD, upload_key(bucket.name, params["UploadId"]))
        if upload is None or upload.key != params["Key"]:
            raise no_upload(params["UploadId"])
        return upload

    async def _requested_parts(self, upload: Upload, params: Structure) -> list[UploadPart]:
        """The parts with which a request completes an upload; raises AwsError if one is absent or out of order."""
        requested_parts = (params.get("MultipartUpload") or {}).get("Parts") or []
        numbers = [each.get("PartNumber") for each in requested_parts]
        if not requested_parts or None in numbers or len(requested_parts) > PARTS_MAX:
            raise malformed()
        if any(first >= second for first, second in itertools.pairwise(numbers)):
            text = "The list of parts was not in ascending order. Parts must be ordered by part number."
            raise error("InvalidPartOrder", text, UploadId=upload.id)
        parts = {part.number: part for part in await self._documents.find(PART, f"{upload.id}/")}
        upload_parts = [_matching(each, parts.get(each["PartNumber"]), upload) for each in requested_parts]
        for part in upload_parts[:-1]:
            if part.segment.size < PART_BYTES_MIN:
                text = "Your proposed upload is smaller than the minimum allowed size"
                size = str(part.segment.size)
                raise error("EntityTooSmall", text, ProposedSize=size, MinSizeAllowed=str(PART_BYTES_MIN))
        return upload_parts

    async def _checksum(self, upload: Upload, parts: Sequence[UploadPart]) -> dict[str, str]:
        """The checksum of the object of an upload; empty: the upload has no algorithm."""
        if not upload.algorithm:
            return {}
        member = f"Checksum{upload.algorithm}"
        if upload.checksum_type == checksums.COMPOSITE:
            return {member: checksums.composite(upload.algorithm, [part.checksums[member] for part in parts])}
        checksum = checksums.new_checksum(upload.algorithm)
        try:
            async for content in self._objects.contents.each([part.segment for part in parts]):
                checksum.update(content)
        except NotFound:  # a part was overwritten meanwhile
            raise unmet("parts") from None
        return {member: checksums.as_base64(checksum)}

    async def _delete(self, bucket: Bucket, upload: Upload, kept_blobs: Sequence[str]) -> None:
        """Delete an upload with its parts, and those of their contents that are not among the `kept_blobs`."""
        await self._documents.remove(UPLOAD, upload_key(bucket.name, upload.id))
        parts = await self._documents.find(PART, f"{upload.id}/")
        for part in parts:
            await self._documents.remove(PART, part_key(upload.id, part.number))
        remaining = {part.segment.blob for part in parts} - set(kept_blobs)
        await self._objects.contents.remove(sorted(remaining))


def _matching(requested_part: Structure, part: UploadPart | None, upload: Upload) -> UploadPart:
    """A stored part, checked to have the entity tag and the checksums of a request."""
    requested_checksums = checksums.checksums_in(requested_part)
    if (
        part is None
        or unquoted(requested_part.get("ETag") or "") != part.etag
        or any(part.checksums.get(name) != checksum for name, checksum in requested_checksums.items())
    ):
        text = (
            "One or more of the specified parts could not be found. The part may not have been uploaded, or the"
            " specified entity tag may not match the part's entity tag."
        )
        raise error("InvalidPart", text, UploadId=upload.id, PartNumber=str(requested_part["PartNumber"]))
    return part


def _as_structure(part: UploadPart) -> Structure:
    return {
        "PartNumber": part.number,
        "LastModified": part.modified_at,
        "ETag": f'"{part.etag}"',
        "Size": part.segment.size,
        **part.checksums,
    }
