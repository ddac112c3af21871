"""Types of AWS KMS."""

from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    Made,
    ResourceType,
    Wanted,
    as_text,
    changed_properties,
    pick,
    without_absence,
)
from redrive.aws.cloudformation.types.tagging import Tagging
from redrive.aws.wire.errors import AwsError

_WINDOW_DAYS: Final = 30
_MARK: Final = "redrive:stack-resource"  # by which a stack that was cut short finds the key that it made
_TAGGING: Final = Tagging(
    "kms", "ListResourceTags", "TagResource", "UntagResource", pair=("TagKey", "TagValue")
)


class Key(ResourceType):
    """`AWS::KMS::Key`; its id is what KMS gives it, and deleting it lets its waiting period begin."""

    service = "kms"
    name_chars_max = 0

    @override
    def replacing(self, changed: frozenset[str], before: Mapping[str, Any]) -> frozenset[str]:
        return changed & {"KeySpec", "KeyUsage", "Origin", "MultiRegion"}

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        if wanted.again and (found := await self.find(ask, wanted)):
            return await self._settled(ask, wanted, found)
        given = pick(wanted.properties, "Description", "KeyUsage", "KeySpec", "MultiRegion", "Origin")
        if "KeyPolicy" in wanted.properties:
            given["Policy"] = as_text(wanted.properties["KeyPolicy"])
        given["Tags"] = _TAGGING.written(_tags(wanted))
        made = await ask("kms", "CreateKey", **given)
        return await self._settled(ask, wanted, made["KeyMetadata"]["KeyId"])

    async def _settled(self, ask: Ask, wanted: Wanted, key: str) -> Made:
        if wanted.properties.get("EnableKeyRotation"):
            period = pick(wanted.properties, "RotationPeriodInDays")
            await ask("kms", "EnableKeyRotation", KeyId=key, **period)
        if wanted.properties.get("Enabled") is False:
            await ask("kms", "DisableKey", KeyId=key)
        return Made(key, {"Arn": wanted.arn("kms", f"key/{key}"), "KeyId": key})

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        key, given = wanted.physical_id, wanted.properties
        changed = changed_properties(before, given)
        if "Description" in changed:
            await ask("kms", "UpdateKeyDescription", KeyId=key, Description=given.get("Description", ""))
        if "KeyPolicy" in changed and "KeyPolicy" in given:
            await ask(
                "kms", "PutKeyPolicy", KeyId=key, PolicyName="default", Policy=as_text(given["KeyPolicy"])
            )
        if changed & {"EnableKeyRotation", "RotationPeriodInDays"}:
            if given.get("EnableKeyRotation"):
                await ask("kms", "EnableKeyRotation", KeyId=key, **pick(given, "RotationPeriodInDays"))
            else:
                await ask("kms", "DisableKeyRotation", KeyId=key)
        if "Enabled" in changed:
            await ask("kms", "DisableKey" if given.get("Enabled") is False else "EnableKey", KeyId=key)
        await _TAGGING.set(ask, _tags(wanted), KeyId=key)
        return Made(key, {"Arn": wanted.arn("kms", f"key/{key}"), "KeyId": key})

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        days = wanted.properties.get("PendingWindowInDays", _WINDOW_DAYS)
        params = {"KeyId": wanted.physical_id, "PendingWindowInDays": days}
        try:
            await without_absence(ask("kms", "ScheduleKeyDeletion", **params))
        except AwsError as error:
            if error.code != "KMSInvalidStateException":  # its waiting period has begun
                raise

    @override
    async def find(self, ask: Ask, wanted: Wanted) -> str:
        mark = f"{wanted.stack_id}/{wanted.logical_id}"[-256:]
        marker: dict[str, str] = {}
        while True:
            page = await ask("kms", "ListKeys", **marker)
            for key in page.get("Keys") or ():
                try:
                    found = await ask("kms", "ListResourceTags", KeyId=key["KeyId"])
                    shown = await ask("kms", "DescribeKey", KeyId=key["KeyId"])
                except AwsError:
                    continue
                marks = {tag["TagKey"]: tag["TagValue"] for tag in found.get("Tags") or ()}
                if marks.get(_MARK) == mark and shown["KeyMetadata"]["KeyState"] != "PendingDeletion":
                    return str(key["KeyId"])
            if not page.get("NextMarker"):
                return ""
            marker = {"Marker": page["NextMarker"]}


def _tags(wanted: Wanted) -> dict[str, str]:
    """The tags of a key, by one of which its stack finds it again."""
    tags = {**wanted.all_tags(), _MARK: f"{wanted.stack_id}/{wanted.logical_id}"}
    return {key: value[-256:] for key, value in tags.items()}


class Alias(ResourceType):
    """`AWS::KMS::Alias`; its id is its name."""

    service = "kms"
    name_property = "AliasName"

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        named = pick(wanted.properties, "AliasName", "TargetKeyId")
        try:
            await ask("kms", "CreateAlias", **named)
        except AwsError as error:
            if not (wanted.again and error.code == "AlreadyExistsException"):
                raise
        return Made(wanted.properties["AliasName"])

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        await ask("kms", "UpdateAlias", **pick(wanted.properties, "AliasName", "TargetKeyId"))
        return Made(wanted.physical_id)

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        await without_absence(ask("kms", "DeleteAlias", AliasName=wanted.physical_id))

    @override
    async def read(self, ask: Ask, wanted: Wanted) -> Mapping[str, Any] | None:
        found = await without_absence(ask("kms", "DescribeKey", KeyId=wanted.physical_id))
        if found is None:
            return None
        return {"AliasName": wanted.physical_id, "TargetKeyId": found["KeyMetadata"]["KeyId"]}


TYPES: Final[Mapping[str, Factory]] = {"AWS::KMS::Alias": Alias, "AWS::KMS::Key": Key}
