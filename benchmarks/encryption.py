"""The cost of encryption at rest: processor time of messages of encrypted queues beside that of plain ones.

In one process and without the wire, queues in turn, so that what else the machine does hits all of them alike.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from statistics import median
from typing import Any, Final

import uvloop

from benchmarks.bench import Bench
from benchmarks.figures import Figure, at_least
from redrive.access.principals import account_root
from redrive.app import assembled
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.settings import Settings

RATIO_MIN: Final = 0.7
_AT_ONCE: Final = 64
_ROUNDS: Final = 27
_CALLER: Final = account_root("000000000000")
_REGION: Final = "us-east-1"
_BODY: Final = "x" * 1024
_SENT: Final = {
    "plain": {"SqsManagedSseEnabled": "false"},
    "root": {"SqsManagedSseEnabled": "true"},
    "key": {},
}


def counters(bench: Bench) -> Iterator[Figure]:
    """Sends of 1 KiB, and receives with deletions, of queues with the root key and with a key of KMS."""
    with bench.new_store() as store_url:
        spent = uvloop.run(_spent(store_url, max(_AT_ONCE, bench.scale.calls // 60)))
    for what in ("send", "receive"):
        plain = spent["plain", what]
        for kind in ("root", "key"):
            sealed = spent[kind, what]
            ratio = median([one / other for one, other in zip(plain, sealed, strict=True)])
            detail = f"{median(sealed):.1f} µs, plain {median(plain):.1f} µs"
            name = f"{what}, encrypted by {'a key of KMS' if kind == 'key' else 'the root key'}"
            yield Figure(name, ratio, "x", detail, at_least(RATIO_MIN))


async def _spent(store_url: str, number: int) -> dict[tuple[str, str], list[float]]:
    """Microseconds of processor time for each call, round by round."""
    spent = defaultdict[tuple[str, str], list[float]](list)
    async with _calls(store_url) as calls:
        key = (await _call(calls, "kms", "CreateKey"))["KeyMetadata"]["Arn"]
        urls = {}
        for name, attributes in _SENT.items():
            given = attributes or {"KmsMasterKeyId": key}
            made = await _call(calls, "sqs", "CreateQueue", QueueName=name, Attributes=given)
            urls[name] = made["QueueUrl"]
        for _ in range(_ROUNDS):
            for name, url in urls.items():
                for what, round_of in (("send", _send), ("receive", _receive)):
                    began = time.process_time()
                    await round_of(calls, url, number)
                    spent[name, what].append((time.process_time() - began) / number * 1e6)
    return spent


@asynccontextmanager
async def _calls(store_url: str) -> AsyncIterator[InnerCalls]:
    async with assembled(Settings(store=store_url), "http://localhost") as server:
        await server.open()
        services = {
            name: each for part in server.extensions for name, each in part.interface.services.items()
        }
        yield InnerCalls(services, server.core.runtime)


async def _call(calls: InnerCalls, service: str, operation: str, **params: Any) -> dict[str, Any]:
    return dict(await calls.call(service, operation, params, _CALLER, _REGION))


async def _send(calls: InnerCalls, url: str, number: int) -> None:
    for begin in range(0, number, _AT_ONCE):
        at_once = range(begin, min(begin + _AT_ONCE, number))
        await asyncio.gather(
            *(_call(calls, "sqs", "SendMessage", QueueUrl=url, MessageBody=_BODY) for _ in at_once)
        )


async def _receive(calls: InnerCalls, url: str, number: int) -> None:
    left = number
    while left > 0:
        answers = await asyncio.gather(*(_received(calls, url) for _ in range(_AT_ONCE // 8)))
        left -= sum(answers)


async def _received(calls: InnerCalls, url: str) -> int:
    answer = await _call(calls, "sqs", "ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10)
    messages = answer.get("Messages", [])
    entries = [
        {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
        for number, message in enumerate(messages)
    ]
    if entries:
        await _call(calls, "sqs", "DeleteMessageBatch", QueueUrl=url, Entries=entries)
    return len(messages)
