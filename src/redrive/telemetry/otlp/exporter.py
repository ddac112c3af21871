"""The way to a collector: spans go as they end, in batches; metrics once a minute, and at the end.

The SDK's own variables count as everywhere: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES name the node,
OTEL_TRACES_SAMPLER says how many traces are kept, OTEL_EXPORTER_OTLP_HEADERS brings a token.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

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
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Tracer

from redrive import __version__
from redrive.engine.ports import Clock
from redrive.telemetry.otlp.spans import TraceIds

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
        """Send to a collector.

        Args:
            endpoint: Its URL, before `/v1/traces` and `/v1/metrics`.
            attributes: Of the node, for OpenTelemetry's resource.
            clock: The system's, also where deliveries live on a simulated one.
        """
        self.ids = TraceIds()
        self._clock = clock
        self._resource = Resource.create({"service.name": "redrive", **attributes})
        self._provider = TracerProvider(
            resource=self._resource, id_generator=self.ids, shutdown_on_exit=False
        )
        spans = OTLPSpanExporter(f"{endpoint}/v1/traces", timeout=_TIMEOUT_SECONDS)
        self._provider.add_span_processor(BatchSpanProcessor(spans))
        self._metrics = OTLPMetricExporter(f"{endpoint}/v1/metrics", timeout=_TIMEOUT_SECONDS)
        self._read: Callable[[int], Sequence[Metric]] = _nothing
        self._task: asyncio.Task[None] | None = None
        self.tracer: Tracer = self._provider.get_tracer("redrive", __version__)

    def start(self, read: Callable[[int], Sequence[Metric]]) -> None:
        """Send what `read` says of a moment (ms), every minute from now on."""
        self._read = read
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
            result = await asyncio.to_thread(self._metrics.export, self._measured())
        except Exception:  # a fault of ours must not end the metrics of a node
            logger.exception("otlp.metrics_not_sent: they are sent again in a minute")
            return
        if result is not MetricExportResult.SUCCESS:
            logger.warning("otlp.metrics_not_taken: they are sent again in a minute")

    def _measured(self) -> MetricsData:
        metrics = list(self._read(self._clock.now()))
        return MetricsData([ResourceMetrics(self._resource, [ScopeMetrics(_SCOPE, metrics, "")], "")])


def _nothing(_: int) -> Sequence[Metric]:
    return ()
