import asyncio
import gzip
import zlib
from dataclasses import replace

import pytest

from redrive.endpoints import http_connection as reading
from redrive.endpoints.http import Fetched, HttpEndpoint
from redrive.model.attempt import Attempt, AttemptResult, Reason
from tests.contracts.endpoints.kinds import IMPATIENCE_MS, http_endpoint, http_push
from tests.contracts.endpoints.webhook import OK, Received, Webhook, answer, listening


async def _push(endpoint: HttpEndpoint, hook: Webhook, says: bytes) -> Attempt:
    hook.say(says)
    return await endpoint.push(http_push(hook.url()))


@pytest.mark.parametrize(
    ("status", "result", "reason"),
    [
        ("200 OK", AttemptResult.DELIVERED, Reason.ACCEPTED),
        ("201 Created", AttemptResult.DELIVERED, Reason.ACCEPTED),
        ("202 Accepted", AttemptResult.DELIVERED, Reason.ACCEPTED),
        ("299 Fine", AttemptResult.DELIVERED, Reason.ACCEPTED),
        ("300 Multiple Choices", AttemptResult.REFUSED, Reason.REDIRECTED),
        ("301 Moved Permanently", AttemptResult.REFUSED, Reason.REDIRECTED),
        ("307 Temporary Redirect", AttemptResult.REFUSED, Reason.REDIRECTED),
        ("400 Bad Request", AttemptResult.REFUSED, Reason.CLIENT_ERROR),
        ("401 Unauthorized", AttemptResult.REFUSED, Reason.CLIENT_ERROR),
        ("403 Forbidden", AttemptResult.REFUSED, Reason.CLIENT_ERROR),
        ("404 Not Found", AttemptResult.REFUSED, Reason.CLIENT_ERROR),
        ("408 Request Timeout", AttemptResult.REFUSED, Reason.CLIENT_ERROR),
        ("410 Gone", AttemptResult.REFUSED, Reason.CLIENT_ERROR),
        ("429 Too Many Requests", AttemptResult.FAILED, Reason.THROTTLED),
        ("499 Unheard Of", AttemptResult.REFUSED, Reason.CLIENT_ERROR),
        ("500 Internal Server Error", AttemptResult.FAILED, Reason.SERVER_ERROR),
        ("501 Not Implemented", AttemptResult.FAILED, Reason.SERVER_ERROR),
        ("503 Service Unavailable", AttemptResult.FAILED, Reason.SERVER_ERROR),
        ("599 Unheard Of", AttemptResult.FAILED, Reason.SERVER_ERROR),
    ],
)
async def test_each_status_has_its_result_and_reason(
    endpoint: HttpEndpoint, hook: Webhook, status: str, result: AttemptResult, reason: Reason
) -> None:
    attempt = await _push(endpoint, hook, answer(status, b"because"))
    assert (attempt.result, attempt.reason, attempt.status) == (result, reason, int(status[:3]))
    assert attempt.response == "because"


async def test_the_push_request_sets_the_method_and_the_headers_kept_of_the_answer(
    endpoint: HttpEndpoint, hook: Webhook
) -> None:
    hook.say(answer("200 OK", b"", "WebHook-Allowed-Origin: *", "Set-Cookie: secret"))
    push_request = http_push(hook.url())
    asking = replace(push_request, method="OPTIONS", headers_kept=("webhook-allowed-origin", "webhook-rate"))
    attempt = await endpoint.push(asking)
    assert hook.received[0].line == "OPTIONS /hook HTTP/1.1"
    assert attempt.identifiers == (("webhook-allowed-origin", "*"),)


async def test_a_redirect_is_not_followed(endpoint: HttpEndpoint, hook: Webhook) -> None:
    attempt = await _push(endpoint, hook, answer("302 Found", b"", f"Location: {hook.url('/other')}"))
    assert attempt.reason is Reason.REDIRECTED
    assert [request.line for request in hook.received] == ["POST /hook HTTP/1.1"]


async def test_without_a_body_the_reason_phrase_is_what_it_said(
    endpoint: HttpEndpoint, hook: Webhook
) -> None:
    assert (await _push(endpoint, hook, answer("200 Splendid"))).response == "Splendid"


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b"because", mtime=0)),
        ("deflate", zlib.compress(b"because")),
        ("identity", b"because"),
        ("gzip", b"because"),
    ],
)
async def test_an_encoded_response_is_decoded(
    endpoint: HttpEndpoint, hook: Webhook, encoding: str, body: bytes
) -> None:
    attempt = await _push(endpoint, hook, answer("500 Oh", body, f"Content-Encoding: {encoding}"))
    assert attempt.response == "because"


async def test_a_compressed_giant_stays_small(endpoint: HttpEndpoint, hook: Webhook) -> None:
    giant = gzip.compress(b"x" * 10_000_000, mtime=0)
    attempt = await _push(endpoint, hook, answer("200 OK", giant, "Content-Encoding: gzip"))
    assert attempt.delivered
    assert attempt.response == "x" * 1024
    assert len(reading._inflated(giant[:4096], "gzip", 4096)) == 4096


async def test_undecodable_bytes_of_a_response_are_replaced(endpoint: HttpEndpoint, hook: Webhook) -> None:
    attempt = await _push(endpoint, hook, answer("200 OK", b"caf\xe9"))
    assert attempt.response == "caf\ufffd"


