"""Invocations: those that are waited for, those that are not, and dry runs."""

import base64
from http import HTTPStatus
from typing import Final

import orjson

from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents import names
from redrive.aws.lambda_.documents.errors import ABSENT, error, no_function, throttled, unoffered
from redrive.aws.lambda_.documents.lookup import FunctionTarget, Lookup
from redrive.aws.lambda_.documents.names import LATEST, FunctionReference
from redrive.aws.lambda_.documents.records import REQUEST_BYTES_MAX
from redrive.aws.lambda_.functions.sealed_variables import VariablesUnreadable
from redrive.aws.lambda_.invocations.events import AsyncInvocations
from redrive.aws.lambda_.invocations.execution import Executor
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.model.function import Throttled

EVENT_BYTES_MAX: Final = 1024 * 1024
TRACE: Final = "x-amzn-trace-id"


class Invoking:
    """Invokes functions for callers."""

    def __init__(
        self, engine: Engine, lookup: Lookup, executor: Executor, invocations: AsyncInvocations
    ) -> None:
        self._engine = engine  # Its random numbers choose between the versions of an alias
        self._lookup = lookup
        self._executor = executor
        self._invocations = invocations

    async def invoke(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"], params.get("Qualifier"))
        try:
            target = await self._lookup.authorized_target(call, reference, "InvokeFunction")
        except AwsError as refusal:
            if refusal.code != ABSENT:
                raise
            # What is missing is called by its version (recorded).
            raise no_function(reference._replace(qualifier=reference.qualifier or LATEST).arn) from None
        kind = params.get("InvocationType", "RequestResponse")
        for parameter in ("TenantId", "DurableExecutionName"):
            if params.get(parameter):
                raise unoffered(parameter)
        if kind == "DryRun":
            return {"StatusCode": HTTPStatus.NO_CONTENT}
        payload = params.get("Payload") or b"{}"
        if kind == "Event":
            await self._accept(call, reference, target, payload)
            return {"StatusCode": HTTPStatus.ACCEPTED}
        return await self._wait(call, reference, target, payload, params)

    async def invoke_async(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/lambda/latest/api/API_InvokeAsync.html; as `Invoke` of an event since 2014."""
        reference = names.read(call, params["FunctionName"])
        target = await self._lookup.authorized_target(call, reference, "InvokeAsync")
        await self._accept(call, reference, target, params["InvokeArgs"] or b"{}")
        return {"Status": HTTPStatus.ACCEPTED}

    async def _accept(
        self, call: Call, reference: FunctionReference, target: FunctionTarget, payload: bytes
    ) -> None:
        check_payload(payload, "Event", EVENT_BYTES_MAX)
        trace = call.request.headers.get(TRACE)
        await self._invocations.accept(target.function, reference, payload, call.id, trace)

    async def _wait(
        self,
        call: Call,
        reference: FunctionReference,
        target: FunctionTarget,
        payload: bytes,
        params: Structure,
    ) -> Structure:
        """Invoke a function and answer when it has ended (`RequestResponse`)."""
        check_payload(payload, "RequestResponse", REQUEST_BYTES_MAX)
        version = await self._lookup.choose_version(target, self._engine.runtime.rng)
        try:
            result = await self._executor.run(
                target,
                version,
                reference.arn,
                payload,
                call.id,
                trace=call.request.headers.get(TRACE),
                client_context=client_context(params.get("ClientContext")),
            )
        except Throttled as refusal:
            raise throttled(by_function=refusal.by_function) from None
        except VariablesUnreadable as refusal:
            raise refusal.error from None
        answer: Structure = {
            "StatusCode": HTTPStatus.OK,
            "ExecutedVersion": version.version,
            "Payload": result.payload,
        }
        if result.failed:
            answer["FunctionError"] = "Unhandled"
        if params.get("LogType") == "Tail":
            answer["LogResult"] = base64.b64encode(result.log_tail).decode()
        return answer


def check_payload(payload: bytes, kind: str, bytes_max: int) -> None:
    """Refuse an event that is too large, or no JSON.

    Raises:
        AwsError: `RequestTooLargeException` or `InvalidRequestContentException`.
    """
    if len(payload) > bytes_max:
        raise error(
            "RequestTooLargeException",
            f"{len(payload)} byte payload is too large for the {kind} invocation type (limit {bytes_max} bytes)",
        )
    try:
        orjson.loads(payload)
    except orjson.JSONDecodeError as problem:
        raise _no_json(str(problem)) from None


def _no_json(problem: str) -> AwsError:
    text = f"Could not parse request body into json: Could not parse payload into json: {problem}"
    return error("InvalidRequestContentException", text)


def client_context(text: str | None) -> str | None:
    """The client's context, which comes in base64, as JSON; raises AwsError if it is no JSON in base64."""
    if text is None:
        return None
    try:
        return orjson.dumps(orjson.loads(base64.b64decode(text))).decode()
    except ValueError:
        raise error(
            "InvalidRequestContentException", "Client context must be a valid Base64-encoded JSON object."
        ) from None
