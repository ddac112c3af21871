"""Endpoints that run functions: events that wait, messages of subscriptions, and destinations of results."""

import random
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import orjson
from typing_extensions import override

from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.gateway.rounds import TRACE, Rounds
from redrive.aws.lambda_.documents import names
from redrive.aws.lambda_.documents.lookup import Lookup, may_be_invoked_for
from redrive.aws.lambda_.functions.execution_roles import ExecutionRoles
from redrive.aws.lambda_.functions.sealed_variables import VariablesUnreadable
from redrive.aws.lambda_.invocations import profile
from redrive.aws.lambda_.invocations.events import FUNCTION_ERROR, INVOKED, VERSION, AsyncInvocations
from redrive.aws.lambda_.invocations.execution import Executor
from redrive.aws.wire.arn import parse_arn
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import AttemptNote, Clock, DeathRecord, DirectEndpoint, Endpoint, PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.function import InvocationResult, Throttled

_TEXT_CHARS_MAX: Final = 400  # an attempt keeps 1,024 characters, and a character may take two in JSON


def failure(result: AttemptResult, reason: Reason, status: int, code: str, text: str) -> Attempt:
    """An attempt that failed, with the status, the code and the text of the error."""
    message = orjson.dumps({"ErrorCode": code, "ErrorMessage": text[:_TEXT_CHARS_MAX]}).decode()
    return Attempt(result, reason, status, message)


def missing(arn: str) -> Attempt:
    """The function is not there."""
    text = f"Function not found: {arn}"
    return failure(
        AttemptResult.REFUSED, Reason.MISSING, HTTPStatus.NOT_FOUND, "ResourceNotFoundException", text
    )


def unreadable(error: AwsError) -> Attempt:
    """The key of the function's variables cannot be used: a fault of the service's, which is tried for hours."""
    return failure(AttemptResult.FAILED, Reason.UNMADE, HTTPStatus.BAD_GATEWAY, error.code, error.message)


