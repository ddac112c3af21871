"""Requests that are signed and then changed, as somebody would who listens on the way or has no key."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Self
from unittest import mock
from urllib.parse import urlencode, urlsplit

import orjson
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.services.server import Server

Key = tuple[str, str]

JSON: Final = "application/x-amz-json-1.0"
FORM: Final = "application/x-www-form-urlencoded"
REGION: Final = "us-east-1"


@dataclass(frozen=True)
class Draft:
    """A request before it is sent; headers in order, some of them twice perhaps."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""

    def having(self, **headers: str) -> Self:
        """The same with other values of headers; `_` stands for `-`."""
        changed = self.without(*headers)
        return changed.adding(**headers)

    def adding(self, **headers: str) -> Self:
        """The same with more headers, also if they stand there already."""
        more = tuple((name.replace("_", "-"), value) for name, value in headers.items())
        return replace(self, headers=(*self.headers, *more))

    def before(self, **headers: str) -> Self:
        """The same with more headers in front of the others."""
        more = tuple((name.replace("_", "-"), value) for name, value in headers.items())
        return replace(self, headers=(*more, *self.headers))

    def without(self, *names: str) -> Self:
        """The same without some headers."""
        gone = {name.replace("_", "-").lower() for name in names}
        return replace(self, headers=tuple(each for each in self.headers if each[0].lower() not in gone))

    def header(self, name: str) -> str:
        """The value of a header."""
        return next(value for each, value in self.headers if each.lower() == name)

    def authorized(self, old: str, new: str) -> Self:
        """The same with another text in its Authorization."""
        value = self.header("authorization")
        assert old in value
        return self.having(Authorization=value.replace(old, new))

    def queried(self, old: str, new: str) -> Self:
        """The same with another text in its target."""
        assert old in self.target
        return replace(self, target=self.target.replace(old, new))

    def raw(self) -> bytes:
        """The bytes that go over the wire."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in self.headers)
        length = f"Content-Length: {len(self.body)}\r\n" if self.body or self.method == "POST" else ""
        return (
            f"{self.method} {self.target} HTTP/1.1\r\n{lines}{length}Connection: close\r\n\r\n".encode()
            + self.body
        )


def signed(
    server: Server,
    key: Key,
    body: bytes = b"{}",
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "POST",
    target: str = "/",
    service: str = "sqs",
    region: str = REGION,
    seconds: float = 0.0,
) -> Draft:
    """A request that is signed in its head, `seconds` from now; ListQueues by JSON if nothing else is said."""
    said = {"X-Amz-Target": "AmazonSQS.ListQueues", "Content-Type": JSON} if headers is None else headers
    request = AWSRequest(method, f"{server.url}{target}", data=body, headers=dict(said))
    with _signing_at(seconds):
        SigV4Auth(Credentials(*key), service, region).add_auth(request)
    kept = [(name, str(value)) for name, value in request.headers.items() if name.lower() != "content-length"]
    return Draft(method, target, (("Host", urlsplit(server.url).netloc), *kept), body)


def presigned(
    server: Server,
    key: Key,
    params: Mapping[str, str],
    *,
    lives: int = 60,
    seconds: float = 0.0,
    path: str = "/",
) -> Draft:
    """A GET that is signed in its query, `seconds` from now, for so many seconds."""
    request = AWSRequest("GET", f"{server.url}{path}?{urlencode(params)}")
    with _signing_at(seconds):
        SigV4QueryAuth(Credentials(*key), "sqs", REGION, expires=lives).add_auth(request)
    parts = urlsplit(request.url)
    return Draft("GET", f"{parts.path}?{parts.query}", (("Host", parts.netloc),))


def send(server: Server, draft: Draft) -> tuple[int, bytes]:
    """The status and the body of the answer; 0 where there was none."""
    address = urlsplit(server.url)
    assert address.hostname is not None
    with socket.create_connection((address.hostname, address.port or 80), timeout=30) as connection:
        connection.sendall(draft.raw())
        answer = b""
        while piece := connection.recv(65_536):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    return (int(head.split()[1]) if head else 0), body


def queues(server: Server, key: Key, prefix: str) -> list[str]:
    """The URLs of somebody's queues."""
    status, body = send(server, signed(server, key, orjson.dumps({"QueueNamePrefix": prefix})))
    assert status == 200, body
    urls: list[str] = orjson.loads(body).get("QueueUrls", [])
    return urls


def _signing_at(seconds: float) -> Any:
    moment = datetime.now(UTC) + timedelta(seconds=seconds)
    return mock.patch("botocore.auth.get_current_datetime", return_value=moment)
