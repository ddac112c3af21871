"""Lists of objects: in the order of their keys' bytes, those with a common prefix as one entry."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from redrive.aws.kit.call import Call
from redrive.aws.s3.documents.access import BucketAccess
from redrive.aws.s3.documents.errors import LISTED_MAX, PAGES, invalid
from redrive.aws.s3.documents.records import (
    OBJECT,
    UPLOAD,
    Bucket,
    ObjectRecord,
    Upload,
    object_key,
    upload_key,
)
from redrive.aws.wire.shapes import Structure, Value
from redrive.engine.resources import Documents

_LAST: Final = "\U0010ffff"  # after every other character
_BATCH: Final = 250  # documents read at once


@dataclass(frozen=True, slots=True)
class _ListRequest:
    """A request of either version of ListObjects, or of ListMultipartUploads."""

    prefix: str  # Common prefix of the keys
    delimiter: str  # Ends common prefixes; empty: there are none
    after: str  # The list begins after this key or common prefix
    limit: int  # The most entries
    encodes: bool  # Keys are encoded as in URLs

    def group(self, key: str) -> str:
        """The common prefix under which a key is listed; empty: it is listed itself."""
        end = key.find(self.delimiter, len(self.prefix)) if self.delimiter else -1
        return "" if end < 0 else key[: end + len(self.delimiter)]

    def display(self, text: str) -> str:
        """A key in the encoding that the caller wants."""
        return quote(text, safe="/-_.~*") if self.encodes else text


class ObjectListing:
    """The operations that list objects."""

    def __init__(self, documents: Documents, access: BucketAccess) -> None:
        self._documents = documents
        self._access = access

    async def list_objects_v2(self, call: Call, params: Structure) -> Structure:
        token = params.get("ContinuationToken")
        after = params.get("StartAfter") or "" if token is None else PAGES.after("ListObjectsV2", params)
        request = _request(params, after)
        answer, last = await self._list_page(
            call, params, request, fetch_owner=bool(params.get("FetchOwner"))
        )
        count = len(answer["Contents"]) + len(answer["CommonPrefixes"])
        start = params.get("StartAfter")
        return {
            **answer,
            "KeyCount": count,
            "ContinuationToken": token,
            "StartAfter": None if start is None else request.display(start),
            **PAGES.ending("ListObjectsV2", last if answer["IsTruncated"] else ""),
        }

    async def list_objects(self, call: Call, params: Structure) -> Structure:
        request = _request(params, params.get("Marker") or "")
        answer, last = await self._list_page(call, params, request, fetch_owner=True)
        next_marker = request.display(last) if answer["IsTruncated"] and request.delimiter else None
        return {**answer, "Marker": request.display(request.after), "NextMarker": next_marker}

    async def list_multipart_uploads(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html; in order of the keys."""
        bucket = await self._access.bucket(call, params, "ListBucketMultipartUploads")
        request = _request({**params, "MaxKeys": params.get("MaxUploads")}, params.get("KeyMarker") or "")
        marker = params.get("UploadIdMarker") or ""
        uploads: list[Upload] = []
        groups: list[str] = []
        last: Upload | None = None
        last_group = request.after
        is_truncated = False
        for upload in await self._uploads(bucket, request, marker):
            group = request.group(upload.key)
            if group and group == last_group:  # listed already
                continue
            if len(uploads) + len(groups) >= request.limit:
                is_truncated = request.limit > 0  # whoever asks for nothing has all of it
                break
            last = upload
            if group:
                groups.append(group)
                last_group = group
            else:
                uploads.append(upload)
        next_key = "" if last is None else (request.group(last.key) or last.key)
        next_id = last.id if last is not None and last.key == next_key else None  # a common prefix has none
        return {
            "Bucket": bucket.name,
            "KeyMarker": request.display(request.after),
            "UploadIdMarker": marker,
            "NextKeyMarker": request.display(next_key) if is_truncated else None,
            "NextUploadIdMarker": next_id if is_truncated else None,
            "Prefix": request.display(request.prefix),
            "Delimiter": request.display(request.delimiter) if request.delimiter else None,
            "MaxUploads": request.limit,
            "EncodingType": "url" if request.encodes else None,
            "IsTruncated": is_truncated,
            "Uploads": [_upload(each, request, bucket) for each in uploads],
            "CommonPrefixes": [{"Prefix": request.display(group)} for group in groups],
        }

    async def _uploads(self, bucket: Bucket, request: _ListRequest, marker: str) -> list[Upload]:
        """The unfinished uploads after the markers, in the order of their keys, and then of their beginning."""
        uploads = await self._documents.find(UPLOAD, upload_key(bucket.name, ""))
        prefix_uploads = [upload for upload in uploads if upload.key.startswith(request.prefix)]
        ordered = sorted(prefix_uploads, key=lambda upload: (upload.key.encode(), upload.begun_at, upload.id))
        if not request.after:
            return ordered
        ids = [upload.id for upload in ordered if upload.key == request.after]
        earlier_ids = set(ids[: ids.index(marker) + 1] if marker in ids else ids)
        after = request.after.encode()
        return [upload for upload in ordered if upload.key.encode() >= after and upload.id not in earlier_ids]

    async def _list_page(
        self, call: Call, params: Structure, request: _ListRequest, *, fetch_owner: bool
    ) -> tuple[Structure, str]:
        """The members of an answer that both versions have, and its last key or common prefix."""
        bucket = await self._access.bucket(call, params, "ListBucket")
        contents: list[Value] = []
        groups: list[Value] = []
        last, is_truncated = "", False
        async for key, entry in self._entries(bucket, request):
            if len(contents) + len(groups) >= request.limit:
                is_truncated = request.limit > 0  # whoever asks for nothing has all of it
                break
            last = key
            if entry is None:
                groups.append({"Prefix": request.display(key)})
            else:
                contents.append(_entry(entry, request, bucket if fetch_owner else None))
        answer = {
            "Name": bucket.name,
            "Prefix": request.display(request.prefix),
            "Delimiter": request.display(request.delimiter) if request.delimiter else None,
            "MaxKeys": request.limit,
            "EncodingType": "url" if request.encodes else None,
            "IsTruncated": is_truncated,
            "Contents": contents,
            "CommonPrefixes": groups,
        }
        return answer, last

    async def _entries(
        self, bucket: Bucket, request: _ListRequest
    ) -> AsyncIterator[tuple[str, ObjectRecord | None]]:
        """Keys with their objects, and common prefixes with None, in order."""
        after, last_group = request.after, ""
        if after and after.startswith(request.prefix) and request.group(after) == after:
            last_group, after = after, after + _LAST  # the list begins after all keys of a common prefix
        while True:
            after_key = object_key(bucket.name, after) if after else ""
            batch = await self._documents.find(
                OBJECT, object_key(bucket.name, request.prefix), after_key, _BATCH
            )
            for entry in batch:
                after = entry.key
                group = request.group(entry.key)
                if not group:
                    yield entry.key, entry
                elif group != last_group:
                    yield group, None
                last_group = group or last_group
            if len(batch) < _BATCH:
                return
            if last_group and after.startswith(last_group):
                after = last_group + _LAST  # its other keys need not be read


