"""Tags of objects that are there."""

from collections.abc import Mapping

from redrive.aws.kit.call import Call
from redrive.aws.s3.documents.access import BucketAccess
from redrive.aws.s3.objects import Objects
from redrive.aws.s3.tag_sets import BUCKET_TAGS, object_tags
from redrive.aws.wire.shapes import Structure


class ObjectTags:
    """The operations on tags of objects."""

    def __init__(self, objects: Objects, access: BucketAccess) -> None:
        self._objects = objects
        self._access = access

    async def get_object_tagging(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.bucket(call, params, "GetObjectTagging", params["Key"])
        document = await self._objects.get(bucket, params["Key"])
        return {"TagSet": BUCKET_TAGS.shown(document.tags)}

    async def put_object_tagging(self, call: Call, params: Structure) -> Structure:
        return await self._set(call, params, "Put", object_tags(params))

    async def delete_object_tagging(self, call: Call, params: Structure) -> Structure:
        return await self._set(call, params, "Delete", {})

    async def _set(self, call: Call, params: Structure, event: str, tags: Mapping[str, str]) -> Structure:
        bucket = await self._access.bucket(call, params, f"{event}ObjectTagging", params["Key"])
        await self._objects.tag(call, event, bucket, params["Key"], tags)
        return {}
