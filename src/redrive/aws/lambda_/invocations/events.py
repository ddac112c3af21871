"""Asynchronous invocations: an event is a delivery, on disk before its caller is answered; and the records of its end.

An event's end leads to up to two messages: to the dead-letter target of the version the event as it came, with three
attributes; to a destination a record of request and response. Members and their order as recorded.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self

import orjson

from redrive.aws.gateway.rounds import ROUNDS_MAX, Rounds
from redrive.aws.lambda_.documents import backlogs
from redrive.aws.lambda_.documents.backlogs import BacklogTarget
from redrive.aws.lambda_.documents.errors import error
from redrive.aws.lambda_.documents.lookup import function_in
from redrive.aws.lambda_.documents.names import LATEST, FunctionReference
from redrive.aws.lambda_.documents.records import FunctionRecord
from redrive.aws.lambda_.invocations.metrics import InvocationMetrics
from redrive.aws.wire.errors import AwsError
from redrive.engine.engine import Engine
from redrive.engine.ports import AttemptNote
from redrive.engine.ports.facts import Attempted
from redrive.engine.resources import Draft
from redrive.model.attempt import Attempt, Reason
from redrive.model.names import id_text
from redrive.model.topic import Publication, Topic

#: Identifiers of an attempt.
VERSION: Final = "executed_version"
INVOKED: Final = "invoked"  # how often the function was called for the event, this attempt included
FUNCTION_ERROR: Final = "function_error"

_ERROR_CHARS_MAX: Final = 1024  # of ErrorMessage
_RECORD_BYTES_MAX: Final = {
    "sns": 256 * 1024,
    "sqs": 1024 * 1024,
    "lambda": 1024 * 1024,
    "s3": 16 * 1024 * 1024,  # more than an event of 1 MiB and an answer of 6 MB
}
_THROTTLED: Final = "Rate Exceeded."
_REQUEST_ID: Final = "RequestID"  # an attribute of letters


@dataclass(slots=True)  # not frozen, as PushRequest
class InvocationEvent:
    """The part of an asynchronous invocation that is kept beside its payload."""

    request_id: str  # The id of the request that it came with, and of each attempt
    arn: str  # The function as the caller named it, with the qualifier
    trace: str | None = None  # The trace header that it came with, if any

    def pack(self) -> bytes:
        """The event as a delivery's headers."""
        return orjson.dumps({"request": self.request_id, "arn": self.arn, "trace": self.trace})

    @classmethod
    def unpack(cls, headers: bytes | None, arn: str = "") -> Self:
        """Read what `pack` wrote, or the attributes of a dead letter that was sent back to the function of an ARN."""
        document = orjson.loads(headers or b"{}")
        if "request" not in document:
            return cls(str(document["attributes"][_REQUEST_ID][1]), arn, document.get("trace"))
        return cls(document["request"], document["arn"], document["trace"])


def publication(message_id: bytes, payload: str, event: InvocationEvent) -> Publication:
    """An event as it is published to its backlog."""
    return _publication(message_id, payload, event.pack())


def _publication(message_id: bytes, body: str, envelope: bytes) -> Publication:
    return Publication(
        id=message_id, body=body, bodies={}, attributes={}, envelope=envelope, bytes_published=len(body)
    )


# ---- what an end leads to --------------------------------------------------------------------------------------


def letter(fact: Attempted) -> Publication:
    """The message to the dead-letter target: the event as it came, and why it failed."""
    event = _event(fact)
    attributes = {
        _REQUEST_ID: ("String", event.request_id),
        "ErrorCode": ("Number", "200" if fact.attempt.answer else "429"),  # it failed, or it did not run
        "ErrorMessage": ("String", _error_message(fact)),
    }
    attempt = fact.attempt
    note = AttemptNote(
        fact.delivery.attempts,
        fact.at,
        attempt.duration_ms,
        str(attempt.reason),
        attempt.status,
        attempt.response,
    )
    envelope = orjson.dumps(
        {"attributes": attributes, "trace": event.trace, "origin": fact.delivery.queue_id, "note": list(note)}
    )
    return _publication(fact.delivery.message_id, fact.delivery.body, envelope)


def record(fact: Attempted, service: str) -> Publication:
    """The record for a destination of a service, without what would make it larger than that takes."""
    event = _event(fact)
    content = orjson.dumps(_record_document(fact, event, payloads=True))
    if len(content) > _RECORD_BYTES_MAX[service]:
        content = orjson.dumps(_record_document(fact, event, payloads=False))
    key = _object_key(fact) if service == "s3" else None
    envelope = orjson.dumps({"attributes": {}, "trace": event.trace, "object": key})
    return _publication(fact.delivery.message_id, content.decode(), envelope)


def _event(fact: Attempted) -> InvocationEvent:
    return InvocationEvent.unpack(fact.delivery.headers, fact.subscription.endpoint)


