"""The front of function URLs: a request becomes an event, and the function's answer a response."""

from collections.abc import AsyncIterator, Callable
from typing import Final, NamedTuple

import orjson

from redrive.access.principals import ANONYMOUS, Principal
from redrive.aws.gateway.authentication import Authentication
from redrive.aws.kit.call import Call
from redrive.aws.lambda_.documents.lookup import FunctionTarget, Lookup, policy_of
from redrive.aws.lambda_.documents.names import arn_of
from redrive.aws.lambda_.documents.records import (
    FUNCTION_URL,
    REQUEST_BYTES_MAX,
    URLS,
    FunctionUrl,
    UrlPlace,
    UrlTarget,
    target_of,
)
from redrive.aws.lambda_.functions.sealed_variables import VariablesUnreadable
from redrive.aws.lambda_.invocations.execution import Executor
from redrive.aws.lambda_.invocations.invoking import TRACE
from redrive.aws.lambda_.invocations.metrics import InvocationMetrics
from redrive.aws.lambda_.invocations.streams import AnswerBroken, AnswerStream, begin
from redrive.aws.lambda_.urls.events import PRELUDE_END, AnswerMalformed, event_of, head_of, response_of
from redrive.aws.wire.cors import preflight, sharing_headers
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.http_events import trace_of
from redrive.aws.wire.signatures.sigv4 import credential_scope
from redrive.engine.engine import Engine
from redrive.model.function import Throttled
from redrive.model.http import Request, Response
from redrive.model.names import id_text

Refusal = Callable[[Request], Response | None]

OPEN: Final = "NONE"
_FORBIDDEN: Final = (
    "Forbidden. For troubleshooting Function URL authorization issues, see:"
    " https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html"
)
STREAMED: Final = "RESPONSE_STREAM"


class _RequestedUrl(NamedTuple):
    """The URL that a request is for, and the function behind it."""

    target: UrlTarget
    location: UrlPlace
    function: FunctionTarget
    settings: FunctionUrl

    @property
    def function_arn(self) -> str:
        return arn_of(self.location.function, self.location.qualifier or None)


