"""The cost of thousands of filters that do not match a publication, beside the same without them.

The subscriptions are put into the store before the server starts: SNS itself lets a topic have 200 filters.
"""

import asyncio
import functools
from collections.abc import Iterator
from typing import Final

import orjson
import uvloop

from benchmarks.bench import Bench
from benchmarks.ceiling import FAN_OUT
from benchmarks.figures import Figure, at_least
from benchmarks.rounds import Lane, compared, in_turn
from benchmarks.servers import redrive
from benchmarks.topics import arn
from redrive.composition.store import open_store
from redrive.engine.engine import Engine
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic
from redrive.runtime.machine import SystemClock, real_runtime
from redrive.settings import Settings

FILTERED_MIN: Final = 0.5

_HERE: Final = ResourceName("000000000000", "us-east-1")
_WANTED: Final = "wanted"  # by `loads/publish_filtered.lua`
_AT_ONCE: Final = 500


def counters(bench: Bench) -> Iterator[Figure]:
    """The topic with all the filters against one with only those that match."""
    others = bench.scale.filters
    with redrive(bench, lambda store: uvloop.run(_prepare(store, others))) as server:
        many = Lane("many", server, lambda: arn("sns", "many"))
        few = Lane("few", server, lambda: arn("sns", "few"))
        for connections in bench.scale.connections:
            runs = in_turn(bench.scale, (many, few), "publish_filtered", connections)
            what = f"{others:,} filters besides {FAN_OUT}, {connections} connections"
            yield compared(what, runs, at_least(FILTERED_MIN))


async def _prepare(store_url: str, others: int) -> None:
    """Two topics whose messages some queues want; one has other subscribers, each of whom wants something else."""
    runtime = real_runtime(SystemClock())
    store = open_store(Settings(store=store_url), runtime)
    await store.open()
    resources = Engine(store, runtime).resources
    for name in ("few", "many"):
        await resources.topics.create(Topic(0, _HERE._replace(name=name), "sns"))
        for number in range(FAN_OUT):
            queue = await resources.queues.create(Queue(0, _HERE._replace(name=f"{name}-{number}")))
            await resources.subscriptions.create(_subscription(name, number, queue.name.name, _WANTED))
    subscribe = functools.partial(_subscription, "many")
    for start in range(FAN_OUT, FAN_OUT + others, _AT_ONCE):
        numbers = range(start, min(start + _AT_ONCE, FAN_OUT + others))
        made = [subscribe(number, f"other-{number}", f"something else {number}") for number in numbers]
        await asyncio.gather(*map(resources.subscriptions.create, made))
    await store.close()


def _subscription(topic: str, number: int, queue: str, wish: str) -> Subscription:
    return Subscription(
        id=f"{number:08x}-0000-4000-8000-{number:012x}",
        topic=_HERE._replace(name=topic),
        queue_id=0,
        owner=_HERE.account,
        protocol="sqs",
        endpoint=arn("sqs", queue),
        filter_text=orjson.dumps({"wish": [wish]}).decode(),
    )
