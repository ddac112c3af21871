"""Addresses inside, offered as endpoints to a server that others can reach: none is connected to, in any spelling.

Names are resolved by a fake; nothing outside loopback is ever asked or connected to.
"""

import ipaddress
import random
import socket
from typing import Any

import pytest

from redrive.composition.core import web_endpoint
from redrive.engine.ports import Endpoint, PushRequest, Runtime
from redrive.model.attempt import AttemptResult, Reason
from redrive.runtime.machine import SystemClock
from redrive.settings import Settings

INSIDE = (
    *("127.0.0.1", "10.0.0.5", "172.16.9.9", "192.168.1.1", "169.254.169.254", "100.100.100.200", "0.0.0.0"),
    *("168.63.129.16", "192.0.0.192", "198.18.0.1", "::1", "fe80::1", "fd00:ec2::254", "fec0::1"),
    *("::ffff:127.0.0.1", "::127.0.0.1", "::ffff:0:7f00:1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1"),
    *("2002:7f00:1::", "3fff::1", "5f00::1"),
)
SPELLINGS = (
    *("127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::1]", "[::ffff:127.0.0.1]"),
    *("localhost", "LOCALHOST.", "user@127.0.0.1", "127.0.0.1.", "\uff11\uff12\uff17.0.0.1"),
)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The sockets that somebody wanted; none is made."""
    wanted: list[object] = []
    real = socket.socket

    def make(*arguments: Any, **options: Any) -> socket.socket:
        if "fileno" in options or (arguments and arguments[0] == socket.AF_UNIX):
            return real(*arguments, **options)  # the event loop's own
        wanted.append(arguments)
        raise AssertionError(f"a socket was opened: {arguments}")

    monkeypatch.setattr(socket, "socket", make)
    return wanted


def web_of(settings: Settings) -> Endpoint:
    runtime = Runtime(SystemClock(), random.Random(1), "node")
    return web_endpoint(settings, runtime)


def resolve_to(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET

    def resolve(_: str, port: int, *__: object, **___: object) -> list[Any]:
        return [(family, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


def resolve_numbers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the system read numbers in all its spellings, and ask no name server."""
    system = socket.getaddrinfo

    def resolve(host: str, port: int, *rest: Any, **named: Any) -> Any:
        address = "127.0.0.1" if host.rstrip(".").lower() == "localhost" else host
        return system(address, port, *rest, **{**named, "flags": socket.AI_NUMERICHOST})

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


@pytest.fixture(params=["0.0.0.0", "::", "10.1.2.3", "redrive.example.org"])
def reachable(request: pytest.FixtureRequest) -> Settings:
    return Settings(host=request.param, auth="required")


@pytest.mark.parametrize("address", INSIDE)
async def test_a_name_that_leads_inside_is_not_connected_to(
    address: str, reachable: Settings, opened: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_to(monkeypatch, address)
    endpoint = web_of(reachable)
    attempt = await endpoint.push(PushRequest("http://inside.test/", b"{}", "text/plain", {}, 5_000))
    await endpoint.close()
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.FORBIDDEN_ADDRESS)
    assert address not in attempt.response  # else names could be looked up through us
    assert opened == []


@pytest.mark.parametrize(
    "settings",
    [
        {"host": "0.0.0.0", "auth": "required"},
        {"host": "127.0.0.1", "auth": "required"},
        {"host": "127.0.0.1", "public_url": "https://queues.example"},
    ],
    ids=["every address", "signatures behind a proxy", "a public URL"],
)
@pytest.mark.parametrize("host", SPELLINGS)
async def test_a_spelling_of_loopback_is_not_connected_to(
    host: str, settings: dict[str, str], opened: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_numbers_alone(monkeypatch)
    endpoint = web_of(Settings(**settings))  # type: ignore[arg-type]  # texts alone
    attempt = await endpoint.push(PushRequest(f"http://{host}:9/", b"{}", "text/plain", {}, 5_000))
    await endpoint.close()
    assert attempt.reason in (Reason.FORBIDDEN_ADDRESS, Reason.NAME_NOT_RESOLVED)
    assert opened == []


async def test_a_network_that_is_opened_is_connected_to(
    opened: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_to(monkeypatch, "10.1.2.3")
    endpoint = web_of(Settings(host="0.0.0.0", auth="required", allow_private_endpoints="10.1.0.0/16"))
    with pytest.raises(AssertionError, match="a socket was opened"):
        await endpoint.push(PushRequest("http://inside.test/", b"{}", "text/plain", {}, 5_000))
    await endpoint.close()
    assert len(opened) == 1
