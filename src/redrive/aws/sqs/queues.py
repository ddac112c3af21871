"""Queues and their attributes and tags: create, find, change, empty, delete."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from redrive.aws.kit.call import Call
from redrive.aws.kit.tagging import TagChange, Tagging, TagRequest, Tags
from redrive.aws.sqs import attributes, names
from redrive.aws.sqs.access import QueueAccess, check_not_at_queue
from redrive.aws.sqs.errors import PAGES, error, invalid
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.model.errors import AlreadyExists, Refused
from redrive.model.names import ResourceName
from redrive.model.queue import Queue

RECREATE_AFTER_MS = 60_000
PURGE_AGAIN_AFTER_MS = 60_000
_KEY_CHARS_MAX = 128
_VALUE_CHARS_MAX = 256


def _tag_fault(key: str, value: str) -> AwsError | None:
    if not 1 <= len(key) <= _KEY_CHARS_MAX:
        return _reserved(key)
    if len(value) > _VALUE_CHARS_MAX:
        return invalid("Value", value, "Tag values have at most 256 characters.")
    return None


def _reserved(key: str) -> AwsError:
    return invalid("Key", key, "Tag keys are 1 to 128 characters and do not begin with aws:.")


TAGS: Final = Tagging(
    too_many=lambda: error("InvalidParameterValueException", "Too many tags added for queue. Maximum is 50."),
    reserved=_reserved,
    fault=_tag_fault,
    pair=(),
    add="TagQueue",
    remove="UntagQueue",
    list="ListQueueTags",
    omitted=True,
)
_TARGET = "x-amz-target"


class QueueOperations:
    """Creates, finds, changes, empties and deletes queues."""

    def __init__(self, engine: Engine, access: QueueAccess, *, waits: bool = True) -> None:
        """Use this engine; without waits, operations that AWS allows once in 60 seconds are not limited."""
        self._engine = engine
        self._access = access
        self._recreate_after_ms = RECREATE_AFTER_MS if waits else 0
        self._purge_again_after_ms = PURGE_AGAIN_AFTER_MS if waits else 0

    async def create_queue(self, call: Call, params: Structure) -> Structure:
        check_not_at_queue(call, "CreateQueue")
        name = ResourceName(call.account, call.region, params["QueueName"])
        texts: Mapping[str, str] = params.get("Attributes") or {}
        _check_no_null(call, "tags")
        queue = attributes.new_queue(name, texts, params.get("tags") or {})
        TAGS.read(queue.tags)
        await self._check_dead_letter_target(queue, texts)
        existing = await self._engine.resources.queues.get_stored(name)
        if existing is None:
            await self._check_not_just_deleted(name, call.now)
            try:
                existing = await self._engine.resources.queues.create(queue)
            except AlreadyExists:
                existing = await self._engine.resources.queues.get(name)
        if existing is not None and (attribute := attributes.TABLE.difference(existing, queue, texts)):
            raise error(
                "QueueNameExists",
                f"A queue already exists with the same name and a different value for attribute {attribute}",
            )
        return {"QueueUrl": self._access.urls.write(call, name)}

    async def _check_not_just_deleted(self, name: ResourceName, now: int) -> None:
        deleted_at = await self._engine.resources.queues.deleted_at(name)
        if deleted_at is not None and now < deleted_at + self._recreate_after_ms:
            raise error(
                "QueueDeletedRecently",
                "You must wait 60 seconds after deleting a queue before you can create another with the same"
                " name.",
            )

    async def _check_dead_letter_target(self, queue: Queue, texts: Mapping[str, str]) -> None:
        if "RedrivePolicy" not in texts or queue.dead_letter is None:
            return
        policy = texts["RedrivePolicy"]
        target = await self._engine.resources.queues.get_stored(queue.dead_letter.queue)
        if target is None:
            raise invalid("RedrivePolicy", policy, "Dead letter target does not exist.")
        if target.ordered != queue.ordered:
            raise invalid(
                "RedrivePolicy", policy, "Dead-letter queue must be same type of queue as the source."
            )
        if not attributes.allows_redrive_from(target, names.arn_of(queue.name)):
            raise invalid(
                "RedrivePolicy",
                policy,
                "The dead-letter queue's RedriveAllowPolicy does not allow this source.",
            )

    async def delete_queue(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteQueue.html.

        After a stack's deletion, which takes the minute at Amazon's, the name is free (recorded).
        """
        queues, frees_name = self._engine.resources.queues, call.of_stack
        queue = await self._access.at(call, params["QueueUrl"], "DeleteQueue")
        if not await queues.delete(queue, frees_name=frees_name):
            # Another node has deleted it, or made it again: this one knows by now.
            queue = await self._access.at(call, params["QueueUrl"], "DeleteQueue")
            await queues.delete(queue, frees_name=frees_name)
        return {}

    async def get_queue_url(self, call: Call, params: Structure) -> Structure:
        owner = params.get("QueueOwnerAWSAccountId") or call.account
        name = ResourceName(owner, call.region, params["QueueName"])
        queue = await self._access.existing_queue(call, name, "GetQueueUrl")
        return {"QueueUrl": self._access.urls.write(call, queue.name)}

    async def list_queues(self, call: Call, params: Structure) -> Structure:
        check_not_at_queue(call, "ListQueues")
        beginning = ResourceName(call.account, call.region, params.get("QueueNamePrefix") or "")
        after, limit = PAGES.after("ListQueues", params), PAGES.limit("ListQueues", params)
        queues = await self._engine.resources.queues.find(beginning, after, limit + 1)
        answer = self._page("ListQueues", call, params, queues)
        return answer if answer["QueueUrls"] else {}

    async def list_dead_letter_source_queues(self, call: Call, params: Structure) -> Structure:
        queue = await self._access.at(call, params["QueueUrl"], "ListDeadLetterSourceQueues")
        sources = await self._engine.resources.queues.sources_of(queue.name)
        return self._page("ListDeadLetterSourceQueues", call, params, sources)

    def _page(self, operation: str, call: Call, params: Structure, queues: Sequence[Queue]) -> Structure:
        """A page of queues; it has a token only if the call has `MaxResults`."""

        def url(queue: Queue) -> str:
            return self._access.urls.write(call, queue.name)

        answer = PAGES.of(operation, params, queues, url, lambda queue: queue.name.key)
        if params.get("MaxResults") is None:
            answer.pop("NextToken", None)
        return answer

    async def get_queue_attributes(self, call: Call, params: Structure) -> Structure:
        queue = await self._access.at(call, params["QueueUrl"], "GetQueueAttributes")
        names_asked_for: Sequence[str] = params.get("AttributeNames") or ()
        counts = None
        if attributes.needs_counts(names_asked_for):
            counts = await self._engine.messages.count(queue)
        values = attributes.attribute_texts(queue, names_asked_for, counts)
        return {"Attributes": values} if values else {}

    async def set_queue_attributes(self, call: Call, params: Structure) -> Structure:
        queue = await self._access.at(call, params["QueueUrl"], "SetQueueAttributes")
        texts: Mapping[str, str] = params["Attributes"]
        await self._check_dead_letter_target(attributes.with_changes(queue, texts), texts)
        queue = await self._engine.resources.queues.update(
            queue.name, lambda current: attributes.with_changes(current, texts)
        )
        if queue.ordered and "DelaySeconds" in texts:
            # A FIFO queue's new delay holds for the messages in it, too.
            await self._engine.messages.delay(queue)
        return {}

    async def purge_queue(self, call: Call, params: Structure) -> Structure:
        queue = await self._access.at(call, params["QueueUrl"], "PurgeQueue")
        try:
            # A purge that has begun goes on to its end, even if the client goes away.
            await asyncio.shield(
                asyncio.ensure_future(self._engine.messages.purge(queue, self._purge_again_after_ms))
            )
        except Refused:
            raise error(
                "PurgeQueueInProgress",
                f"Only one PurgeQueue operation on {queue.name.name} is allowed every 60 seconds.",
            ) from None
        return {}

    # ---- tags ------------------------------------------------------------------------------------------------

    async def tags(self, request: TagRequest) -> Tags:
        """The tags of the queue that a request names; raises AwsError if there is none."""
        return (await self._access.at(request.call, request.params["QueueUrl"], request.operation)).tags

    async def retag(self, request: TagRequest, change: TagChange) -> None:
        """Change the tags of the queue that a request names; raises AwsError if there is none."""
        queue = await self._access.at(request.call, request.params["QueueUrl"], request.operation)
        if request.operation == TAGS.add:
            _check_no_null(request.call, "Tags")
            if not request.params["Tags"]:
                raise error(
                    "MissingRequiredParameterException", "The request must contain the parameter Tags."
                )
        await self._engine.resources.queues.label(queue.name, change)


def _check_no_null(call: Call, member: str) -> None:
    """Refuse null as a tag's value, which readers of JSON pass over in any other map."""
    if _TARGET not in call.request.headers or "content-encoding" in call.request.headers:
        return  # Query has no null; no SDK compresses a call of SQS
    tags = orjson.loads(call.request.body).get(member)
    if isinstance(tags, dict) and None in tags.values():
        raise invalid("Value", "null", "Tag values must not be null.")