def throttled(result: AttemptResult, reason: Reason) -> Attempt:
    """No environment may be used for it."""
    return failure(result, reason, HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequestsException", "Rate Exceeded.")


_SAID_CHARS_MAX: Final = 1024
#: Reserved concurrency 0 switches a function off: its events go where failures go, and are not tried.
_NONE_RESERVED: Final = throttled(AttemptResult.REFUSED, Reason.DISABLED)
_THROTTLED: Final = throttled(AttemptResult.FAILED, Reason.THROTTLED)


class InvocationEndpoint(DirectEndpoint):
    """Runs a function for one event (`redrive.engine.ports.Endpoint`)."""

    def __init__(self, lookup: Lookup, executor: Executor, rng: random.Random) -> None:
        """Run functions that are found here by this executor; `rng` chooses between an alias's versions."""
        self._lookup = lookup
        self._executor = executor
        self._rng = rng

    @override
    def begin(self, push_request: PushRequest, take: Callable[[Attempt], None]) -> Callable[[], None] | None:
        """Begin an invocation if an environment rests and there is one version; None: `push` has to be called."""
        target = self._lookup.known_at(push_request.endpoint)
        if target is None or target.function.reserved == 0 or (target.alias and target.alias.weights):
            return None
        headers = push_request.headers
        version, invocations = target.configuration.version, int(headers[profile.INVOKED_BEFORE]) + 1
        is_given_up = False

        def end(result: InvocationResult) -> None:
            if not is_given_up:
                take(_attempt_of(result, version, invocations))

        def give_up() -> None:
            nonlocal is_given_up
            is_given_up = True

        is_begun = self._executor.begin(
            target,
            headers[profile.INVOKED_AS],
            push_request.body,
            headers[profile.REQUEST],
            headers.get(profile.TRACE),
            end,
        )
        return give_up if is_begun else None

    async def push(self, push_request: PushRequest) -> Attempt:
        """Run the function; the attempt says what came of it."""
        headers = push_request.headers
        target = await self._lookup.at(push_request.endpoint)
        if target is None:
            return missing(push_request.endpoint)
        if target.function.reserved == 0:
            return _NONE_RESERVED
        version = await self._lookup.choose_version(target, self._rng)
        try:
            result = await self._executor.run(
                target,
                version,
                headers[profile.INVOKED_AS],
                push_request.body,
                headers[profile.REQUEST],
                trace=headers.get(profile.TRACE),
            )
        except Throttled:
            return _THROTTLED
        except VariablesUnreadable as refusal:
            return unreadable(refusal.error)
        return _attempt_of(result, version.version, int(headers[profile.INVOKED_BEFORE]) + 1)

    async def close(self) -> None:
        """There is nothing to let go of."""


def _attempt_of(result: InvocationResult, version: str, invocations: int) -> Attempt:
    """The attempt that an invocation was, which delivered its event unless the function failed."""
    identifiers = [(VERSION, version), (INVOKED, str(invocations))]
    if result.failed:
        identifiers.append((FUNCTION_ERROR, "Unhandled"))
    return Attempt(
        AttemptResult.FAILED if result.failed else AttemptResult.DELIVERED,
        Reason.SERVER_ERROR if result.failed else Reason.ACCEPTED,
        HTTPStatus.OK,
        result.payload[:_SAID_CHARS_MAX].decode(errors="replace") if result.failed else "",
        round(result.duration_ms),
        tuple(identifiers),
        answer=result.payload,
    )


_TRACE: Final = "X-Amzn-Trace-Id"
#: The header of a request that names the resource it comes from, by its ARN.
_SOURCE: Final = "x-redrive-source-arn"


class FunctionSubscriber:
    """Takes what topics have for functions of this server, and hands on what is for functions elsewhere.

    A request's endpoint is the function's ARN, with or without a qualifier; its body is the event. Delivered is what is
    on disk: what becomes of the event then is its own affair.
    """

    def __init__(
        self,
        lookup: Lookup,
        invocations: AsyncInvocations,
        clock: Clock,
        new_request_id: Callable[[], str],
        *,
        remote_endpoint_of: Callable[[str], Endpoint | None],
        open_functions: bool,
    ) -> None:
        self._lookup = lookup
        self._invocations = invocations
        self._clock = clock
        self._new_request_id = new_request_id
        # The endpoint of a function that the settings put on another server; None: it is on this one
        self._remote_endpoint_of = remote_endpoint_of
        # Whether a function without a policy takes events of its own account
        self._open_functions = open_functions

    async def push(self, push_request: PushRequest) -> Attempt:
        """Take an event, if the function is there and lets the topic in."""
        remote = self._remote_endpoint_of(push_request.endpoint)
        if remote is not None:
            return await remote.push(push_request)
        arn = push_request.endpoint
        reference, target = names.of_arn(arn), await self._lookup.at(arn)
        if reference is None or target is None:
            return missing(arn)
        source = push_request.headers.get(_SOURCE, "")
        if not may_be_invoked_for(target.function, reference.qualifier, source, is_open=self._open_functions):
            text = f"No resource-based policy of {arn} allows lambda:InvokeFunction for {source}"
            return failure(
                AttemptResult.REFUSED, Reason.DENIED, HTTPStatus.FORBIDDEN, "AccessDeniedException", text
            )
        began, request_id = self._clock.now(), self._new_request_id()
        trace = push_request.headers.get(_TRACE)
        try:
            await self._invocations.accept(target.function, reference, push_request.body, request_id, trace)
        except AwsError as error:
            reason = Reason.CLIENT_ERROR
            return failure(AttemptResult.REFUSED, reason, error.status, error.code, error.message)
        took_ms = self._clock.now() - began
        return Attempt(
            AttemptResult.DELIVERED,
            Reason.ACCEPTED,
            HTTPStatus.ACCEPTED,
            "",
            took_ms,
            (("request_id", request_id),),
        )

    async def close(self) -> None:
        """There is nothing to let go of."""


_SLOWER: Final = frozenset(
    {"TooManyRequestsException", "ThrottlingException", "Throttling", "RequestThrottled"}
)


class TargetEndpoint:
    """Hands letters and records over as the function's role (`redrive.engine.ports.Endpoint`)."""

    def __init__(self, calls: InnerCalls, rounds: Rounds, lookup: Lookup, roles: ExecutionRoles) -> None:
        self._calls = calls
        self._rounds = rounds  # Counts the runs of functions that follow each other so
        self._lookup = lookup
        self._roles = roles

    async def push(self, push_request: PushRequest) -> Attempt:
        """Send, publish, invoke or write, whichever the service of the endpoint stands for."""
        arn = parse_arn(push_request.endpoint)
        service, region = arn.service, arn.region or push_request.headers[profile.REGION]  # of a bucket
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
        return Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, HTTPStatus.OK, "")

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
    service, _, account, resource = arn.split(":", 5)[2:]
    attributes = {
        name: {"DataType": data_type, "StringValue": text}
        for name, (data_type, text) in orjson.loads(push_request.headers[profile.ATTRIBUTES]).items()
    }
    if service == "lambda":
        return "Invoke", {"FunctionName": arn, "InvocationType": "Event", "Payload": push_request.body}
    if service == "s3":
        content = {"Body": push_request.body, "ContentType": "application/json"}
        return "PutObject", {"Bucket": resource, "Key": push_request.headers[profile.OBJECT], **content}
    if service == "sns":
        message = push_request.body.decode()
        return "Publish", {"TopicArn": arn, "Message": message, "MessageAttributes": attributes}
    params: Structure = {
        "QueueUrl": f"http://localhost/{account}/{resource}",
        "MessageBody": push_request.body.decode(),
        "MessageAttributes": attributes,
    }
    if profile.TRACE in push_request.headers:
        params["MessageSystemAttributes"] = {"AWSTraceHeader": {"DataType": "String", "StringValue": trace}}
    return "SendMessage", params


def _refused(error: AwsError) -> Attempt:
    """The attempt that an error of a target makes; whether it is tried again depends on the error."""
    if error.code in _SLOWER:
        return failure(AttemptResult.FAILED, Reason.THROTTLED, error.status, error.code, error.message)
    if not error.sender:
        return failure(AttemptResult.FAILED, Reason.SERVER_ERROR, error.status, error.code, error.message)
    return failure(AttemptResult.REFUSED, Reason.CLIENT_ERROR, error.status, error.code, error.message)
