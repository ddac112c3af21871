"""Functions of Python: events a second, the time that an invocation adds to its handler, cold starts, and rest.

An event is counted when its outcome is in the store: from the first that is accepted to the last that is settled, on a
function whose environments are there. The handler returns at once, so a round trip is what invoking adds to it.
"""

import asyncio
import io
import statistics
import time
import zipfile
from collections.abc import Iterator
from typing import Any, Final

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import uvloop

from benchmarks.bench import Bench, Scale
from benchmarks.calls import Connection
from benchmarks.figures import Figure, at_least, under
from benchmarks.processes import descendants
from benchmarks.publish import CREDENTIALS
from benchmarks.servers import Redrive, redrive

EVENTS_PER_SECOND_MIN: Final = 1_000.0
OVERHEAD_MS_MAX: Final = 3.0
COLD_START_MS_MAX: Final = 400.0
IDLE_CPU_PERCENT_MAX: Final = 0.5

_HANDLER: Final = "def handler(event, context):\n    return event\n"
_CONNECTIONS: Final = 16
_WARMING: Final = 500  # events that start as many environments as a node runs at once
_LOOK_SECONDS: Final = 0.02  # between two questions how many events are settled
_SETTLING_SECONDS: Final = 6  # until the logs of the starts are written down
_INVOKE: Final = (
    "POST /2015-03-31/functions/{name}/invocations HTTP/1.1\r\nHost: {host}\r\n"
    "X-Amz-Invocation-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
)
_EVENT: Final = b'{"car":1}'


def counters(bench: Bench) -> Iterator[Figure]:
    """Events a second, overhead, cold start and rest, each on a server of its own."""
    with redrive(bench, flags=_FLAGS) as server:
        yield uvloop.run(_events(server, bench.scale))
    with redrive(bench, flags=_FLAGS) as server:
        yield uvloop.run(_overhead(server, bench.scale))
    with redrive(bench, flags=_FLAGS) as server:
        yield from uvloop.run(_cold_starts_and_rest(server, bench.scale))


_FLAGS: Final = ("--functions", "on")


# ---- events ------------------------------------------------------------------------------------------------------


async def _events(server: Redrive, scale: Scale) -> Figure:
    """The best of some rounds: what a neighbour of the machine takes away only makes a round longer."""
    settled = _Settled(server, _create(server, "events"))
    connections = [await Connection.open(server.url) for _ in range(_CONNECTIONS)]
    await _send(connections, settled, _WARMING)
    rounds = [await _send(connections, settled, scale.invocations) for _ in range(scale.rounds)]
    best = min(rounds)
    environments = len(descendants(server.process.pid))
    cpu_us = (server.process.cpu_seconds() - settled.cpu_seconds) / settled.counted * 1e6
    inside_us = (
        sum(process.cpu_seconds() for process in descendants(server.process.pid)) / settled.counted * 1e6
    )
    return Figure(
        f"{scale.invocations:,} events, warm",
        scale.invocations / best,
        "/s",
        f"{cpu_us:.0f} us CPU of the server each, {inside_us:.0f} us of {environments} environments",
        at_least(EVENTS_PER_SECOND_MIN),
    )


class _Settled:
    """The number of a function's events that are settled, by the metric that is counted then."""

    def __init__(self, server: Redrive, name: str) -> None:
        self.name = name
        self.counted = 0
        self.cpu_seconds = server.process.cpu_seconds()
        self._metrics = boto3.client("cloudwatch", endpoint_url=server.url, **CREDENTIALS)
        self._since = time.time() - 60

    async def wait_for(self, more: int) -> None:
        """Return when so many more are."""
        self.counted += more
        while self._number() < self.counted:  # noqa: ASYNC110 - the server is another process
            await asyncio.sleep(_LOOK_SECONDS)

    def _number(self) -> float:
        points: list[dict[str, Any]] = self._metrics.get_metric_statistics(
            Namespace="AWS/Lambda",
            MetricName="AsyncEventAge",
            Dimensions=[{"Name": "FunctionName", "Value": self.name}],
            StartTime=self._since,
            EndTime=time.time() + 60,
            Period=60,
            Statistics=["SampleCount"],
        )["Datapoints"]
        return sum(float(point["SampleCount"]) for point in points)


async def _send(connections: list[Connection], settled: _Settled, events: int) -> float:
    """Seconds from the first of so many events to the end of the last."""
    call = _call(connections[0], settled.name, "Event")
    turns = iter(range(events))

    async def send(connection: Connection) -> None:
        for _ in turns:
            await connection.send(call)

    began = time.perf_counter()
    await asyncio.gather(*map(send, connections))
    await settled.wait_for(events)
    return time.perf_counter() - began


# ---- overhead ----------------------------------------------------------------------------------------------------


async def _overhead(server: Redrive, scale: Scale) -> Figure:
    connection = await Connection.open(server.url)
    call = _call(connection, _create(server, "overhead"), "RequestResponse")
    await connection.send(call)
    taken = [await _milliseconds(connection, call) for _ in range(scale.invocations // 10)]
    return Figure(
        "warm overhead, median",
        statistics.median(taken),
        "ms",
        f"{len(taken):,} invocations one after the other; best {min(taken):.2f} ms",
        under(OVERHEAD_MS_MAX),
    )


async def _milliseconds(connection: Connection, call: bytes) -> float:
    began = time.perf_counter()
    await connection.send(call)
    return (time.perf_counter() - began) * 1000


# ---- cold starts and rest ----------------------------------------------------------------------------------------


async def _cold_starts_and_rest(server: Redrive, scale: Scale) -> list[Figure]:
    connection = await Connection.open(server.url)
    names = [_create(server, f"cold-{number}") for number in range(scale.functions)]
    starts = [await _milliseconds(connection, _call(connection, name, "RequestResponse")) for name in names]
    processes = [server.process, *descendants(server.process.pid)]
    await asyncio.sleep(_SETTLING_SECONDS)
    before = sum(process.cpu_seconds() for process in processes)
    await asyncio.sleep(scale.idle_seconds)
    cpu_share = (sum(process.cpu_seconds() for process in processes) - before) / scale.idle_seconds
    resident_mb = sum(process.resident_bytes() for process in processes[1:]) / 2**20
    return [
        Figure(
            "cold start, median",
            statistics.median(starts),
            "ms",
            f"{len(starts)} functions, from request to answer; best {min(starts):.0f} ms",
            under(COLD_START_MS_MAX),
        ),
        Figure(
            f"{len(names)} functions, idle",
            cpu_share * 100,
            "% CPU",
            f"of one core over {scale.idle_seconds} s, the server's too; {resident_mb / len(names):.0f} MB each",
            under(IDLE_CPU_PERCENT_MAX),
        ),
    ]


# ---- functions ---------------------------------------------------------------------------------------------------


def _create(server: Redrive, name: str) -> str:
    """Make a function; its name."""
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("index.py", f"# {name}: no two functions have the same code\n{_HANDLER}")
    boto3.client("lambda", endpoint_url=server.url, **CREDENTIALS).create_function(
        FunctionName=name,
        Runtime="python3.11",
        Role="arn:aws:iam::000000000000:role/benchmarks",
        Handler="index.handler",
        Code={"ZipFile": package.getvalue()},
    )
    return name


def _call(connection: Connection, name: str, kind: str) -> bytes:
    """An invocation as it goes over the wire."""
    head = _INVOKE.format(name=name, host=connection.host, kind=kind, length=len(_EVENT))
    return head.encode() + _EVENT
