"""The way to a collector: spans go as they end, in batches; metrics once a minute, and at the end.

The SDK's own variables count as everywhere: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES name the node,
OTEL_TRACES_SAMPLER says how many traces are kept, OTEL_EXPORTER_OTLP_HEADERS brings a token.

Attempts are spans in one trace for each message, which has the message's own id: whoever knows it, from the publisher's
answer or from a dead letter, finds all attempts at all its deliveries in a tracing system by looking that trace up. Where
the publisher chose an id that is no UUID, as Event Grid's do, the trace's is UUID version 5 of it.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from uuid import NAMESPACE_OID, UUID, uuid5

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import (
    Metric,
    MetricExportResult,
    MetricsData,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer
from typing_extensions import override

from redrive import __version__
from redrive.engine.ports import Clock
from redrive.engine.ports.facts import Accepted, Attempted, Listener, Undelivered
from redrive.model.attempt import Attempt
from redrive.model.delivery import Outcome

_NS_OF_MS: Final = 1_000_000
_NO_PARENT: Final = Context()


class TraceIds(RandomIdGenerator):
    """Ids of traces and spans: random ones, but for the trace that is chosen.

    Attributes:
        next_id: The id of the trace that begins next; None: a random one.
    """

    def __init__(self) -> None:
        self.next_id: int | None = None

    @override
    def generate_trace_id(self) -> int:
        """The chosen id, once."""
        next_id, self.next_id = self.next_id, None
        return super().generate_trace_id() if next_id is None else next_id


class AttemptSpans(Listener):
    """Writes a span for each attempt, and one for each delivery that was given up."""

    def __init__(self, tracer: Tracer, ids: TraceIds) -> None:
        self._tracer = tracer
        self._ids = ids

    @override
    def attempted(self, fact: Attempted) -> None:
        self._write(f"deliver {fact.topic.name.name}", fact, fact.attempt)

    @override
    def accepted(self, fact: Accepted) -> None:
        for attempted in fact.attempts():
            self.attempted(attempted)

    @override
    def undelivered(self, fact: Undelivered) -> None:
        if not fact.confirmation:
            name = "dead-letter" if fact.outcome is Outcome.DEAD_LETTERED else fact.outcome.value
            self._write(f"{name} {fact.last.topic.name.name}", fact.last, fact.handover)

    def _write(self, name: str, fact: Attempted, attempt: Attempt | None) -> None:
        """Write what ended just now; without an attempt there was no dead-letter queue to hand the delivery to."""
        duration_ms = 0 if attempt is None else attempt.duration_ms
        self._ids.next_id = trace_id(fact.message_id)
        span = self._tracer.start_span(
            name,
            _NO_PARENT,
            SpanKind.PRODUCER,
            _attributes(fact, attempt),
            start_time=(fact.at - duration_ms) * _NS_OF_MS,
        )
        self._ids.next_id = None  # also of a span that is not sampled
        if attempt is None or not attempt.delivered:
            reason = fact.attempt.reason if attempt is None else attempt.reason
            span.set_status(Status(StatusCode.ERROR, reason.value))
        span.end(fact.at * _NS_OF_MS)


def trace_id(message_id: str) -> int:
    """The id of a message's trace."""
    try:
        return UUID(message_id).int
    except ValueError:
        return uuid5(NAMESPACE_OID, message_id).int


def _attributes(fact: Attempted, attempt: Attempt | None) -> dict[str, str | int]:
    """The attributes of a span."""
    topic, subscription = fact.topic.name, fact.subscription
    attributes: dict[str, str | int] = {
        "messaging.system": "redrive",
        "messaging.operation.type": "send",
        "messaging.destination.name": topic.name,
        "messaging.message.id": fact.message_id,
        "redrive.account": topic.account,
        "redrive.region": topic.region,
        "redrive.subscription": subscription.id,
        "redrive.protocol": subscription.protocol,
        "redrive.attempt": fact.delivery.attempts,
        "redrive.outcome": fact.transition.outcome.value,
    }
    if attempt is not None:
        attributes["redrive.reason"] = attempt.reason.value
        if attempt.status:
            attributes["http.response.status_code"] = attempt.status
    return attributes


logger = logging.getLogger(__name__)

EVERY_MS: Final = 60_000  # the SDK's own interval, and as often as levels are looked at
_TIMEOUT_SECONDS: Final = 5  # of a request to the collector: at the end nobody waits longer for it
_SCOPE: Final = InstrumentationScope("redrive", __version__)


class OtlpExporter:
    """Sends a node's spans and metrics to a collector.

    Attributes:
        ids: The ids of the traces that `tracer` begins.
        tracer: Begins the spans that are sent.
    """

    def __init__(self, endpoint: str, attributes: Mapping[str, str], clock: Clock) -> None:
        """Send to a collector, whose URL ends before `/v1/traces`, as the node with these attributes."""
        self.ids = TraceIds()
        self._clock = clock
        self._resource = Resource.create({"service.name": "redrive", **attributes})
        self._provider = TracerProvider(
            resource=self._resource, id_generator=self.ids, shutdown_on_exit=False
        )
        spans = OTLPSpanExporter(f"{endpoint}/v1/traces", timeout=_TIMEOUT_SECONDS)
        self._provider.add_span_processor(BatchSpanProcessor(spans))
        self._metrics = OTLPMetricExporter(f"{endpoint}/v1/metrics", timeout=_TIMEOUT_SECONDS)
        self._read_metrics: Callable[[int], Sequence[Metric]] = _no_metrics
        self._task: asyncio.Task[None] | None = None
        self.tracer: Tracer = self._provider.get_tracer("redrive", __version__)

    def start(self, read: Callable[[int], Sequence[Metric]]) -> None:
        """Send what `read` says of a moment (ms), every minute from now on."""
        self._read_metrics = read
        self._task = asyncio.create_task(self._run(), name="redrive-otlp")

    async def close(self) -> None:
        """Send what is left; a collector that does not answer is waited for no longer than its time-out."""
        if self._task is not None:
            self._task.cancel()
            await self._send()
        await asyncio.to_thread(self._provider.shutdown)
        await asyncio.to_thread(self._metrics.shutdown)

    async def _run(self) -> None:
        while True:
            await self._clock.sleep_until(self._clock.now() + EVERY_MS)
            await self._send()

    async def _send(self) -> None:
        """Send the metrics; those that a collector does not take come with the next ones, for all are totals."""
        try:
            result = await asyncio.to_thread(self._metrics.export, self._metrics_data())
        except Exception:  # a fault of ours must not end the metrics of a node
            logger.exception("otlp.metrics_not_sent: they are sent again in a minute")
            return
        if result is not MetricExportResult.SUCCESS:
            logger.warning("otlp.metrics_not_taken: they are sent again in a minute")

    def _metrics_data(self) -> MetricsData:
        metrics = list(self._read_metrics(self._clock.now()))
        return MetricsData([ResourceMetrics(self._resource, [ScopeMetrics(_SCOPE, metrics, "")], "")])


def _no_metrics(_: int) -> Sequence[Metric]:
    return ()
