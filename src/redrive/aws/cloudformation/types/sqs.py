"""Types of Amazon SQS."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    Made,
    ResourceType,
    Wanted,
    as_document,
    as_text,
    changed_properties,
    refuse_existing,
    without_absence,
)
from redrive.aws.cloudformation.types.tagging import Tagging

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
_TAGS: Final = Tagging("sqs", "ListQueueTags", "TagQueue", "UntagQueue", pair=())


class Queue(ResourceType):
    """`AWS::SQS::Queue`; its id is its URL."""

    service = "sqs"
    name_property = "QueueName"
    name_chars_max = 80

    @override
    def suffix(self, properties: Mapping[str, Any]) -> str:
        return ".fifo" if properties.get("FifoQueue") else ""

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        if self.name_property in wanted.properties:
            await refuse_existing(ask, wanted, "sqs", "GetQueueUrl", QueueName=wanted.name)
        attributes = _attributes(wanted.properties)
        if wanted.properties.get("FifoQueue"):
            attributes["FifoQueue"] = "true"
        params = {"QueueName": wanted.name, "Attributes": attributes, "tags": wanted.all_tags()}
        await ask("sqs", "CreateQueue", **params)
        return _made(wanted)

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        changed = changed_properties(before, wanted.properties) - _NO_ATTRIBUTES
        attributes = {**{name: _DEFAULTS.get(name, "") for name in changed}, **_attributes(wanted.properties)}
        if changed:
            values = {name: value for name, value in attributes.items() if name in changed}
            await ask("sqs", "SetQueueAttributes", QueueUrl=_url(wanted), Attributes=values)
        await _TAGS.set(ask, wanted.all_tags(), QueueUrl=_url(wanted))
        return _made(wanted)

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        await without_absence(ask("sqs", "DeleteQueue", QueueUrl=_url(wanted)))

    @override
    async def find(self, ask: Ask, wanted: Wanted) -> str:
        return _url(wanted)

    @override
    async def read(self, ask: Ask, wanted: Wanted) -> Mapping[str, Any] | None:
        found = await without_absence(
            ask("sqs", "GetQueueAttributes", QueueUrl=_url(wanted), AttributeNames=["All"])
        )
        if found is None:
            return None
        shown: Mapping[str, str] = found.get("Attributes") or {}
        return {name: as_document(value) for name, value in shown.items() if name in self.schema.properties}


def _attributes(properties: Mapping[str, Any]) -> dict[str, str]:
    return {name: as_text(value) for name, value in properties.items() if name not in _NO_ATTRIBUTES}


def _queue_name(wanted: Wanted) -> str:
    return wanted.physical_id.rpartition("/")[2] or wanted.name


def _url(wanted: Wanted) -> str:
    return f"{wanted.base_url}/{wanted.stack.account}/{_queue_name(wanted)}"


def _made(wanted: Wanted) -> Made:
    url, name = _url(wanted), _queue_name(wanted)
    return Made(url, {"Arn": wanted.arn("sqs", name), "QueueName": name, "QueueUrl": url})


class QueuePolicy(ResourceType):
    """`AWS::SQS::QueuePolicy`: of several queues; of two that name the same queue the later one is its policy."""

    service = "sqs"
    queues_property: ClassVar[str] = "Queues"

    def _queues(self, properties: Mapping[str, Any]) -> list[str]:
        found = properties.get(self.queues_property) or []
        return found if isinstance(found, list) else [found]

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        policy = as_text(wanted.properties["PolicyDocument"])
        for url in self._queues(wanted.properties):
            await ask("sqs", "SetQueueAttributes", QueueUrl=url, Attributes={"Policy": policy})
        return Made(wanted.name, {"Id": wanted.name})

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        kept = self._queues(wanted.properties)
        for url in self._queues(before):
            if url not in kept:
                await _clear_policy(ask, url)
        made = await self.create(ask, wanted)
        return Made(wanted.physical_id or made.physical_id, made.attributes)

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        for url in self._queues(wanted.properties):
            await _clear_policy(ask, url)


class QueueInlinePolicy(QueuePolicy):
    """`AWS::SQS::QueueInlinePolicy`: of a single queue, whose URL is its id."""

    queues_property = "Queue"

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        await super().create(ask, wanted)
        return Made(wanted.properties["Queue"])


async def _clear_policy(ask: Ask, url: str) -> None:
    await without_absence(ask("sqs", "SetQueueAttributes", QueueUrl=url, Attributes={"Policy": ""}))


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::SQS::Queue": Queue,
    "AWS::SQS::QueuePolicy": QueuePolicy,
    "AWS::SQS::QueueInlinePolicy": QueueInlinePolicy,
}
