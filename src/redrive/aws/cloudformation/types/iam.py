"""Types of AWS IAM."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    FailedAfterCreation,
    ResourceSpec,
    ResourceState,
    ResourceType,
    as_text,
    is_absent,
    pick,
    refuse_existing,
    tag_list,
    without_absence,
)
from redrive.aws.cloudformation.types.tagging import TagCalls
from redrive.aws.wire.errors import AwsError

_ROLE_TAGS: Final = TagCalls("iam", "ListRoleTags", "TagRole", "UntagRole")
_USER_TAGS: Final = TagCalls("iam", "ListUserTags", "TagUser", "UntagUser")


class _HolderType(ResourceType):
    """A holder of policies; its id is its name."""

    service = "iam"
    kind: ClassVar[str]  # `RoleType`, `UserType`, `GroupType`
    name_chars_max = 64

    async def _create(self, ask: Ask, spec: ResourceSpec, **params: Any) -> Mapping[str, Any]:
        name = f"{self.kind}Name"
        if name in spec.properties:
            await refuse_existing(ask, spec, "iam", f"Get{self.kind}", **{name: spec.name})
        try:
            answer = await ask("iam", f"Create{self.kind}", **{name: spec.name}, **params)
        except AwsError as error:
            if not (spec.again and error.query_code == "EntityAlreadyExists"):
                raise
            answer = await ask("iam", f"Get{self.kind}", **{name: spec.name})
        await self._bring_policies(ask, spec.name, spec.properties)
        entity: Mapping[str, Any] = answer[self.kind]
        return entity

    async def _bring_policies(self, ask: Ask, name: str, properties: Mapping[str, Any]) -> None:
        """Attach and write the policies of the template."""
        identifiers = {f"{self.kind}Name": name}
        for arn in properties.get("ManagedPolicyArns") or ():
            await ask("iam", f"Attach{self.kind}Policy", **identifiers, PolicyArn=arn)
        for policy in properties.get("Policies") or ():
            text = as_text(policy["PolicyDocument"])
            await ask(
                "iam",
                f"Put{self.kind}Policy",
                **identifiers,
                PolicyName=policy["PolicyName"],
                PolicyDocument=text,
            )

    async def _update_policies(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> None:
        policy_names = {policy["PolicyName"] for policy in spec.properties.get("Policies") or ()}
        for policy in before.get("Policies") or ():
            if policy["PolicyName"] not in policy_names:
                await self._drop(ask, spec.physical_id, policy["PolicyName"])
        attached = spec.properties.get("ManagedPolicyArns") or ()
        for arn in before.get("ManagedPolicyArns") or ():
            if arn not in attached:  # others may attach theirs, which stay
                identifiers = {f"{self.kind}Name": spec.physical_id, "PolicyArn": arn}
                await without_absence(ask("iam", f"Detach{self.kind}Policy", **identifiers))
        await self._bring_policies(ask, spec.physical_id, spec.properties)

    async def _drop(self, ask: Ask, name: str, policy: str) -> None:
        params = {f"{self.kind}Name": name, "PolicyName": policy}
        await without_absence(ask("iam", f"Delete{self.kind}Policy", **params))

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        identifiers = {f"{self.kind}Name": spec.physical_id}
        try:
            attached = await ask("iam", f"ListAttached{self.kind}Policies", **identifiers)
            for policy in attached.get("AttachedPolicies") or ():
                await ask("iam", f"Detach{self.kind}Policy", **identifiers, PolicyArn=policy["PolicyArn"])
            for policy in spec.properties.get("Policies") or ():
                await self._drop(ask, spec.physical_id, policy["PolicyName"])
            await ask("iam", f"Delete{self.kind}", **identifiers)
        except AwsError as error:
            if not is_absent(error):
                raise

    @override
    async def read(self, ask: Ask, spec: ResourceSpec) -> Mapping[str, Any] | None:
        answer = await without_absence(
            ask("iam", f"Get{self.kind}", **{f"{self.kind}Name": spec.physical_id})
        )
        if answer is None:
            return None
        entity = answer[self.kind]
        return {
            name: entity[name] for name in ("Path", "Description", "MaxSessionDuration") if name in entity
        }


class RoleType(_HolderType):
    """`AWS::IAM::Role`."""

    kind = "Role"
    name_property = "RoleName"

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        params: dict[str, Any] = {"Description": ""}  # which GetRole then answers (recorded)
        params |= pick(spec.properties, "Description", "MaxSessionDuration", "Path", "PermissionsBoundary")
        params["AssumeRolePolicyDocument"] = as_text(spec.properties["AssumeRolePolicyDocument"])
        if tags := spec.all_tags():
            params["Tags"] = tag_list(tags)
        entity = await self._create(ask, spec, **params)
        return ResourceState(entity["RoleName"], {"Arn": entity["Arn"], "RoleId": entity["RoleId"]})

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        name, properties = spec.physical_id, spec.properties
        trust = as_text(properties["AssumeRolePolicyDocument"])
        await ask("iam", "UpdateAssumeRolePolicy", RoleName=name, PolicyDocument=trust)
        settings = {
            "Description": "",
            "MaxSessionDuration": 3600,
            **pick(properties, "Description", "MaxSessionDuration"),
        }
        await ask("iam", "UpdateRole", RoleName=name, **settings)
        if before.get("PermissionsBoundary") != properties.get("PermissionsBoundary"):
            boundary = properties.get("PermissionsBoundary")
            if boundary:
                await ask("iam", "PutRolePermissionsBoundary", RoleName=name, PermissionsBoundary=boundary)
            else:
                await ask("iam", "DeleteRolePermissionsBoundary", RoleName=name)
        await self._update_policies(ask, spec, before)
        await _ROLE_TAGS.set(ask, spec.all_tags(), RoleName=spec.physical_id)
        role = (await ask("iam", "GetRole", RoleName=name))["Role"]
        return ResourceState(name, {"Arn": role["Arn"], "RoleId": role["RoleId"]})


class UserType(_HolderType):
    """`AWS::IAM::User`."""

    kind = "User"
    name_property = "UserName"

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        params = pick(spec.properties, "Path", "PermissionsBoundary")
        if tags := spec.all_tags():
            params["Tags"] = tag_list(tags)
        entity = await self._create(ask, spec, **params)
        for group in spec.properties.get("Groups") or ():
            await ask("iam", "AddUserToGroup", GroupName=group, UserName=spec.name)
        return ResourceState(entity["UserName"], {"Arn": entity["Arn"]})

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        name = spec.physical_id
        old, new = set(before.get("Groups") or ()), set(spec.properties.get("Groups") or ())
        for group in sorted(new - old):
            await ask("iam", "AddUserToGroup", GroupName=group, UserName=name)
        for group in sorted(old - new):
            await without_absence(ask("iam", "RemoveUserFromGroup", GroupName=group, UserName=name))
        await self._update_policies(ask, spec, before)
        await _USER_TAGS.set(ask, spec.all_tags(), UserName=spec.physical_id)
        user = (await ask("iam", "GetUser", UserName=name))["User"]
        return ResourceState(name, {"Arn": user["Arn"]})

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        for group in spec.properties.get("Groups") or ():
            params = {"GroupName": group, "UserName": spec.physical_id}
            await without_absence(ask("iam", "RemoveUserFromGroup", **params))
        await super().delete(ask, spec)


class GroupType(_HolderType):
    """`AWS::IAM::Group`."""

    kind = "Group"
    name_property = "GroupName"
    name_chars_max = 128

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        entity = await self._create(ask, spec, **pick(spec.properties, "Path"))
        return ResourceState(entity["GroupName"], {"Arn": entity["Arn"]})

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        await self._update_policies(ask, spec, before)
        group = (await ask("iam", "GetGroup", GroupName=spec.physical_id))["Group"]
        return ResourceState(spec.physical_id, {"Arn": group["Arn"]})


# ---- policies --------------------------------------------------------------------------------------------------------

_KINDS: Final = (("Groups", "Group"), ("Roles", "Role"), ("Users", "User"))


_NO_HOLDER: Final = f"At least one of [{','.join(member for member, _ in _KINDS)}] must be non-empty."


def _holders(properties: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The kind and the name of each holder that a policy is for."""
    return [(kind, name) for member, kind in _KINDS for name in properties.get(member) or ()]


