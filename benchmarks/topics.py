"""Calls of Amazon SNS with next to no client around them, and the webhooks that subscribe."""

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import orjson

from benchmarks.calls import Connection
from benchmarks.load import BODY_BYTES

_FORM: Final = (
    "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/x-www-form-urlencoded; charset=utf-8\r\n"
    "Content-Length: {length}\r\n\r\n"
)
_GET: Final = "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"
_OF_THIS_SERVER: Final = "arn:aws:{service}:us-east-1:000000000000:{name}"
_LOOK_SECONDS: Final = 0.01

_BATCH: Final = 10  # messages that one call may publish


def arn(service: str, name: str) -> str:
    """The ARN of a topic (`sns`) or queue (`sqs`) of the server measured."""
    return _OF_THIS_SERVER.format(service=service, name=name)


async def call(connection: Connection, operation: str, **parameters: str) -> bytes:
    """Make a call in the query protocol; its answer's body. `a.b` as a name goes by `**{"a.b": …}`."""
    body = urlencode({"Action": operation, "Version": "2010-03-31", **parameters}).encode()
    return await connection.send(_FORM.format(host=connection.host, length=len(body)).encode() + body)


async def create_topic(connection: Connection, name: str) -> str:
    """Make a topic; its ARN."""
    await call(connection, "CreateTopic", Name=name)
    return arn("sns", name)


async def subscribe(
    connection: Connection, topic: str, protocol: str, endpoint: str, attributes: Mapping[str, str]
) -> None:
    """Subscribe an endpoint, which may have to confirm it still."""
    named: dict[str, str] = {}
    for number, (name, value) in enumerate(attributes.items(), 1):
        named |= {f"Attributes.entry.{number}.key": name, f"Attributes.entry.{number}.value": value}
    await call(connection, "Subscribe", TopicArn=topic, Protocol=protocol, Endpoint=endpoint, **named)


def text() -> str:
    """A message published now, as `benchmarks.receiver` reads its age."""
    return f"{time.perf_counter():.6f} ".ljust(BODY_BYTES, "m")


async def publish_batch(connection: Connection, topic: str, messages: int = _BATCH) -> None:
    """Publish so many messages in one call."""
    entries: dict[str, str] = {}
    for number in range(1, messages + 1):
        entry = f"PublishBatchRequestEntries.member.{number}"
        entries |= {f"{entry}.Id": str(number), f"{entry}.Message": text()}
    answer = await call(connection, "PublishBatch", TopicArn=topic, **entries)
    assert b"<Code>" not in answer, answer


# ---- webhooks --------------------------------------------------------------------------------------------------


class Report(NamedTuple):
    """Posts to a webhook; see `benchmarks.receiver`."""

    received: int
    last_at: float
    ages_ms: Sequence[float]


class Webhook:
    """A `benchmarks.receiver`."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def subscribe(
        self, connection: Connection, topic: str, path: str, attributes: Mapping[str, str]
    ) -> None:
        """Let one of its paths get what is published to a topic."""
        await subscribe(connection, topic, "http", self.url + path, attributes)
        while path not in (tokens := await self._ask("/tokens")):  # noqa: ASYNC110 - in another process
            await asyncio.sleep(_LOOK_SECONDS)
        await call(connection, "ConfirmSubscription", TopicArn=topic, Token=tokens[path])

    async def hold(self) -> None:
        """Let it answer nobody."""
        await self._ask("/hold")

    async def release(self) -> None:
        """Let it answer again, and first those who wait."""
        await self._ask("/release")

    async def received(self, messages: int) -> Report:
        """Wait until the webhook was posted that many, and return its report."""
        while (report := await self._ask("/report"))["received"] < messages:  # noqa: ASYNC110 - likewise
            await asyncio.sleep(_LOOK_SECONDS)
        return Report(**report)

    async def _ask(self, path: str) -> Any:
        connection = await Connection.open(self.url)
        try:
            asked = _GET.format(path=path, host=connection.host).encode()
            return orjson.loads(await connection.send(asked))
        finally:
            connection.close()


@contextlib.contextmanager
def webhook() -> Iterator[Webhook]:
    """A webhook in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.receiver"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield Webhook(process.stdout.readline().strip())
    finally:
        process.terminate()
        process.wait()
