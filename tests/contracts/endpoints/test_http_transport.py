import asyncio
import socket
import threading
import time
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from redrive.endpoints import http, http_pool
from redrive.endpoints.http import HttpEndpoint, HttpPolicy
from redrive.engine.ports import PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.server.tls import LocalCertificate, local_authority, server_context
from tests.contracts.endpoints.kinds import IMPATIENCE_MS, closed_port, http_endpoint, http_push
from tests.contracts.endpoints.webhook import OK, Received, Webhook, answer, hang, listening, webhook

_NOW = time.time_ns() // 1_000_000  # OpenSSL compares with the real time


async def _pushed(policy: HttpPolicy, url: str) -> Attempt:
    endpoint = http_endpoint(policy)
    attempt = await endpoint.push(http_push(url))
    await endpoint.close()
    return attempt


# ---- the request -------------------------------------------------------------------------------------------------


async def test_the_request_has_the_push_requests_headers_and_no_others(
    endpoint: HttpEndpoint, hook: Webhook
) -> None:
    headers = {"x-amz-sns-message-type": "Notification", "User-Agent": "Agent", "Accept-Encoding": "gzip"}
    await endpoint.push(PushRequest(hook.url(), b"hello", "text/csv", headers, 5_000))
    (request,) = hook.received
    assert request.headers == {
        "host": f"127.0.0.1:{hook.port}",
        "x-amz-sns-message-type": "Notification",
        "user-agent": "Agent",
        "accept-encoding": "gzip",
        "content-type": "text/csv",
        "content-length": "5",
    }


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("", "/"),
        ("/", "/"),
        ("?a=1", "/?a=1"),
        (
            "/a%2Fb/c?sig=a%2Fb%3d%3D&t=%7E~&plus=1+2&empty=",
            "/a%2Fb/c?sig=a%2Fb%3d%3D&t=%7E~&plus=1+2&empty=",
        ),
        ("/a//b/../c", "/a//b/../c"),
        ("/a{b}|c", "/a{b}|c"),
        ("/Grüße?q=ü", "/Gr%C3%BC%C3%9Fe?q=%C3%BC"),
        ("/page#part", "/page"),
    ],
)
async def test_a_url_is_sent_as_it_was_given(
    endpoint: HttpEndpoint, hook: Webhook, given: str, sent: str
) -> None:
    assert (await endpoint.push(http_push(hook.url(given)))).delivered
    assert hook.received[0].line == f"POST {sent} HTTP/1.1"


@pytest.mark.parametrize(
    "url",
    [
        "http://under_score.example.org/",
        "ftp://example.org/",
        "http://",
        "example.org",
        "http://example.org:99999/",
        "http://[::1/",
        "http://a..b/",
        "http://2130706433/",
        "http://127.1/",
        "",
    ],
)
async def test_addresses_that_are_no_webhooks_are_refused(endpoint: HttpEndpoint, url: str) -> None:
    attempt = await endpoint.push(http_push(url))
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.FORBIDDEN_ADDRESS)
    assert attempt.response


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-test", "one\r\nx-other: two"),
        ("x-test", "one\0"),
        ("x-test", "one\ntwo"),
        ("Transfer-Encoding ", "chunked"),
        ("Transfer-Encoding: chunked\r\nx", ""),
        ("Content-Length: 0, x", ""),
        ("x\ny", "one"),
        ("\u212aeep-Alive", "1"),
        ("", "one"),
    ],
)
async def test_names_that_are_no_tokens_and_values_of_two_lines_are_not_sent(
    endpoint: HttpEndpoint, hook: Webhook, name: str, value: str
) -> None:
    attempt = await endpoint.push(PushRequest(hook.url(), b"", "text/plain", {name: value}, 5_000))
    assert attempt.result is AttemptResult.REFUSED
    assert hook.received == []


async def test_a_method_that_is_no_token_is_not_sent(endpoint: HttpEndpoint, hook: Webhook) -> None:
    attempt = await endpoint.push(replace(http_push(hook.url()), method="GET /take HTTP/1.1\r\nx:"))
    assert attempt.result is AttemptResult.REFUSED
    assert hook.received == []


