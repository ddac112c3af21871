"""Targets of events' ends: letters and records go to queues, topics, functions and buckets of this server."""

from http import HTTPStatus
from typing import Final

import orjson

from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.gateway.rounds import TRACE, Rounds
from redrive.aws.lambda_.documents.lookup import Lookup
from redrive.aws.lambda_.functions.execution_roles import ExecutionRoles
from redrive.aws.lambda_.invocations import profile
from redrive.aws.lambda_.invocations.attempts import failure
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import AttemptNote, DeathRecord, PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason

_SLOWER: Final = frozenset(
    {"TooManyRequestsException", "ThrottlingException", "Throttling", "RequestThrottled"}
)


class TargetEndpoint:
    """Hands letters and records over as the function's role (`redrive.engine.ports.Endpoint`)."""

    def __init__(self, calls: InnerCalls, rounds: Rounds, lookup: Lookup, roles: ExecutionRoles) -> None:
        """Deliver results to destinations.

        Args:
            calls: Calls the services of targets.
            rounds: Counts the runs of functions that follow each other so.
            lookup: Finds functions.
            roles: Their roles.
        """
        self._calls = calls
        self._rounds = rounds
        self._lookup = lookup
        self._roles = roles

    async def push(self, push_request: PushRequest) -> Attempt:
        """Send, publish, invoke or write."""
        service, region = push_request.endpoint.split(":")[2:4]
        region = region or push_request.headers[profile.REGION]  # a bucket's ARN has none
        trace = self._rounds.following(push_request.headers.get(profile.TRACE))
        operation, params = _request(push_request, trace)
        function = push_request.headers[profile.FUNCTION]
        target = await self._lookup.at(function)
        if target is None:
            text = f"{function} is gone"
            return failure(AttemptResult.REFUSED, Reason.MISSING, HTTPStatus.NOT_FOUND, "", text)
        caller = await self._roles.principal(target.configuration)
        try:
            died = _died(push_request) if service == "sqs" else None
            await self._calls.call(service, operation, params, caller, region, {TRACE: trace}, died=died)
        except AwsError as error:
            return _refused(error)
        return Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, HTTPStatus.OK, "", 0)

    async def close(self) -> None:
        """There is nothing to let go of."""


def _died(push_request: PushRequest) -> DeathRecord | None:
    """The dead letter that a message is; None: it is a record."""
    if profile.DIED not in push_request.headers:
        return None
    origin, message_id, note = orjson.loads(push_request.headers[profile.DIED])
    return DeathRecord(origin, bytes.fromhex(message_id), AttemptNote(*note))


def _request(push_request: PushRequest, trace: str) -> tuple[str, Structure]:
    """The operation that hands a message over, and its parameters."""
    arn = push_request.endpoint
    service, account, name = arn.split(":")[2], arn.split(":")[4], arn.split(":")[-1]
    attributes = {
        name: {"DataType": kind, "StringValue": text}
        for name, (kind, text) in orjson.loads(push_request.headers[profile.ATTRIBUTES]).items()
    }
    if service == "lambda":
        return "Invoke", {"FunctionName": arn, "InvocationType": "Event", "Payload": push_request.body}
    if service == "s3":
        written = {"Body": push_request.body, "ContentType": "application/json"}
        return "PutObject", {"Bucket": name, "Key": push_request.headers[profile.OBJECT], **written}
    if service == "sns":
        message = push_request.body.decode()
        return "Publish", {"TopicArn": arn, "Message": message, "MessageAttributes": attributes}
    params: Structure = {
        "QueueUrl": f"http://localhost/{account}/{name}",
        "MessageBody": push_request.body.decode(),
        "MessageAttributes": attributes,
    }
    if profile.TRACE in push_request.headers:
        params["MessageSystemAttributes"] = {"AWSTraceHeader": {"DataType": "String", "StringValue": trace}}
    return "SendMessage", params


def _refused(error: AwsError) -> Attempt:
    if error.code in _SLOWER:
        return failure(AttemptResult.FAILED, Reason.THROTTLED, error.status, error.code, error.message)
    if not error.sender:
        return failure(AttemptResult.FAILED, Reason.SERVER_ERROR, error.status, error.code, error.message)
    return failure(AttemptResult.REFUSED, Reason.CLIENT_ERROR, error.status, error.code, error.message)
