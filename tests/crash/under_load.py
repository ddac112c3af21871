"""Callers at work while something happens to their nodes, and what has to be true when they are done."""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Coroutine, Iterable
from typing import Any, Final, TypeVar

from tests.crash.journal import Violated
from tests.crash.ledger import Ledger, check_all_or_none
from tests.crash.lines import after
from tests.crash.node_load import NodeCaller, NodeLoad, Webhook
from tests.services.server import Server

T = TypeVar("T")

_SETTLED_SECONDS: Final = 150  # for what is owed in the end: leases of tasks and pushes are over after 60


@contextlib.asynccontextmanager
async def under_load(ports: list[int], seed: int, copies: int = 2) -> AsyncIterator[NodeLoad]:
    """Callers of the nodes at these ports, at work on queues, a topic with `copies` of them and a webhook."""
    hook = Webhook()
    await hook.open()
    try:
        load = await _prepared(ports, hook, seed, copies)
        load.working = asyncio.create_task(load.run(), name="load")
        try:
            yield load
        finally:
            load.working.cancel()
            await asyncio.wait([load.working])
    finally:
        await hook.close()


async def while_working(load: NodeLoad, coming: Coroutine[Any, Any, T]) -> T:
    """The result of something that happens under load; what stops the load stops that too."""
    task = asyncio.create_task(coming)
    await asyncio.wait([load.working, task], return_when=asyncio.FIRST_COMPLETED)
    if load.working.done():
        task.cancel()
        load.working.result()
    return await task


async def calls(load: NodeLoad, number: int) -> None:
    """Return when so many more calls were answered."""
    enough = load.calls + number
    while load.calls < enough:
        await after(0.05)


async def settled(load: NodeLoad, nodes: Iterable[Server]) -> None:
    """Send no more, and return when everything acknowledged has come, once and in order, and every push was made.

    Raises:
        Violated: Something did not, or one of these nodes met an error that it did not expect.
    """
    load.sending = False
    await asyncio.wait_for(load.working, _SETTLED_SECONDS)
    until = time.monotonic() + _SETTLED_SECONDS
    while missing := load.published - load.hook.taken.keys():
        if time.monotonic() > until:
            raise Violated(f"{len(missing)} publications did not reach the webhook: {sorted(missing)[:5]}")
        await after(0.2)
    for ledger in (load.standard, load.fifo, load.moved, *load.copies):
        ledger.check_all_came()
    check_all_or_none(load.copies)
    for node in nodes:
        if "Traceback" in node.log.read_text():
            raise Violated(f"a node did not expect something: {node.log}")


def port_of(node: Server) -> int:
    """The port that a node serves at."""
    return int(node.url.rpartition(":")[2])


# ---- what the callers need ---------------------------------------------------------------------------------------


async def _prepared(ports: list[int], hook: Webhook, seed: int, copies: int) -> NodeLoad:
    load = NodeLoad(
        ports,
        random.Random(seed),
        *(Ledger("") for _ in range(2)),
        [Ledger("") for _ in range(copies)],
        Ledger(""),
        "",
        f"arn:aws:sqs:us-east-1:000000000000:dead-{seed}",
        f"arn:aws:sqs:us-east-1:000000000000:moved-{seed}",
        "",
        hook,
    )
    caller = load.caller()

    async def queue(name: str, suffix: str = "", **attributes: str) -> str:
        answer = await caller.insist("CreateQueue", QueueName=f"{name}-{seed}{suffix}", Attributes=attributes)
        url: str = answer["QueueUrl"]
        return url

    load.standard.url = await queue("standard")
    load.fifo.url = await queue("fifo", ".fifo", FifoQueue="true")
    load.moved.url, load.dead_url = await queue("moved"), await queue("dead")
    await queue("source", RedrivePolicy=f'{{"deadLetterTargetArn":"{load.dead_arn}","maxReceiveCount":"1"}}')
    made = await caller.query("CreateTopic", Name=f"topic-{seed}")
    load.topic = next(element.text or "" for element in made.iter() if element.tag.endswith("TopicArn"))
    for number, ledger in enumerate(load.copies):
        ledger.url = await queue(f"copy-{number}")
        arn = f"arn:aws:sqs:us-east-1:000000000000:copy-{number}-{seed}"
        await _subscribe(caller, load.topic, "sqs", arn, RawMessageDelivery="true")
    retries = '"numRetries":60,"minDelayTarget":1,"maxDelayTarget":2,"backoffFunction":"linear"'
    schedule = f'{{"healthyRetryPolicy":{{{retries}}}}}'
    await _subscribe(caller, load.topic, "http", hook.url, DeliveryPolicy=schedule)
    token = await asyncio.wait_for(hook.token, 60)
    await caller.query("ConfirmSubscription", TopicArn=load.topic, Token=token)
    await caller.close()
    return load


async def _subscribe(caller: NodeCaller, topic: str, protocol: str, endpoint: str, **attributes: str) -> None:
    entries: dict[str, str] = {}
    for number, (name, value) in enumerate(attributes.items(), start=1):
        entries |= {f"Attributes.entry.{number}.key": name, f"Attributes.entry.{number}.value": value}
    await caller.query("Subscribe", TopicArn=topic, Protocol=protocol, Endpoint=endpoint, **entries)
