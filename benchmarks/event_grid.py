"""Events a second through one process to one webhook of Event Grid, in batches and one by one.

From the first publication to the last event that the webhook has, publishing included. Events are published 1,000 a
request over one connection, as a publisher with much to say does.
"""

import time
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Final

import orjson
import uvloop
from tests.services.server import Server

from benchmarks.bench import Bench
from benchmarks.calls import Connection
from benchmarks.figures import Figure, at_least
from benchmarks.servers import Redrive, redrive
from benchmarks.topics import Webhook, webhook

BATCHED_PER_SECOND_MIN: Final = 20_000.0
SINGLE_PER_SECOND_MIN: Final = 2_000.0

_TOPIC: Final = (
    "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/bench"
    "/providers/Microsoft.EventGrid/topics/events"
)
_VERSION: Final = "?api-version=2025-02-15"
_EVENTS_PER_CALL: Final = 1_000
_POST: Final = (
    "POST /eventgrid/00000000-0000-0000-0000-000000000000/bench/events/api/events?api-version=2018-01-01"
    " HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\naeg-sas-key: any\r\n"
    "Content-Length: {length}\r\n\r\n"
)


def counters(bench: Bench) -> Iterator[Figure]:
    """Events a second, published and delivered."""
    events = bench.scale.events
    yield _figure(bench, events, {"maxEventsPerBatch": 1_000, "preferredBatchSizeInKilobytes": 1_024})
    yield _figure(bench, events // 5, {})


def _figure(bench: Bench, events: int, batching: dict[str, int]) -> Figure:
    what, bound = (
        ("batches of 1,000", BATCHED_PER_SECOND_MIN) if batching else ("one by one", SINGLE_PER_SECOND_MIN)
    )
    with redrive(bench) as server, webhook() as hook:
        _subscribe(server.server, hook.url, batching)
        cpu_seconds = server.process.cpu_seconds()
        seconds = uvloop.run(_through(server, hook, events))
        cpu_us = (server.process.cpu_seconds() - cpu_seconds) / events * 1e6
    return Figure(
        f"{events:,} events, {what}", events / seconds, "/s", f"{cpu_us:.0f} us CPU each", at_least(bound)
    )


def _subscribe(server: Server, url: str, batching: dict[str, int]) -> None:
    destination = {"endpointType": "WebHook", "properties": {"endpointUrl": f"{url}/", **batching}}
    _put(server, _TOPIC, {"location": "local"})
    _put(server, f"{_TOPIC}/eventSubscriptions/hook", {"properties": {"destination": destination}})


def _put(server: Server, resource: str, document: dict[str, Any]) -> None:
    status, body = server.ask("PUT", resource + _VERSION, orjson.dumps(document))
    assert status == HTTPStatus.CREATED, body


async def _through(server: Redrive, hook: Webhook, events: int) -> float:
    """Seconds from the first publication to the last event."""
    connection = await Connection.open(server.url)
    call = _call(connection.host, min(events, _EVENTS_PER_CALL))
    began = time.perf_counter()
    for _ in range(events // min(events, _EVENTS_PER_CALL)):
        await connection.send(call)
    return (await hook.received(events)).last_at - began


def _call(host: str, events: int) -> bytes:
    published = [
        {
            "id": str(number),
            "subject": "cars",
            "eventType": "Rented",
            "eventTime": "2026-01-01T00:00:00Z",
            "dataVersion": "1",
            "data": {"car": number, "note": "n" * 60},
        }
        for number in range(events)
    ]
    body = orjson.dumps(published)
    return _POST.format(host=host, length=len(body)).encode() + body