async def test_an_endless_answer_is_not_read_to_its_end(endpoint: HttpEndpoint, hook: Webhook) -> None:
    async def endless(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"400\r\n%b\r\n" % (b"x" * 1024))
            await writer.drain()

    hook.script = endless
    attempt = await endpoint.push(http_push(hook.url()))
    assert attempt.delivered
    assert attempt.response == "x" * 1024


async def test_a_connection_with_something_unread_is_not_used_again(
    endpoint: HttpEndpoint, hook: Webhook
) -> None:
    async def never_ending(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 5_000)
        await writer.drain()

    hook.script = never_ending
    for _ in range(2):
        assert (await endpoint.push(http_push(hook.url()))).delivered
    assert [request.connection for request in hook.received] == [1, 2]


async def test_a_body_that_does_not_come_is_no_answer(endpoint: HttpEndpoint, hook: Webhook) -> None:
    async def slow(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        await asyncio.Event().wait()

    hook.script = slow
    attempt = await endpoint.push(http_push(hook.url(), timeout_ms=IMPATIENCE_MS))
    assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.TIMED_OUT)


async def test_a_trickle_earns_no_time(endpoint: HttpEndpoint, hook: Webhook) -> None:
    async def trickle(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-More: x\r\n")
            await writer.drain()
            await asyncio.sleep(0)

    hook.script = trickle
    attempt = await endpoint.push(http_push(hook.url(), timeout_ms=IMPATIENCE_MS))
    assert attempt.result is AttemptResult.FAILED


_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("beginning", "repeated"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"X-More: x\r\n"),
        (b"HTTP/1.1 200 OK\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\nX-More: ", b"x"),
        (b"HTTP/1.1 200 ", b"OK"),
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        (_CHUNKED + b"1;", b"x"),
        (_CHUNKED, b"1;%b\r\nx\r\n" % (b"x" * 1024)),
        (_CHUNKED + b"0\r\nX-More: ", b"x"),
        (_CHUNKED + b"0\r\n", b"X-More: x\r\n"),
    ],
    ids=[
        "headers",
        "name",
        "value",
        "phrase",
        "interim answers",
        "extension",
        "extensions",
        "trailer",
        "trailers",
    ],
)
async def test_an_answer_without_end_is_given_up(
    endpoint: HttpEndpoint, hook: Webhook, beginning: bytes, repeated: bytes
) -> None:
    async def endless(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(beginning)
        while True:
            writer.write(repeated * (8192 // len(repeated)))
            await writer.drain()

    hook.script = endless
    attempt = await endpoint.push(http_push(hook.url()))
    assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.CONNECTION)
    assert attempt.response == "The answer has more than 65536 bytes beside its body"


@pytest.mark.parametrize("chunk_bytes", [1, 100_000, 1_000_000])
async def test_a_body_is_not_counted_as_head(endpoint: HttpEndpoint, hook: Webhook, chunk_bytes: int) -> None:
    chunk = b"%x\r\n%b\r\n" % (chunk_bytes, b"x" * chunk_bytes)
    body = chunk * (1_000_000 // chunk_bytes)
    hook.say(_CHUNKED + body + b"0\r\nX-Trailer: x\r\n\r\n")
    fetched = await endpoint.fetch("GET", hook.url(), {}, b"", 5_000, 1_000_000)
    assert isinstance(fetched, Fetched)
    assert (len(fetched.body), fetched.headers) == (1_000_000, {"transfer-encoding": "chunked"})


@pytest.mark.parametrize(
    "says",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x16",
    ],
    ids=["nothing", "half a head", "half a body", "another protocol", "no status", "a TLS alert"],
)
async def test_an_incomplete_answer_is_a_failure(endpoint: HttpEndpoint, hook: Webhook, says: bytes) -> None:
    async def partial(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(says)
        writer.close()

    hook.script = partial
    attempt = await endpoint.push(http_push(hook.url()))
    assert (attempt.result, attempt.reason, attempt.status) == (AttemptResult.FAILED, Reason.CONNECTION, 0)
    assert attempt.response
    assert len(hook.received) == 1


@pytest.mark.filterwarnings("ignore:Sending a large body")  # so large that the sockets do not swallow it
async def test_an_answer_before_the_request_was_read_counts(endpoint: HttpEndpoint) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer("403 Forbidden", b"too much"))
        await asyncio.Event().wait()

    async with listening(refuse) as port:
        push_request = http_push(f"http://127.0.0.1:{port}/", "x" * 16_000_000)
        assert (await endpoint.push(push_request)).status == 403


async def test_an_interim_answer_is_not_the_answer(endpoint: HttpEndpoint, hook: Webhook) -> None:
    attempt = await _push(endpoint, hook, b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + OK)
    assert attempt.status == 200


async def test_the_duration_of_an_attempt_is_measured(hook: Webhook) -> None:
    moments = iter([1_000, 1_042])
    endpoint = http_endpoint(now=lambda: next(moments))
    assert (await endpoint.push(http_push(hook.url()))).duration_ms == 42
    await endpoint.close()


async def test_a_clock_that_was_set_back_makes_no_negative_duration(hook: Webhook) -> None:
    moments = iter([1_000, 900])
    endpoint = http_endpoint(now=lambda: next(moments))
    assert (await endpoint.push(http_push(hook.url()))).duration_ms == 0
    await endpoint.close()