class InlinePolicyType(ResourceType):
    """`AWS::IAM::Policy`: written into roles, users and groups; its id is not the name that it has there."""

    service = "iam"

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        name, text = spec.properties["PolicyName"], as_text(spec.properties["PolicyDocument"])
        for kind, holder in _holders(spec.properties):
            identifiers = {f"{kind}Name": holder}
            await ask("iam", f"Put{kind}Policy", **identifiers, PolicyName=name, PolicyDocument=text)
        policy_id = spec.physical_id or spec.name
        if not _holders(spec.properties):
            raise FailedAfterCreation(_NO_HOLDER, policy_id)
        return ResourceState(policy_id, {"Id": policy_id})

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        same_name = before["PolicyName"] == spec.properties["PolicyName"]
        remaining = _holders(spec.properties) if same_name else []
        await self._drop(ask, before, [holder for holder in _holders(before) if holder not in remaining])
        return await self.create(ask, spec)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        if not _holders(spec.properties):  # it stays in its stack (recorded)
            raise TemplateInvalid(_NO_HOLDER)
        await self._drop(ask, spec.properties, _holders(spec.properties))

    async def _drop(self, ask: Ask, properties: Mapping[str, Any], holders: list[tuple[str, str]]) -> None:
        for kind, holder in holders:
            params = {f"{kind}Name": holder, "PolicyName": properties["PolicyName"]}
            await without_absence(ask("iam", f"Delete{kind}Policy", **params))