@pytest.mark.parametrize("length", ["Content-Length", "content-LENGTH"])
async def test_no_caller_puts_a_second_request_into_the_first(
    endpoint: HttpEndpoint, hook: Webhook, length: str
) -> None:
    """The connection is kept, and the next push over it may be another account's."""
    framing = ("Transfer-Encoding", "Connection", "TE", "Trailer", "Upgrade", "Expect", "Keep-Alive")
    headers = {length: "0", **dict.fromkeys((*framing, "Proxy-Connection"), "chunked"), "x-test": "yes"}
    smuggled = b"POST /take HTTP/1.1\r\nHost: other\r\nContent-Length: 90\r\n\r\n"
    assert (await endpoint.push(PushRequest(hook.url(), smuggled, "text/plain", headers, 5_000))).delivered
    assert (await endpoint.push(http_push(hook.url("/next"), "another account's"))).delivered
    first, second = hook.received
    assert set(first.headers) == {"host", "x-test", "content-type", "content-length"}
    assert (first.body, second.line, second.body) == (smuggled, "POST /next HTTP/1.1", b"another account's")
    assert hook.connections == 1


async def test_a_connection_that_is_to_be_kept_may_be_said_so(endpoint: HttpEndpoint, hook: Webhook) -> None:
    await endpoint.push(PushRequest(hook.url(), b"", "text/plain", {"Connection": "Keep-Alive"}, 5_000))
    assert hook.received[0].headers["connection"] == "Keep-Alive"


async def test_cookies_are_not_kept(endpoint: HttpEndpoint, hook: Webhook) -> None:
    hook.say(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n")
    for _ in range(2):
        await endpoint.push(http_push(f"http://localhost:{hook.port}/"))
    assert "cookie" not in hook.received[1].headers


# ---- connections -------------------------------------------------------------------------------------------------


async def test_a_connection_is_used_again(endpoint: HttpEndpoint, hook: Webhook) -> None:
    for _ in range(5):
        await endpoint.push(http_push(hook.url()))
    assert hook.connections == 1


async def test_a_rested_connection_that_was_closed_costs_no_attempt(
    endpoint: HttpEndpoint, hook: Webhook
) -> None:
    """The webhook closes just as the second request is on its way to it: it is sent again, on a new connection."""

    async def once_for_each_connection(request: Received, writer: asyncio.StreamWriter) -> None:
        if sum(other.connection == request.connection for other in hook.received) > 1:
            writer.close()
        else:
            writer.write(OK)

    hook.script = once_for_each_connection
    for _ in range(3):
        assert (await endpoint.push(http_push(hook.url()))).delivered
    assert [request.connection for request in hook.received] == [1, 1, 2, 2, 3]


async def test_a_fresh_connection_that_is_closed_is_tried_once(endpoint: HttpEndpoint, hook: Webhook) -> None:
    async def close(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.close()

    hook.script = close
    assert (await endpoint.push(http_push(hook.url()))).reason is Reason.CONNECTION
    assert len(hook.received) == 1


async def test_a_reset_is_a_matter_of_the_connection(endpoint: HttpEndpoint, hook: Webhook) -> None:
    async def reset(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    hook.script = reset
    attempt = await endpoint.push(http_push(hook.url()))
    assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.CONNECTION)


async def test_a_host_that_hangs_leaves_the_others_their_connections(hook: Webhook) -> None:
    endpoint = http_endpoint(HttpPolicy(connections_max=4, connections_per_host_max=2))
    async with webhook() as hanging, asyncio.TaskGroup() as group:
        hanging.script = hang
        waiting = [group.create_task(endpoint.push(http_push(hanging.url()))) for _ in range(10)]
        await hanging.arrived.wait()
        for _ in range(10):
            assert (await endpoint.push(http_push(hook.url()))).delivered
        assert hanging.connections == 2
        for task in waiting:
            task.cancel()
    await endpoint.close()


async def test_waiting_for_a_connection_takes_of_the_time_given(hook: Webhook) -> None:
    endpoint = http_endpoint(HttpPolicy(connections_per_host_max=1))
    hook.script = hang
    first = asyncio.create_task(endpoint.push(http_push(hook.url())))
    await hook.arrived.wait()
    second = await endpoint.push(http_push(hook.url(), timeout_ms=IMPATIENCE_MS))
    assert (second.result, second.reason) == (AttemptResult.FAILED, Reason.TIMED_OUT)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await endpoint.close()


async def test_a_name_server_that_does_not_answer_holds_up_its_own_name_alone(
    endpoint: HttpEndpoint, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    asked, answered = asyncio.Event(), threading.Event()
    ask = socket.getaddrinfo

    def slow(host: str, *rest: Any) -> list[Any]:
        if host.startswith("dead"):
            loop.call_soon_threadsafe(asked.set)
            answered.wait()
        return ask(host, *rest)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    dead = [f"http://dead-{number}.invalid/" for number in range(30)]
    lost = [asyncio.create_task(endpoint.push(http_push(url, timeout_ms=IMPATIENCE_MS))) for url in dead]
    try:
        await asked.wait()
        assert (await endpoint.push(http_push(f"http://localhost:{hook.port}/"))).delivered
        await asyncio.wait(lost)
    finally:
        answered.set()
    assert {task.result().reason for task in lost} == {Reason.TIMED_OUT}


# ---- TLS ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def certificate(tmp_path: Path) -> LocalCertificate:
    return local_authority(tmp_path, [], _NOW)


async def test_an_authority_from_a_file_is_trusted(certificate: LocalCertificate) -> None:
    tls = server_context(certificate.server_file, certificate.server_file)
    async with webhook(tls) as hook:
        attempt = await _pushed(HttpPolicy(ca_file=certificate.authority_file), hook.url())
    assert attempt.delivered


async def test_an_unknown_authority_is_not_trusted(certificate: LocalCertificate) -> None:
    tls = server_context(certificate.server_file, certificate.server_file)
    async with webhook(tls) as hook:
        attempt = await _pushed(HttpPolicy(), hook.url())
    assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.TLS)
    assert hook.received == []


async def test_a_certificate_for_another_name_is_not_trusted(
    certificate: LocalCertificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    _resolve(monkeypatch, "127.0.0.1")
    tls = server_context(certificate.server_file, certificate.server_file)
    async with webhook(tls) as hook:
        policy = HttpPolicy(ca_file=certificate.authority_file)
        assert (await _pushed(policy, hook.url())).delivered
        attempt = await _pushed(policy, f"https://other.test:{hook.port}/")
    assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.TLS)


async def test_https_to_one_that_speaks_http(endpoint: HttpEndpoint) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    async with listening(speak) as port:
        attempt = await endpoint.push(http_push(f"https://127.0.0.1:{port}/"))
    assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.TLS)


async def test_a_handshake_that_hangs(endpoint: HttpEndpoint) -> None:
    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        while await reader.read(1024):
            pass

    async with listening(silent) as port:
        url = f"https://127.0.0.1:{port}/"
        attempt = await endpoint.push(http_push(url, timeout_ms=IMPATIENCE_MS))
    assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.TIMED_OUT)


