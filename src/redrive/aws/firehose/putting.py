"""Records on their way in, from callers and from topics: on disk before the caller is answered."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Final

import orjson

from redrive.access.principals import Principal
from redrive.aws.firehose.delivering import Deliveries
from redrive.aws.firehose.errors import invalid, no_such_stream, slow_down
from redrive.aws.firehose.monitoring import StreamMetrics
from redrive.aws.firehose.records import DeliveryStream, buffer_of, pack, record_id
from redrive.aws.firehose.streams import DeliveryStreamOperations
from redrive.aws.gateway.authorization import ServiceRoles
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.kit.call import Call
from redrive.aws.wire.arn import parse_arn
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.engine.ports import Endpoint, PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.errors import StoreUnavailable
from redrive.model.queue import Queue
from redrive.model.topic import Message

BATCH_BYTES_MAX: Final = 4 * 1024 * 1024
_BUSY: Final = "ServiceUnavailableException"
#: The header of a request that names the role of its subscription, by its ARN.
ROLE: Final = "x-redrive-role-arn"
_RESOURCE: Final = "deliverystream/"
_TEXT_CHARS_MAX: Final = 400  # an attempt keeps 1,024 characters, and a character may take two in JSON
_THROTTLED: Final = ("ServiceUnavailableException", "LimitExceededException", "ThrottlingException")
_REASONS: Final = {
    "ResourceNotFoundException": Reason.MISSING,
    "AccessDeniedException": Reason.DENIED,
    "InvalidKMSResourceException": Reason.DENIED,
}


class PutRecordOperations:
    """The operations that bring records."""

    def __init__(
        self,
        engine: Engine,
        streams: DeliveryStreamOperations,
        deliveries: Deliveries,
        metrics: StreamMetrics,
    ) -> None:
        self._engine = engine
        self._streams = streams
        self._deliveries = deliveries
        self._metrics = metrics

    async def put_record(self, call: Call, params: Structure) -> Structure:
        stream = await self._streams.existing_stream(call, params)
        if self._has_injected_fault(stream):
            raise slow_down()
        (record_id,) = await self._put(call, stream, [params["Record"]["Data"]])
        self._metrics.count_call(stream, "PutRecord", 1, len(params["Record"]["Data"]), call.now)
        return {"RecordId": record_id, "Encrypted": bool(stream.encryption)}

    async def put_record_batch(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/firehose/latest/APIReference/API_PutRecordBatch.html.

        All records of a call enter the store in one transaction, so all are taken; where a fault is injected for the
        stream, every second one is not, beginning with the first.
        """
        stream = await self._streams.existing_stream(call, params)
        records = [record["Data"] for record in params["Records"]]
        size = sum(map(len, records))
        if size > BATCH_BYTES_MAX:
            raise invalid(f"Records size exceeds 4 MB limit: {size}")
        refusals = set(range(0, len(records), 2)) if self._has_injected_fault(stream) else set()
        accepted = [record for number, record in enumerate(records) if number not in refusals]
        ids = iter(await self._put(call, stream, accepted) if accepted else ())
        self._metrics.count_call(stream, "PutRecordBatch", len(accepted), sum(map(len, accepted)), call.now)
        failure = {"ErrorCode": _BUSY, "ErrorMessage": slow_down().message}
        answers = [
            failure if number in refusals else {"RecordId": next(ids)} for number in range(len(records))
        ]
        return {
            "FailedPutCount": len(refusals),
            "Encrypted": bool(stream.encryption),
            "RequestResponses": answers,
        }

    def _has_injected_fault(self, stream: DeliveryStream) -> bool:
        return self._engine.operations.fault_of(stream.arn) is not None

    async def _put(self, call: Call, stream: DeliveryStream, records: Sequence[bytes]) -> list[str]:
        """Send records into the stream's buffer, as one message; returns their ids."""
        queue = await self._buffer(stream)
        message = Message(self._engine.runtime.message_id(), pack(records), b"{}")
        await self._engine.messages.send(queue, [message])
        self._deliveries.note(stream, sum(map(len, records)), call.now)
        return [record_id(message.id, number) for number in range(len(records))]

    async def _buffer(self, stream: DeliveryStream) -> Queue:
        queues, name = self._engine.resources.queues, buffer_of(stream.resource)
        queue = queues.known(name) or await queues.get(name)
        if queue is None:  # removed meanwhile
            raise no_such_stream(stream.resource)
        return queue


