"""Types of AWS IAM."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    Made,
    PutResourceType,
    ResourceType,
    Wanted,
    as_text,
    is_absent,
    pick,
    refuse_existing,
    tag_list,
    without_absence,
)
from redrive.aws.cloudformation.types.tagging import Tagging
from redrive.aws.wire.errors import AwsError

_ROLE_TAGS: Final = Tagging("iam", "ListRoleTags", "TagRole", "UntagRole")
_USER_TAGS: Final = Tagging("iam", "ListUserTags", "TagUser", "UntagUser")


class _Holder(ResourceType):
    """A holder of policies; its id is its name.

    Attributes:
        kind: `Role`, `User`, `Group`.
    """

    service = "iam"
    kind: ClassVar[str]
    name_chars_max = 64

    async def _create(self, ask: Ask, wanted: Wanted, **params: Any) -> Mapping[str, Any]:
        name = f"{self.kind}Name"
        if name in wanted.properties:
            await refuse_existing(ask, wanted, "iam", f"Get{self.kind}", **{name: wanted.name})
        try:
            made = await ask("iam", f"Create{self.kind}", **{name: wanted.name}, **params)
        except AwsError as error:
            if not (wanted.again and error.query_code == "EntityAlreadyExists"):
                raise
            made = await ask("iam", f"Get{self.kind}", **{name: wanted.name})
        await self._bring_policies(ask, wanted.name, wanted.properties)
        found: Mapping[str, Any] = made[self.kind]
        return found

    async def _bring_policies(self, ask: Ask, name: str, properties: Mapping[str, Any]) -> None:
        """Attach and write the policies of the template."""
        named = {f"{self.kind}Name": name}
        for arn in properties.get("ManagedPolicyArns") or ():
            await ask("iam", f"Attach{self.kind}Policy", **named, PolicyArn=arn)
        for policy in properties.get("Policies") or ():
            text = as_text(policy["PolicyDocument"])
            await ask(
                "iam", f"Put{self.kind}Policy", **named, PolicyName=policy["PolicyName"], PolicyDocument=text
            )

    async def _update_policies(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> None:
        kept = {policy["PolicyName"] for policy in wanted.properties.get("Policies") or ()}
        for policy in before.get("Policies") or ():
            if policy["PolicyName"] not in kept:
                await self._drop(ask, wanted.physical_id, policy["PolicyName"])
        attached = wanted.properties.get("ManagedPolicyArns") or ()
        for arn in before.get("ManagedPolicyArns") or ():
            if arn not in attached:  # others may attach theirs, which stay
                named = {f"{self.kind}Name": wanted.physical_id, "PolicyArn": arn}
                await without_absence(ask("iam", f"Detach{self.kind}Policy", **named))
        await self._bring_policies(ask, wanted.physical_id, wanted.properties)

    async def _drop(self, ask: Ask, name: str, policy: str) -> None:
        params = {f"{self.kind}Name": name, "PolicyName": policy}
        await without_absence(ask("iam", f"Delete{self.kind}Policy", **params))

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        named = {f"{self.kind}Name": wanted.physical_id}
        try:
            attached = await ask("iam", f"ListAttached{self.kind}Policies", **named)
            for policy in attached.get("AttachedPolicies") or ():
                await ask("iam", f"Detach{self.kind}Policy", **named, PolicyArn=policy["PolicyArn"])
            for policy in wanted.properties.get("Policies") or ():
                await self._drop(ask, wanted.physical_id, policy["PolicyName"])
            await ask("iam", f"Delete{self.kind}", **named)
        except AwsError as error:
            if not is_absent(error):
                raise

    @override
    async def read(self, ask: Ask, wanted: Wanted) -> Mapping[str, Any] | None:
        found = await without_absence(
            ask("iam", f"Get{self.kind}", **{f"{self.kind}Name": wanted.physical_id})
        )
        if found is None:
            return None
        shown = found[self.kind]
        return {name: shown[name] for name in ("Path", "Description", "MaxSessionDuration") if name in shown}


class Role(_Holder):
    """`AWS::IAM::Role`."""

    kind = "Role"
    name_property = "RoleName"
    needs = "CreateRole"

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        given = pick(wanted.properties, "Description", "MaxSessionDuration", "Path", "PermissionsBoundary")
        given["AssumeRolePolicyDocument"] = as_text(wanted.properties["AssumeRolePolicyDocument"])
        if tags := wanted.all_tags():
            given["Tags"] = tag_list(tags)
        made = await self._create(ask, wanted, **given)
        return Made(made["RoleName"], {"Arn": made["Arn"], "RoleId": made["RoleId"]})

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        name, given = wanted.physical_id, wanted.properties
        trust = as_text(given["AssumeRolePolicyDocument"])
        await ask("iam", "UpdateAssumeRolePolicy", RoleName=name, PolicyDocument=trust)
        settings = {
            "Description": "",
            "MaxSessionDuration": 3600,
            **pick(given, "Description", "MaxSessionDuration"),
        }
        await ask("iam", "UpdateRole", RoleName=name, **settings)
        if before.get("PermissionsBoundary") != given.get("PermissionsBoundary"):
            boundary = given.get("PermissionsBoundary")
            if boundary:
                await ask("iam", "PutRolePermissionsBoundary", RoleName=name, PermissionsBoundary=boundary)
            else:
                await ask("iam", "DeleteRolePermissionsBoundary", RoleName=name)
        await self._update_policies(ask, wanted, before)
        await _ROLE_TAGS.set(ask, wanted.all_tags(), RoleName=wanted.physical_id)
        found = (await ask("iam", "GetRole", RoleName=name))["Role"]
        return Made(name, {"Arn": found["Arn"], "RoleId": found["RoleId"]})


class User(_Holder):
    """`AWS::IAM::User`."""

    kind = "User"
    name_property = "UserName"
    needs = "CreateUser"

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        given = pick(wanted.properties, "Path", "PermissionsBoundary")
        if tags := wanted.all_tags():
            given["Tags"] = tag_list(tags)
        made = await self._create(ask, wanted, **given)
        for group in wanted.properties.get("Groups") or ():
            await ask("iam", "AddUserToGroup", GroupName=group, UserName=wanted.name)
        return Made(made["UserName"], {"Arn": made["Arn"]})

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        name = wanted.physical_id
        old, new = set(before.get("Groups") or ()), set(wanted.properties.get("Groups") or ())
        for group in sorted(new - old):
            await ask("iam", "AddUserToGroup", GroupName=group, UserName=name)
        for group in sorted(old - new):
            await without_absence(ask("iam", "RemoveUserFromGroup", GroupName=group, UserName=name))
        await self._update_policies(ask, wanted, before)
        await _USER_TAGS.set(ask, wanted.all_tags(), UserName=wanted.physical_id)
        found = (await ask("iam", "GetUser", UserName=name))["User"]
        return Made(name, {"Arn": found["Arn"]})

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        for group in wanted.properties.get("Groups") or ():
            params = {"GroupName": group, "UserName": wanted.physical_id}
            await without_absence(ask("iam", "RemoveUserFromGroup", **params))
        await super().delete(ask, wanted)


class Group(_Holder):
    """`AWS::IAM::Group`."""

    kind = "Group"
    name_property = "GroupName"
    name_chars_max = 128
    needs = "CreateGroup"

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        made = await self._create(ask, wanted, **pick(wanted.properties, "Path"))
        return Made(made["GroupName"], {"Arn": made["Arn"]})

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        await self._update_policies(ask, wanted, before)
        found = (await ask("iam", "GetGroup", GroupName=wanted.physical_id))["Group"]
        return Made(wanted.physical_id, {"Arn": found["Arn"]})


# ---- policies --------------------------------------------------------------------------------------------------------

_KINDS: Final = (("Roles", "Role"), ("Users", "User"), ("Groups", "Group"))


def _holders(properties: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The kind and the name of each holder that a policy is for."""
    return [(kind, name) for member, kind in _KINDS for name in properties.get(member) or ()]