# ---- forbidden addresses -----------------------------------------------------------------------------------------

_STRICT = HttpPolicy(forbids_private=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254"])
async def test_a_private_address_is_not_connected_to(hook: Webhook, host: str) -> None:
    attempt = await _pushed(_STRICT, f"http://{host}:{hook.port}/")
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.FORBIDDEN_ADDRESS)
    assert hook.connections == 0


async def test_a_private_network_that_is_opened_is_connected_to(hook: Webhook) -> None:
    policy = HttpPolicy(forbids_private=True, private_networks=(ip_network("127.0.0.0/8"),))
    assert (await _pushed(policy, f"http://127.0.0.1:{hook.port}/")).delivered
    refused = await _pushed(policy, f"http://[::1]:{hook.port}/")
    assert refused.reason is Reason.FORBIDDEN_ADDRESS


async def test_a_name_that_resolves_anew_cannot_dodge_it(
    hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address checked is the address connected to, whatever was answered before."""
    monkeypatch.setattr(http, "is_private", lambda address: address == "127.0.0.2")
    monkeypatch.setattr(http_pool, "_NAMES_SECONDS", 0)
    endpoint = http_endpoint(_STRICT)
    url = f"http://rebinding.test:{hook.port}/"
    _resolve(monkeypatch, "127.0.0.1")
    hook.say(answer("200 OK", b"", "Connection: close"))
    assert (await endpoint.push(http_push(url))).delivered
    _resolve(monkeypatch, "127.0.0.2")
    assert (await endpoint.push(http_push(url))).reason is Reason.FORBIDDEN_ADDRESS
    assert len(hook.received) == 1
    await endpoint.close()


async def test_one_forbidden_address_among_others_is_passed_over(
    hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "is_private", lambda address: address == "127.0.0.2")
    _resolve(monkeypatch, "127.0.0.2", "127.0.0.1")
    assert (await _pushed(_STRICT, f"http://two.test:{hook.port}/")).delivered


async def test_an_allowed_address_that_fails_may_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "is_private", lambda address: address == "127.0.0.2")
    _resolve(monkeypatch, "127.0.0.2", "127.0.0.1")
    attempt = await _pushed(_STRICT, f"http://two.test:{closed_port()}/")
    assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.CONNECTION)


async def test_several_forbidden_addresses_are_forbidden(
    hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    _resolve(monkeypatch, "10.0.0.1", "192.168.0.1", "127.0.0.1")
    assert (await _pushed(_STRICT, f"http://all.test:{hook.port}/")).reason is Reason.FORBIDDEN_ADDRESS


def _resolve(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Let every name have these addresses."""

    def resolve(_: str, port: int, *__: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
