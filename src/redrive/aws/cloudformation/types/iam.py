"""Types of AWS IAM: roles, users and groups, their policies, access keys and instance profiles."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.cloudformation.types.calls import (
    Ask,
    FailedAfterCreation,
    ResourceSpec,
    ResourceState,
    TagCalls,
    as_text,
    pick,
    tag_params,
    unless_created,
    without_absence,
)
from redrive.aws.cloudformation.types.resource_type import (
    ID,
    Description,
    Factory,
    Parameters,
    ResourceType,
    Row,
    same_names,
)

_EXISTS: Final = "EntityAlreadyExists"
_ROLE_TAGS: Final = TagCalls("iam", "ListRoleTags", "TagRole", "UntagRole")
_USER_TAGS: Final = TagCalls("iam", "ListUserTags", "TagUser", "UntagUser")


class _HolderType(ResourceType):
    """A holder of policies; its id is its name."""

    service = "iam"
    name_chars_max = 64

    def __init__(self, name: str) -> None:
        super().__init__(name)
        properties = ("Path", "Description", "MaxSessionDuration")
        self.description = Description(f"Get{self.noun}", properties, self.noun)

    @override
    def identifiers(self, spec: ResourceSpec) -> dict[str, Any]:
        return {f"{self.noun}Name": spec.physical_id or spec.name}

    async def _create(self, ask: Ask, spec: ResourceSpec, **params: Any) -> Mapping[str, Any]:
        """Create the entity and its policies, or go on after an interruption; returns what IAM tells of the entity."""
        name = {f"{self.noun}Name": spec.name}
        await self.refuse_existing(ask, spec, f"Get{self.noun}", **name)
        creation = ask("iam", f"Create{self.noun}", **name, **params)
        answer = await unless_created(creation, spec, _EXISTS) or await ask("iam", f"Get{self.noun}", **name)
        await self._put_policies(ask, spec.name, spec.properties)
        entity: Mapping[str, Any] = answer[self.noun]
        return entity

    async def _put_policies(self, ask: Ask, name: str, properties: Mapping[str, Any]) -> None:
        """Attach and put the policies of the template."""
        identifiers = {f"{self.noun}Name": name}
        for arn in properties.get("ManagedPolicyArns") or ():
            await ask("iam", f"Attach{self.noun}Policy", **identifiers, PolicyArn=arn)
        for policy in properties.get("Policies") or ():
            params = {"PolicyName": policy["PolicyName"], "PolicyDocument": as_text(policy["PolicyDocument"])}
            await ask("iam", f"Put{self.noun}Policy", **identifiers, **params)

    async def _update_policies(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> None:
        """Remove policies that only the earlier properties have, then put the current ones."""
        policy_names = {policy["PolicyName"] for policy in spec.properties.get("Policies") or ()}
        for policy in before.get("Policies") or ():
            if policy["PolicyName"] not in policy_names:
                await self._remove_inline(ask, spec.physical_id, policy["PolicyName"])
        policy_arns = spec.properties.get("ManagedPolicyArns") or ()
        for arn in before.get("ManagedPolicyArns") or ():
            if arn not in policy_arns:  # policies that something else attached stay
                identifiers = {f"{self.noun}Name": spec.physical_id, "PolicyArn": arn}
                await without_absence(ask("iam", f"Detach{self.noun}Policy", **identifiers))
        await self._put_policies(ask, spec.physical_id, spec.properties)

    async def _remove_inline(self, ask: Ask, name: str, policy: str) -> None:
        params = {f"{self.noun}Name": name, "PolicyName": policy}
        await without_absence(ask("iam", f"Delete{self.noun}Policy", **params))

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        await without_absence(self._detach_policies(ask, spec))
        await super().delete(ask, spec)

    async def _detach_policies(self, ask: Ask, spec: ResourceSpec) -> None:
        """Remove the policies of an entity, which could not be deleted with them."""
        identifiers = self.identifiers(spec)
        answer = await ask("iam", f"ListAttached{self.noun}Policies", **identifiers)
        for policy in answer.get("AttachedPolicies") or ():
            await ask("iam", f"Detach{self.noun}Policy", **identifiers, PolicyArn=policy["PolicyArn"])
        for policy in spec.properties.get("Policies") or ():
            await self._remove_inline(ask, spec.physical_id, policy["PolicyName"])


class RoleType(_HolderType):
    """`AWS::IAM::Role`."""

    noun = "Role"
    name_property = "RoleName"

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        params: dict[str, Any] = {"Description": ""}  # which GetRole then answers (recorded)
        params |= pick(spec.properties, "Description", "MaxSessionDuration", "Path", "PermissionsBoundary")
        params["AssumeRolePolicyDocument"] = as_text(spec.properties["AssumeRolePolicyDocument"])
        entity = await self._create(ask, spec, **params, **tag_params(spec))
        return ResourceState(entity["RoleName"], {"Arn": entity["Arn"], "RoleId": entity["RoleId"]})

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        name, properties = spec.physical_id, spec.properties
        trust = as_text(properties["AssumeRolePolicyDocument"])
        await ask("iam", "UpdateAssumeRolePolicy", RoleName=name, PolicyDocument=trust)
        defaults = {"Description": "", "MaxSessionDuration": 3600}
        await ask("iam", "UpdateRole", RoleName=name, **{**defaults, **pick(properties, *defaults)})
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

    noun = "User"
    name_property = "UserName"

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        params = pick(spec.properties, "Path", "PermissionsBoundary") | tag_params(spec)
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

    noun = "Group"
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
    """The kind and the name of each holder of a policy."""
    return [(kind, name) for member, kind in _KINDS for name in properties.get(member) or ()]


class InlinePolicyType(ResourceType):
    """`AWS::IAM::Policy`: an inline policy of roles, users and groups; its id is not the name that it has there."""

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
        has_same_name = before["PolicyName"] == spec.properties["PolicyName"]
        remaining = _holders(spec.properties) if has_same_name else []
        old_holders = [holder for holder in _holders(before) if holder not in remaining]
        await self._remove_inline(ask, before, old_holders)
        return await self.create(ask, spec)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        if not _holders(spec.properties):  # the deletion fails on AWS, too (recorded)
            raise TemplateInvalid(_NO_HOLDER)
        await self._remove_inline(ask, spec.properties, _holders(spec.properties))

    async def _remove_inline(
        self, ask: Ask, properties: Mapping[str, Any], holders: list[tuple[str, str]]
    ) -> None:
        for kind, holder in holders:
            params = {f"{kind}Name": holder, "PolicyName": properties["PolicyName"]}
            await without_absence(ask("iam", f"Delete{kind}Policy", **params))


class ManagedPolicyType(ResourceType):
    """`AWS::IAM::ManagedPolicy`; its id is its ARN."""

    service, noun = "iam", "Policy"
    name_property = "ManagedPolicyName"
    name_chars_max = 128
    keys: ClassVar[Parameters] = {"PolicyArn": ID}

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        params = pick(spec.properties, "Path", "Description")
        text = as_text(spec.properties["PolicyDocument"])
        creation = ask("iam", "CreatePolicy", PolicyName=spec.name, PolicyDocument=text, **params)
        await unless_created(creation, spec, _EXISTS)
        arn = await self.find(ask, spec)
        for kind, holder in _holders(spec.properties):
            await ask("iam", f"Attach{kind}Policy", **{f"{kind}Name": holder}, PolicyArn=arn)
        return await self._state(ask, arn)

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        return f"arn:aws:iam::{spec.stack.account}:policy{spec.properties.get('Path', '/')}{spec.name}"

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        arn = spec.physical_id
        if before["PolicyDocument"] != spec.properties["PolicyDocument"]:
            await self._replace_version(ask, arn, as_text(spec.properties["PolicyDocument"]))
        old, new = _holders(before), _holders(spec.properties)
        for kind, holder in new:
            await ask("iam", f"Attach{kind}Policy", **{f"{kind}Name": holder}, PolicyArn=arn)
        await self._detach(ask, arn, [holder for holder in old if holder not in new])
        return await self._state(ask, arn)

    async def _replace_version(self, ask: Ask, arn: str, text: str) -> None:
        """Make the document the policy's only version."""
        params = {"PolicyArn": arn, "PolicyDocument": text, "SetAsDefault": True}
        await ask("iam", "CreatePolicyVersion", **params)
        await self._delete_old_versions(ask, arn)

    async def _delete_old_versions(self, ask: Ask, arn: str) -> None:
        answer = await ask("iam", "ListPolicyVersions", PolicyArn=arn)
        for version in answer.get("Versions") or ():
            if not version["IsDefaultVersion"]:
                await ask("iam", "DeletePolicyVersion", PolicyArn=arn, VersionId=version["VersionId"])

    async def _detach(self, ask: Ask, arn: str, holders: list[tuple[str, str]]) -> None:
        for kind, holder in holders:
            params = {f"{kind}Name": holder, "PolicyArn": arn}
            await without_absence(ask("iam", f"Detach{kind}Policy", **params))

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        await self._detach(ask, spec.physical_id, _holders(spec.properties))
        await without_absence(self._delete_old_versions(ask, spec.physical_id))
        await super().delete(ask, spec)

    async def _state(self, ask: Ask, arn: str) -> ResourceState:
        policy = (await ask("iam", "GetPolicy", PolicyArn=arn))["Policy"]
        attributes = pick(policy, "PolicyId", "AttachmentCount", "DefaultVersionId", "IsAttachable")
        return ResourceState(arn, {"PolicyArn": arn, **attributes})


