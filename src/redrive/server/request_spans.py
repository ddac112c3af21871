"""Requests as spans: which service and operation, how it ended and how long that took.

Made where a collector is set up; then each request of a protocol has one, but not the server's own routes, which load
balancers and scrapers ask all the time. A caller that traces its own work names it in `traceparent`
(https://www.w3.org/TR/trace-context/), and the span goes on there.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from redrive.model.http import Request, RequestRecord, Response
from redrive.server.connection import Handler
from redrive.server.request_log import answer_observed

CHARS_MAX: Final = 256  # of what a caller gave: an operation or a path
_FAILED: Final = 500
_OWN: Final = "/_redrive/"
_TRACE_CONTEXT: Final = TraceContextTextMapPropagator()


class RequestSpans:
    """A handler (`redrive.server.connection.Handler`) that traces what another one answers."""

    def __init__(self, handler: Handler, tracer: Tracer, now: Callable[[], int]) -> None:
        """Trace the requests to a handler; `now` tells milliseconds since the epoch."""
        self._handler = handler
        self._tracer = tracer
        self._now = now

    def answer(self, request: Request) -> Response | Awaitable[Response]:
        """Answer one request, in a span."""
        if request.path.startswith(_OWN):
            return self._handler(request)
        span = self._begin(request)
        if request.record is None:
            request.record = RequestRecord()
        return answer_observed(self._handler, request, partial(self._end, span, request))

    def _begin(self, request: Request) -> Span:
        """Begin a span, as a child of the client's own if it sends one."""
        parent = _TRACE_CONTEXT.extract(request.headers) if "traceparent" in request.headers else None
        name = f"{request.method} {request.path}"[:CHARS_MAX]
        attributes: dict[str, str | int] = {
            "http.request.method": request.method,
            "client.address": request.client_host,
            "http.request.body.size": len(request.body),
        }
        return self._tracer.start_span(
            name, parent, SpanKind.SERVER, attributes, start_time=self._now() * 1_000_000
        )

    def _end(self, span: Span, request: Request, response: Response | None) -> None:
        """End a span with what is known of the request by now."""
        record = request.record or RequestRecord()
        status = _FAILED if response is None else response.status
        if record.service:
            operation = record.operation[:CHARS_MAX]
            span.update_name(f"{record.service}/{operation}")
            span.set_attributes(
                {"rpc.system": "aws-api", "rpc.service": record.service, "rpc.method": operation}
            )
        span.set_attribute("http.response.status_code", status)
        if record.request_id:
            span.set_attribute("aws.request_id", record.request_id)
        if record.error:
            span.set_attribute("error.type", record.error)
        if status >= _FAILED:
            span.set_status(Status(StatusCode.ERROR))
        span.end(self._now() * 1_000_000)
