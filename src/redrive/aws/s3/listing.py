"""Lists of objects: in the order of their keys' bytes, those behind a common prefix as one entry."""

import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from redrive.aws.kit.call import Call
from redrive.aws.s3.access import BucketAccess
from redrive.aws.s3.errors import invalid
from redrive.aws.s3.quotas import LISTED_MAX
from redrive.aws.s3.records import OBJECT, UPLOAD, Bucket, ObjectRecord, Upload, object_key, upload_key
from redrive.aws.wire.shapes import Structure, Value
from redrive.engine.resources import Documents

_LAST: Final = "\U0010ffff"  # behind every other character
_BATCH: Final = 250  # documents read at once


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request for a list, whichever version of it.

    Attributes:
        prefix: Of all keys.
        delimiter: Ends common prefixes; empty: there are none.
        after: The key, or the common prefix, that the list begins behind.
        limit: The most entries.
        encodes: Whether keys are to be encoded as in URLs.
    """

    prefix: str
    delimiter: str
    after: str
    limit: int
    encodes: bool

    def group(self, key: str) -> str:
        """The common prefix that a key stands behind; empty: it stands for itself."""
        end = key.find(self.delimiter, len(self.prefix)) if self.delimiter else -1
        return "" if end < 0 else key[: end + len(self.delimiter)]

    def shown(self, text: str) -> str:
        """A key as the caller reads it."""
        return quote(text, safe="/-_.~*") if self.encodes else text


class Listing:
    """The operations that list objects."""

    def __init__(self, documents: Documents, access: BucketAccess) -> None:
        """List these."""
        self._documents = documents
        self._access = access

    async def list_objects_v2(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html."""
        token = params.get("ContinuationToken")
        after = params.get("StartAfter") or "" if token is None else _read_token(token)
        asked = _asked(params, after)
        answer, last = await self._listed(call, params, asked, fetch_owner=bool(params.get("FetchOwner")))
        count = len(answer["Contents"]) + len(answer["CommonPrefixes"])
        start = params.get("StartAfter")
        return {
            **answer,
            "KeyCount": count,
            "ContinuationToken": token,
            "StartAfter": None if start is None else asked.shown(start),
            "NextContinuationToken": _token(last) if answer["IsTruncated"] else None,
        }

    async def list_objects(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjects.html."""
        asked = _asked(params, params.get("Marker") or "")
        answer, last = await self._listed(call, params, asked, fetch_owner=True)
        following = asked.shown(last) if answer["IsTruncated"] and asked.delimiter else None
        return {**answer, "Marker": asked.shown(asked.after), "NextMarker": following}

    async def list_multipart_uploads(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html; in order of the keys."""
        bucket = await self._access.bucket(call, params, "ListBucketMultipartUploads")
        asked = _asked({**params, "MaxKeys": params.get("MaxUploads")}, params.get("KeyMarker") or "")
        marker = params.get("UploadIdMarker") or ""
        shown: list[Upload] = []
        groups: list[str] = []
        last: Upload | None = None
        is_truncated = False
        for upload in await self._uploads(bucket, asked, marker):
            group = asked.group(upload.key)
            if group and group in (*groups[-1:], asked.after):
                continue
            if len(shown) + len(groups) >= asked.limit:
                is_truncated = asked.limit > 0
                break
            last = upload
            if group:
                groups.append(group)
            else:
                shown.append(upload)
        next_key = "" if last is None else asked.group(last.key) or last.key
        return {
            "Bucket": bucket.name,
            "KeyMarker": asked.shown(asked.after),
            "UploadIdMarker": marker,
            "NextKeyMarker": asked.shown(next_key) if is_truncated else None,
            "NextUploadIdMarker": last.id
            if is_truncated and last is not None and last.key == next_key
            else None,
            "Prefix": asked.shown(asked.prefix),
            "Delimiter": asked.shown(asked.delimiter) if asked.delimiter else None,
            "MaxUploads": asked.limit,
            "EncodingType": "url" if asked.encodes else None,
            "IsTruncated": is_truncated,
            "Uploads": [_upload(each, asked, bucket) for each in shown],
            "CommonPrefixes": [{"Prefix": asked.shown(group)} for group in groups],
        }

    async def _uploads(self, bucket: Bucket, asked: _Asked, marker: str) -> list[Upload]:
        """The uploads under way behind the markers, in order; those of a key in the order in which they were begun."""
        found = await self._documents.find(UPLOAD, upload_key(bucket.name, ""))
        of_prefix = [upload for upload in found if upload.key.startswith(asked.prefix)]
        ordered = sorted(of_prefix, key=lambda upload: (upload.key.encode(), upload.begun_at, upload.id))
        if not asked.after:
            return ordered
        ids = [upload.id for upload in ordered if upload.key == asked.after]
        passed = set(ids[: ids.index(marker) + 1] if marker in ids else ids)
        after = asked.after.encode()
        return [upload for upload in ordered if upload.key.encode() >= after and upload.id not in passed]

    async def _listed(
        self, call: Call, params: Structure, asked: _Asked, *, fetch_owner: bool
    ) -> tuple[Structure, str]:
        """The members that both versions have, and the last entry."""
        bucket = await self._access.bucket(call, params, "ListBucket")
        contents: list[Value] = []
        groups: list[Value] = []
        last, is_truncated = "", False
        async for key, found in self._entries(bucket, asked):
            if len(contents) + len(groups) >= asked.limit:
                is_truncated = asked.limit > 0
                break
            last = key
            if found is None:
                groups.append({"Prefix": asked.shown(key)})
            else:
                contents.append(_entry(found, asked, bucket if fetch_owner else None))
        answer = {
            "Name": bucket.name,
            "Prefix": asked.shown(asked.prefix),
            "Delimiter": asked.shown(asked.delimiter) if asked.delimiter else None,
            "MaxKeys": asked.limit,
            "EncodingType": "url" if asked.encodes else None,
            "IsTruncated": is_truncated,
            "Contents": contents,
            "CommonPrefixes": groups,
        }
        return answer, last

    async def _entries(self, bucket: Bucket, asked: _Asked) -> AsyncIterator[tuple[str, ObjectRecord | None]]:
        """Keys with their objects, and common prefixes without, in order."""
        after, group = asked.after, ""
        if after and after.startswith(asked.prefix) and asked.group(after) == after:
            group, after = after, after + _LAST  # the list begins behind all of a common prefix
        while True:
            behind = object_key(bucket.name, after) if after else ""
            batch = await self._documents.find(OBJECT, object_key(bucket.name, asked.prefix), behind, _BATCH)
            for found in batch:
                after = found.key
                of = asked.group(found.key)
                if not of:
                    yield found.key, found
                elif of != group:
                    yield of, None
                group = of or group
            if len(batch) < _BATCH:
                return
            if group and after.startswith(group):
                after = group + _LAST


def _asked(params: Structure, after: str) -> _Asked:
    limit = params.get("MaxKeys")
    if limit is not None and limit < 0:
        raise invalid("Argument maxKeys must be an integer between 0 and 2147483647", ArgumentName="maxKeys")
    if params.get("EncodingType") not in (None, "url"):
        raise invalid("Invalid Encoding Method specified in Request", ArgumentName="encoding-type")
    return _Asked(
        params.get("Prefix") or "",
        params.get("Delimiter") or "",
        after,
        LISTED_MAX if limit is None else min(limit, LISTED_MAX),
        params.get("EncodingType") == "url",
    )


def _entry(found: ObjectRecord, asked: _Asked, owned: Bucket | None) -> Structure:
    entry: Structure = {
        "Key": asked.shown(found.key),
        "LastModified": found.modified_at,
        "ETag": f'"{found.etag}"',
        "Size": found.size,
        "StorageClass": "STANDARD",
    }
    if found.checksums:
        entry["ChecksumAlgorithm"] = [name.removeprefix("Checksum") for name in found.checksums]
        entry["ChecksumType"] = found.checksum_type
    if owned is not None:
        entry["Owner"] = {"ID": owned.account, "DisplayName": owned.account}
    return entry


def _upload(upload: Upload, asked: _Asked, bucket: Bucket) -> Structure:
    owner = {"ID": bucket.account, "DisplayName": bucket.account}
    shown: Structure = {
        "Key": asked.shown(upload.key),
        "UploadId": upload.id,
        "Initiated": upload.begun_at,
        "StorageClass": "STANDARD",
        "Owner": owner,
        "Initiator": owner,
    }
    if upload.algorithm:
        shown |= {"ChecksumAlgorithm": upload.algorithm, "ChecksumType": upload.checksum_type}
    return shown


def _token(last: str) -> str:
    return base64.urlsafe_b64encode(last.encode()).decode()


def _read_token(token: str) -> str:
    try:
        return base64.b64decode(token, b"-_", validate=True).decode()
    except ValueError:
        text = "The continuation token provided is incorrect"
        raise invalid(text, ArgumentName="continuation-token") from None
