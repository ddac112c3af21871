"""InvokeWithResponseStream: invocations whose answer comes in parts."""

import asyncio
import base64
from collections.abc import AsyncIterator
from http import HTTPStatus

from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents import names
from redrive.aws.lambda_.documents.errors import throttled, unoffered
from redrive.aws.lambda_.documents.lookup import FunctionTarget, Lookup
from redrive.aws.lambda_.documents.records import REQUEST_BYTES_MAX, Configuration
from redrive.aws.lambda_.functions.sealed_variables import VariablesUnreadable
from redrive.aws.lambda_.invocations.execution import Executor
from redrive.aws.lambda_.invocations.invoking import TRACE, check_payload, client_context
from redrive.aws.lambda_.invocations.streams import AnswerStream
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.model.function import Throttled


class StreamingInvocations:
    """Invokes functions whose answers are handed on part by part."""

    def __init__(self, engine: Engine, lookup: Lookup, executor: Executor) -> None:
        self._engine = engine  # Its random numbers choose between the versions of an alias
        self._lookup = lookup
        self._executor = executor

    async def invoke_with_response_stream(self, call: Call, params: Structure) -> Structure:
        reference = names.read(call, params["FunctionName"], params.get("Qualifier"))
        target = await self._lookup.authorized_target(call, reference, "InvokeFunction")
        if params.get("TenantId"):
            raise unoffered("TenantId")
        if params.get("InvocationType") == "DryRun":
            return {"StatusCode": HTTPStatus.NO_CONTENT}
        payload = params.get("Payload") or b"{}"
        check_payload(payload, "RequestResponse", REQUEST_BYTES_MAX)
        version = await self._lookup.chosen(target, self._engine.runtime.rng)
        context = client_context(params.get("ClientContext"))
        trace = call.request.headers.get(TRACE)
        stream = begin(self._executor, target, version, reference.arn, payload, call.id, trace, context)
        try:
            await stream.started()
        except Throttled as refusal:
            raise throttled(by_function=refusal.by_function) from None
        except VariablesUnreadable as refusal:
            raise refusal.error from None
        return {
            "StatusCode": HTTPStatus.OK,
            "ExecutedVersion": version.version,
            "EventStream": _events(stream, with_tail=params.get("LogType") == "Tail"),
        }


def begin(
    executor: Executor,
    target: FunctionTarget,
    version: Configuration,
    invoked_as: str,
    payload: bytes,
    request_id: str,
    trace: str | None = None,
    context: str | None = None,
) -> AnswerStream:
    """Begin an invocation whose answer is read as it comes; the parameters are those of `Executor.run`."""
    stream = AnswerStream()
    running = executor.run(
        target, version, invoked_as, payload, request_id, trace=trace, client_context=context, parts=stream
    )
    stream.run(asyncio.get_running_loop().create_task(running))
    return stream


async def _events(stream: AnswerStream, *, with_tail: bool) -> AsyncIterator[tuple[str, Structure]]:
    async for part in stream.parts():
        yield "PayloadChunk", {"Payload": part}
    result = await stream.result()
    complete: Structure = {}
    if result.failed:
        complete = {"ErrorCode": "Unhandled", "ErrorDetails": result.payload.decode(errors="replace")}
    elif not result.streamed and result.payload:
        yield "PayloadChunk", {"Payload": result.payload}
    if with_tail:
        complete["LogResult"] = base64.b64encode(result.log_tail).decode()
    yield "InvokeComplete", complete
