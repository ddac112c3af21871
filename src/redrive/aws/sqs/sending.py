"""SendMessage and SendMessageBatch."""

from collections.abc import Sequence
from functools import partial
from operator import methodcaller

from redrive.aws.encryption.encryption import Encryption
from redrive.aws.encryption.sealer import KEY
from redrive.aws.kit.call import Call
from redrive.aws.kit.messages import (
    Attributes,
    Entry,
    IdRefusals,
    attributes_bytes,
    check_ids,
    failed,
    sequence_number,
)
from redrive.aws.sqs import batches, message
from redrive.aws.sqs.access import QueueAccess, QueueQuotas
from redrive.aws.sqs.errors import error, invalid, key_refusals, missing
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.ports import Enqueued
from redrive.model.names import bytes_of, id_text
from redrive.model.queue import Queue
from redrive.model.topic import Message

DELAY_SECONDS_MAX = 900
BATCH_BYTES_MAX = 1_048_576
_TRACE = "AWSTraceHeader"
_TRACE_HTTP_HEADER = "x-amzn-trace-id"

_MEMBERS_MIN = 2  # of a batch's entry: its id and its body; of a single call: its queue and its body
_HAS_ATTRIBUTES = methodcaller("get", "MessageAttributes")


class Sending:
    """Sends messages to queues."""

    def __init__(
        self, engine: Engine, access: QueueAccess, quotas: QueueQuotas, encryption: Encryption | None = None
    ) -> None:
        self._encryption = encryption
        self._engine = engine
        self._access = access
        self._quotas = quotas

    async def send_message(self, call: Call, params: Structure) -> Structure:
        url = params["QueueUrl"]
        queue = self._access.if_open(call, url) or await self._access.at(call, url, "SendMessage")
        self._quotas.take(queue, "SendMessage", call.now)
        check_ids(queue, params, _ID_REFUSALS)
        if KEY in queue.attributes and not self._has_sent(call, queue):
            await self._admit(call, queue)
        new_message = self._new_message(call, queue, params)
        (enqueued,) = await self._engine.messages.send(queue, (new_message,), call.died)
        return _complete_answer({}, queue, params, new_message, enqueued)

    async def send_message_batch(self, call: Call, params: Structure) -> Structure:
        entries = batches.entries_of(params, "SendMessageBatchRequestEntry")
        url = params["QueueUrl"]
        queue = self._access.if_open(call, url) or await self._access.at(call, url, "SendMessage")
        self._quotas.take(queue, "SendMessage", call.now)
        _check_batch_bytes(entries)
        accepted: list[tuple[Entry, Message]] = []
        failures: list[Structure] = []
        has_key = KEY in queue.attributes
        for entry in entries:
            if queue.ordered or len(entry) > _MEMBERS_MIN:
                _check_batch_ids(queue, entry)
            try:
                if has_key and not self._has_sent(call, queue):
                    await self._admit(call, queue)
                accepted.append((entry, self._new_message(call, queue, entry, batch=True)))
            except AwsError as refusal:
                failures.append(failed(entry, refusal))
        messages = [new_message for _, new_message in accepted]
        results = await self._engine.messages.send(queue, messages) if messages else []
        successful = [
            _complete_answer({"Id": entry["Id"]}, queue, entry, new_message, enqueued)
            for (entry, new_message), enqueued in zip(accepted, results, strict=True)
        ]
        return batches.answer(successful, failures)

    def _has_sent(self, call: Call, queue: Queue) -> bool:
        return self._encryption is not None and self._encryption.has_sent(call, queue)

    async def _admit(self, call: Call, queue: Queue) -> None:
        """Refuse a sender who may not use the queue's key."""
        if self._encryption is not None:
            with key_refusals(call):
                await self._encryption.admit_sender(call, queue)

    def _new_message(self, call: Call, queue: Queue, entry: Entry, *, batch: bool = False) -> Message:
        body: str = entry["MessageBody"]
        if not body:
            raise missing("MessageBody")
        message.check_body(body)
        runtime = self._engine.runtime
        if len(entry) == _MEMBERS_MIN:  # a text and no more, as most messages are
            _check_size(queue, bytes_of(body), batch=batch)
            trace = call.request.headers.get(_TRACE_HTTP_HEADER)
            return Message(runtime.message_id(), body, _headers(call, queue, trace))
        attributes = entry.get("MessageAttributes")
        size = bytes_of(body)
        if attributes:
            size += message.check_attributes(attributes)
        _check_size(queue, size, batch=batch)
        return Message(
            id=runtime.message_id(),
            body=body,
            headers=_headers(call, queue, _trace_header(call, entry), attributes),
            group_id=entry.get("MessageGroupId"),
            deduplication_id=entry.get("MessageDeduplicationId"),
            delay_ms=_delay_ms(queue, entry),
        )


