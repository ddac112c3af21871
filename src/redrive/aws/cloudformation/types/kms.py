"""Types of AWS KMS."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.calls import (
    Ask,
    ResourceSpec,
    ResourceState,
    TagCalls,
    as_text,
    changed_properties,
    pick,
    unless_created,
    without_absence,
)
from redrive.aws.cloudformation.types.resource_type import ID, Factory, Parameters, ResourceType
from redrive.aws.wire.errors import AwsError

_WINDOW_DAYS: Final = 30
_MARK: Final = "redrive:stack-resource"  # by which an interrupted stack finds the key that it created
_TAGGING: Final = TagCalls(
    "kms", "ListResourceTags", "TagResource", "UntagResource", pair=("TagKey", "TagValue")
)


class KeyType(ResourceType):
    """`AWS::KMS::Key`; KMS chooses its id, and its deletion starts its waiting period."""

    service = "kms"
    name_chars_max = 0

    @override
    def create_only_names(self, changed_names: frozenset[str], before: Mapping[str, Any]) -> frozenset[str]:
        return changed_names & {"KeySpec", "KeyUsage", "Origin", "MultiRegion"}

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        if spec.may_exist and (key_id := await self.find(ask, spec)):
            return await self._configure(ask, spec, key_id)
        params = pick(spec.properties, "Description", "KeyUsage", "KeySpec", "MultiRegion", "Origin")
        if "KeyPolicy" in spec.properties:
            params["Policy"] = as_text(spec.properties["KeyPolicy"])
        params["Tags"] = _TAGGING.as_parameter(_tags(spec))
        answer = await ask("kms", "CreateKey", **params)
        return await self._configure(ask, spec, answer["KeyMetadata"]["KeyId"])

    async def _configure(self, ask: Ask, spec: ResourceSpec, key: str) -> ResourceState:
        if spec.properties.get("EnableKeyRotation"):
            period = pick(spec.properties, "RotationPeriodInDays")
            await ask("kms", "EnableKeyRotation", KeyId=key, **period)
        if spec.properties.get("Enabled") is False:
            await ask("kms", "DisableKey", KeyId=key)
        return ResourceState(key, {"Arn": spec.arn("kms", f"key/{key}"), "KeyId": key})

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        key, properties = spec.physical_id, spec.properties
        changed_names = changed_properties(before, properties)
        if "Description" in changed_names:
            await ask("kms", "UpdateKeyDescription", KeyId=key, Description=properties.get("Description", ""))
        if "KeyPolicy" in changed_names and "KeyPolicy" in properties:
            policy = {"PolicyName": "default", "Policy": as_text(properties["KeyPolicy"])}
            await ask("kms", "PutKeyPolicy", KeyId=key, **policy)
        if changed_names & {"EnableKeyRotation", "RotationPeriodInDays"}:
            if properties.get("EnableKeyRotation"):
                await ask("kms", "EnableKeyRotation", KeyId=key, **pick(properties, "RotationPeriodInDays"))
            else:
                await ask("kms", "DisableKeyRotation", KeyId=key)
        if "Enabled" in changed_names:
            await ask("kms", "DisableKey" if properties.get("Enabled") is False else "EnableKey", KeyId=key)
        await _TAGGING.set(ask, _tags(spec), KeyId=key)
        return ResourceState(key, {"Arn": spec.arn("kms", f"key/{key}"), "KeyId": key})

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        days = spec.properties.get("PendingWindowInDays", _WINDOW_DAYS)
        params = {"KeyId": spec.physical_id, "PendingWindowInDays": days}
        try:
            await without_absence(ask("kms", "ScheduleKeyDeletion", **params))
        except AwsError as error:
            if error.code != "KMSInvalidStateException":  # its waiting period has begun already
                raise

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        """The id of the key that an interrupted step created, by a tag that marks it; empty: it created none."""
        mark = _tags(spec)[_MARK]
        page_params: dict[str, str] = {}
        while True:
            page = await ask("kms", "ListKeys", **page_params)
            for key in page.get("Keys") or ():
                try:
                    answer = await ask("kms", "ListResourceTags", KeyId=key["KeyId"])
                    description = await ask("kms", "DescribeKey", KeyId=key["KeyId"])
                except AwsError:  # a key that the stack may not read is not its own
                    continue
                tags = {tag["TagKey"]: tag["TagValue"] for tag in answer.get("Tags") or ()}
                if tags.get(_MARK) == mark and description["KeyMetadata"]["KeyState"] != "PendingDeletion":
                    return str(key["KeyId"])
            if not page.get("NextMarker"):
                return ""
            page_params = {"Marker": page["NextMarker"]}


def _tags(spec: ResourceSpec) -> dict[str, str]:
    """The tags of a key; its stack finds it again by one of them."""
    tags = {**spec.all_tags(), _MARK: f"{spec.stack_id}/{spec.logical_id}"}
    return {key: value[-256:] for key, value in tags.items()}


class KeyAliasType(ResourceType):
    """`AWS::KMS::Alias`; its id is its name."""

    service, noun = "kms", "Alias"
    name_property = "AliasName"
    keys: ClassVar[Parameters] = {"AliasName": ID}

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        params = pick(spec.properties, "AliasName", "TargetKeyId")
        await unless_created(ask("kms", "CreateAlias", **params), spec, "AlreadyExistsException")
        return ResourceState(spec.properties["AliasName"])

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        await ask("kms", "UpdateAlias", **pick(spec.properties, "AliasName", "TargetKeyId"))
        return ResourceState(spec.physical_id)

    @override
    async def read(self, ask: Ask, spec: ResourceSpec) -> Mapping[str, Any] | None:
        answer = await without_absence(ask("kms", "DescribeKey", KeyId=spec.physical_id))
        if answer is None:
            return None
        return {"AliasName": spec.physical_id, "TargetKeyId": answer["KeyMetadata"]["KeyId"]}


TYPES: Final[Mapping[str, Factory]] = {"AWS::KMS::Alias": KeyAliasType, "AWS::KMS::Key": KeyType}
