"""Types of AWS IAM by which programs and machines come to be somebody: access keys and instance profiles."""

from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    Made,
    ResourceType,
    Wanted,
    pick,
    refuse_existing,
    without_absence,
)
from redrive.aws.wire.errors import AwsError

_SECRET: Final = "SecretAccessKey"  # noqa: S105 - an attribute's name


class AccessKey(ResourceType):
    """`AWS::IAM::AccessKey`; its id is the key's, and its secret is told once: to the stack."""

    service = "iam"
    name_chars_max = 0
    needs = "CreateAccessKey"

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        user = wanted.properties["UserName"]
        made = (await ask("iam", "CreateAccessKey", UserName=user))["AccessKey"]
        await self._set_status(ask, wanted, made["AccessKeyId"], "Active")
        return Made(made["AccessKeyId"], {_SECRET: made[_SECRET]})

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        await self._set_status(ask, wanted, wanted.physical_id, before.get("Status", "Active"))
        return Made(wanted.physical_id, pick(wanted.attributes, _SECRET))

    async def _set_status(self, ask: Ask, wanted: Wanted, key: str, before: str) -> None:
        status = wanted.properties.get("Status", "Active")
        if status != before:
            user = wanted.properties["UserName"]
            await ask("iam", "UpdateAccessKey", UserName=user, AccessKeyId=key, Status=status)

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        named = {"UserName": wanted.properties["UserName"], "AccessKeyId": wanted.physical_id}
        await without_absence(ask("iam", "DeleteAccessKey", **named))

    @override
    async def find(self, ask: Ask, wanted: Wanted) -> str:
        return ""  # IAM chooses a key's id, and tells its secret only to the call that creates it


class InstanceProfile(ResourceType):
    """`AWS::IAM::InstanceProfile`; its id is its name."""

    service = "iam"
    name_property = "InstanceProfileName"
    name_chars_max = 128
    needs = "CreateInstanceProfile"

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        named = {self.name_property: wanted.name}
        if self.name_property in wanted.properties:
            await refuse_existing(ask, wanted, "iam", "GetInstanceProfile", **named)
        try:
            await ask("iam", "CreateInstanceProfile", **named, **pick(wanted.properties, "Path"))
        except AwsError as error:
            if not (wanted.again and error.query_code == "EntityAlreadyExists"):
                raise
        return await self._bring_roles(ask, wanted, wanted.name)

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        return await self._bring_roles(ask, wanted, wanted.physical_id)

    async def _bring_roles(self, ask: Ask, wanted: Wanted, name: str) -> Made:
        named = {self.name_property: name}
        found = (await ask("iam", "GetInstanceProfile", **named))["InstanceProfile"]
        had, roles = [role["RoleName"] for role in found["Roles"]], wanted.properties["Roles"]
        for role in had:
            if role not in roles:
                await ask("iam", "RemoveRoleFromInstanceProfile", **named, RoleName=role)
        for role in roles:
            if role not in had:
                await ask("iam", "AddRoleToInstanceProfile", **named, RoleName=role)
        return Made(name, {"Arn": found["Arn"]})

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        named = {self.name_property: wanted.physical_id}
        found = await without_absence(ask("iam", "GetInstanceProfile", **named))
        if found is None:
            return
        for role in found["InstanceProfile"]["Roles"]:
            removed = ask("iam", "RemoveRoleFromInstanceProfile", **named, RoleName=role["RoleName"])
            await without_absence(removed)
        await without_absence(ask("iam", "DeleteInstanceProfile", **named))

    @override
    async def read(self, ask: Ask, wanted: Wanted) -> Mapping[str, Any] | None:
        named = {self.name_property: wanted.physical_id}
        found = await without_absence(ask("iam", "GetInstanceProfile", **named))
        if found is None:
            return None
        profile = found["InstanceProfile"]
        roles = [role["RoleName"] for role in profile["Roles"]]
        return {self.name_property: wanted.physical_id, "Path": profile["Path"], "Roles": roles}


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::IAM::AccessKey": AccessKey,
    "AWS::IAM::InstanceProfile": InstanceProfile,
}