def _headers(
    call: Call, queue: Queue, trace: str | None, attributes: Attributes | None = None
) -> bytes | None:
    """The headers kept beside the body; most messages have none."""
    sender = None if call.account == queue.name.account else call.account
    if attributes or trace or sender:
        return message.pack(attributes or {}, trace, sender)
    return None


def _check_size(queue: Queue, size: int, *, batch: bool) -> None:
    if size <= queue.body_bytes_max:
        return
    opening = (
        "One or more parameters cannot be validated." if batch else "One or more parameters are invalid."
    )
    raise error(
        "InvalidParameterValueException",
        f"{opening} Reason: Message must be shorter than {queue.body_bytes_max} bytes.",
    )


def _check_batch_bytes(entries: Sequence[Entry]) -> None:
    characters = sum([len(entry["MessageBody"]) for entry in entries])
    if 4 * characters <= BATCH_BYTES_MAX and not any(map(_HAS_ATTRIBUTES, entries)):
        return  # no character takes more than four bytes
    total = sum(
        bytes_of(entry["MessageBody"]) + attributes_bytes(entry.get("MessageAttributes")) for entry in entries
    )
    if total > BATCH_BYTES_MAX:
        raise error(
            "BatchRequestTooLong",
            f"Batch requests cannot be longer than {BATCH_BYTES_MAX} bytes. You have sent {total} bytes.",
        )


# ---- group and deduplication ids ---------------------------------------------------------------------------


def _unordered(deduplication_id: str) -> AwsError:
    return invalid(
        "MessageDeduplicationId",
        deduplication_id,
        "The request includes a parameter that is not valid for this queue type.",
    )


def _without_deduplication() -> AwsError:
    return error(
        "InvalidParameterValueException",
        "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided"
        " explicitly",
    )


_ID_REFUSALS = IdRefusals(
    malformed=message.malformed_id,
    without_group=partial(missing, "MessageGroupId"),
    unordered=_unordered,
    without_deduplication=_without_deduplication,
)


def _check_batch_ids(queue: Queue, entry: Entry) -> None:
    """Check the ids of a batch entry; all its errors are of an invalid value, also for a missing parameter."""
    try:
        check_ids(queue, entry, _ID_REFUSALS)
    except AwsError as refusal:
        raise error("InvalidParameterValueException", refusal.message) from None


# ---- delay and trace -----------------------------------------------------------------------------------------


def _delay_ms(queue: Queue, entry: Entry) -> int | None:
    """The delay of a message; None: the queue's own. Raises AwsError."""
    seconds: int | None = entry.get("DelaySeconds")
    if seconds is None:
        return None
    if not 0 <= seconds <= DELAY_SECONDS_MAX:
        raise invalid("DelaySeconds", seconds, f"DelaySeconds must be >= 0 and <= {DELAY_SECONDS_MAX}.")
    if not queue.ordered:
        return seconds * 1000
    if seconds:
        raise invalid(
            "DelaySeconds",
            seconds,
            "The request include parameter that is not valid for this queue type.",
        )
    return None  # zero is accepted and means the queue's own delay


def _trace_header(call: Call, entry: Entry) -> str | None:
    """The trace of a message, of its system attributes or else of the request; raises AwsError."""
    system = entry.get("MessageSystemAttributes")
    if not system:
        return call.request.headers.get(_TRACE_HTTP_HEADER)
    for name, attribute in system.items():
        if name != _TRACE:
            raise error(
                "InvalidParameterValueException", f"Message system attribute name '{name}' is invalid."
            )
        if attribute.get("DataType") != "String" or not attribute.get("StringValue"):
            raise error(
                "InvalidParameterValueException",
                f"Message system attribute '{name}' must contain a non-empty value of type 'String'.",
            )
    trace: str = system[_TRACE]["StringValue"]
    return trace


# ---- the answer ------------------------------------------------------------------------------------------------


def _complete_answer(
    answer: Structure, queue: Queue, entry: Entry, new_message: Message, enqueued: Enqueued
) -> Structure:
    """The answer to a message that was sent, with its id and digests; `answer` is filled."""
    answer["MessageId"] = id_text(enqueued.message_id)
    answer["MD5OfMessageBody"] = message.digest_of_body(new_message.body)
    if len(entry) > _MEMBERS_MIN:
        if attributes := entry.get("MessageAttributes"):
            answer["MD5OfMessageAttributes"] = message.digest_of_attributes(attributes)
        if system := entry.get("MessageSystemAttributes"):
            answer["MD5OfMessageSystemAttributes"] = message.digest_of_attributes(system)
    if queue.ordered:
        answer["SequenceNumber"] = sequence_number(enqueued.seq)
    return answer
