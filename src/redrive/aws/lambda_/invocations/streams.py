"""InvokeWithResponseStream: answers that are handed on while the function writes them."""

import asyncio
import base64
from collections import deque
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Final

from typing_extensions import override

from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents import names
from redrive.aws.lambda_.documents.errors import throttled, unoffered
from redrive.aws.lambda_.documents.lookup import FunctionTarget, Lookup
from redrive.aws.lambda_.documents.records import REQUEST_BYTES_MAX, Configuration
from redrive.aws.lambda_.functions.sealed_variables import VariablesUnreadable
from redrive.aws.lambda_.invocations.execution import Executor
from redrive.aws.lambda_.invocations.invoking import TRACE, check_payload, client_context
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.model.function import AnswerParts, InvocationResult, Throttled

#: Of an answer that its reader has not taken yet: then nothing more is read of the function until half of it is gone.
HELD_BYTES_MAX: Final = 1024 * 1024


class AnswerBroken(Exception):  # noqa: N818 - an end, which nobody can be told of
    """The function failed in the middle of an answer whose beginning the caller has."""


class AnswerStream(AnswerParts):
    """An answer on its way from a function to whoever reads it.

    Attributes:
        content_type: As the function's runtime said.
        begun: Whether the function streams its answer; others post it whole.
    """

    def __init__(self) -> None:
        self.content_type = ""
        self.begun = False
        self._parts: deque[bytes] = deque()  # Those that the reader has not taken
        self._held_bytes = 0  # The size of these
        self._has_ended = False
        self._has_no_reader = False  # It stopped early: parts are thrown away, so that the function can end
        # Lets the function write again; None: it is not held up
        self._resume: Callable[[], None] | None = None
        self._wakeup: asyncio.Future[None] | None = None
        self._running: asyncio.Task[InvocationResult]

    def run(self, running: "asyncio.Task[InvocationResult]") -> None:
        """Be the answer of this invocation."""
        self._running = running
        running.add_done_callback(self._end)

    @override
    def begin(self, content_type: str) -> None:
        """Take an answer of this type from now on."""
        self.begun, self.content_type = True, content_type
        self._wake()

    @override
    def add(self, part: bytes, resume: Callable[[], None]) -> bool:
        """Take a part; False: no more is to be read of the function until `resume` is called."""
        if self._has_no_reader:
            return True
        self._parts.append(part)
        self._held_bytes += len(part)
        self._wake()
        if self._held_bytes < HELD_BYTES_MAX:
            return True
        self._resume = resume
        return False

    def _end(self, running: "asyncio.Task[InvocationResult]") -> None:
        self._has_ended = True
        if running.cancelled() or running.exception() is not None:
            self._parts.clear()
        self._wake()

    def _wake(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)

    async def _until_woken(self) -> None:
        self._wakeup = asyncio.get_running_loop().create_future()
        await self._wakeup

    # ---- for the reader ---------------------------------------------------------------------------------

    async def started(self) -> None:
        """Wait until the function begins to stream, or is done without; raises Throttled if it was not run."""
        while not self.begun and not self._has_ended:
            await self._until_woken()
        if not self.begun:
            await self._running

    async def parts(self) -> AsyncIterator[bytes]:
        """The parts as they come; whoever stops early lets the function write into nothing."""
        try:
            while self._parts or not self._has_ended:
                if self._parts:
                    yield self._take()
                else:
                    await self._until_woken()
        finally:
            self._has_no_reader = True
            self._parts.clear()
            self._go_on()

    async def result(self) -> InvocationResult:
        """The end of the invocation."""
        return await self._running

    def _take(self) -> bytes:
        """Take the oldest part; the function goes on when half of the room is free."""
        part = self._parts.popleft()
        self._held_bytes -= len(part)
        if self._held_bytes < HELD_BYTES_MAX // 2:
            self._go_on()
        return part

    def _go_on(self) -> None:
        resume, self._resume = self._resume, None
        if resume is not None:
            resume()


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
        version = await self._lookup.choose_version(target, self._engine.runtime.rng)
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
    """The events of an answer: its parts as they come, then its end with the error and the log."""
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
