"""Buckets: created, found, listed and deleted."""

from redrive.aws.kit.call import Call
from redrive.aws.s3.documents.access import BucketAccess, check_bucket
from redrive.aws.s3.documents.contents import Contents
from redrive.aws.s3.documents.errors import PAGES, error, no_bucket
from redrive.aws.s3.documents.records import BUCKET, OBJECT, PART, UPLOAD, Bucket
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.errors import Conflict

_FIRST_REGION = "us-east-1"
_OLD_NAMES = {"EU": "eu-west-1"}
_PAGE = 100


class BucketOperations:
    """The operations on buckets."""

    def __init__(self, engine: Engine, access: BucketAccess, contents: Contents) -> None:
        self._engine = engine
        self._documents = engine.resources.documents
        self._access = access
        self._contents = contents

    async def create_bucket(self, call: Call, params: Structure) -> Structure:
        name = params["Bucket"]
        check_bucket(name)
        self._access.check_offered(params)
        bucket = Bucket(name, call.account, _region(call, params), call.now)
        try:
            await self._documents.create(BUCKET, name, bucket)
        except Conflict:
            await self._check_existing(call, name)
        return {"Location": f"/{name}"}

    async def head_bucket(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.bucket(call, params, "ListBucket")
        return {"BucketRegion": bucket.region, "BucketArn": bucket.arn}

    async def get_bucket_location(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.bucket(call, params, "GetBucketLocation")
        return {"LocationConstraint": None if bucket.region == _FIRST_REGION else bucket.region}

    async def list_buckets(self, call: Call, params: Structure) -> Structure:
        after, prefix = PAGES.after("ListBuckets", params), params.get("Prefix") or ""
        buckets = [
            bucket
            for bucket in await self._documents.find(BUCKET, prefix, after)
            if bucket.account == call.account and params.get("BucketRegion") in (None, bucket.region)
        ]
        page, token = PAGES.cut("ListBuckets", params, buckets, lambda bucket: bucket.name)
        items = [
            {"Name": each.name, "CreationDate": each.created_at, "BucketRegion": each.region} for each in page
        ]
        owner = {"ID": call.account, "DisplayName": call.account}
        return {"Buckets": items, "Owner": owner, "Prefix": params.get("Prefix"), **token}

    async def delete_bucket(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucket.html; its unfinished uploads are aborted."""
        bucket = await self._access.bucket(call, params, "DeleteBucket")

        async def decide(draft: Draft) -> bool:
            """Remove the bucket; False: it has uploads, which nobody who makes a bucket of its name may find."""
            if await draft.get(BUCKET, bucket.name) is None:
                raise no_bucket(bucket.name)
            if await draft.find(OBJECT, f"{bucket.name}/", limit=1):
                raise _not_empty(bucket.name)
            if await draft.find(UPLOAD, f"{bucket.name}/", limit=1):
                return False
            draft.remove(BUCKET, bucket.name)
            draft.require_none(OBJECT, f"{bucket.name}/")
            draft.require_none(UPLOAD, f"{bucket.name}/")
            return True

        while not await self._engine.resources.write(decide):
            await self._abort_uploads(bucket.name)
        return {}

    async def _abort_uploads(self, bucket: str) -> None:
        """Remove the uploads of a bucket that were not completed, with their parts."""
        while uploads := await self._documents.find_versioned(UPLOAD, f"{bucket}/", limit=_PAGE):
            for key, _, upload in uploads:
                parts = await self._documents.find_versioned(PART, f"{upload.id}/")
                for part_key, _, _ in parts:
                    await self._documents.remove(PART, part_key)
                await self._documents.remove(UPLOAD, key)
                await self._contents.remove([part.segment.blob for _, _, part in parts])

    async def _check_existing(self, call: Call, name: str) -> None:
        """Refuse to create an existing bucket, unless its owner does so in us-east-1, as S3 allows."""
        existing = await self._documents.get(BUCKET, name)
        if existing is None or existing.account != call.account:
            text = (
                "The requested bucket name is not available. The bucket namespace is shared by all users of the system."
                " Please select a different name and try again."
            )
            raise error("BucketAlreadyExists", text, 409, BucketName=name)
        if call.region != _FIRST_REGION or existing.region != _FIRST_REGION:
            text = "Your previous request to create the named bucket succeeded and you already own it."
            raise error("BucketAlreadyOwnedByYou", text, 409, BucketName=name)


def _not_empty(name: str) -> AwsError:
    return error("BucketNotEmpty", "The bucket you tried to delete is not empty", 409, BucketName=name)


def _region(call: Call, params: Structure) -> str:
    """The region of a new bucket, by its constraint, else us-east-1; callers elsewhere may only name their own."""
    constraint = (params.get("CreateBucketConfiguration") or {}).get("LocationConstraint") or ""
    region = _OLD_NAMES.get(constraint, constraint) or _FIRST_REGION
    if call.region not in (_FIRST_REGION, region):
        region_text = constraint or "unspecified"
        raise error(
            "IllegalLocationConstraintException",
            f"The {region_text} location constraint is incompatible for the region specific endpoint"
            " this request was sent to.",
        )
    return region
