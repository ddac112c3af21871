"""What does one SendMessage cost in processor time without sockets or disk, and what does telemetry add?

The front's handler is called in this process with requests as values, on a store in memory, by as many callers at
once as a usual load has connections. Sockets and the parser are left out (11 to 14 us, decision 0002), and so is
the fsync.
"""

import asyncio
import statistics
import time
from collections.abc import Iterator, Sequence
from functools import partial
from http import HTTPStatus
from typing import Final

import orjson
import uvloop

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.load import BODY_BYTES
from redrive.engine import archive
from redrive.engine.engine import Engine
from redrive.engine.facts import Listener
from redrive.protocols.aws.authentication import Believing
from redrive.protocols.aws.gateway import Gateway
from redrive.protocols.aws.sqs.facade import Sqs
from redrive.protocols.http import Request
from redrive.runtime.chance import real_runtime
from redrive.runtime.clock import SystemClock
from redrive.stores.sqlite.store import SqliteStore
from redrive.telemetry.telemetry import Telemetry

_CALLERS: Final = 32
_CREDENTIAL: Final = (
    "AWS4-HMAC-SHA256 Credential=000000000000/20260101/us-east-1/sqs/aws4_request,"
    f" SignedHeaders=host;x-amz-date, Signature={'0' * 64}"
)
_ROUNDS_MIN: Final = 3


def measure(bench: Bench) -> Iterator[Figure]:
    """Microseconds for one call, then how many times that with telemetry listening."""
    alone, told = [], []
    for _ in range(max(_ROUNDS_MIN, bench.scale.rounds)):
        alone.append(uvloop.run(_cpu_us(bench.scale.calls, telemetry=False)))
        told.append(uvloop.run(_cpu_us(bench.scale.calls, telemetry=True)))
    least = statistics.median(alone)
    yield Figure("SendMessage, nobody listens", least, "us", _spread(alone))
    yield Figure("SendMessage, with telemetry", statistics.median(told) / least, "x", _spread(told))


def _spread(readings: Sequence[float]) -> str:
    return f"{min(readings):.1f} to {max(readings):.1f} us in {len(readings)} readings"


async def _cpu_us(calls: int, *, telemetry: bool) -> float:
    """Processor time of this process for one SendMessage, and for writing down what was counted."""
    runtime = real_runtime(SystemClock())
    store = SqliteStore(None)
    listeners: list[Listener] = []
    engine = Engine(store, runtime, listeners=listeners)
    size = partial(archive.size, store, runtime.clock)
    collector = Telemetry(store, runtime.clock, engine.queues, engine.topics, size)
    if telemetry:
        listeners.append(collector.metrics)
    gateway = Gateway(runtime, Believing("us-east-1"), {"sqs": Sqs(engine)}, None)
    await engine.open()
    try:
        made = await _answered(gateway, _request("CreateQueue", QueueName="bench"))
        send = _request("SendMessage", QueueUrl=orjson.loads(made)["QueueUrl"], MessageBody="m" * BODY_BYTES)
        await _call_often(gateway, send, _CALLERS)  # the first call compiles the operation
        began = time.process_time()
        await asyncio.gather(*(_call_often(gateway, send, calls // _CALLERS) for _ in range(_CALLERS)))
        await collector.flush()
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
        "authorization": _CREDENTIAL,
    }
    return Request("POST", "/", "", headers, orjson.dumps(parameters))
