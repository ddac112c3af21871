"""Key policies: the one document that says who may use and administer a key."""

import json
from dataclasses import replace
from typing import Final

from redrive.access.patterns import PolicyInvalid
from redrive.access.policy_document import new_policy
from redrive.aws.kit.call import Call
from redrive.aws.kms.access import KeyAccess, may_set_policy
from redrive.aws.kms.errors import PAGES, error, not_found
from redrive.aws.kms.keyring import KeyRing
from redrive.aws.kms.records import KmsKey
from redrive.aws.wire.shapes import Structure

_NAME: Final = "default"
_LOCKOUT: Final = "The new key policy will not allow you to update the key policy in the future."


def default_policy(account: str) -> str:
    """The policy of a key created without one: the account has full access, and delegates it by IAM policies."""
    statement = {
        "Sid": "Enable IAM User Permissions",
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{account}:root"},
        "Action": "kms:*",
        "Resource": "*",
    }
    return json.dumps({"Version": "2012-10-17", "Id": "key-default-1", "Statement": [statement]}, indent=1)


def check(call: Call, key: KmsKey, policy: str, *, bypass: bool) -> None:
    """Refuse a policy that is not one, or that locks the caller out.

    Raises:
        AwsError: `MalformedPolicyDocumentException`.
    """
    try:
        new_policy(policy)
    except PolicyInvalid as invalid:
        raise error("MalformedPolicyDocumentException", f"The policy {invalid.reason}.") from None
    if not bypass and not may_set_policy(call, key, policy):
        raise error("MalformedPolicyDocumentException", _LOCKOUT)


class KeyPolicies:
    """Shows and replaces key policies."""

    def __init__(self, keyring: KeyRing, access: KeyAccess) -> None:
        self._keyring = keyring
        self._access = access

    async def get_key_policy(self, call: Call, params: Structure) -> Structure:
        key = await self._access.managed_key(call, params["KeyId"], "GetKeyPolicy")
        _check_name(params)
        return {"Policy": key.policy, "PolicyName": _NAME}

    async def put_key_policy(self, call: Call, params: Structure) -> Structure:
        key = await self._access.managed_key(call, params["KeyId"], "PutKeyPolicy")
        _check_name(params)
        policy: str = params["Policy"]
        check(call, key, policy, bypass=bool(params.get("BypassPolicyLockoutSafetyCheck")))
        await self._keyring.change(key.name, lambda current: replace(current, policy=policy))
        return {}

    async def list_key_policies(self, call: Call, params: Structure) -> Structure:
        await self._access.managed_key(call, params["KeyId"], "ListKeyPolicies")
        return PAGES.of("ListKeyPolicies", params, [_NAME], str, str)


def _check_name(params: Structure) -> None:
    name = params.get("PolicyName") or _NAME
    if name != _NAME:
        raise not_found(f"No such policy exists: {name}")
