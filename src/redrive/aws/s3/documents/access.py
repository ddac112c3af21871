"""Access to buckets: the bucket that a call names, and the permission of its caller."""

from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_address

from redrive.access.patterns import Values
from redrive.aws.kit.call import Call
from redrive.aws.s3.documents.bucket_policies import is_public
from redrive.aws.s3.documents.errors import denied, no_bucket, unoffered
from redrive.aws.s3.documents.records import BUCKET, Bucket
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Documents
from redrive.model.errors import NotFound

#: Parameters that would have to change what is kept or who may read it; SDKs send none of them unasked.
_UNOFFERED = (
    *("SSECustomerAlgorithm", "SSEKMSKeyId", "BucketKeyEnabled", "Tagging"),
    *("WebsiteRedirectLocation", "ObjectLockMode", "ObjectLockRetainUntilDate", "ObjectLockLegalHoldStatus"),
    *(
        "GrantFullControl",
        "GrantRead",
        "GrantReadACP",
        "GrantWriteACP",
        "GrantWrite",
        "WriteOffsetBytes",
        "MFA",
    ),
    *("CopySourceSSECustomerAlgorithm", "ObjectLockEnabledForBucket", "OptionalObjectAttributes"),
)
#: Values that ask for what is so anyway.
_AS_IT_IS = {
    "ServerSideEncryption": ("AES256",),  # by S3's own keys: so `aws cloudformation package` puts objects
    "ACL": ("private", "bucket-owner-full-control"),
    "StorageClass": ("STANDARD",),
    "VersionId": ("null",),
    "ObjectOwnership": ("BucketOwnerEnforced",),
}

# Deployment tools make buckets whose policies refuse whatever came without TLS, and then write to them. A request that
# never leaves the machine crosses no network; what a proxy on it forwards has.
_STAYS_HERE: Mapping[str, Values] = {"aws:SecureTransport": "true"}


class BucketAccess:
    """Finds the bucket that a call names, for an action that its caller may do there."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    @staticmethod
    def check_offered(params: Structure) -> None:
        """Refuse parameters that this server would have to ignore.

        Raises:
            AwsError: `NotImplemented`.
        """
        for name in _actions(params):
            raise unoffered(name)

    async def bucket(self, call: Call, params: Structure, action: str, key: str | None = None) -> Bucket:
        """The bucket that a call is about.

        Args:
            call: The call.
            params: Its parameters.
            action: In the words of policies, without `s3:`.
            key: Of the object that the action is about.

        Raises:
            AwsError: `NoSuchBucket`, `AccessDenied`, or `NotImplemented` for a parameter that is not offered.
        """
        self.check_offered(params)
        owner = params.get("ExpectedBucketOwner")
        return await self.bucket_by_name(call, params["Bucket"], action, key, owner)

    async def change(self, bucket: Bucket, change: Callable[[Bucket], Bucket]) -> Structure:
        """Change what a bucket is set to; the answer of the operation.

        Raises:
            AwsError: `NoSuchBucket`.
        """
        try:
            await self._documents.update(BUCKET, bucket.name, change)
        except NotFound:
            raise no_bucket(bucket.name) from None
        return {}

    async def existing(self, params: Structure) -> Bucket:
        """The bucket that a call is about, for what is asked about each of its objects.

        Raises:
            AwsError: See `bucket`.
        """
        self.check_offered(params)
        bucket = await self._bucket(params["Bucket"])
        if params.get("ExpectedBucketOwner") not in (None, bucket.account):
            raise denied()
        return bucket

    async def owned(self, call: Call, params: Structure, action: str) -> Bucket:
        """The bucket that a call is about, for what its account alone may do, and whatever its policy says.

        Raises:
            AwsError: See `bucket`.
        """
        self.check_offered(params)
        bucket = await self._bucket(params["Bucket"])
        owner = params.get("ExpectedBucketOwner")
        if not call.may(f"s3:{action}", bucket.arn, bucket.account, None) or owner not in (
            None,
            bucket.account,
        ):
            raise denied()
        return bucket

    async def bucket_by_name(
        self, call: Call, name: str, action: str, key: str | None = None, owner: str | None = None
    ) -> Bucket:
        """The bucket of a name; see `bucket`.

        Args:
            call: The call.
            name: Of the bucket.
            action: See `bucket`.
            key: See `bucket`.
            owner: The account that the caller expects it to have.
        """
        bucket = await self._bucket(name)
        arn = bucket.arn if key is None else f"{bucket.arn}/{key}"
        policy = bucket.policy or None
        keys = _STAYS_HERE if _stays_here(call) else {}
        allowed = call.may(f"s3:{action}", arn, bucket.account, policy, keys)
        if not allowed or owner not in (None, bucket.account):
            raise denied()
        if (
            call.account != bucket.account
            and bucket.blocks("RestrictPublicBuckets")
            and is_public(bucket.policy)
        ):
            raise denied()
        return bucket

    async def _bucket(self, name: str) -> Bucket:
        bucket = await self._documents.get(BUCKET, name)
        if bucket is None:
            raise no_bucket(name)
        return bucket


def _stays_here(call: Call) -> bool:
    return ip_address(call.request.client_host).is_loopback and "x-forwarded-for" not in call.request.headers


def _actions(params: Structure) -> Iterable[str]:
    # A bucket's tags have a name of theirs in common with an object's, which are a header.
    yield from (name for name in _UNOFFERED if params.get(name) and not isinstance(params[name], dict))
    yield from (name for name, values in _AS_IT_IS.items() if params.get(name) not in (None, *values))
