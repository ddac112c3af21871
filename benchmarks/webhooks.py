"""The rate at which one process pushes its deliveries to one webhook that answers at once.

The webhook holds its answers back until all is published, so that publishing takes nothing from what is measured.
"""

import asyncio
import time
from collections.abc import Iterator
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


def counters(bench: Bench) -> Iterator[Figure]:
    """Deliveries a second from a backlog, of texts alone and of signed notifications."""
    for what, attributes in (("raw", {"RawMessageDelivery": "true"}), ("signed", {})):
        with redrive(bench) as server, webhook() as hook:
            messages = bench.scale.pushes
            cpu_seconds = server.process.cpu_seconds()
            seconds = uvloop.run(_drain(server, hook, messages, attributes))
            cpu_us = (server.process.cpu_seconds() - cpu_seconds) / messages * 1e6
        yield Figure(
            f"{messages:,} pushed, {what}",
            messages / seconds,
            "/s",
            f"{cpu_us:.0f} us CPU each, publishing included",
            at_least(PER_SECOND_MIN),
        )


async def _drain(server: Redrive, hook: Webhook, messages: int, attributes: dict[str, str]) -> float:
    """Seconds from the first answer to the last post."""
    connections = [await Connection.open(server.url) for _ in range(_PUBLISHING_CONNECTIONS)]
    topic = await create_topic(connections[0], "webhooks")
    await hook.subscribe(connections[0], topic, "/", attributes)
    await hook.hold()
    calls = iter(range(messages // _MESSAGES_PER_CALL))

    async def publish(connection: Connection) -> None:
        for _ in calls:
            await publish_batch(connection, topic, _MESSAGES_PER_CALL)

    await asyncio.gather(*map(publish, connections))
    began = time.perf_counter()
    await hook.release()
    return (await hook.received(messages)).last_at - began
