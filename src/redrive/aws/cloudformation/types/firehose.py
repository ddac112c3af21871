"""Types of Amazon Data Firehose."""

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
    tag_list,
    without_absence,
)
from redrive.aws.cloudformation.types.tagging import TagCalls
from redrive.aws.wire.errors import AwsError

_SERVICE: Final = "firehose"
_EXTENDED: Final = "ExtendedS3DestinationConfiguration"
_PLAIN: Final = "S3DestinationConfiguration"
_ENCRYPTION: Final = "DeliveryStreamEncryptionConfigurationInput"
# An update leaves alone what it does not name, and a template names all that there is.
_CLEARED: Final[Mapping[str, Any]] = {
    "Prefix": "",
    "ErrorOutputPrefix": "",
    "FileExtension": "",
    "CustomTimeZone": "UTC",
    "BufferingHints": {"SizeInMBs": 5, "IntervalInSeconds": 300},
    "CompressionFormat": "UNCOMPRESSED",
    "CloudWatchLoggingOptions": {"Enabled": False},
    "ProcessingConfiguration": {"Enabled": False},
}
_TAGS: Final = TagCalls(_SERVICE, "ListTagsForDeliveryStream", "TagDeliveryStream", "UntagDeliveryStream")


class DeliveryStreamType(ResourceType):
    """`AWS::KinesisFirehose::DeliveryStream`; its id is its name."""

    service = _SERVICE
    name_property = "DeliveryStreamName"
    name_chars_max = 64

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        params = {name: value for name, value in spec.properties.items() if name != "Tags"}
        params[self.name_property] = spec.name
        if tags := spec.all_tags():
            params["Tags"] = tag_list(tags)
        try:
            await ask(_SERVICE, "CreateDeliveryStream", **params)
        except AwsError as error:
            if not (spec.again and error.code == "ResourceInUseException"):
                raise
        return _state(spec, spec.name)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        name = spec.physical_id
        description = (await _described(ask, name))["DeliveryStreamDescription"]
        settings = spec.properties.get(_EXTENDED) or spec.properties.get(_PLAIN)
        if settings != (before.get(_EXTENDED) or before.get(_PLAIN)):
            await ask(
                _SERVICE,
                "UpdateDestination",
                DeliveryStreamName=name,
                CurrentDeliveryStreamVersionId=description["VersionId"],
                DestinationId=description["Destinations"][0]["DestinationId"],
                ExtendedS3DestinationUpdate={**_CLEARED, **(settings or {})},
            )
        await _encrypt(ask, name, before.get(_ENCRYPTION), spec.properties.get(_ENCRYPTION))
        await _TAGS.set(ask, spec.all_tags(), DeliveryStreamName=name)
        return _state(spec, name)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        identifiers = {self.name_property: spec.physical_id}
        await without_absence(ask(_SERVICE, "DeleteDeliveryStream", **identifiers))

    @override
    async def read(self, ask: Ask, spec: ResourceSpec) -> Mapping[str, Any] | None:
        answer = await without_absence(_described(ask, spec.physical_id))
        if answer is None:
            return None
        return pick(answer["DeliveryStreamDescription"], "DeliveryStreamName", "DeliveryStreamType")


async def _described(ask: Ask, name: str) -> Mapping[str, Any]:
    return await ask(_SERVICE, "DescribeDeliveryStream", DeliveryStreamName=name)


async def _encrypt(ask: Ask, name: str, before: Any, after: Any) -> None:
    if before == after:
        return
    identifiers = {"DeliveryStreamName": name}
    if after is None:
        await ask(_SERVICE, "StopDeliveryStreamEncryption", **identifiers)
    else:
        await ask(_SERVICE, "StartDeliveryStreamEncryption", **identifiers, **{_ENCRYPTION: after})


def _state(spec: ResourceSpec, name: str) -> ResourceState:
    return ResourceState(name, {"Arn": spec.arn(_SERVICE, f"deliverystream/{name}")})


TYPES: Final[Mapping[str, Factory]] = {"AWS::KinesisFirehose::DeliveryStream": DeliveryStreamType}
