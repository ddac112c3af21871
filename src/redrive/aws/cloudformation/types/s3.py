"""Types of Amazon S3."""

from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    ResourceSpec,
    ResourceState,
    ResourceType,
    already_exists,
    is_absent,
    refuse_existing,
    tag_list,
    without_absence,
)
from redrive.aws.wire.errors import AwsError

# Every bucket here is so, whatever a template says of it. Deployment tools ask for encryption and versions of the buckets
# that they keep code in, under names that are hashes of it: they never ask for a version, so its absence changes nothing.
_GIVEN: Final = frozenset(
    {
        *("BucketName", "Tags", "PublicAccessBlockConfiguration", "OwnershipControls"),
        *("BucketEncryption", "VersioningConfiguration", "NotificationConfiguration"),
    }
)
# Destinations of notifications: what the API calls them, and templates.
_DESTINATIONS: Final = {"LambdaFunction": "Lambda", "Queue": "Queue", "Topic": "Topic"}
# What a rule of a life cycle may say where there are no versions: that changes nothing either.
_OF_VERSIONS: Final = frozenset(
    {
        *("Id", "Status", "Prefix", "NoncurrentVersionExpiration", "NoncurrentVersionExpirationInDays"),
        *("NoncurrentVersionTransition", "NoncurrentVersionTransitions", "AbortIncompleteMultipartUpload"),
    }
)


class BucketType(ResourceType):
    """`AWS::S3::Bucket`; its id is its name, which is unique on the server."""

    service = "s3"
    name_property = "BucketName"
    name_chars_max = 63
    lower_case = True

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        _refuse_others(spec.properties)
        if self.name_property in spec.properties:
            await refuse_existing(ask, spec, "s3", "HeadBucket", Bucket=spec.name)
        params: dict[str, Any] = {"Bucket": spec.name}
        if spec.stack.region != "us-east-1":
            params["CreateBucketConfiguration"] = {"LocationConstraint": spec.stack.region}
        try:
            await ask("s3", "CreateBucket", **params)
        except AwsError as error:
            if error.code == "BucketAlreadyExists":
                raise already_exists(spec) from None
            if not (spec.again and error.code == "BucketAlreadyOwnedByYou"):
                raise
        if tags := spec.all_tags():
            await _set_tags(ask, spec.name, tags)
        if notifications := spec.properties.get("NotificationConfiguration"):
            await _set_notifications(ask, spec.name, notifications)
        return _state(spec, spec.name)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        _refuse_others(spec.properties)
        tags = spec.all_tags()
        if tags or before.get("Tags"):
            await _set_tags(ask, spec.physical_id, tags)
        notifications = spec.properties.get("NotificationConfiguration") or {}
        if notifications != (before.get("NotificationConfiguration") or {}):
            await _set_notifications(ask, spec.physical_id, notifications)
        return _state(spec, spec.physical_id)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        await without_absence(ask("s3", "DeleteBucket", Bucket=spec.physical_id))

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
    configuration: dict[str, Any] = {
        f"{api}Configurations": [_notification(each, api, property_) for each in rules]
        for api, property_ in _DESTINATIONS.items()
        if (rules := notifications.get(f"{property_}Configurations"))
    }
    if (notifications.get("EventBridgeConfiguration") or {}).get("EventBridgeEnabled"):
        configuration["EventBridgeConfiguration"] = {}
    params = {"Bucket": bucket, "NotificationConfiguration": configuration}
    await ask("s3", "PutBucketNotificationConfiguration", **params)


def _notification(rule: Mapping[str, Any], api: str, property_: str) -> dict[str, Any]:
    destination = rule["Function" if property_ == "Lambda" else property_]
    notification: dict[str, Any] = {f"{api}Arn": destination, "Events": [rule["Event"]]}
    if "Filter" in rule:
        rules = rule["Filter"]["S3Key"]["Rules"]
        notification["Filter"] = {"Key": {"FilterRules": [dict(each) for each in rules]}}
    return notification


def _refuse_others(properties: Mapping[str, Any]) -> None:
    others = sorted(properties.keys() - _GIVEN - {"AccessControl", "LifecycleConfiguration"})
    if properties.get("AccessControl", "Private") != "Private":
        others.append("AccessControl")
    rules = (properties.get("LifecycleConfiguration") or {}).get("Rules") or ()
    others += sorted({key for rule in rules for key in rule} - _OF_VERSIONS)
    if others:
        raise TemplateInvalid(f"Buckets of this server have no {', '.join(others)}.")


def _state(spec: ResourceSpec, name: str) -> ResourceState:
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


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::S3::Bucket": BucketType,
}
