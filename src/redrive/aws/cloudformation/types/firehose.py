"""Types of Amazon Data Firehose."""

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
    tag_list,
    without_absence,
)
from redrive.aws.cloudformation.types.tagging import Tagging
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
_TAGS: Final = Tagging(_SERVICE, "ListTagsForDeliveryStream", "TagDeliveryStream", "UntagDeliveryStream")


class DeliveryStream(ResourceType):
    """`AWS::KinesisFirehose::DeliveryStream`; its id is its name."""

    service = _SERVICE
    name_property = "DeliveryStreamName"
    name_chars_max = 64
    needs = "CreateDeliveryStream"

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        given = {name: value for name, value in wanted.properties.items() if name != "Tags"}
        given[self.name_property] = wanted.name
        if tags := wanted.all_tags():
            given["Tags"] = tag_list(tags)
        try:
            await ask(_SERVICE, "CreateDeliveryStream", **given)
        except AwsError as error:
            if not (wanted.again and error.code == "ResourceInUseException"):
                raise
        return _made(wanted, wanted.name)

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        name = wanted.physical_id
        shown = (await _described(ask, name))["DeliveryStreamDescription"]
        settings = wanted.properties.get(_EXTENDED) or wanted.properties.get(_PLAIN)
        if settings != (before.get(_EXTENDED) or before.get(_PLAIN)):
            await ask(
                _SERVICE,
                "UpdateDestination",
                DeliveryStreamName=name,
                CurrentDeliveryStreamVersionId=shown["VersionId"],
                DestinationId=shown["Destinations"][0]["DestinationId"],
                ExtendedS3DestinationUpdate={**_CLEARED, **(settings or {})},
            )
        await _encrypt(ask, name, before.get(_ENCRYPTION), wanted.properties.get(_ENCRYPTION))
        await _TAGS.set(ask, wanted.all_tags(), DeliveryStreamName=name)
        return _made(wanted, name)

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        named = {self.name_property: wanted.physical_id}
        await without_absence(ask(_SERVICE, "DeleteDeliveryStream", **named))

    @override
    async def read(self, ask: Ask, wanted: Wanted) -> Mapping[str, Any] | None:
        found = await without_absence(_described(ask, wanted.physical_id))
        if found is None:
            return None
        return pick(found["DeliveryStreamDescription"], "DeliveryStreamName", "DeliveryStreamType")


async def _described(ask: Ask, name: str) -> Mapping[str, Any]:
    return await ask(_SERVICE, "DescribeDeliveryStream", DeliveryStreamName=name)


async def _encrypt(ask: Ask, name: str, before: Any, after: Any) -> None:
    if before == after:
        return
    named = {"DeliveryStreamName": name}
    if after is None:
        await ask(_SERVICE, "StopDeliveryStreamEncryption", **named)
    else:
        await ask(_SERVICE, "StartDeliveryStreamEncryption", **named, **{_ENCRYPTION: after})


def _made(wanted: Wanted, name: str) -> Made:
    return Made(name, {"Arn": wanted.arn(_SERVICE, f"deliverystream/{name}")})


TYPES: Final[Mapping[str, Factory]] = {"AWS::KinesisFirehose::DeliveryStream": DeliveryStream}
