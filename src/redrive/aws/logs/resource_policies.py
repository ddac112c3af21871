"""Resource policies: kept and shown. What writes to logs here is this server itself, so none of them decides anything."""

from typing import Final

import orjson

from redrive.access.patterns import PolicyInvalid
from redrive.access.policy_document import new_policy
from redrive.aws.kit.call import Call
from redrive.aws.kit.json_cursor import as_list
from redrive.aws.logs.errors import PAGES, error, invalid
from redrive.aws.logs.records import RESOURCE_POLICY, ResourcePolicy
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Documents, Draft

POLICIES_MAX: Final = 10  # of an account's region


_OLD_VERSION: Final = "2008-10-17"


class ResourcePolicies:
    """Puts, shows and removes resource policies."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def put_resource_policy(self, call: Call, params: Structure) -> Structure:
        name, text = params.get("policyName"), params.get("policyDocument")
        if params.get("resourceArn") or params.get("expectedRevisionId"):
            raise invalid("Policies of single log groups are not available.")
        if not name or not text:
            raise invalid("policyName and policyDocument are required.")
        try:
            new_policy(text)
        except PolicyInvalid as refusal:
            raise invalid(f"Policy document is invalid: {refusal}") from None
        policy = ResourcePolicy(name, text, call.now)

        async def decide(draft: Draft) -> None:
            others = dict(await draft.find(RESOURCE_POLICY, _key(call, "")))
            if _key(call, name) not in others and len(others) >= POLICIES_MAX:
                raise error("LimitExceededException", "Resource limit exceeded.")
            await draft.overwrite(RESOURCE_POLICY, _key(call, name), policy)

        await self._documents.transact(decide)
        return {"resourcePolicy": _as_structure(policy, policy.text)}

    async def describe_resource_policies(self, call: Call, params: Structure) -> Structure:
        policies = await self._documents.find(RESOURCE_POLICY, _key(call, ""))
        return PAGES.of(
            "DescribeResourcePolicies",
            params,
            policies,
            lambda policy: _as_structure(policy, _normalise(policy.text)),
            lambda policy: policy.name,
        )

    async def delete_resource_policy(self, call: Call, params: Structure) -> Structure:
        name = params.get("policyName") or ""
        if not await self._documents.remove(RESOURCE_POLICY, _key(call, name)):
            raise error("ResourceNotFoundException", f"Policy with name [{name}] does not exist.")
        return {}


def _key(call: Call, name: str) -> str:
    return f"{call.account}/{call.region}/{name}"


def _as_structure(policy: ResourcePolicy, text: str) -> Structure:
    return {
        "policyName": policy.name,
        "policyDocument": text,
        "lastUpdatedTime": policy.updated_at,
        "policyScope": "ACCOUNT",
    }


def _normalise(text: str) -> str:
    """A policy as lists show it: with a version, and lists of one principal as that alone (recorded)."""
    document = orjson.loads(text)
    document = document if "Version" in document else {"Version": _OLD_VERSION, **document}
    for statement in as_list(document["Statement"]):
        principal = statement.get("Principal")
        if isinstance(principal, dict):
            statement["Principal"] = {
                kind: principals[0] if isinstance(principals, list) and len(principals) == 1 else principals
                for kind, principals in principal.items()
            }
    return orjson.dumps(document).decode()
