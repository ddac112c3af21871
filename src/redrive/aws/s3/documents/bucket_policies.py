"""Policies of buckets: what S3 takes, and which of them are public."""

import json
from typing import Any, Final

from redrive.access.patterns import PolicyInvalid
from redrive.access.policy_document import new_policy, stored_policy
from redrive.access.statements import Statement
from redrive.aws.s3.documents.errors import error
from redrive.aws.s3.documents.records import Bucket
from redrive.aws.wire.errors import AwsError

_CHARS_MAX: Final = 20 * 1024  # "Bucket policies", user guide
# Condition keys that keep a statement about everybody from being public ("The meaning of public", user guide).
_NARROWING: Final = frozenset(
    {
        *("aws:sourceaccount", "aws:sourcearn", "aws:sourceowner", "aws:sourceip", "aws:principalaccount"),
        *("aws:principalarn", "aws:principalorgid", "aws:userid", "aws:sourcevpc", "aws:sourcevpce"),
    }
)


def check_policy(text: str, bucket: Bucket) -> None:
    """Refuse a policy that this bucket cannot have.

    Raises:
        AwsError: `MalformedPolicy`.
    """
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