def _request(params: Structure, after: str) -> _ListRequest:
    """The settings of a list that a call asks for; raises AwsError."""
    limit = params.get("MaxKeys")
    if limit is not None and limit < 0:
        raise invalid("Argument maxKeys must be an integer between 0 and 2147483647", ArgumentName="maxKeys")
    if params.get("EncodingType") not in (None, "url"):
        raise invalid("Invalid Encoding Method specified in Request", ArgumentName="encoding-type")
    return _ListRequest(
        prefix=params.get("Prefix") or "",
        delimiter=params.get("Delimiter") or "",
        after=after,
        limit=LISTED_MAX if limit is None else min(limit, LISTED_MAX),
        encodes=params.get("EncodingType") == "url",
    )


def _entry(object_record: ObjectRecord, request: _ListRequest, owner: Bucket | None) -> Structure:
    entry: Structure = {
        "Key": request.display(object_record.key),
        "LastModified": object_record.modified_at,
        "ETag": f'"{object_record.etag}"',
        "Size": object_record.size,
        "StorageClass": "STANDARD",
    }
    if object_record.checksums:
        entry["ChecksumAlgorithm"] = [name.removeprefix("Checksum") for name in object_record.checksums]
        entry["ChecksumType"] = object_record.checksum_type
    if owner is not None:
        entry["Owner"] = {"ID": owner.account, "DisplayName": owner.account}
    return entry


def _upload(upload: Upload, request: _ListRequest, bucket: Bucket) -> Structure:
    owner = {"ID": bucket.account, "DisplayName": bucket.account}
    item: Structure = {
        "Key": request.display(upload.key),
        "UploadId": upload.id,
        "Initiated": upload.begun_at,
        "StorageClass": "STANDARD",
        "Owner": owner,
        "Initiator": owner,
    }
    if upload.algorithm:
        item |= {"ChecksumAlgorithm": upload.algorithm, "ChecksumType": upload.checksum_type}
    return item
