"""Of many webhooks one never answers: how long do the others wait for theirs?"""

import asyncio
from collections.abc import Iterator
from typing import Final

import uvloop

from benchmarks.bench import Bench, Scale
from benchmarks.calls import Connection
from benchmarks.figures import Figure, under
from benchmarks.servers import Redrive, redrive
from benchmarks.topics import Report, Webhook, call, create_topic, text, webhook

AGE_MS_MAX: Final = 50.0

_PUBLICATIONS_PER_SECOND: Final = 5
_RAW: Final = {"RawMessageDelivery": "true"}


def counters(bench: Bench) -> Iterator[Figure]:
    """From the call that publishes to the post that delivers, at the webhooks that answer."""
    with redrive(bench) as server, webhook() as quick, webhook() as hanging:
        report = uvloop.run(_publish(server, quick, hanging, bench.scale))
    ages_ms = sorted(report.ages_ms)
    detail = f"{len(ages_ms):,} deliveries, {_PUBLICATIONS_PER_SECOND} publications a second"
    for name, share, bound in (("p50", 0.50, None), ("p99", 0.99, under(AGE_MS_MAX))):
        age_ms = ages_ms[int(len(ages_ms) * share)]
        yield Figure(f"{bench.scale.webhooks} webhooks, one hangs, {name}", age_ms, "ms", detail, bound)


async def _publish(server: Redrive, quick: Webhook, hanging: Webhook, scale: Scale) -> Report:
    connection = await Connection.open(server.url)
    topic = await create_topic(connection, "hanging")
    await hanging.subscribe(connection, topic, "/", _RAW)
    await hanging.hold()
    answering = scale.webhooks - 1
    for number in range(answering):
        await quick.subscribe(connection, topic, f"/{number}", _RAW)
    for _ in range(scale.publications):
        published = asyncio.create_task(call(connection, "Publish", TopicArn=topic, Message=text()))
        await asyncio.sleep(1 / _PUBLICATIONS_PER_SECOND)
        await published
    return await quick.received(scale.publications * answering)