def _record_document(fact: Attempted, event: InvocationEvent, *, payloads: bool) -> Mapping[str, Any]:
    """The record of an event for a destination; `payloads`: with those of the request and the answer."""
    identifiers = dict(fact.attempt.identifiers)
    condition = condition_of(fact)
    document: dict[str, Any] = {
        "version": "1.0",
        "timestamp": _timestamp(fact.at),
        "requestContext": {
            "requestId": event.request_id,
            "functionArn": event.arn,
            "condition": condition,
            "approximateInvokeCount": int(identifiers.get(INVOKED, fact.delivery.attempts)),
        },
    }
    if payloads:
        document["requestPayload"] = orjson.Fragment(fact.delivery.body)
    if VERSION in identifiers:
        context: dict[str, Any] = {"statusCode": 200, "executedVersion": identifiers[VERSION]}
        if FUNCTION_ERROR in identifiers:
            context["functionError"] = identifiers[FUNCTION_ERROR]
        document["responseContext"] = context
        if payloads:
            document["responsePayload"] = _payload(fact.attempt)
    return document


def _object_key(fact: Attempted) -> str:
    """The key of a record in a bucket; a record that is written twice is one object."""
    moment = datetime.fromtimestamp(fact.at // 1000, UTC)
    function = fact.topic.name.name.partition(":")[0]
    return (
        f"aws/lambda/async/{function}/{moment:%Y/%m/%d/%Y-%m-%dT%H.%M.%S}-{id_text(fact.delivery.message_id)}"
    )


def condition_of(fact: Attempted) -> str:
    """The reason that an event ended, in the word that a destination's record has for it."""
    if fact.attempt.delivered:
        return "Success"
    if fact.attempt.reason is Reason.DISABLED:
        return "ZeroReservedConcurrency"
    if fact.attempt.reason is Reason.EXPIRED or fact.transition.too_old:
        return "EventAgeExceeded"
    return "RetriesExhausted"


def target_of(fact: Attempted) -> BacklogTarget:
    """The destination that an event's end has."""
    return BacklogTarget.ON_SUCCESS if fact.attempt.delivered else BacklogTarget.ON_FAILURE


def _payload(attempt: Attempt) -> Any:
    """The response as JSON; a runtime of one's own may answer anything."""
    try:
        return orjson.loads(attempt.answer)
    except orjson.JSONDecodeError:
        return attempt.answer.decode(errors="replace")


def _error_message(fact: Attempted) -> str:
    """The text of what a failed event failed with."""
    if not fact.attempt.answer:
        return "Event age exceeded" if fact.attempt.reason is Reason.EXPIRED else _THROTTLED  # chosen
    message = _payload(fact.attempt)
    text = message.get("errorMessage") if isinstance(message, dict) else message
    return str(text)[:_ERROR_CHARS_MAX] or "Unhandled"


def _timestamp(at: int) -> str:
    moment = datetime.fromtimestamp(at // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at % 1000:03d}Z"


logger = logging.getLogger(__name__)


class AsyncInvocations:
    """Takes events for functions."""

    def __init__(self, engine: Engine, metrics: InvocationMetrics, rounds: Rounds) -> None:
        """Publish events through this engine, and count them; `rounds` tells which ones functions sent in a loop."""
        self._engine = engine
        self._rounds = rounds
        self._metrics = metrics

    async def accept(
        self,
        function: FunctionRecord,
        reference: FunctionReference,
        payload: bytes,
        request_id: str,
        trace: str | None = None,
    ) -> None:
        """Take an event, JSON in UTF-8; it is on disk when this returns.

        Raises:
            AwsError: The function is gone meanwhile, or it is invoked in a loop.
        """
        if self._rounds.of(trace) > ROUNDS_MAX:
            raise self._loop_refusal(function)
        reference = FunctionReference(function.name, reference.qualifier or LATEST)
        topic = await self._topic(reference)
        event = InvocationEvent(request_id, reference.arn, trace)
        message_id = self._engine.runtime.message_id()
        await self._engine.messages.publish(topic, [publication(message_id, payload.decode(), event)])
        self._metrics.count(function.name, "AsyncEventsReceived", 1, self._engine.clock.now())

    def _loop_refusal(self, function: FunctionRecord) -> AwsError:
        """The refusal of an event in a loop of destinations, which the log tells of, too."""
        logger.warning(
            "lambda.loop function=%s: %d runs of functions in a row were each begun by a destination of the one before;"
            " change the destinations",
            function.name.key,
            ROUNDS_MAX + 1,
        )
        return error(
            "RecursiveInvocationException",
            "Lambda has detected your function being invoked in a recursive loop with other Amazon Web Services"
            " resources and stopped your function's invocation.",
        )

    async def _topic(self, reference: FunctionReference) -> Topic:
        """The topic of the events, which the first of them makes."""
        topics = self._engine.resources.topics
        name = backlogs.topic_of(reference.name, reference.qualifier or LATEST)
        known_topic = topics.known(name) or await topics.get(name)
        if known_topic is not None:
            return known_topic

        async def decide(draft: Draft) -> Topic | None:
            function = await function_in(draft, reference)
            await backlogs.begin_backlog_in(
                draft, self._engine.resources, function, reference.qualifier or LATEST
            )
            return await topics.get_in(draft, name)

        topic = await self._engine.resources.write(decide)
        if topic is None:
            raise ValueError(f"{name.key} was made, and is not there")
        return topic
