"""Grants: permissions to use a key that need no policy."""

import re
from collections.abc import Mapping
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.kms.records import GRANT, Grant, KmsKey
from redrive.engine.resources import Documents

_ROOT: Final = re.compile(r"arn:[a-z-]+:iam::([0-9]{12}):root")


async def allow(
    documents: Documents, call: Call, key: KmsKey, operation: str, context: Mapping[str, str]
) -> bool:
    """Returns whether a grant lets the caller do it to a key, under an encryption context."""
    return any(
        operation in grant.operations and is_of(grant.grantee, call) and _fits(grant, context)
        for grant in await documents.find(GRANT, f"{key.name.key}/")
    )


def is_of(principal: str, call: Call) -> bool:
    """Returns whether a grant's principal is the caller: its own ARN, its account's, or a service's name."""
    root = _ROOT.fullmatch(principal)
    name = principal if root is None else root[1]
    return any(identity.name == name for identity in call.principal.identities)


def _fits(grant: Grant, context: Mapping[str, str]) -> bool:
    if grant.context_equals is not None and grant.context_equals != context:
        return False
    return grant.context_subset is None or grant.context_subset.items() <= context.items()
