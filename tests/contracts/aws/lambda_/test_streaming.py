"""InvokeWithResponseStream and streaming URLs: answers that come while the function writes them."""

import base64
import http.client
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from tests.contracts.aws.lambda_.workshop import ROLE, Workshop, archive
from tests.contracts.aws.sqs.client import refused

_NODE = """
exports.parts = awslambda.streamifyResponse(async (event, out) => {
  out.write('one ');
  out.write('two');
  out.end();
});
exports.breaks = awslambda.streamifyResponse(async (event, out) => {
  out.write('one ');
  throw new TypeError('broken');
});
exports.page = awslambda.streamifyResponse(async (event, stream) => {
  const head = { statusCode: 201, headers: { 'Content-Type': 'text/html', 'X-Car': '1' }, cookies: ['a=1'] };
  const out = awslambda.HttpResponseStream.from(stream, head);
  out.write('<p>');
  out.write(event.rawPath);
  out.end();
});
exports.silent = awslambda.streamifyResponse(async () => { throw new TypeError('silent'); });
exports.plain = async (event) => ({ statusCode: 202, body: event.rawPath });
"""


def _node(workshop: Workshop, handler: str) -> str:
    name = f"node-{handler}"
    given = {"Role": ROLE, "Runtime": "nodejs20.x", "Handler": f"index.{handler}", "Timeout": 20}
    code = {"ZipFile": archive({"index.js": _NODE})}
    workshop.client.create_function(FunctionName=name, Code=code, MemorySize=512, **given)
    return name


def _streamed(workshop: Workshop, name: str, **more: Any) -> tuple[bytes, dict[str, Any]]:
    """All chunks of an answer, and how it ended."""
    answer = workshop.client.invoke_with_response_stream(FunctionName=name, Payload=b"{}", **more)
    assert (answer["StatusCode"], answer["ExecutedVersion"]) == (200, "$LATEST")
    *chunks, end = list(answer["EventStream"])
    return b"".join(chunk["PayloadChunk"]["Payload"] for chunk in chunks), end["InvokeComplete"]


class TestInvoke:
    def test_parts_come_as_chunks_and_the_log_at_the_end(self, workshop: Workshop) -> None:
        payload, end = _streamed(workshop, _node(workshop, "parts"), LogType="Tail")
        assert payload == b"one two"
        assert b"REPORT RequestId: " in base64.b64decode(end["LogResult"])
        assert "ErrorCode" not in end

    def test_an_error_in_the_middle_stands_at_the_end(self, workshop: Workshop) -> None:
        payload, end = _streamed(workshop, _node(workshop, "breaks"))
        assert (payload, end["ErrorCode"]) == (b"one ", "Unhandled")
        assert orjson.loads(end["ErrorDetails"])["errorMessage"] == "broken"

    def test_an_answer_that_is_not_streamed_is_one_chunk(self, workshop: Workshop) -> None:
        assert _streamed(workshop, workshop.function()) == (b"{}", {})
        payload, end = _streamed(workshop, workshop.function(handler="index.fail"))
        assert (payload, end["ErrorCode"]) == (b"", "Unhandled")
        assert orjson.loads(end["ErrorDetails"])["errorMessage"] == "boom {}"

    def test_refusals_come_before_the_stream(self, workshop: Workshop) -> None:
        name = workshop.function()
        invoke = workshop.client.invoke_with_response_stream
        with refused("ResourceNotFoundException", f"Function not found: {workshop.arn('nobody')}", 404):
            invoke(FunctionName="nobody")
        tried = invoke(FunctionName=name, InvocationType="DryRun")
        assert (tried["StatusCode"], list(tried["EventStream"])) == (204, [])
        workshop.client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
        with refused("TooManyRequestsException", "Rate Exceeded.", 429):
            invoke(FunctionName=name)

    def test_invoke_gets_a_streamed_answer_whole(self, workshop: Workshop) -> None:
        answer = workshop.client.invoke(FunctionName=_node(workshop, "parts"))
        assert answer["Payload"].read() == b"one two"


class TestUrls:
    def test_a_function_writes_its_head_first(self, workshop: Workshop) -> None:
        with _page(workshop, _node(workshop, "page")) as answer:
            assert answer.getheader("Transfer-Encoding") == "chunked"
            assert (answer.status, answer.read()) == (201, b"<p>/cars")
            assert (answer.getheader("Content-Type"), answer.getheader("X-Car")) == ("text/html", "1")
            assert answer.getheader("Set-Cookie") == "a=1"

    def test_without_a_head_the_body_is_all(self, workshop: Workshop) -> None:
        with _page(workshop, _node(workshop, "parts")) as answer:
            assert (answer.status, answer.read()) == (200, b"one two")
            assert answer.getheader("Content-Type") == "application/octet-stream"

    def test_an_error_in_the_middle_cuts_the_body_off(self, workshop: Workshop) -> None:
        with _page(workshop, _node(workshop, "breaks")) as answer, pytest.raises(http.client.IncompleteRead):
            answer.read()

    @pytest.mark.parametrize(
        ("handler", "status", "body"), [("silent", 502, b"Internal Server Error"), ("plain", 202, b"/cars")]
    )
    def test_an_answer_that_never_streams_is_whole(
        self, workshop: Workshop, handler: str, status: int, body: bytes
    ) -> None:
        with _page(workshop, _node(workshop, handler)) as answer:
            assert (answer.status, answer.read()) == (status, body)

    def test_a_buffered_url_takes_a_stream_whole(self, workshop: Workshop) -> None:
        with _page(workshop, _node(workshop, "page"), mode="BUFFERED") as answer:
            assert (answer.status, answer.read(), answer.getheader("X-Car")) == (201, b"<p>/cars", "1")
            assert answer.getheader("Content-Length") == "8"


def _page(workshop: Workshop, name: str, mode: str = "RESPONSE_STREAM") -> http.client.HTTPResponse:
    url = workshop.opened(name, InvokeMode=mode)
    here = urlsplit(workshop.server.url)
    connection = http.client.HTTPConnection(str(here.hostname), here.port or 80, timeout=60)
    host = urlsplit(url).netloc
    connection.request("GET", "/cars", headers={"Host": host, "Connection": "close"})
    return connection.getresponse()
