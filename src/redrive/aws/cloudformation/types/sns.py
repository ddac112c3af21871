"""Types of Amazon SNS."""

import json
from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.calls import (
    Ask,
    ResourceSpec,
    ResourceState,
    TagCalls,
    as_text,
    changed_properties,
    pick,
    tag_list,
    without_absence,
)
from redrive.aws.cloudformation.types.resource_type import Description, Factory, HeldPolicyType, ResourceType
from redrive.aws.wire.arn import parse_arn

_ARCHIVE: Final = "ArchivePolicy"
_TOPIC_DEFAULTS: Final[Mapping[str, str]] = {
    _ARCHIVE: "{}",
    "ContentBasedDeduplication": "false",
    "DisplayName": "",
    "FifoThroughputScope": "Topic",
    "KmsMasterKeyId": "",
    "SignatureVersion": "1",
    "TracingConfig": "PassThrough",
}
_LOG_PREFIXES: Final[Mapping[str, str]] = {
    "http": "HTTP",
    "http/s": "HTTP",
    "https": "HTTP",
    "sqs": "SQS",
    "lambda": "Lambda",
    "firehose": "Firehose",
    "application": "Application",
}
_FEEDBACK: Final = ("SuccessFeedbackRoleArn", "FailureFeedbackRoleArn", "SuccessFeedbackSampleRate")
_ACTIONS: Final = (
    *("GetTopicAttributes", "SetTopicAttributes", "AddPermission", "RemovePermission", "DeleteTopic"),
    *("Subscribe", "ListSubscriptionsByTopic", "Publish"),
)
_TAGS: Final = TagCalls("sns", "ListTagsForResource", "TagResource", "UntagResource")


class TopicType(ResourceType):
    """`AWS::SNS::Topic`; its id is its ARN, and it may have subscriptions of its own."""

    service = "sns"
    name_property = "TopicName"
    name_chars_max = 256
    description = Description("GetTopicAttributes", member="Attributes", is_text=True)

    @override
    def suffix(self, properties: Mapping[str, Any]) -> str:
        return ".fifo" if properties.get("FifoTopic") else ""

    @override
    def identifiers(self, spec: ResourceSpec) -> dict[str, Any]:
        return {"TopicArn": _topic_arn(spec)}

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        arn = _topic_arn(spec)
        await self.refuse_existing(ask, spec, "GetTopicAttributes", TopicArn=arn)
        attributes = _topic_attributes(spec.properties)
        if spec.properties.get("FifoTopic"):
            attributes["FifoTopic"] = "true"
        protection = spec.properties.get("DataProtectionPolicy")
        params: dict[str, Any] = {"Name": spec.name, "Attributes": attributes}
        params["Tags"] = tag_list(spec.all_tags())
        if protection is not None:
            params["DataProtectionPolicy"] = as_text(protection)
        await ask("sns", "CreateTopic", **params)
        for endpoint in spec.properties.get("Subscription") or ():
            await ask("sns", "Subscribe", TopicArn=arn, **_endpoint(endpoint))
        return _topic_state(spec)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        arn = _topic_arn(spec)
        old, new = _topic_attributes(before), _topic_attributes(spec.properties)
        for name in sorted(changed_properties(old, new)):
            value = new.get(name, _TOPIC_DEFAULTS.get(name, ""))
            await ask("sns", "SetTopicAttributes", TopicArn=arn, AttributeName=name, AttributeValue=value)
        if before.get("DataProtectionPolicy") != spec.properties.get("DataProtectionPolicy"):
            policy = as_text(spec.properties.get("DataProtectionPolicy", ""))
            await ask("sns", "PutDataProtectionPolicy", ResourceArn=arn, DataProtectionPolicy=policy)
        await _update_subscriptions(ask, arn, before, spec.properties)
        await _TAGS.set(ask, spec.all_tags(), ResourceArn=arn)
        return _topic_state(spec)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        arn = _topic_arn(spec)
        if spec.properties.get("ArchivePolicy"):
            no_archive = {"AttributeName": "ArchivePolicy", "AttributeValue": "{}"}  # else it is not deleted
            await without_absence(ask("sns", "SetTopicAttributes", TopicArn=arn, **no_archive))
        await without_absence(ask("sns", "DeleteTopic", TopicArn=arn))

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        return _topic_arn(spec)


def _topic_attributes(properties: Mapping[str, Any]) -> dict[str, str]:
    attributes = {
        name: as_text(properties[name])
        for name in (*_TOPIC_DEFAULTS, "MaximumMessageSize", "DeliveryPolicy")
        if name in properties
    }
    archive = properties.get(_ARCHIVE)
    if isinstance(archive, Mapping):  # whose numbers are texts (recorded)
        attributes[_ARCHIVE] = as_text({name: as_text(value) for name, value in archive.items()})
    for logging in properties.get("DeliveryStatusLogging") or ():
        protocol = _LOG_PREFIXES.get(logging["Protocol"], logging["Protocol"])
        attributes |= {f"{protocol}{name}": as_text(logging[name]) for name in _FEEDBACK if name in logging}
    return attributes


def _endpoint(subscription: Mapping[str, Any]) -> dict[str, str]:
    return {"Protocol": subscription["Protocol"], "Endpoint": subscription.get("Endpoint", "")}


