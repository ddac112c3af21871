"""Types of Amazon S3, of Data Firehose, which delivers to it, and of Systems Manager's parameters."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.cloudformation.types.calls import (
    Ask,
    ResourceSpec,
    ResourceState,
    TagCalls,
    already_exists,
    as_text,
    is_absent,
    pick,
    tag_list,
    tag_params,
    unless_created,
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
from redrive.aws.wire.errors import AwsError

# Supported properties of buckets. Some of them hold for every bucket here. Deployment tools ask for versions in buckets
# of code, whose objects are named after hashes of it: they never ask for a version.
_PROPERTIES: Final = frozenset(
    {
        *("BucketName", "Tags", "PublicAccessBlockConfiguration", "OwnershipControls"),
        *("BucketEncryption", "VersioningConfiguration", "NotificationConfiguration"),
    }
)
# Destinations of notifications: their names in the API, and in templates.
_DESTINATIONS: Final = {"LambdaFunction": "Lambda", "Queue": "Queue", "Topic": "Topic"}
# Supported members of a lifecycle rule: without versions they have no effect.
_RULE_MEMBERS: Final = frozenset(
    {
        *("Id", "Status", "Prefix", "NoncurrentVersionExpiration", "NoncurrentVersionExpirationInDays"),
        *("NoncurrentVersionTransition", "NoncurrentVersionTransitions", "AbortIncompleteMultipartUpload"),
    }
)


class BucketType(ResourceType):
    """`AWS::S3::Bucket`; its id is its name, which is unique on the server."""

    service, noun = "s3", "Bucket"
    name_property = "BucketName"
    keys: ClassVar[Parameters] = {"Bucket": ID}
    name_chars_max = 63
    lower_case = True

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        _refuse_unsupported(spec.properties)
        await self.refuse_existing(ask, spec, "HeadBucket", Bucket=spec.name)
        params: dict[str, Any] = {"Bucket": spec.name}
        if spec.stack.region != "us-east-1":
            params["CreateBucketConfiguration"] = {"LocationConstraint": spec.stack.region}
        try:
            await unless_created(ask("s3", "CreateBucket", **params), spec, "BucketAlreadyOwnedByYou")
        except AwsError as error:
            raise (already_exists(spec) if error.code == "BucketAlreadyExists" else error) from None
        if tags := spec.all_tags():
            await _set_tags(ask, spec.name, tags)
        if notifications := spec.properties.get("NotificationConfiguration"):
            await _set_notifications(ask, spec.name, notifications)
        return _bucket(spec, spec.name)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        _refuse_unsupported(spec.properties)
        tags = spec.all_tags()
        if tags or before.get("Tags"):
            await _set_tags(ask, spec.physical_id, tags)
        notifications = spec.properties.get("NotificationConfiguration") or {}
        if notifications != (before.get("NotificationConfiguration") or {}):
            await _set_notifications(ask, spec.physical_id, notifications)
        return _bucket(spec, spec.physical_id)

    @override
    async def read(self, ask: Ask, spec: ResourceSpec) -> Mapping[str, Any] | None:
        try:
            await ask("s3", "HeadBucket", Bucket=spec.physical_id)
        except AwsError as error:
            if is_absent(error) or error.status == 404:  # noqa: PLR2004 - Not Found
                return None
            raise
        return {"BucketName": spec.physical_id}


async def _set_tags(ask: Ask, bucket: str, tags: Mapping[str, str]) -> None:
    if tags:
        await ask("s3", "PutBucketTagging", Bucket=bucket, Tagging={"TagSet": tag_list(tags)})
    else:
        await ask("s3", "DeleteBucketTagging", Bucket=bucket)


async def _set_notifications(ask: Ask, bucket: str, notifications: Mapping[str, Any]) -> None:
    configuration: dict[str, Any] = {}
    for api_name, template_name in _DESTINATIONS.items():
        if rules := notifications.get(f"{template_name}Configurations"):
            notices = [_notification(rule, api_name, template_name) for rule in rules]
            configuration[f"{api_name}Configurations"] = notices
    if (notifications.get("EventBridgeConfiguration") or {}).get("EventBridgeEnabled"):
        configuration["EventBridgeConfiguration"] = {}
    params = {"Bucket": bucket, "NotificationConfiguration": configuration}
    await ask("s3", "PutBucketNotificationConfiguration", **params)


def _notification(rule: Mapping[str, Any], api_name: str, template_name: str) -> dict[str, Any]:
    """A template's rule as a configuration of S3's API; both name the kind of the destination."""
    destination = rule["Function" if template_name == "Lambda" else template_name]
    notification: dict[str, Any] = {f"{api_name}Arn": destination, "Events": [rule["Event"]]}
    if "Filter" in rule:
        rules = rule["Filter"]["S3Key"]["Rules"]
        notification["Filter"] = {"Key": {"FilterRules": [dict(each) for each in rules]}}
    return notification


def _refuse_unsupported(properties: Mapping[str, Any]) -> None:
    names = sorted(properties.keys() - _PROPERTIES - {"AccessControl", "LifecycleConfiguration"})
    if properties.get("AccessControl", "Private") != "Private":
        names.append("AccessControl")
    rules = (properties.get("LifecycleConfiguration") or {}).get("Rules") or ()
    names += sorted({key for rule in rules for key in rule} - _RULE_MEMBERS)
    if names:
        raise TemplateInvalid(f"Buckets of this server have no {', '.join(names)}.")


def _bucket(spec: ResourceSpec, name: str) -> ResourceState:
    region = spec.stack.region
    return ResourceState(
        name,
        {
            "Arn": f"arn:aws:s3:::{name}",
            "DomainName": f"{name}.s3.amazonaws.com",
            "DualStackDomainName": f"{name}.s3.dualstack.{region}.amazonaws.com",
            "RegionalDomainName": f"{name}.s3.{region}.amazonaws.com",
            "WebsiteURL": f"http://{name}.s3-website-{region}.amazonaws.com",
        },
    )


# ---- Data Firehose ---------------------------------------------------------------------------------------------

_EXTENDED: Final = "ExtendedS3DestinationConfiguration"
_PLAIN: Final = "S3DestinationConfiguration"
_ENCRYPTION: Final = "DeliveryStreamEncryptionConfigurationInput"
# For settings that a template no longer has: an update of a destination keeps those that it does not name.
_DESTINATION_DEFAULTS: Final[Mapping[str, Any]] = {
    "Prefix": "",
    "ErrorOutputPrefix": "",
    "FileExtension": "",
    "CustomTimeZone": "UTC",
    "BufferingHints": {"SizeInMBs": 5, "IntervalInSeconds": 300},
    "CompressionFormat": "UNCOMPRESSED",
    "CloudWatchLoggingOptions": {"Enabled": False},
    "ProcessingConfiguration": {"Enabled": False},
}
_STREAM_TAGS: Final = TagCalls(
    "firehose", "ListTagsForDeliveryStream", "TagDeliveryStream", "UntagDeliveryStream"
)


class DeliveryStreamType(ResourceType):
    """`AWS::KinesisFirehose::DeliveryStream`; its id is its name."""

    service, noun = "firehose", "DeliveryStream"
    name_property = "DeliveryStreamName"
    keys: ClassVar[Parameters] = {"DeliveryStreamName": ID}
    description = Description(
        "DescribeDeliveryStream", ("DeliveryStreamName", "DeliveryStreamType"), "DeliveryStreamDescription"
    )
    name_chars_max = 64

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        params = {name: value for name, value in spec.properties.items() if name != "Tags"}
        params |= {self.name_property: spec.name, **tag_params(spec)}
        await unless_created(
            ask("firehose", "CreateDeliveryStream", **params), spec, "ResourceInUseException"
        )
        return _stream(spec, spec.name)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        name = spec.physical_id
        answer = await ask("firehose", "DescribeDeliveryStream", DeliveryStreamName=name)
        description = answer["DeliveryStreamDescription"]
        settings = spec.properties.get(_EXTENDED) or spec.properties.get(_PLAIN)
        if settings != (before.get(_EXTENDED) or before.get(_PLAIN)):
            await ask(
                "firehose",
                "UpdateDestination",
                DeliveryStreamName=name,
                CurrentDeliveryStreamVersionId=description["VersionId"],
                DestinationId=description["Destinations"][0]["DestinationId"],
                ExtendedS3DestinationUpdate={**_DESTINATION_DEFAULTS, **(settings or {})},
            )
        await _encrypt(ask, name, before.get(_ENCRYPTION), spec.properties.get(_ENCRYPTION))
        await _STREAM_TAGS.set(ask, spec.all_tags(), DeliveryStreamName=name)
        return _stream(spec, name)


async def _encrypt(ask: Ask, name: str, before: Any, after: Any) -> None:
    """Start or stop the encryption of a delivery stream where the template changes it."""
    if before == after:
        return
    identifiers = {"DeliveryStreamName": name}
    if after is None:
        await ask("firehose", "StopDeliveryStreamEncryption", **identifiers)
    else:
        await ask("firehose", "StartDeliveryStreamEncryption", **identifiers, **{_ENCRYPTION: after})


def _stream(spec: ResourceSpec, name: str) -> ResourceState:
    return ResourceState(name, {"Arn": spec.arn("firehose", f"deliverystream/{name}")})


# ---- Systems Manager -------------------------------------------------------------------------------------------

_PARAMETER_TAGS: Final = TagCalls(
    "ssm", "ListTagsForResource", "AddTagsToResource", "RemoveTagsFromResource", list_member="TagList"
)


class ParameterType(ResourceType):
    """`AWS::SSM::Parameter`; its id is its name."""

    service, noun = "ssm", "Parameter"
    name_property = "Name"
    keys: ClassVar[Parameters] = {"Name": ID}
    description = Description("GetParameter", ("Name", "Type", "Value"), "Parameter")
    name_chars_max = 1011
    name_beginning = "CFN"

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        return await self._put(ask, spec, overwrites=spec.may_exist)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        return await self._put(ask, spec, overwrites=True)

    async def _put(self, ask: Ask, spec: ResourceSpec, *, overwrites: bool) -> ResourceState:
        name = spec.physical_id or spec.name
        params = pick(spec.properties, "Type", "Value", "Description", "AllowedPattern", "DataType")
        if not overwrites:
            params["Tags"] = tag_list(spec.all_tags())
        await ask("ssm", "PutParameter", Name=name, Overwrite=overwrites, **params)
        if overwrites:  # PutParameter takes tags only when it creates
            await _PARAMETER_TAGS.set(ask, spec.all_tags(), ResourceType="Parameter", ResourceId=name)
        path = name if name.startswith("/") else f"/{name}"
        arn = spec.arn("ssm", f"parameter{path}")
        return ResourceState(name, {"Arn": arn, **pick(spec.properties, "Type", "Value")})


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::KinesisFirehose::DeliveryStream": DeliveryStreamType,
    "AWS::S3::Bucket": BucketType,
    "AWS::S3::BucketPolicy": Row(
        service="s3",
        create="PutBucketPolicy",
        delete="DeleteBucketPolicy",
        keys=same_names("Bucket"),
        params={"Policy": "PolicyDocument"},
        writers={"Policy": as_text},
        puts=True,
        id="{Bucket}",
        name_chars_max=0,
    ),
    "AWS::SSM::Parameter": ParameterType,
}