class InlinePolicy(ResourceType):
    """`AWS::IAM::Policy`: written into roles, users and groups; its id is its name."""

    service = "iam"
    needs = "PutRolePolicy"

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        name, text = wanted.properties["PolicyName"], as_text(wanted.properties["PolicyDocument"])
        for kind, holder in _holders(wanted.properties):
            named = {f"{kind}Name": holder}
            await ask("iam", f"Put{kind}Policy", **named, PolicyName=name, PolicyDocument=text)
        return Made(name, {"Id": wanted.name})

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        same_name = before["PolicyName"] == wanted.properties["PolicyName"]
        kept = _holders(wanted.properties) if same_name else []
        await self._drop(ask, before, [holder for holder in _holders(before) if holder not in kept])
        return await self.create(ask, wanted)

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        await self._drop(ask, wanted.properties, _holders(wanted.properties))

    async def _drop(self, ask: Ask, properties: Mapping[str, Any], holders: list[tuple[str, str]]) -> None:
        for kind, holder in holders:
            params = {f"{kind}Name": holder, "PolicyName": properties["PolicyName"]}
            await without_absence(ask("iam", f"Delete{kind}Policy", **params))


class RolePolicy(PutResourceType):
    """`AWS::IAM::RolePolicy`: written into a single role."""

    service = "iam"
    needs = "PutRolePolicy"

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        named = pick(wanted.properties, "RoleName", "PolicyName")
        text = as_text(wanted.properties.get("PolicyDocument", {}))
        await ask("iam", "PutRolePolicy", **named, PolicyDocument=text)
        return Made(f"{named['PolicyName']}|{named['RoleName']}")

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        await without_absence(
            ask("iam", "DeleteRolePolicy", **pick(wanted.properties, "RoleName", "PolicyName"))
        )