# ---- credentials ---------------------------------------------------------------------------------------------------

_SECRET: Final = "SecretAccessKey"  # noqa: S105 - an attribute's name


class AccessKeyType(ResourceType):
    """`AWS::IAM::AccessKey`; its id is the key's, and its secret is returned once: to the stack."""

    service, noun = "iam", "AccessKey"
    name_chars_max = 0
    keys: ClassVar[Parameters] = {"UserName": "UserName", "AccessKeyId": ID}

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        user = spec.properties["UserName"]
        access_key = (await ask("iam", "CreateAccessKey", UserName=user))["AccessKey"]
        await self._set_status(ask, spec, access_key["AccessKeyId"], "Active")
        return ResourceState(access_key["AccessKeyId"], {_SECRET: access_key[_SECRET]})

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        await self._set_status(ask, spec, spec.physical_id, before.get("Status", "Active"))
        return ResourceState(spec.physical_id, pick(spec.attributes, _SECRET))

    async def _set_status(self, ask: Ask, spec: ResourceSpec, key: str, before: str) -> None:
        status = spec.properties.get("Status", "Active")
        if status != before:
            user = spec.properties["UserName"]
            await ask("iam", "UpdateAccessKey", UserName=user, AccessKeyId=key, Status=status)

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        return ""  # IAM chooses the id, and returns the secret only to the call that creates the key


