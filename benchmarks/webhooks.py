"""The rate at which one process pushes its deliveries to one webhook that answers at once.

The webhook holds its answers back until all is published, so that publishing takes nothing from what is measured.
"""

import asyncio
import itertools
import time
from collections.abc import Iterator, Mapping
from typing import Final

import uvloop

from benchmarks.bench import Bench
from benchmarks.calls import Connection
from benchmarks.figures import Figure, at_least
from benchmarks.servers import Redrive, redrive
from benchmarks.topics import Webhook, create_topic, publish_batch, webhook

PER_SECOND_MIN: Final = 2_000.0

_MESSAGES_PER_CALL: Final = 10
_PUBLISHING_CONNECTIONS: Final = 8

_numbers: Final = itertools.count()


def counters(bench: Bench) -> Iterator[Figure]:
    """Deliveries a second from a backlog, of texts alone and of signed notifications."""
    for what, attributes in (("raw", {"RawMessageDelivery": "true"}), ("signed", {})):
        with redrive(bench) as server, webhook() as hook:
            messages = bench.scale.pushes
            cpu_seconds = server.process.cpu_seconds()
            uvloop.run(fill(server, hook, messages, attributes))
            seconds = uvloop.run(drain(hook, messages))
            cpu_us = (server.process.cpu_seconds() - cpu_seconds) / messages * 1e6
        yield Figure(
            f"{messages:,} pushed, {what}",
            messages / seconds,
            "/s",
            f"{cpu_us:.0f} us CPU each, publishing included",
            at_least(PER_SECOND_MIN),
        )


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
