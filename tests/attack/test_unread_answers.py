"""Answers that nobody reads: the server holds no more of a large object than the client takes."""

import socket
from typing import Any
from urllib.parse import urlsplit

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import pytest
from botocore.config import Config

from tests.attack.spending import resident_bytes
from tests.services.server import Server

OBJECT_BYTES = 15 * 1024 * 1024
CLIENTS = 60
#: Of each client the kernel takes some megabytes, and the server a few pieces of 128 KiB; whole, 60 objects are 900 MB.
GROWTH_BYTES_MAX = 100 * 1024 * 1024


@pytest.fixture(scope="module")
def url(trusting: Server) -> str:
    """A presigned address, which a stranger may have as well."""
    client: Any = boto3.client(
        "s3",
        endpoint_url=trusting.url,
        region_name="us-east-1",
        aws_access_key_id="111111111111",
        aws_secret_access_key="secret",
        config=Config(s3={"addressing_style": "path"}),
    )
    client.create_bucket(Bucket="large")
    client.put_object(Bucket="large", Key="k", Body=bytes(range(256)) * (OBJECT_BYTES // 256))
    signed: str = client.generate_presigned_url("get_object", Params={"Bucket": "large", "Key": "k"})
    return signed


def asked(url: str) -> socket.socket:
    parts = urlsplit(url)
    assert parts.hostname is not None
    client = socket.create_connection((parts.hostname, parts.port or 80), 20)
    client.sendall(f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
    return client


def read(client: socket.socket) -> tuple[bytes, int]:
    """The head, and how much follows."""
    with client, client.makefile("rb") as answer:
        head = b"".join(iter(answer.readline, b"\r\n"))
        (length,) = [
            int(line.split(b":")[1]) for line in head.splitlines() if line.startswith(b"Content-Length")
        ]
        body = answer.read(length)
        assert body[:256] == bytes(range(256))
        return head, len(body)


def test_downloads_that_stand_still_take_no_memory_for_their_objects(trusting: Server, url: str) -> None:
    assert read(asked(url))[1] == OBJECT_BYTES
    before = resident_bytes(trusting)
    clients = [asked(url) for _ in range(CLIENTS)]
    for client in clients:
        assert client.recv(12) == b"HTTP/1.1 200"  # it has begun
    grown = resident_bytes(trusting) - before
    for client in clients[1:]:
        client.close()
    assert grown < GROWTH_BYTES_MAX
    rest = OBJECT_BYTES
    with clients[0] as last:
        while rest > 0:
            rest -= len(last.recv(1 << 20))
    assert rest <= 0, "whoever reads on gets all of it"