class InstanceProfileType(ResourceType):
    """`AWS::IAM::InstanceProfile`; its id is its name."""

    service, noun = "iam", "InstanceProfile"
    name_property = "InstanceProfileName"
    name_chars_max = 128
    keys: ClassVar[Parameters] = {"InstanceProfileName": ID}

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        identifiers = self.identifiers(spec)
        await self.refuse_existing(ask, spec, "GetInstanceProfile", **identifiers)
        creation = ask("iam", "CreateInstanceProfile", **identifiers, **pick(spec.properties, "Path"))
        await unless_created(creation, spec, _EXISTS)
        return await self.update(ask, spec, {})

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        identifiers = self.identifiers(spec)
        profile = (await ask("iam", "GetInstanceProfile", **identifiers))["InstanceProfile"]
        old, new = {role["RoleName"] for role in profile["Roles"]}, set(spec.properties["Roles"])
        for role in sorted(old - new):  # before the new one: a profile has a single role
            await ask("iam", "RemoveRoleFromInstanceProfile", **identifiers, RoleName=role)
        for role in sorted(new - old):
            await ask("iam", "AddRoleToInstanceProfile", **identifiers, RoleName=role)
        return ResourceState(spec.physical_id or spec.name, {"Arn": profile["Arn"]})

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        identifiers = self.identifiers(spec)
        answer = await without_absence(ask("iam", "GetInstanceProfile", **identifiers))
        for role in answer["InstanceProfile"]["Roles"] if answer else ():
            removal = ask("iam", "RemoveRoleFromInstanceProfile", **identifiers, RoleName=role["RoleName"])
            await without_absence(removal)
        await super().delete(ask, spec)

    @override
    async def read(self, ask: Ask, spec: ResourceSpec) -> Mapping[str, Any] | None:
        answer = await without_absence(ask("iam", "GetInstanceProfile", **self.identifiers(spec)))
        if answer is None:
            return None
        profile = answer["InstanceProfile"]
        roles = [role["RoleName"] for role in profile["Roles"]]
        return {self.name_property: spec.physical_id, "Path": profile["Path"], "Roles": roles}


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::IAM::AccessKey": AccessKeyType,
    "AWS::IAM::Group": GroupType,
    "AWS::IAM::InstanceProfile": InstanceProfileType,
    "AWS::IAM::ManagedPolicy": ManagedPolicyType,
    "AWS::IAM::Policy": InlinePolicyType,
    "AWS::IAM::Role": RoleType,
    "AWS::IAM::RolePolicy": Row(
        service="iam",
        create="PutRolePolicy",
        delete="DeleteRolePolicy",
        keys=same_names("RoleName", "PolicyName"),
        params=same_names("PolicyDocument"),
        writers={"PolicyDocument": as_text},
        puts=True,
        id="{PolicyName}|{RoleName}",
    ),
    "AWS::IAM::User": UserType,
}
