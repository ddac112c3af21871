"""What does one SendMessage cost in processor time without sockets or disk, and what do listeners add?

The front's handler is called in this process with requests as values, on a store in memory, by as many callers at
once as a usual load has connections. Sockets and the parser are left out (11 to 14 us, decision 0002), and so is
the fsync.
"""

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Final, cast

import orjson
import uvloop

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.load import BODY_BYTES
from redrive.engine.engine import Engine
from redrive.engine.facts import Listener
from redrive.model.queue import Queue
from redrive.protocols.aws.authentication import Believing
from redrive.protocols.aws.gateway import Gateway
from redrive.protocols.aws.sqs.facade import Sqs
from redrive.protocols.http import Request
from redrive.runtime.chance import real_runtime
from redrive.runtime.clock import SystemClock
from redrive.stores.sqlite.store import SqliteStore

_CALLERS: Final = 32
_ROUNDS_MIN: Final = 3


class Counting:
    """The least that telemetry can be: it counts what was sent. Of a Listener it has what SendMessage calls."""

    def __init__(self) -> None:
        self.messages: Counter[int] = Counter()

    def sent(self, queue: Queue, messages: int, body_bytes: int, now: int) -> None:  # noqa: ARG002 - as Listener
        """See `Listener.sent`."""
        self.messages[queue.id] += messages


def measure(bench: Bench) -> Iterator[Figure]:
    """Microseconds for one call, then how many times that with a listener."""
    alone, listened = [], []
    for _ in range(max(_ROUNDS_MIN, bench.scale.rounds)):
        alone.append(uvloop.run(_cpu_us(bench.scale.calls, ())))
        listened.append(uvloop.run(_cpu_us(bench.scale.calls, (cast("Listener", Counting()),))))
    least, more = statistics.median(alone), statistics.median(listened)
    yield Figure("SendMessage, no listeners", least, "us", _spread(alone))
    yield Figure("SendMessage, a listener that counts", more / least, "x", _spread(listened))


def _spread(readings: Sequence[float]) -> str:
    return f"{min(readings):.1f} to {max(readings):.1f} us in {len(readings)} readings"


async def _cpu_us(calls: int, listeners: Sequence[Listener]) -> float:
    """Processor time of this process for one SendMessage."""
    runtime = real_runtime(SystemClock())
    engine = Engine(SqliteStore(None), runtime, listeners=listeners)
    gateway = Gateway(runtime, Believing("us-east-1"), {"sqs": Sqs(engine)}, None)
    await engine.open()
    try:
        made = await _answered(gateway, _request("CreateQueue", QueueName="bench"))
        send = _request("SendMessage", QueueUrl=orjson.loads(made)["QueueUrl"], MessageBody="m" * BODY_BYTES)
        await _call_often(gateway, send, _CALLERS)  # the first call compiles the operation
        began = time.process_time()
        await asyncio.gather(*(_call_often(gateway, send, calls // _CALLERS) for _ in range(_CALLERS)))
        seconds = time.process_time() - began
    finally:
        await engine.close()
    return seconds / (calls // _CALLERS * _CALLERS) * 1e6


async def _call_often(gateway: Gateway, request: Request, calls: int) -> None:
    for _ in range(calls):
        await _answered(gateway, request)


async def _answered(gateway: Gateway, request: Request) -> bytes:
    response = await gateway.answer(request)
    assert response.status == HTTPStatus.OK, response.body
    return response.body


def _request(operation: str, **parameters: str) -> Request:
    headers = {
        "host": "127.0.0.1:4566",
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": f"AmazonSQS.{operation}",
    }
    return Request("POST", "/", "", headers, orjson.dumps(parameters))
