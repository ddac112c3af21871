"""Grants: permissions to use a key that need no policy."""

import re
from collections.abc import Mapping
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.kms.records import GRANT, Grant, KmsKey
from redrive.engine.resources import Documents

#: Operations of a grant that have no encryption context, so that its constraints do not concern them.
_WITHOUT_CONTEXT: Final = frozenset({"CreateGrant", "DescribeKey", "RetireGrant"})
_ROOT: Final = re.compile(r"arn:[a-z-]+:iam::([0-9]{12}):root")


async def allowing(
    documents: Documents, call: Call, key: KmsKey, operation: str, context: Mapping[str, str]
) -> list[Grant]:
    """The grants that let the caller do it to a key, under an encryption context."""
    return [
        grant
        for grant in await documents.find(GRANT, f"{key.name.key}/")
        if operation in grant.operations
        and is_of(grant.grantee, call)
        and (operation in _WITHOUT_CONTEXT or _fits(grant, context))
    ]


def covers(grant: Grant, other: Grant) -> bool:
    """Returns whether a grant gives all that another does, which its grantee is about to make by its `CreateGrant`.

    The other's operations are a subset, and its constraints equally strict or stricter ("Granting CreateGrant
    permission", developer guide).
    """
    if not set(other.operations) <= set(grant.operations):
        return False
    if grant.context_equals is not None and grant.context_equals != other.context_equals:
        return False
    required = (grant.context_subset or {}).items()
    contexts = (each for each in (other.context_equals, other.context_subset) if each is not None)
    return not required or any(required <= context.items() for context in contexts)


def is_of(principal: str, call: Call) -> bool:
    """Returns whether a grant's principal is the caller: its own ARN, its account's, or a service's name."""
    root = _ROOT.fullmatch(principal)
    name = principal if root is None else root[1]
    return any(identity.name == name for identity in call.principal.identities)


def _fits(grant: Grant, context: Mapping[str, str]) -> bool:
    if grant.context_equals is not None and grant.context_equals != context:
        return False
    return grant.context_subset is None or grant.context_subset.items() <= context.items()
