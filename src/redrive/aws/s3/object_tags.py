"""Tags of objects that are there."""

from collections.abc import Mapping
from dataclasses import replace

from redrive.aws.kit.call import Call
from redrive.aws.s3.access import BucketAccess
from redrive.aws.s3.errors import no_key
from redrive.aws.s3.objects import Objects
from redrive.aws.s3.records import OBJECT, object_key
from redrive.aws.s3.tag_sets import object_tags
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft


class ObjectTags:
    """The operations on tags of objects."""

    def __init__(self, engine: Engine, objects: Objects, access: BucketAccess) -> None:
        self._engine = engine
        self._objects = objects
        self._access = access

    async def get_object_tagging(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.bucket(call, params, "GetObjectTagging", params["Key"])
        document = await self._objects.get(bucket, params["Key"])
        return {"TagSet": [{"Key": key, "Value": value} for key, value in document.tags.items()]}

    async def put_object_tagging(self, call: Call, params: Structure) -> Structure:
        return await self._set(call, params, "PutObjectTagging", object_tags(params))

    async def delete_object_tagging(self, call: Call, params: Structure) -> Structure:
        return await self._set(call, params, "DeleteObjectTagging", {})

    async def _set(self, call: Call, params: Structure, action: str, tags: Mapping[str, str]) -> Structure:
        bucket = await self._access.bucket(call, params, action, params["Key"])
        key = object_key(bucket.name, params["Key"])

        async def decide(draft: Draft) -> None:
            document = await draft.get(OBJECT, key)
            if document is None:
                raise no_key(params["Key"])
            draft.put(OBJECT, key, replace(document, tags=tags))

        await self._engine.resources.write(decide)
        return {}
