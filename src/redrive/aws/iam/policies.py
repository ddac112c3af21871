"""Managed policies and their versions."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, Final

from redrive.access.identities import AMAZON, ManagedPolicy, PolicyHolder, PolicyVersion, aws_managed
from redrive.access.policy_document import Form
from redrive.aws.iam.attachments import managed_policy_in
from redrive.aws.iam.documents import check_document, url_encoded
from redrive.aws.iam.entities import HOLDERS, POLICIES, Entity, in_path, policy_structure
from redrive.aws.iam.entity_operations import EntityOperations
from redrive.aws.iam.errors import PAGES, TAGS, absent, denied, in_use, too_many
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.resources import Draft

_CHARS_MAX: Final = 6144
_QUOTA: Final = "Cannot exceed quota for PolicySize"
VERSIONS_MAX: Final = 5
_NOT_AT_CREATION: Final = frozenset({"Description"})  # recorded


class PolicyOperations(EntityOperations[ManagedPolicy]):
    """Creates, shows, changes and deletes managed policies."""

    entity: ClassVar[Entity[ManagedPolicy]] = POLICIES

    async def create_policy(self, call: Call, params: Structure) -> Structure:
        text = params["PolicyDocument"]
        check_document(text, Form.IDENTITY, _CHARS_MAX, _QUOTA, is_managed=True)
        managed_policy = ManagedPolicy(
            *self._first_fields(call, params),
            params.get("Description") or "",
            {1: PolicyVersion(text, call.now)},
            updated_at=call.now,
        )
        await self._create(call, managed_policy)
        answer = policy_structure(managed_policy, 0)
        return {"Policy": {name: value for name, value in answer.items() if name not in _NOT_AT_CREATION}}

    async def get_policy(self, call: Call, params: Structure) -> Structure:
        policy = await self._read(call, params)
        answer = policy_structure(policy, await self._attachments(call, policy))
        return {"Policy": {**answer, "Tags": TAGS.as_list(policy.tags)}}  # empty, too (recorded)

    async def list_policies(self, call: Call, params: Structure) -> Structure:
        scope, usage = params.get("Scope") or "All", params.get("PolicyUsageFilter")
        holders = await self._holders(call)
        attached_arns = [arn for holder in holders for arn in holder.attached]
        boundary_arns = {holder.boundary for holder in holders}
        policies: list[ManagedPolicy] = [] if scope == "Local" else list(aws_managed().values())
        if scope != "AWS":
            policies += await self._resources.documents.find(POLICIES.kind, f"{call.account}/")

        def matches(policy: ManagedPolicy) -> bool:
            if params.get("OnlyAttached") and policy.arn not in attached_arns:
                return False
            used_arns = boundary_arns if usage == "PermissionsBoundary" else attached_arns
            return usage is None or policy.arn in used_arns

        policies_in_path = sorted(
            filter(matches, filter(in_path(params), policies)), key=lambda policy: policy.arn
        )
        return PAGES.of(
            "ListPolicies",
            params,
            policies_in_path,
            lambda policy: policy_structure(policy, attached_arns.count(policy.arn), with_details=False),
            lambda policy: policy.arn,
        )

    async def delete_policy(self, call: Call, params: Structure) -> Structure:

        async def decide(draft: Draft) -> None:
            policy = await self._own_in(draft, call, params, "DeletePolicy")
            if policy.attachments or policy.boundaries:
                raise in_use("Cannot delete a policy attached to entities.")
            if len(policy.versions) > 1:
                raise in_use(
                    "This policy has more than one version. Before you delete a policy, you must delete the"
                    " policy's versions. The default version is deleted with the policy."
                )
            draft.remove(POLICIES.kind, policy.key)

        await self._resources.write(decide)
        return {}

    # ---- versions ----------------------------------------------------------------------------------------------

    async def create_policy_version(self, call: Call, params: Structure) -> Structure:
        text = params["PolicyDocument"]
        check_document(text, Form.IDENTITY, _CHARS_MAX, _QUOTA, is_managed=True)

        async def decide(draft: Draft) -> ManagedPolicy:
            policy = await self._own_in(draft, call, params, "CreatePolicyVersion")
            if len(policy.versions) >= VERSIONS_MAX:
                raise too_many(
                    f"A managed policy can have up to {VERSIONS_MAX} versions. Before you create a new version, you"
                    " must delete an existing version."
                )
            number = policy.last + 1
            policy = replace(
                policy,
                versions={**policy.versions, number: PolicyVersion(text, call.now)},
                default=number if params.get("SetAsDefault") else policy.default,
                last=number,
                updated_at=call.now,
            )
            draft.put(POLICIES.kind, policy.key, policy)
            return policy

        policy = await self._resources.write(decide)
        version = _version(policy, policy.last)
        return {"PolicyVersion": {name: value for name, value in version.items() if name != "Document"}}

    async def get_policy_version(self, call: Call, params: Structure) -> Structure:
        policy = await self._read(call, params)
        return {"PolicyVersion": _version(policy, _number(policy, params["VersionId"]))}

    async def list_policy_versions(self, call: Call, params: Structure) -> Structure:
        policy = await self._read(call, params)

        def as_structure(number: int) -> Structure:
            version = _version(policy, number)
            return {name: value for name, value in version.items() if name != "Document"}

        # Pages continue after a key that ascends, so the key of a higher number is the lower text.
        newest_first = sorted(policy.versions, reverse=True)
        return PAGES.of(
            "ListPolicyVersions", params, newest_first, as_structure, lambda number: f"{10**9 - number:010}"
        )

    async def delete_policy_version(self, call: Call, params: Structure) -> Structure:

        async def decide(draft: Draft) -> None:
            policy = await self._own_in(draft, call, params, "DeletePolicyVersion")
            version_number = _number(policy, params["VersionId"])
            if version_number == policy.default:
                raise in_use("Cannot delete the default version of a policy.")
            remaining = {
                number: version for number, version in policy.versions.items() if number != version_number
            }
            draft.put(POLICIES.kind, policy.key, replace(policy, versions=remaining))

        await self._resources.write(decide)
        return {}

    async def set_default_policy_version(self, call: Call, params: Structure) -> Structure:

        async def decide(draft: Draft) -> None:
            policy = await self._own_in(draft, call, params, "SetDefaultPolicyVersion")
            number = _number(policy, params["VersionId"])
            draft.put(POLICIES.kind, policy.key, replace(policy, default=number, updated_at=call.now))

        await self._resources.write(decide)
        return {}

    # ---- holders -----------------------------------------------------------------------------------------------

    async def list_entities_for_policy(self, call: Call, params: Structure) -> Structure:
        arn, usage = (await self._read(call, params)).arn, params.get("PolicyUsageFilter")
        entity_type = params.get("EntityFilter")

        def uses_policy(holder: PolicyHolder) -> bool:
            is_boundary, is_attached = holder.boundary == arn, arn in holder.attached
            if usage is None:
                return is_boundary or is_attached
            return is_boundary if usage == "PermissionsBoundary" else is_attached

        entities = [entity for entity in HOLDERS if entity_type in (None, entity.word)]
        holders = await self._holders(call, entities)
        matches = sorted(filter(uses_policy, filter(in_path(params), holders)), key=lambda holder: holder.arn)
        page, answer = PAGES.cut("ListEntitiesForPolicy", params, matches, lambda holder: holder.arn)
        for word in (entity.word for entity in HOLDERS):
            answer[f"Policy{word}s"] = [
                {f"{word}Name": holder.name, f"{word}Id": holder.id}
                for holder in page
                if holder.word == word.lower()
            ]
        return answer

    async def _read(self, call: Call, params: Structure) -> ManagedPolicy:
        policy = await managed_policy_in(self._resources.documents, params["PolicyArn"])
        if policy is None or policy.account not in (call.account, AMAZON):
            raise absent(POLICIES.absent_text.format(params["PolicyArn"]))
        return policy

    async def _own_in(self, draft: Draft, call: Call, params: Structure, operation: str) -> ManagedPolicy:
        """The policy that a call is to change; raises AwsError if it is Amazon's, or another account's."""
        arn = params["PolicyArn"]
        policy = await managed_policy_in(draft, arn)
        if policy is not None and policy.account == AMAZON:
            reason = f"because no identity-based policy allows the iam:{operation} action"
            raise denied(call.principal.name, f"iam:{operation}", arn, reason)
        if policy is None or policy.account != call.account:
            raise absent(POLICIES.absent_text.format(arn))
        return policy

    async def _holders(self, call: Call, entities: Iterable[Entity[Any]] = HOLDERS) -> list[PolicyHolder]:
        holders: list[PolicyHolder] = []
        for entity in entities:
            holders += await self._resources.documents.find(entity.kind, f"{call.account}/")
        return holders

    async def _attachments(self, call: Call, policy: ManagedPolicy) -> int:
        """The number of a policy's attachments, which is stored for an account's own policies only."""
        if policy.account != AMAZON:
            return policy.attachments
        return sum(policy.arn in holder.attached for holder in await self._holders(call))


def _number(policy: ManagedPolicy, version: str) -> int:
    number = int(version[1:]) if version[1:].isascii() and version[1:].isdigit() and len(version) < 10 else 0  # noqa: PLR2004 - more digits than versions
    if number not in policy.versions:
        raise absent(f"Policy {policy.arn} version {version} does not exist or is not attachable.")
    return number


def _version(policy: ManagedPolicy, number: int) -> Structure:
    version = policy.versions[number]
    return {
        "Document": url_encoded(version.text),
        "VersionId": f"v{number}",
        "IsDefaultVersion": number == policy.default,
        "CreateDate": version.created_at,
    }
