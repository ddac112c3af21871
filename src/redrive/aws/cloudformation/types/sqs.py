"""Types of Amazon SQS."""

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
)
from redrive.aws.cloudformation.types.resource_type import Description, Factory, HeldPolicyType, ResourceType

_NO_ATTRIBUTES: Final = frozenset({"QueueName", "Tags", "FifoQueue"})
# The values of attributes that a template no longer has.
_DEFAULTS: Final[Mapping[str, str]] = {
    "ContentBasedDeduplication": "false",
    "DeduplicationScope": "queue",
    "DelaySeconds": "0",
    "FifoThroughputLimit": "perQueue",
    "KmsDataKeyReusePeriodSeconds": "300",
    "KmsMasterKeyId": "",
    "MaximumMessageSize": "1048576",
    "MessageRetentionPeriod": "345600",
    "ReceiveMessageWaitTimeSeconds": "0",
    "RedriveAllowPolicy": "",
    "RedrivePolicy": "",
    "SqsManagedSseEnabled": "true",
    "VisibilityTimeout": "30",
}
_TAGS: Final = TagCalls("sqs", "ListQueueTags", "TagQueue", "UntagQueue", pair=())


class QueueType(ResourceType):
    """`AWS::SQS::Queue`; its id is its URL."""

    service, noun = "sqs", "Queue"
    name_property = "QueueName"
    name_chars_max = 80
    description = Description(
        "GetQueueAttributes", member="Attributes", is_text=True, params={"AttributeNames": ["All"]}
    )

    @override
    def suffix(self, properties: Mapping[str, Any]) -> str:
        return ".fifo" if properties.get("FifoQueue") else ""

    @override
    def identifiers(self, spec: ResourceSpec) -> dict[str, Any]:
        return {"QueueUrl": _url(spec)}

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        await self.refuse_existing(ask, spec, "GetQueueUrl", QueueName=spec.name)
        attributes = _attributes(spec.properties)
        if spec.properties.get("FifoQueue"):
            attributes["FifoQueue"] = "true"
        params = {"QueueName": spec.name, "Attributes": attributes, "tags": spec.all_tags()}
        await ask("sqs", "CreateQueue", **params)
        return _state(spec)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        changed_names = changed_properties(before, spec.properties) - _NO_ATTRIBUTES
        if changed_names:
            attributes = _attributes(spec.properties)
            values = {name: attributes.get(name, _DEFAULTS.get(name, "")) for name in changed_names}
            await ask("sqs", "SetQueueAttributes", QueueUrl=_url(spec), Attributes=values)
        await _TAGS.set(ask, spec.all_tags(), QueueUrl=_url(spec))
        return _state(spec)

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        return _url(spec)


def _attributes(properties: Mapping[str, Any]) -> dict[str, str]:
    return {name: as_text(value) for name, value in properties.items() if name not in _NO_ATTRIBUTES}


def _queue_name(spec: ResourceSpec) -> str:
    return spec.physical_id.rpartition("/")[2] or spec.name


def _url(spec: ResourceSpec) -> str:
    return f"{spec.base_url}/{spec.stack.account}/{_queue_name(spec)}"


def _state(spec: ResourceSpec) -> ResourceState:
    url, name = _url(spec), _queue_name(spec)
    return ResourceState(url, {"Arn": spec.arn("sqs", name), "QueueName": name, "QueueUrl": url})


class QueuePolicyType(HeldPolicyType):
    """`AWS::SQS::QueuePolicy`: of several queues; if two name the same queue, the later one is in force."""

    service = "sqs"
    holders_property = "Queues"

    @override
    async def write_policy(self, ask: Ask, holder: str, text: str) -> None:
        await ask("sqs", "SetQueueAttributes", QueueUrl=holder, Attributes={"Policy": text})


class QueueInlinePolicyType(QueuePolicyType):
    """`AWS::SQS::QueueInlinePolicy`: of a single queue, whose URL is its id."""

    holders_property = "Queue"


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::SQS::Queue": QueueType,
    "AWS::SQS::QueuePolicy": QueuePolicyType,
    "AWS::SQS::QueueInlinePolicy": QueueInlinePolicyType,
}
