"""Traces and metrics at a collector, and what they say of messages and requests."""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics.export import Metric, MetricExportResult, MetricsData
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from redrive.engine.ports.facts import Undelivered
from redrive.model.delivery import Outcome
from redrive.model.http import Request, Response
from redrive.runtime.simulated import SimulatedClock
from redrive.server.request_spans import RequestSpans
from redrive.settings import Settings, SettingsInvalid
from redrive.telemetry.otlp.exporter import EVERY_MS, AttemptSpans, OtlpExporter, TraceIds
from tests.services.server import serving
from tests.telemetry.facts import ACCEPTED, FAILED, attempted


def client(url: str, service: str) -> Any:
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
    return boto3.client(service, endpoint_url=url, **keys)


MESSAGE = "0f8fad5b-d9cb-469f-a165-70867728950e"


class Collector(ThreadingHTTPServer):
    """A collector that unpacks what it gets, by its path; gone with the test."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taker)
        self.spans: list[Any] = []
        self.metrics: dict[str, Any] = {}
        self.resources: dict[str, str] = {}
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Taker(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/v1/traces":
            for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self._know(of_resource.resource)
                self.server.spans += [span for scope in of_resource.scope_spans for span in scope.spans]
        else:
            for of_resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                self._know(of_resource.resource)
                for scope in of_resource.scope_metrics:
                    self.server.metrics |= {metric.name: metric for metric in scope.metrics}
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def _know(self, resource: Any) -> None:
        self.server.resources |= {each.key: each.value.string_value for each in resource.attributes}

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base's
        """Say nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_collector_gets_requests_attempts_and_metrics_of_a_server(
    collector: Collector, tmp_path: Path
) -> None:
    with serving(f"sqlite:///{tmp_path}/redrive.db", "--otlp-endpoint", collector.url) as server:
        sns, sqs = client(server.url, "sns"), client(server.url, "sqs")
        topic = sns.create_topic(Name="orders")["TopicArn"]
        queue = sqs.create_queue(QueueName="billing")["QueueUrl"]
        sqs.send_message(QueueUrl=queue, MessageBody="m")
        arn = topic.replace(":sns:", ":sqs:").replace("orders", "billing")
        sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
        message_id = sns.publish(TopicArn=topic, Message="m")["MessageId"]
        assert server.stop() == 0
    by_name: dict[str, list[Any]] = defaultdict(list)
    for span in collector.spans:
        by_name[span.name].append(span)
    (delivered,) = by_name["deliver orders"]
    assert UUID(bytes=delivered.trace_id) == UUID(message_id)
    (request,) = by_name["sns/Publish"]
    assert request.trace_id != delivered.trace_id
    assert collector.resources["service.name"] == "redrive"
    sent = collector.metrics["redrive.queue.messages_sent"].sum.data_points
    assert [point.as_double or point.as_int for point in sent] == [1]
    commits = collector.metrics["redrive.commit.duration"].histogram.data_points[0]
    assert sum(commits.bucket_counts) == commits.count > 0
    assert len(commits.bucket_counts) == len(commits.explicit_bounds) + 1


def test_a_collector_that_is_away_holds_nobody_up(collector: Collector) -> None:
    gone = collector.url.replace(str(collector.server_port), "1")
    with serving("sqlite://:memory:", "--otlp-endpoint", gone) as server:
        client(server.url, "sqs").create_queue(QueueName="billing")
        assert server.stop() == 0
        assert "otlp.metrics_not_taken" in server.log.read_text()


async def test_metrics_that_cannot_be_read_once_are_sent_a_minute_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock, sent = SimulatedClock(), asyncio.Event()
    exporter = OtlpExporter("http://127.0.0.1:1", {}, clock)
    loop, reads = asyncio.get_running_loop(), iter([ValueError("unreadable")])

    def read(_: int) -> list[Metric]:
        if (error := next(reads, None)) is not None:
            raise error
        return []

    def export(_: MetricsData) -> MetricExportResult:
        loop.call_soon_threadsafe(sent.set)
        return MetricExportResult.SUCCESS

    async def quiet() -> None:
        return None

    monkeypatch.setattr(exporter._metrics, "export", export)
    exporter.start(read)
    for _ in range(2):
        await asyncio.sleep(0)
        await clock.advance(EVERY_MS, quiet)
    async with asyncio.timeout(30):
        await sent.wait()
    assert "otlp.metrics_not_sent" in caplog.text
    await exporter.close()


@pytest.mark.parametrize("url", ["collector:4318", "ftp://collector", "http://", "http://collector?x=1"])
def test_an_endpoint_is_the_url_of_a_collector(url: str) -> None:
    with pytest.raises(SettingsInvalid, match="otlp_endpoint"):
        Settings(otlp_endpoint=url)


# ---- what spans say ----------------------------------------------------------------------------------------------


class Written:
    """A tracer, and the spans that it wrote."""

    def __init__(self) -> None:
        self.ids = TraceIds()
        self._memory = InMemorySpanExporter()
        provider = TracerProvider(id_generator=self.ids, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._memory))
        self.tracer = provider.get_tracer("test")

    @property
    def spans(self) -> Any:
        return self._memory.get_finished_spans()


def test_all_attempts_at_a_message_are_in_the_trace_that_has_its_id() -> None:
    written = Written()
    spans = AttemptSpans(written.tracer, written.ids)
    failed = replace(attempted(5_000, FAILED, Outcome.RETRY, "https"), identify=lambda _: MESSAGE)
    spans.attempted(failed)
    spans.undelivered(Undelivered(replace(failed, at=6_000), ACCEPTED, confirmation=False, dead_letter=True))
    first, last = written.spans
    assert {each.context.trace_id for each in (first, last)} == {UUID(MESSAGE).int}
    assert (first.name, last.name) == ("deliver orders", "dead-letter orders")
    assert first.status.status_code is StatusCode.ERROR
    assert (first.start_time, first.end_time) == (4_988_000_000, 5_000_000_000)
    assert first.attributes["redrive.reason"] == "server_error"
    assert first.attributes["http.response.status_code"] == 503


def test_an_id_that_is_no_uuid_has_a_trace_of_its_own() -> None:
    written = Written()
    fact = replace(attempted(1), identify=lambda _: "order-7")
    AttemptSpans(written.tracer, written.ids).attempted(fact)
    assert written.spans[0].context.trace_id == uuid5(NAMESPACE_OID, "order-7").int


def test_a_request_goes_on_with_its_callers_trace() -> None:
    written = Written()
    caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    request = Request("POST", "/", "", {"traceparent": caller}, b"12345")
    RequestSpans(lambda _: Response(403), written.tracer, lambda: 7).answer(request)
    (span,) = written.spans
    assert f"{span.context.trace_id:032x}" == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert (span.name, span.attributes["http.response.status_code"]) == ("POST /", 403)


def test_a_load_balancers_questions_are_not_traced() -> None:
    written = Written()
    spans = RequestSpans(lambda _: Response(200), written.tracer, lambda: 7)
    spans.answer(Request("GET", "/_redrive/health", "", {}, b""))
    assert not written.spans


def test_a_request_that_fails_is_an_error() -> None:
    written = Written()

    def fails(_: Request) -> Response:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        RequestSpans(fails, written.tracer, lambda: 7).answer(Request("POST", "/", "", {}, b""))
    assert written.spans[0].status.status_code is StatusCode.ERROR