async def _update_subscriptions(
    ask: Ask, arn: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    old = [_endpoint(subscription) for subscription in before.get("Subscription") or ()]
    new = [_endpoint(subscription) for subscription in after.get("Subscription") or ()]
    for endpoint in new:
        if endpoint not in old:
            await ask("sns", "Subscribe", TopicArn=arn, **endpoint)
    for endpoint in old:
        if endpoint not in new and (subscription_arn := await _subscription(ask, arn, endpoint)):
            await ask("sns", "Unsubscribe", SubscriptionArn=subscription_arn)


async def _subscription(ask: Ask, arn: str, endpoint: Mapping[str, str], region: str = "") -> str:
    """The ARN of the subscription of an endpoint; empty: there is none, or it is unconfirmed and has no ARN."""
    token: dict[str, str] = {}
    while True:
        page = await ask("sns", "ListSubscriptionsByTopic", in_region=region, TopicArn=arn, **token)
        for subscription in page.get("Subscriptions") or ():
            if all(subscription.get(name) == value for name, value in endpoint.items()):
                subscription_arn: str = subscription["SubscriptionArn"]
                return subscription_arn if subscription_arn.startswith("arn:") else ""
        if not page.get("NextToken"):
            return ""
        token = {"NextToken": page["NextToken"]}


def _topic_arn(spec: ResourceSpec) -> str:
    return spec.physical_id or spec.arn("sns", spec.name)


def _topic_state(spec: ResourceSpec) -> ResourceState:
    arn = _topic_arn(spec)
    return ResourceState(arn, {"TopicArn": arn, "TopicName": arn.rpartition(":")[2]})


# ---- subscriptions ---------------------------------------------------------------------------------------------------

_SUBSCRIPTION_DEFAULTS: Final[Mapping[str, str]] = {
    "FilterPolicyScope": "MessageAttributes",  # before the policy, which is validated for the scope
    "DeliveryPolicy": "",
    "FilterPolicy": "",
    "RawMessageDelivery": "false",
    "RedrivePolicy": "",
    "ReplayPolicy": "",
    "SubscriptionRoleArn": "",
}


class SubscriptionType(ResourceType):
    """`AWS::SNS::Subscription`; its id is its ARN."""

    service = "sns"
    name_chars_max = 0
    deletion = "Unsubscribe"
    description = Description("GetSubscriptionAttributes", member="Attributes", is_text=True)

    @override
    def identifiers(self, spec: ResourceSpec) -> dict[str, Any]:
        return {"in_region": _region(spec.properties), "SubscriptionArn": spec.physical_id}

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        properties = spec.properties
        params = pick(properties, "TopicArn", "Protocol", "Endpoint")
        attributes = _subscription_attributes(properties)
        params |= {"Attributes": attributes, "ReturnSubscriptionArn": True}
        answer = await ask("sns", "Subscribe", in_region=_region(properties), **params)
        arn: str = answer["SubscriptionArn"]
        return ResourceState(arn, {"Arn": arn})

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        old, new = _subscription_attributes(before), _subscription_attributes(spec.properties)
        for name, default in _SUBSCRIPTION_DEFAULTS.items():
            if old.get(name) != new.get(name):
                change = {"AttributeName": name, "AttributeValue": new.get(name, default)}
                await ask("sns", "SetSubscriptionAttributes", **self.identifiers(spec), **change)
        return ResourceState(spec.physical_id, {"Arn": spec.physical_id})

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        topic, endpoint = spec.properties["TopicArn"], _endpoint(spec.properties)
        return await without_absence(_subscription(ask, topic, endpoint, _region(spec.properties))) or ""


def _region(properties: Mapping[str, Any]) -> str:
    """The region of the topic, if the template names one; empty: that of the stack."""
    return str(properties.get("Region") or "")


def _subscription_attributes(properties: Mapping[str, Any]) -> dict[str, str]:
    return {name: as_text(properties[name]) for name in _SUBSCRIPTION_DEFAULTS if name in properties}


# ---- policies --------------------------------------------------------------------------------------------------------


class TopicPolicyType(HeldPolicyType):
    """`AWS::SNS::TopicPolicy`: of several topics."""

    service = "sns"
    holders_property = "Topics"

    @override
    async def write_policy(self, ask: Ask, holder: str, text: str) -> None:
        params = {"TopicArn": holder, "AttributeName": "Policy", "AttributeValue": text}
        await ask("sns", "SetTopicAttributes", **params)

    @override
    def default_policy(self, holder: str) -> str:
        """The policy that lets the topic's own account do everything."""
        statement = {
            "Sid": "__default_statement_ID",
            "Effect": "Allow",
            "Principal": {"AWS": "*"},
            "Action": [f"SNS:{action}" for action in _ACTIONS],
            "Resource": holder,
            "Condition": {"StringEquals": {"AWS:SourceOwner": parse_arn(holder).account}},
        }
        return json.dumps({"Version": "2008-10-17", "Id": "__default_policy_ID", "Statement": [statement]})


class TopicInlinePolicyType(TopicPolicyType):
    """`AWS::SNS::TopicInlinePolicy`: of a single topic, whose ARN is its id."""

    holders_property = "TopicArn"


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::SNS::Topic": TopicType,
    "AWS::SNS::Subscription": SubscriptionType,
    "AWS::SNS::TopicPolicy": TopicPolicyType,
    "AWS::SNS::TopicInlinePolicy": TopicInlinePolicyType,
}