class ManagedPolicyType(ResourceType):
    """`AWS::IAM::ManagedPolicy`; its id is its ARN."""

    service = "iam"
    name_property = "ManagedPolicyName"
    name_chars_max = 128

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        params = pick(spec.properties, "Path", "Description")
        text = as_text(spec.properties["PolicyDocument"])
        try:
            await ask("iam", "CreatePolicy", PolicyName=spec.name, PolicyDocument=text, **params)
        except AwsError as error:
            if not (spec.again and error.query_code == "EntityAlreadyExists"):
                raise
        arn = await self.find(ask, spec)
        for kind, holder in _holders(spec.properties):
            await ask("iam", f"Attach{kind}Policy", **{f"{kind}Name": holder}, PolicyArn=arn)
        return await self._state(ask, arn)

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        path = spec.properties.get("Path", "/")
        return f"arn:aws:iam::{spec.stack.account}:policy{path}{spec.name}"

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        arn = spec.physical_id
        if before["PolicyDocument"] != spec.properties["PolicyDocument"]:
            await self._bring_version(ask, arn, as_text(spec.properties["PolicyDocument"]))
        old, new = _holders(before), _holders(spec.properties)
        for kind, holder in new:
            await ask("iam", f"Attach{kind}Policy", **{f"{kind}Name": holder}, PolicyArn=arn)
        await self._detach(ask, arn, [holder for holder in old if holder not in new])
        return await self._state(ask, arn)

    async def _bring_version(self, ask: Ask, arn: str, text: str) -> None:
        """Make the document the policy's only version."""
        answer = await ask(
            "iam", "CreatePolicyVersion", PolicyArn=arn, PolicyDocument=text, SetAsDefault=True
        )
        current = answer["PolicyVersion"]["VersionId"]
        await self._drop_versions(ask, arn, current)

    async def _drop_versions(self, ask: Ask, arn: str, current: str = "") -> None:
        answer = await ask("iam", "ListPolicyVersions", PolicyArn=arn)
        for version in answer.get("Versions") or ():
            if version["VersionId"] != current and not version["IsDefaultVersion"]:
                await ask("iam", "DeletePolicyVersion", PolicyArn=arn, VersionId=version["VersionId"])

    async def _detach(self, ask: Ask, arn: str, holders: list[tuple[str, str]]) -> None:
        for kind, holder in holders:
            params = {f"{kind}Name": holder, "PolicyArn": arn}
            await without_absence(ask("iam", f"Detach{kind}Policy", **params))

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        arn = spec.physical_id
        await self._detach(ask, arn, _holders(spec.properties))
        try:
            await self._drop_versions(ask, arn)
            await ask("iam", "DeletePolicy", PolicyArn=arn)
        except AwsError as error:
            if not is_absent(error):
                raise

    async def _state(self, ask: Ask, arn: str) -> ResourceState:
        policy = (await ask("iam", "GetPolicy", PolicyArn=arn))["Policy"]
        attributes = pick(policy, "PolicyId", "AttachmentCount", "DefaultVersionId", "IsAttachable")
        return ResourceState(arn, {"PolicyArn": arn, **attributes})


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::IAM::Group": GroupType,
    "AWS::IAM::ManagedPolicy": ManagedPolicyType,
    "AWS::IAM::Policy": InlinePolicyType,
    "AWS::IAM::Role": RoleType,
    "AWS::IAM::User": UserType,
}