class FunctionUrls:
    """Answers requests to function URLs (`redrive.server.app.HostedProtocol`)."""

    urls = URLS

    def __init__(
        self,
        engine: Engine,
        lookup: Lookup,
        executor: Executor,
        authentication: Authentication,
        metrics: InvocationMetrics,
    ) -> None:
        self._engine = engine
        self._lookup = lookup
        self._executor = executor
        self._authentication = authentication
        self._metrics = metrics

    async def answer(self, request: Request, refusal: Refusal) -> Response:
        """Answer one request; what web pages cause is refused unless the function's owner opened it to everybody."""
        request_id = id_text(self._engine.runtime.message_id())
        if request.record is not None:
            request.record.service, request.record.operation = "lambda", "FunctionUrl"
            request.record.request_id = request_id
        url = await self._requested_url(request)
        if url is None:
            return _error_response(404, None)
        if url.settings.auth != OPEN and (web_refusal := refusal(request)) is not None:
            return web_refusal
        began = self._engine.runtime.clock.now()
        answer = preflight(url.settings.cors, request)
        if answer is None:
            answer = await self._invoke(request, url, request_id)
            answer.headers = {
                **answer.headers,
                **sharing_headers(url.settings.cors, request),
                "x-amzn-RequestId": request_id,
                "X-Amzn-Trace-Id": trace_of(request, began, request_id),
            }
        self._count(url.location, answer.status, began)
        return answer

    async def _requested_url(self, request: Request) -> _RequestedUrl | None:
        """The URL that a request is for; None: it is for none."""
        target = target_of(request)
        if target is None:
            return None
        location = await self._engine.resources.documents.get(FUNCTION_URL, target.id)
        if location is None:
            return None
        function = await self._lookup.at(arn_of(location.function, location.qualifier or None))
        settings = None if function is None else function.function.urls.get(location.qualifier)
        if function is None or settings is None:
            return None
        return _RequestedUrl(target, location, function, settings)

    async def _invoke(self, request: Request, url: _RequestedUrl, request_id: str) -> Response:
        call = await self._permitted_call(request, url, request_id)
        if call is None:
            return _error_response(403, _FORBIDDEN)
        caller = None if url.settings.auth == OPEN else call.principal
        event = event_of(request, url.target, caller, call.now, request_id)
        if len(event) > REQUEST_BYTES_MAX:
            return _error_response(413, "Request Entity Too Large")
        version = await self._lookup.choose_version(url.function, self._engine.runtime.rng)
        arn, trace = url.function_arn, request.headers.get(TRACE)
        try:
            if url.settings.mode == STREAMED:
                stream = begin(self._executor, url.function, version, arn, event, request_id, trace)
                return await streamed_response(stream) or _bad_gateway()
            result = await self._executor.run(url.function, version, arn, event, request_id, trace=trace)
            return _bad_gateway() if result.failed else response_of(result.payload)
        except Throttled:
            return _error_response(429, "Rate Exceeded.")
        except (AnswerMalformed, VariablesUnreadable):
            return _bad_gateway()

    async def _permitted_call(self, request: Request, url: _RequestedUrl, request_id: str) -> Call | None:
        """The request as a call, if its caller may invoke the function by its URL."""
        owner = url.location.function
        principal = await self._principal(request, url.settings)
        if principal is None:
            return None
        base_url = f"{request.scheme}://{request.host}"
        now = self._engine.runtime.clock.now()
        call = Call(request, principal, owner.region, now, request_id, base_url)
        policy = policy_of(url.function.function, url.location.qualifier)
        keys = {"lambda:FunctionUrlAuthType": url.settings.auth}
        is_allowed = call.may("lambda:InvokeFunctionUrl", url.function_arn, owner.account, policy, keys)
        return call if is_allowed else None

    async def _principal(self, request: Request, url: FunctionUrl) -> Principal | None:
        """The caller; None: nobody that the URL lets in."""
        if url.auth == OPEN:
            return ANONYMOUS
        if credential_scope(request) is None:
            return None
        try:
            caller = await self._authentication.caller(request, "lambda")
        except AwsError:
            return None
        return caller.principal

    def _count(self, location: UrlPlace, status: int, began: int) -> None:
        name = location.function
        values = {
            "UrlRequestCount": 1,
            "Url4xxCount": int(400 <= status < 500),  # noqa: PLR2004 - as the metric is called
            "Url5xxCount": int(status >= 500),  # noqa: PLR2004 - as the metric is called
            "UrlRequestLatency": self._engine.runtime.clock.now() - began,
        }
        for metric, value in values.items():
            self._metrics.count(name, metric, value, began)


def _error_response(status: int, message: str | None) -> Response:
    return Response(status, orjson.dumps({"Message": message}))


def _bad_gateway() -> Response:
    return Response(502, b"Internal Server Error", "text/plain")


# ---- streamed answers ------------------------------------------------------------------------------------------------
#
# The head that the function writes first, and the body as it comes.

#: What a function's runtime calls an answer that begins with its head.
_WITH_HEAD: Final = "application/vnd.awslambda.http-integration-response"
_HEAD_BYTES_MAX: Final = 64 * 1024


async def streamed_response(stream: AnswerStream) -> Response | None:
    """The response that a stream is the body of; None: the function failed before it wrote any.

    A function that does not stream answers as one of a URL in the mode BUFFERED does.

    Raises:
        AnswerMalformed: It has no head where it says that it has one.
        Throttled: It was not run.
    """
    await stream.started()
    if not stream.begun:
        result = await stream.result()
        return None if result.failed else response_of(result.payload)
    parts = stream.parts()
    if not stream.content_type.startswith(_WITH_HEAD):  # all parts are the body
        first = await anext(parts, None)
        if first is None and (await stream.result()).failed:
            return None
        content_type = stream.content_type or "application/octet-stream"
        return Response(200, b"", content_type, parts=_body_parts(stream, first or b"", parts))
    head_bytes = b""
    while PRELUDE_END not in head_bytes:
        part = await anext(parts, None)
        if part is None and (await stream.result()).failed:
            return None
        if part is None or len(head_bytes) > _HEAD_BYTES_MAX:
            raise AnswerMalformed
        head_bytes += part
    head, _, body = head_bytes.partition(PRELUDE_END)
    response = head_of(head)
    response.parts = _body_parts(stream, body, parts)
    return response


async def _body_parts(stream: AnswerStream, first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A body, which is cut off where the function failed in its middle."""
    yield first
    async for part in rest:
        yield part
    if (await stream.result()).failed:
        raise AnswerBroken
