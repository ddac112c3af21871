"""The processor time of SendMessage and Publish without sockets or disk, and the share of telemetry.

The front's handler is called in this process with requests as values, on a store in memory, by as many callers at
once as a usual load has connections. Sockets and the parser are left out (11 to 14 us, decision 0002), and so is
the fsync.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from http import HTTPStatus
from typing import Final, TypeAlias
from urllib.parse import urlencode

import orjson
import uvloop

from benchmarks.bench import Bench
from benchmarks.ceiling import FAN_OUT
from benchmarks.figures import Figure, under
from benchmarks.load import BODY_BYTES
from redrive.access.secret import installation_secret
from redrive.access.signing_pair import make_pair
from redrive.aws.gateway.authentication import TrustAll
from redrive.aws.gateway.gateway import Gateway
from redrive.aws.gateway.identities import Identities
from redrive.aws.kit.call import Facade
from redrive.aws.sns.dialect import SnsDeliveryProfile
from redrive.aws.sns.facade import Sns
from redrive.aws.sns.notifications.notification import Links, UnsubscribeTokens
from redrive.aws.sns.notifications.notification_renderer import (
    NotificationRenderer,
    Signer,
    certificate_path,
)
from redrive.aws.sns.parts import data_protection
from redrive.aws.sns.protection.audit import AuditLog
from redrive.aws.sns.status_log import StatusLog
from redrive.aws.sqs.facade import Sqs
from redrive.engine.engine import Engine
from redrive.engine.publish import archive
from redrive.model.http import Request
from redrive.model.names import id_text
from redrive.runtime.machine import SystemClock, real_runtime
from redrive.stores.sqlite.store import SqliteStore
from redrive.telemetry.meters import NodeMeters
from redrive.telemetry.telemetry import Telemetry

_CALLERS: Final = 32
_ACCOUNT: Final = "000000000000"
_CREDENTIAL: Final = (
    f"AWS4-HMAC-SHA256 Credential={_ACCOUNT}/20260101/us-east-1/{{}}/aws4_request,"
    f" SignedHeaders=host;x-amz-date, Signature={'0' * 64}"
)
_ROUNDS_MIN: Final = 5
#: Telling may cost a tenth of a call; of one whole, with sockets and disk, it is less than of what is measured here.
TOLD_MAX: Final = 1.1


def counters(bench: Bench) -> Iterator[Figure]:
    """For each operation microseconds for one call, then how many times that with telemetry listening."""
    for operation, ask in _ASKED.items():
        alone, told = [], []
        for _ in range(max(_ROUNDS_MIN, bench.scale.rounds)):
            alone.append(uvloop.run(_cpu_us(ask, bench.scale.calls, telemetry=False)))
            told.append(uvloop.run(_cpu_us(ask, bench.scale.calls, telemetry=True)))
        least = statistics.median(alone)
        yield Figure(f"{operation}, nobody listens", least, "us", _spread(alone))
        yield Figure(
            f"{operation}, with telemetry",
            statistics.median(told) / least,
            "x",
            _spread(told),
            under(TOLD_MAX),
        )


def _spread(readings: Sequence[float]) -> str:
    return f"{min(readings):.1f} to {max(readings):.1f} us in {len(readings)} readings"


async def _cpu_us(ask: "Ask", calls: int, *, telemetry: bool) -> float:
    """Processor time of this process for one call, and for writing down what was counted."""
    runtime = real_runtime(SystemClock())
    store = SqliteStore(None)
    engine = Engine(store, runtime)
    await engine.connect()
    pair = make_pair(runtime.clock.now())
    secret = await installation_secret(store, runtime.rng)
    links = Links("http://localhost", certificate_path(pair), UnsubscribeTokens(secret))
    push_requests = NotificationRenderer(links, Signer(pair))
    engine.add_profile("sns", SnsDeliveryProfile(push_requests, runtime.clock, open_queues=True))
    size = partial(archive.size, store, runtime.clock)
    resources = engine.resources
    collector = Telemetry(
        store,
        runtime.clock,
        resources.queues,
        resources.topics,
        size,
        resources.subscriptions.of_backlog,
    )
    stream = id_text(runtime.message_id())
    if telemetry:
        engine.add_listener(collector.metrics)
        engine.add_listener(NodeMeters(time.perf_counter))
        engine.add_listener(StatusLog(collector.logs, runtime.rng, stream), "sns")
    audit = AuditLog(collector.logs, collector.count, runtime.rng, stream)
    parts = [data_protection(engine, audit)]
    sns = Sns(engine, parts, secret, Identities(resources.documents, restricts=False))
    services: dict[str, Facade] = {"sqs": Sqs(engine, secret), "sns": sns}
    gateway = Gateway(runtime, TrustAll("us-east-1"), services, None)
    await engine.open()
    try:
        request = await ask(gateway)
        await _call_often(gateway, request, _CALLERS)  # the first call compiles the operation
        began = time.process_time()
        await asyncio.gather(*(_call_often(gateway, request, calls // _CALLERS) for _ in range(_CALLERS)))
        await collector.flush()
        seconds = time.process_time() - began
    finally:
        await engine.close()
    return seconds / (calls // _CALLERS * _CALLERS) * 1e6


async def _send(gateway: Gateway) -> Request:
    url = await _new_queue(gateway, "bench")
    return _sqs("SendMessage", QueueUrl=url, MessageBody="m" * BODY_BYTES)


async def _publish(gateway: Gateway) -> Request:
    """A publication to a topic with so many queues."""
    made = await _answered(gateway, _sns("CreateTopic", Name="bench"))
    topic = made.partition(b"<TopicArn>")[2].partition(b"<")[0].decode()
    for number in range(FAN_OUT):
        await _new_queue(gateway, f"bench-{number}")
        queue = f"arn:aws:sqs:us-east-1:{_ACCOUNT}:bench-{number}"
        await _answered(gateway, _sns("Subscribe", TopicArn=topic, Protocol="sqs", Endpoint=queue))
    return _sns("Publish", TopicArn=topic, Message="m" * BODY_BYTES)


async def _new_queue(gateway: Gateway, name: str) -> str:
    url: str = orjson.loads(await _answered(gateway, _sqs("CreateQueue", QueueName=name)))["QueueUrl"]
    return url


Ask: TypeAlias = Callable[[Gateway], Awaitable[Request]]
_ASKED: Final[dict[str, Ask]] = {"SendMessage": _send, f"Publish to {FAN_OUT} queues": _publish}


async def _call_often(gateway: Gateway, request: Request, calls: int) -> None:
    for _ in range(calls):
        await _answered(gateway, request)


async def _answered(gateway: Gateway, request: Request) -> bytes:
    response = await gateway.answer(request)
    assert response.status == HTTPStatus.OK, response.body
    return response.body


def _sqs(operation: str, **parameters: str) -> Request:
    headers = {
        "host": "127.0.0.1:4566",
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": f"AmazonSQS.{operation}",
        "authorization": _CREDENTIAL.format("sqs"),
    }
    return Request("POST", "/", "", headers, orjson.dumps(parameters))


def _sns(operation: str, **parameters: str) -> Request:
    headers = {
        "host": "127.0.0.1:4566",
        "content-type": "application/x-www-form-urlencoded; charset=utf-8",
        "authorization": _CREDENTIAL.format("sns"),
    }
    form = {"Action": operation, "Version": "2010-03-31", **parameters}
    return Request("POST", "/", "", headers, urlencode(form).encode())