class SubscribedStreams:
    """Puts what topics have for streams of this server into them (`redrive.engine.ports.Endpoint`).

    A request's endpoint is the stream's ARN; each of its parts is a record.
    """

    def __init__(
        self,
        calls: InnerCalls,
        roles: ServiceRoles,
        # The endpoint of a stream that the settings put on another server; None: it is here.
        remote_endpoint_of: Callable[[str], Endpoint | None],
        new_request_id: Callable[[], str],
    ) -> None:
        self._new_request_id = new_request_id
        self._calls = calls
        self._roles = roles
        self._remote_endpoint_of = remote_endpoint_of

    async def push(self, push_request: PushRequest) -> Attempt:
        """Put records into a stream; they are on disk then."""
        remote = self._remote_endpoint_of(push_request.endpoint)
        if remote is not None:
            return await remote.push(push_request)
        records = push_request.parts or (push_request.body,)
        arn = parse_arn(push_request.endpoint)
        role = push_request.headers.get(ROLE, "")
        if not await self._roles.may_act(arn.account, role, arn.region):
            return _failed_attempt(
                "AccessDeniedException", f"SNS is unable to assume role {role}", HTTPStatus.FORBIDDEN
            )
        principal = await self._roles.role_principal(arn.account, role, arn.region)
        attempts: list[Attempt] = []
        for batch in _batches(records):
            attempts += await self._put(principal, arn.region, arn.resource.removeprefix(_RESOURCE), batch)
        return _combined_attempt(attempts)

    async def _put(
        self, principal: Principal, region: str, name: str, records: Sequence[bytes]
    ) -> Sequence[Attempt]:
        """Put records into a stream; returns an attempt for each."""
        params = {"DeliveryStreamName": name, "Records": [{"Data": record} for record in records]}
        try:
            answer = await self._calls.call("firehose", "PutRecordBatch", params, principal, region)
        except AwsError as refusal:
            return [_failed_attempt(refusal.code, refusal.message, refusal.status)] * len(records)
        except StoreUnavailable as failure:
            return [_failed_attempt("ServiceUnavailableException", str(failure), 503)] * len(records)
        request_id = self._new_request_id()
        return [_attempt_of(entry, request_id) for entry in answer["RequestResponses"]]

    async def close(self) -> None:
        """Nothing has to be closed."""


def _batches(records: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Records in their order, as many together as a call takes."""
    batches: list[list[bytes]] = []
    room = 0
    for record in records:
        if not batches or len(record) > room:
            batches.append([])
            room = BATCH_BYTES_MAX
        batches[-1].append(record)
        room -= len(record)
    return list(batches)


def _attempt_of(entry: Mapping[str, str], request_id: str) -> Attempt:
    if "ErrorCode" in entry:
        return _failed_attempt(entry["ErrorCode"], entry.get("ErrorMessage", ""), 503)
    return Attempt(
        AttemptResult.DELIVERED, Reason.ACCEPTED, HTTPStatus.OK, "", 0, (("request_id", request_id),)
    )


def _failed_attempt(code: str, message: str, status: int) -> Attempt:
    text = orjson.dumps({"ErrorCode": code, "ErrorMessage": message[:_TEXT_CHARS_MAX]}).decode()
    if code in _THROTTLED:
        return Attempt(AttemptResult.FAILED, Reason.THROTTLED, status, text)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Attempt(AttemptResult.FAILED, Reason.SERVER_ERROR, status, text)
    return Attempt(AttemptResult.REFUSED, _REASONS.get(code, Reason.CLIENT_ERROR), status, text)


def _combined_attempt(attempts: Sequence[Attempt]) -> Attempt:
    """One attempt for all: the first that failed, or else the first, with each as a part."""
    shown_attempt = next((attempt for attempt in attempts if not attempt.delivered), attempts[0])
    return shown_attempt if len(attempts) == 1 else replace(shown_attempt, parts=tuple(attempts))
