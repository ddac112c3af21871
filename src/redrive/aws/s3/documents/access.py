"""Access to buckets: the bucket and key that a call names, the policies of buckets, and the permission of a caller."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_address
from typing import Any, Final

from redrive.access.patterns import PolicyInvalid, Values
from redrive.access.policy_document import new_policy, stored_policy
from redrive.access.statements import Statement
from redrive.aws.kit.call import Call
from redrive.aws.s3.documents.errors import KEY_BYTES_MAX, denied, error, no_bucket, unoffered
from redrive.aws.s3.documents.records import BUCKET, Bucket
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Documents
from redrive.model.errors import NotFound

_BUCKET: Final = re.compile(
    r"(?=.{3,63}\Z)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*"
)
_ADDRESS: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_RESERVED: Final = ("xn--", "sthree-"), ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")
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
_CHARS_MAX: Final = 20 * 1024  # "Bucket policies", user guide
# Condition keys that keep a statement about everybody from being public ("The meaning of public", user guide).
_NARROWING: Final = frozenset(
    {
        *("aws:sourceaccount", "aws:sourcearn", "aws:sourceowner", "aws:sourceip", "aws:principalaccount"),
        *("aws:principalarn", "aws:principalorgid", "aws:userid", "aws:sourcevpc", "aws:sourcevpce"),
    }
)


def check_bucket(name: str) -> None:
    """Refuse a name that no new bucket can have ("Bucket naming rules", user guide).

    Raises:
        AwsError: `InvalidBucketName`.
    """
    beginnings, ends = _RESERVED
    is_reserved = name.startswith(beginnings) or name.endswith(ends)
    if not _BUCKET.fullmatch(name) or _ADDRESS.fullmatch(name) or is_reserved:
        raise error("InvalidBucketName", "The specified bucket is not valid.", BucketName=name)


def check_key(key: str) -> None:
    """Refuse a key that no object can have.

    Raises:
        AwsError: `KeyTooLongError`; `InvalidArgument` for NUL, which no store and no XML can hold.
    """
    size = len(key.encode())
    if size > KEY_BYTES_MAX:
        text = "Your key is too long"
        raise error("KeyTooLongError", text, Size=str(size), MaxSizeAllowed=str(KEY_BYTES_MAX))
    if "\0" in key:
        raise error("InvalidArgument", "A key of Redrive's S3 has no NUL.")


def unquoted(etag: str) -> str:
    """An entity tag without its quotes."""
    return etag.strip().removeprefix("W/").strip('"')


class BucketAccess:
    """Finds the bucket that a call names, for an action that its caller may do there."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    @staticmethod
    def check_offered(params: Structure) -> None:
        """Refuse parameters that this server would have to ignore; raises AwsError (`NotImplemented`)."""
        for name in _actions(params):
            raise unoffered(name)

    async def bucket(self, call: Call, params: Structure, action: str, key: str | None = None) -> Bucket:
        """The bucket that a call is about, for an action in the words of policies, without `s3:`, on a key or on itself.

        Raises:
            AwsError: `NoSuchBucket`, `AccessDenied`, or `NotImplemented` for a parameter that is not offered.
        """
        self.check_offered(params)
        owner = params.get("ExpectedBucketOwner")
        return await self.bucket_by_name(call, params["Bucket"], action, key, owner)

    async def change(self, bucket: Bucket, change: Callable[[Bucket], Bucket]) -> Structure:
        """Change what a bucket is set to; the answer of the operation. Raises AwsError (`NoSuchBucket`)."""
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
        """The bucket of a name, which the caller expects to have an owner; see `bucket`."""
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


def check_policy(text: str, bucket: Bucket) -> None:
    """Refuse a policy that this bucket cannot have; raises AwsError (`MalformedPolicy`)."""
    if len(text) > _CHARS_MAX:
        raise _malformed("Policies must be smaller than 20 KB")
    try:
        policy = new_policy(text)
    except PolicyInvalid as invalid:
        raise _malformed(f"This policy contains invalid Json or elements: {invalid.reason}") from None
    if policy.services - {"s3"}:
        raise _malformed("Policy has invalid action")
    for resource in _resources(json.loads(text)):
        if resource != bucket.arn and not resource.startswith(f"{bucket.arn}/"):
            raise _malformed("Policy has invalid resource")


def is_public(text: str) -> bool:
    """True if a policy lets everybody in, whoever they are."""
    return any(_lets_everybody_in(statement) for statement in stored_policy(text).statements)


def _lets_everybody_in(statement: Statement) -> bool:
    principals = statement.principals
    everybody = principals.everyone or principals.is_exclusion
    return statement.allows and everybody and _NARROWING.isdisjoint(statement.keys)


def _resources(document: Any) -> list[str]:
    statements = document["Statement"]
    resources: list[str] = []
    for statement in statements if isinstance(statements, list) else [statements]:
        resource = statement.get("Resource", statement.get("NotResource", []))
        resources += resource if isinstance(resource, list) else [resource]
    return resources


def _malformed(text: str) -> AwsError:
    return error("MalformedPolicy", text)
