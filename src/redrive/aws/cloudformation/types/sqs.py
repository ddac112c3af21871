"""Types of Amazon SQS."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    ResourceSpec,
    ResourceState,
    ResourceType,
    as_document,
    as_text,
    changed_properties,
    refuse_existing,
    without_absence,
)
from redrive.aws.cloudformation.types.tagging import TagCalls

_NO_ATTRIBUTES: Final = frozenset({"QueueName", "Tags", "FifoQueue"})
# What a queue has again when its template says nothing more of it.
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

    service = "sqs"
    name_property = "QueueName"
    name_chars_max = 80

    @override
    def suffix(self, properties: Mapping[str, Any]) -> str:
        return ".fifo" if properties.get("FifoQueue") else ""

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        if self.name_property in spec.properties:
            await refuse_existing(ask, spec, "sqs", "GetQueueUrl", QueueName=spec.name)
        attributes = _attributes(spec.properties)
        if spec.properties.get("FifoQueue"):
            attributes["FifoQueue"] = "true"
        params = {"QueueName": spec.name, "Attributes": attributes, "tags": spec.all_tags()}
        await ask("sqs", "CreateQueue", **params)
        return _state(spec)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        changed = changed_properties(before, spec.properties) - _NO_ATTRIBUTES
        attributes = {**{name: _DEFAULTS.get(name, "") for name in changed}, **_attributes(spec.properties)}
        if changed:
            values = {name: value for name, value in attributes.items() if name in changed}
            await ask("sqs", "SetQueueAttributes", QueueUrl=_url(spec), Attributes=values)
        await _TAGS.set(ask, spec.all_tags(), QueueUrl=_url(spec))
        return _state(spec)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        await without_absence(ask("sqs", "DeleteQueue", QueueUrl=_url(spec)))

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        return _url(spec)

    @override
    async def read(self, ask: Ask, spec: ResourceSpec) -> Mapping[str, Any] | None:
        answer = await without_absence(
            ask("sqs", "GetQueueAttributes", QueueUrl=_url(spec), AttributeNames=["All"])
        )
        if answer is None:
            return None
        attributes: Mapping[str, str] = answer.get("Attributes") or {}
        return {
            name: as_document(value) for name, value in attributes.items() if name in self.schema.properties
        }


def _attributes(properties: Mapping[str, Any]) -> dict[str, str]:
    return {name: as_text(value) for name, value in properties.items() if name not in _NO_ATTRIBUTES}


def _queue_name(spec: ResourceSpec) -> str:
    return spec.physical_id.rpartition("/")[2] or spec.name


def _url(spec: ResourceSpec) -> str:
    return f"{spec.base_url}/{spec.stack.account}/{_queue_name(spec)}"


def _state(spec: ResourceSpec) -> ResourceState:
    url, name = _url(spec), _queue_name(spec)
    return ResourceState(url, {"Arn": spec.arn("sqs", name), "QueueName": name, "QueueUrl": url})


class QueuePolicyType(ResourceType):
    """`AWS::SQS::QueuePolicy`: of several queues; of two that name the same queue the later one is its policy."""

    service = "sqs"
    queues_property: ClassVar[str] = "Queues"

    def _queues(self, properties: Mapping[str, Any]) -> list[str]:
        queues = properties.get(self.queues_property) or []
        return queues if isinstance(queues, list) else [queues]

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        policy = as_text(spec.properties["PolicyDocument"])
        for url in self._queues(spec.properties):
            await ask("sqs", "SetQueueAttributes", QueueUrl=url, Attributes={"Policy": policy})
        return ResourceState(spec.name, {"Id": spec.name})

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        remaining = self._queues(spec.properties)
        for url in self._queues(before):
            if url not in remaining:
                await _clear_policy(ask, url)
        resource_state = await self.create(ask, spec)
        return ResourceState(spec.physical_id or resource_state.physical_id, resource_state.attributes)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        for url in self._queues(spec.properties):
            await _clear_policy(ask, url)


class QueueInlinePolicyType(QueuePolicyType):
    """`AWS::SQS::QueueInlinePolicy`: of a single queue, whose URL is its id."""

    queues_property = "Queue"

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        await super().create(ask, spec)
        return ResourceState(spec.properties["Queue"])


async def _clear_policy(ask: Ask, url: str) -> None:
    await without_absence(ask("sqs", "SetQueueAttributes", QueueUrl=url, Attributes={"Policy": ""}))


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::SQS::Queue": QueueType,
    "AWS::SQS::QueuePolicy": QueuePolicyType,
    "AWS::SQS::QueueInlinePolicy": QueueInlinePolicyType,
}
