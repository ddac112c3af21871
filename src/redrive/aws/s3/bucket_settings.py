"""Settings of buckets: policies, tags, the block of public access, and answers about settings that do not exist here.

Deployment tools read all of these settings of a bucket before they change anything.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from redrive.aws.kit.call import Call, Verb
from redrive.aws.s3.documents.access import BucketAccess, check_policy, is_public
from redrive.aws.s3.documents.errors import denied, error
from redrive.aws.s3.documents.records import Bucket
from redrive.aws.s3.tag_sets import BUCKET_TAGS, bucket_tags
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure

_BLOCKS: Final = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
#: Operations with the action that each needs, and S3's answer: for versioning, that it was never enabled.
_ANSWERS: Final[Mapping[str, tuple[str, Structure]]] = {
    "GetBucketVersioning": ("GetBucketVersioning", {}),
    "GetBucketLogging": ("GetBucketLogging", {}),
    "GetBucketAccelerateConfiguration": ("GetAccelerateConfiguration", {}),
    "GetBucketRequestPayment": ("GetBucketRequestPayment", {"Payer": "BucketOwner"}),
}
#: Operations with the action that each needs, and the code and text of S3's refusal.
_REFUSALS: Final = {
    "GetBucketCors": ("GetBucketCORS", "NoSuchCORSConfiguration", "The CORS configuration does not exist"),
    "GetBucketWebsite": (
        "GetBucketWebsite",
        "NoSuchWebsiteConfiguration",
        "The specified bucket does not have a website configuration",
    ),
    "GetBucketLifecycleConfiguration": (
        "GetLifecycleConfiguration",
        "NoSuchLifecycleConfiguration",
        "The lifecycle configuration does not exist",
    ),
    "GetBucketReplication": (
        "GetReplicationConfiguration",
        "ReplicationConfigurationNotFoundError",
        "The replication configuration was not found",
    ),
    "GetBucketEncryption": (
        "GetEncryptionConfiguration",
        "ServerSideEncryptionConfigurationNotFoundError",
        "The server side encryption configuration was not found",
    ),
    "GetObjectLockConfiguration": (
        "GetBucketObjectLockConfiguration",
        "ObjectLockConfigurationNotFoundError",
        "Object Lock configuration does not exist for this bucket",
    ),
}


class BucketSettings:
    """The operations on the settings of a bucket."""

    def __init__(self, access: BucketAccess) -> None:
        self._access = access

    # ---- policies ------------------------------------------------------------------------------------------------

    async def get_bucket_policy(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.owned_bucket(call, params, "GetBucketPolicy")
        return {"Policy": _policy_of(bucket)}

    async def get_bucket_policy_status(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.owned_bucket(call, params, "GetBucketPolicyStatus")
        return {"PolicyStatus": {"IsPublic": is_public(_policy_of(bucket))}}

    async def put_bucket_policy(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.owned_bucket(call, params, "PutBucketPolicy")
        text = params["Policy"]
        check_policy(text, bucket)
        if is_public(text) and bucket.blocks("BlockPublicPolicy"):
            raise denied()
        return await self._access.change(bucket, lambda current: replace(current, policy=text))

    async def delete_bucket_policy(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.owned_bucket(call, params, "DeleteBucketPolicy")
        return await self._access.change(bucket, lambda current: replace(current, policy=""))

    # ---- tags ----------------------------------------------------------------------------------------------------

    async def get_bucket_tagging(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.bucket(call, params, "GetBucketTagging")
        if not bucket.tags:
            raise _absent("NoSuchTagSet", "The TagSet does not exist", bucket)
        return {"TagSet": BUCKET_TAGS.as_list(bucket.tags)}

    async def put_bucket_tagging(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.bucket(call, params, "PutBucketTagging")
        tags = bucket_tags(params)
        return await self._access.change(bucket, lambda current: replace(current, tags=tags))

    async def delete_bucket_tagging(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.bucket(call, params, "PutBucketTagging")
        return await self._access.change(bucket, lambda current: replace(current, tags={}))

    # ---- public access -------------------------------------------------------------------------------------------

    async def get_public_access_block(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.bucket(call, params, "GetBucketPublicAccessBlock")
        if not bucket.public_access_block:
            text = "The public access block configuration was not found"
            raise _absent("NoSuchPublicAccessBlockConfiguration", text, bucket)
        return {"PublicAccessBlockConfiguration": {name: bucket.blocks(name) for name in _BLOCKS}}

    async def put_public_access_block(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutPublicAccessBlock.html; there are no ACLs to block."""
        bucket = await self._access.bucket(call, params, "PutBucketPublicAccessBlock")
        block = params.get("PublicAccessBlockConfiguration") or {}
        blocks = {name: bool(block.get(name)) for name in _BLOCKS}
        return await self._access.change(bucket, lambda current: replace(current, public_access_block=blocks))

    async def delete_public_access_block(self, call: Call, params: Structure) -> Structure:
        bucket = await self._access.bucket(call, params, "PutBucketPublicAccessBlock")
        return await self._access.change(bucket, lambda current: replace(current, public_access_block={}))

    async def get_bucket_acl(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketAcl.html: a bucket is its owner's alone."""
        bucket = await self._access.bucket(call, params, "GetBucketAcl")
        owner = {"ID": bucket.account, "DisplayName": bucket.account}
        return {"Owner": owner, "Grants": [{"Grantee": owner, "Permission": "FULL_CONTROL"}]}

    async def get_bucket_ownership_controls(self, call: Call, params: Structure) -> Structure:
        await self._access.bucket(call, params, "GetBucketOwnershipControls")
        return {"OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}}


def absent_settings(access: BucketAccess) -> dict[str, Verb]:
    """The operations on settings that no bucket has here, with the answers of S3 about a bucket without them."""

    def answer_operation(action: str, answer: Structure) -> Verb:
        async def show(call: Call, params: Structure) -> Structure:
            await access.bucket(call, params, action)
            return dict(answer)

        return show

    def refusal_operation(action: str, code: str, text: str) -> Verb:
        async def refuse(call: Call, params: Structure) -> Structure:
            raise _absent(code, text, await access.bucket(call, params, action))

        return refuse

    return {
        **{operation: answer_operation(*answer) for operation, answer in _ANSWERS.items()},
        **{operation: refusal_operation(*refusal) for operation, refusal in _REFUSALS.items()},
    }


def _policy_of(bucket: Bucket) -> str:
    if not bucket.policy:
        raise _absent("NoSuchBucketPolicy", "The bucket policy does not exist", bucket)
    return bucket.policy


def _absent(code: str, text: str, bucket: Bucket) -> AwsError:
    return error(code, text, 404, BucketName=bucket.name)