class ManagedPolicy(ResourceType):
    """`AWS::IAM::ManagedPolicy`; its id is its ARN."""

    service = "iam"
    name_property = "ManagedPolicyName"
    name_chars_max = 128
    needs = "CreatePolicy"

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        given = pick(wanted.properties, "Path", "Description")
        text = as_text(wanted.properties["PolicyDocument"])
        try:
            await ask("iam", "CreatePolicy", PolicyName=wanted.name, PolicyDocument=text, **given)
        except AwsError as error:
            if not (wanted.again and error.query_code == "EntityAlreadyExists"):
                raise
        arn = await self.find(ask, wanted)
        for kind, holder in _holders(wanted.properties):
            await ask("iam", f"Attach{kind}Policy", **{f"{kind}Name": holder}, PolicyArn=arn)
        return await self._made(ask, arn)

    @override
    async def find(self, ask: Ask, wanted: Wanted) -> str:
        path = wanted.properties.get("Path", "/")
        return f"arn:aws:iam::{wanted.stack.account}:policy{path}{wanted.name}"

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        arn = wanted.physical_id
        if before["PolicyDocument"] != wanted.properties["PolicyDocument"]:
            await self._bring_version(ask, arn, as_text(wanted.properties["PolicyDocument"]))
        old, new = _holders(before), _holders(wanted.properties)
        for kind, holder in new:
            await ask("iam", f"Attach{kind}Policy", **{f"{kind}Name": holder}, PolicyArn=arn)
        await self._detach(ask, arn, [holder for holder in old if holder not in new])
        return await self._made(ask, arn)

    async def _bring_version(self, ask: Ask, arn: str, text: str) -> None:
        """Make the document the policy's only version."""
        made = await ask("iam", "CreatePolicyVersion", PolicyArn=arn, PolicyDocument=text, SetAsDefault=True)
        current = made["PolicyVersion"]["VersionId"]
        await self._drop_versions(ask, arn, current)

    async def _drop_versions(self, ask: Ask, arn: str, current: str = "") -> None:
        found = await ask("iam", "ListPolicyVersions", PolicyArn=arn)
        for version in found.get("Versions") or ():
            if version["VersionId"] != current and not version["IsDefaultVersion"]:
                await ask("iam", "DeletePolicyVersion", PolicyArn=arn, VersionId=version["VersionId"])

    async def _detach(self, ask: Ask, arn: str, holders: list[tuple[str, str]]) -> None:
        for kind, holder in holders:
            params = {f"{kind}Name": holder, "PolicyArn": arn}
            await without_absence(ask("iam", f"Detach{kind}Policy", **params))

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        arn = wanted.physical_id
        await self._detach(ask, arn, _holders(wanted.properties))
        try:
            await self._drop_versions(ask, arn)
            await ask("iam", "DeletePolicy", PolicyArn=arn)
        except AwsError as error:
            if not is_absent(error):
                raise

    async def _made(self, ask: Ask, arn: str) -> Made:
        found = (await ask("iam", "GetPolicy", PolicyArn=arn))["Policy"]
        shown = pick(found, "PolicyId", "AttachmentCount", "DefaultVersionId", "IsAttachable")
        return Made(arn, {"PolicyArn": arn, **shown})


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::IAM::Group": Group,
    "AWS::IAM::ManagedPolicy": ManagedPolicy,
    "AWS::IAM::Policy": InlinePolicy,
    "AWS::IAM::Role": Role,
    "AWS::IAM::RolePolicy": RolePolicy,
    "AWS::IAM::User": User,
}
