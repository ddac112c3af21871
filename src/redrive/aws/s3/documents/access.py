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
from redrive.aws.kit.json_cursor import as_list
from redrive.aws.s3.documents.errors import KEY_BYTES_MAX, denied, error, no_bucket, not_offered
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
#: Unsupported parameters, which would change what is stored or who may read it; SDKs do not send them by themselves.
_UNSUPPORTED = (
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
#: Parameters, and the values that this server has anyway.
_IMPLIED_VALUES = {
    "ServerSideEncryption": ("AES256",),  # by S3's own keys: so `aws cloudformation package` puts objects
    "ACL": ("private", "bucket-owner-full-control"),
    "StorageClass": ("STANDARD",),
    "VersionId": ("null",),
    "ObjectOwnership": ("BucketOwnerEnforced",),
}
# Deployment tools create buckets with policies that refuse requests without TLS, and then write to them. A request from
# the same machine counts as secure, as it crosses no network, unless a proxy forwarded it.
_LOCAL_KEYS: Mapping[str, Values] = {"aws:SecureTransport": "true"}
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
    prefixes, suffixes = _RESERVED
    is_reserved = name.startswith(prefixes) or name.endswith(suffixes)
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
    """Finds the buckets of calls, and checks the permissions of their callers."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    @staticmethod
    def check_offered(params: Structure) -> None:
        """Refuse parameters that this server would have to ignore; raises AwsError (`NotImplemented`)."""
        for name in _unsupported_names(params):
            raise not_offered(name)

    async def bucket(self, call: Call, params: Structure, action: str, key: str | None = None) -> Bucket:
        """The bucket of a call, for an action (`GetObject`) on one of its keys, or on the bucket itself.

        Raises:
            AwsError: `NoSuchBucket`, `AccessDenied`, or `NotImplemented` for a parameter that is not offered.
        """
        self.check_offered(params)
        owner = params.get("ExpectedBucketOwner")
        return await self.bucket_by_name(call, params["Bucket"], action, key, owner)

    async def change(self, bucket: Bucket, change: Callable[[Bucket], Bucket]) -> Structure:
        """Change the settings of a bucket; returns the answer of the operation. Raises AwsError (`NoSuchBucket`)."""
        try:
            await self._documents.update(BUCKET, bucket.name, change)
        except NotFound:
            raise no_bucket(bucket.name) from None
        return {}

    async def unchecked_bucket(self, params: Structure) -> Bucket:
        """The bucket of a call, without a check of permission, which each of its objects needs.

        Raises:
            AwsError: See `bucket`.
        """
        self.check_offered(params)
        bucket = await self._bucket(params["Bucket"])
        if params.get("ExpectedBucketOwner") not in (None, bucket.account):
            raise denied()
        return bucket

    async def owned_bucket(self, call: Call, params: Structure, action: str) -> Bucket:
        """The bucket of a call, for an action that only its account may do, whatever the bucket's policy says.

        Raises:
            AwsError: See `bucket`.
        """
        self.check_offered(params)
        bucket = await self._bucket(params["Bucket"])
        owner = params.get("ExpectedBucketOwner")
        is_allowed = call.may(f"s3:{action}", bucket.arn, bucket.account, policy=None)
        if not is_allowed or owner not in (None, bucket.account):
            raise denied()
        return bucket

    async def bucket_by_name(
        self, call: Call, name: str, action: str, key: str | None = None, owner: str | None = None
    ) -> Bucket:
        """The bucket of a name; `owner`: the expected owner. See `bucket`."""
        bucket = await self._bucket(name)
        arn = bucket.arn if key is None else f"{bucket.arn}/{key}"
        policy = bucket.policy or None
        keys = _LOCAL_KEYS if _is_local(call) else {}
        is_allowed = call.may(f"s3:{action}", arn, bucket.account, policy, keys)
        if not is_allowed or owner not in (None, bucket.account):
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


def _is_local(call: Call) -> bool:
    return ip_address(call.request.client_host).is_loopback and "x-forwarded-for" not in call.request.headers


def _unsupported_names(params: Structure) -> Iterable[str]:
    # `Tagging` is a document for the tags of a bucket, and a header for those of an object.
    yield from (name for name in _UNSUPPORTED if params.get(name) and not isinstance(params[name], dict))
    yield from (name for name, values in _IMPLIED_VALUES.items() if params.get(name) not in (None, *values))


def check_policy(text: str, bucket: Bucket) -> None:
    """Refuse a policy that is not valid for a bucket; raises AwsError (`MalformedPolicy`)."""
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
    """True if a policy allows everybody something."""
    return any(_allows_everybody(statement) for statement in stored_policy(text).statements)


def _allows_everybody(statement: Statement) -> bool:
    principals = statement.principals
    is_for_everybody = principals.everyone or principals.is_exclusion
    return statement.allows and is_for_everybody and _NARROWING.isdisjoint(statement.keys)


def _resources(document: Any) -> list[str]:
    resources: list[str] = []
    for statement in as_list(document["Statement"]):
        resources += as_list(statement.get("Resource", statement.get("NotResource", [])))
    return resources


def _malformed(text: str) -> AwsError:
    return error("MalformedPolicy", text)
