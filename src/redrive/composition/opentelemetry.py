"""OpenTelemetry, where a collector is set up; its SDK is an extra, and is not loaded otherwise."""

from typing import TYPE_CHECKING

from redrive import __version__
from redrive.composition.core import Core
from redrive.composition.extension import DeliveryParts, Extension, Lifecycle
from redrive.engine.operations import METRIC_NAMES
from redrive.runtime.machine import SystemClock
from redrive.server.connection import Handler
from redrive.settings import SettingsInvalid

if TYPE_CHECKING:
    from redrive.telemetry.otlp.exporter import OtlpExporter


class Collector:
    """The way to the collector of the settings; without one, nothing is made and nothing is wrapped."""

    def __init__(self, core: Core) -> None:
        """Know the settings.

        Raises:
            SettingsInvalid: A collector is set up, and OpenTelemetry's SDK is not installed.
        """
        self._core = core
        self._exporter: OtlpExporter | None = None
        endpoint = core.settings.otlp_endpoint.rstrip("/")
        if not endpoint:
            return
        try:
            from redrive.telemetry.otlp import exporter  # noqa: PLC0415 - an extra, and 0.3 s to load
        except ImportError as error:
            message = "otlp_endpoint needs its SDK: pip install opentelemetry-exporter-otlp-proto-http"
            raise SettingsInvalid(message) from error
        node = {"service.version": __version__, "service.instance.id": core.runtime.node}
        self._exporter = exporter.OtlpExporter(endpoint, node, SystemClock())

    def extension(self) -> Extension:
        """Spans of attempts, and metrics."""
        exporter, core = self._exporter, self._core
        if exporter is None:
            return Extension()
        from redrive.telemetry.otlp.exporter import AttemptSpans  # noqa: PLC0415 - as above
        from redrive.telemetry.otlp.readings import Readings  # noqa: PLC0415 - as above

        readings = Readings(
            core.meters,
            core.telemetry,
            core.engine.operations.queue_counts,
            METRIC_NAMES,
            started_at=SystemClock().now(),
        )
        return Extension(
            delivery=DeliveryParts(listeners=[(AttemptSpans(exporter.tracer, exporter.ids), ())]),
            lifecycle=Lifecycle(start=(lambda: exporter.start(readings.read),), close=(exporter.close,)),
        )

    def with_spans(self, handler: Handler) -> Handler:
        """The handler, with a span for each request; itself where there is no collector."""
        if self._exporter is None:
            return handler
        from redrive.server.request_spans import RequestSpans  # noqa: PLC0415 - as above

        return RequestSpans(handler, self._exporter.tracer, SystemClock().now).answer
