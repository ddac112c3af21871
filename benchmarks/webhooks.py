"""The rate at which one process pushes its deliveries to one webhook that answers at once.

The webhook holds its answers back until all is published, so that publishing takes nothing from what is measured. Beside
raw pushes stands a bare loop (`benchmarks.bare_push`), beside signed ones what raw pushes and RSA alone would allow.
"""

import asyncio
import hashlib
import itertools
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Final

import uvloop

from benchmarks.bench import Bench
from benchmarks.calls import Connection
from benchmarks.figures import Figure, at_least
from benchmarks.servers import Redrive, redrive
from benchmarks.topics import Webhook, create_topic, publish_batch, webhook
from redrive.access.signing_pair import make_pair

PER_SECOND_MIN: Final = 2_000.0

_MESSAGES_PER_CALL: Final = 10
_PUBLISHING_CONNECTIONS: Final = 8

_numbers: Final = itertools.count()


def counters(bench: Bench) -> Iterator[Figure]:
    """Deliveries a second from a backlog, of texts alone and of signed notifications, and what limits them."""
    pushes = bench.scale.pushes
    raw_us, rate, detail = _drained(bench, {"RawMessageDelivery": "true"})
    yield Figure(f"{pushes:,} pushed, raw", rate, "/s", detail, at_least(PER_SECOND_MIN))
    bare_us = _bare_us(bench)
    yield Figure("raw, beside a bare loop", bare_us / raw_us, "x", f"bare {bare_us:.0f} us CPU each")
    signed_us, rate, detail = _drained(bench, {})
    yield Figure(f"{pushes:,} pushed, signed", rate, "/s", detail, at_least(PER_SECOND_MIN))
    rsa_us = _rsa_us(bench.scale.calls)
    limit = f"raw {raw_us:.0f} and a signature's {rsa_us:.0f} us CPU each"
    yield Figure("signed, beside raw and RSA", (raw_us + rsa_us) / signed_us, "x", limit)


def _drained(bench: Bench, attributes: Mapping[str, str]) -> tuple[float, float, str]:
    """Processor time of a push (us), pushes a second, and a text about them."""
    messages = bench.scale.pushes
    with redrive(bench) as server, webhook() as hook:
        began = server.process.cpu_seconds()
        uvloop.run(fill(server, hook, messages, attributes))
        filled = server.process.cpu_seconds()
        seconds = uvloop.run(drain(hook, messages))
        ended = server.process.cpu_seconds()
    push_us, all_us = ((ended - since) / messages * 1e6 for since in (filled, began))
    return push_us, messages / seconds, f"{push_us:.0f} us CPU each, {all_us:.0f} publishing included"


def _bare_us(bench: Bench) -> float:
    arguments = (str(bench.directory / "bare.db"), str(bench.scale.pushes))
    with webhook() as hook:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.bare_push", arguments[0], hook.url, arguments[1]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        said, _ = process.communicate("go\n")
    return float(said.split()[-1])


def _rsa_us(number: int) -> float:
    pair = make_pair(0)
    digest = hashlib.sha1(b"", usedforsecurity=False).digest()
    pair.sign(digest, "sha1")
    began = time.process_time()
    for _ in range(number // 10):
        pair.sign(digest, "sha1")
    return (time.process_time() - began) / (number // 10) * 1e6


async def fill(server: Redrive, hook: Webhook, messages: int, attributes: Mapping[str, str]) -> None:
    """Publish to a topic that the webhook alone is subscribed to; it answers nobody."""
    connections = [await Connection.open(server.url) for _ in range(_PUBLISHING_CONNECTIONS)]
    topic = await create_topic(connections[0], f"webhooks-{next(_numbers)}")
    await hook.subscribe(connections[0], topic, "/", attributes)
    await hook.hold()
    calls = iter(range(messages // _MESSAGES_PER_CALL))

    async def publish(connection: Connection) -> None:
        for _ in calls:
            await publish_batch(connection, topic, _MESSAGES_PER_CALL)

    await asyncio.gather(*map(publish, connections))
    for connection in connections:
        connection.close()


async def drain(hook: Webhook, messages: int) -> float:
    """Seconds from the first answer of the webhook to the last post."""
    began = time.perf_counter()
    await hook.release()
    return (await hook.received(messages)).last_at - began
