"""Types of AWS IAM by which programs and machines come to be somebody: access keys and instance profiles."""

from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    ResourceSpec,
    ResourceState,
    ResourceType,
    pick,
    refuse_existing,
    without_absence,
)
from redrive.aws.wire.errors import AwsError

_SECRET: Final = "SecretAccessKey"  # noqa: S105 - an attribute's name


class AccessKeyType(ResourceType):
    """`AWS::IAM::AccessKey`; its id is the key's, and its secret is told once: to the stack."""

    service = "iam"
    name_chars_max = 0

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
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        identifiers = {"UserName": spec.properties["UserName"], "AccessKeyId": spec.physical_id}
        await without_absence(ask("iam", "DeleteAccessKey", **identifiers))

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        return ""  # IAM chooses a key's id, and tells its secret only to the call that creates it


class InstanceProfileType(ResourceType):
    """`AWS::IAM::InstanceProfile`; its id is its name."""

    service = "iam"
    name_property = "InstanceProfileName"
    name_chars_max = 128

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        identifiers = {self.name_property: spec.name}
        if self.name_property in spec.properties:
            await refuse_existing(ask, spec, "iam", "GetInstanceProfile", **identifiers)
        try:
            await ask("iam", "CreateInstanceProfile", **identifiers, **pick(spec.properties, "Path"))
        except AwsError as error:
            if not (spec.again and error.query_code == "EntityAlreadyExists"):
                raise
        return await self._bring_roles(ask, spec, spec.name)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        return await self._bring_roles(ask, spec, spec.physical_id)

    async def _bring_roles(self, ask: Ask, spec: ResourceSpec, name: str) -> ResourceState:
        identifiers = {self.name_property: name}
        profile = (await ask("iam", "GetInstanceProfile", **identifiers))["InstanceProfile"]
        had, roles = [role["RoleName"] for role in profile["Roles"]], spec.properties["Roles"]
        for role in had:
            if role not in roles:
                await ask("iam", "RemoveRoleFromInstanceProfile", **identifiers, RoleName=role)
        for role in roles:
            if role not in had:
                await ask("iam", "AddRoleToInstanceProfile", **identifiers, RoleName=role)
        return ResourceState(name, {"Arn": profile["Arn"]})

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        identifiers = {self.name_property: spec.physical_id}
        answer = await without_absence(ask("iam", "GetInstanceProfile", **identifiers))
        if answer is None:
            return
        for role in answer["InstanceProfile"]["Roles"]:
            removed = ask("iam", "RemoveRoleFromInstanceProfile", **identifiers, RoleName=role["RoleName"])
            await without_absence(removed)
        await without_absence(ask("iam", "DeleteInstanceProfile", **identifiers))

    @override
    async def read(self, ask: Ask, spec: ResourceSpec) -> Mapping[str, Any] | None:
        identifiers = {self.name_property: spec.physical_id}
        answer = await without_absence(ask("iam", "GetInstanceProfile", **identifiers))
        if answer is None:
            return None
        profile = answer["InstanceProfile"]
        roles = [role["RoleName"] for role in profile["Roles"]]
        return {self.name_property: spec.physical_id, "Path": profile["Path"], "Roles": roles}


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::IAM::AccessKey": AccessKeyType,
    "AWS::IAM::InstanceProfile": InstanceProfileType,
}
