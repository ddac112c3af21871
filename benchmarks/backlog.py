"""Does a deep queue cost memory, speed, or the time of a restart? Do many message groups?

The queues are filled over HTTP, ten messages a call, so that the server's memory shows what filling left behind. What
a deep server is compared with is a second server with nothing in its store, under the same load in turn.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import Any, Final

import uvloop

from benchmarks.bench import Bench
from benchmarks.calls import Connection
from benchmarks.figures import Figure, at_least, under
from benchmarks.load import BODY_BYTES
from benchmarks.rounds import Lane, compared, in_turn
from benchmarks.servers import Redrive, redrive

RESIDENT_MB_MAX: Final = 350.0
DEEP_MIN: Final = 0.8
ORDERED_MIN: Final = 0.7
RESTART_SECONDS_MAX: Final = 3.0

_LOADS: Final = ("send", "cycle", "cycle_batch")
_MESSAGES_PER_CALL: Final = 10
_FILLING_CONNECTIONS: Final = 16
_MESSAGES_PER_GROUP: Final = 2  # a claimed and deleted one has a successor, whose turn it becomes


def counters(bench: Bench) -> Iterator[Figure]:
    """Memory and restart of the deep server, then what is left of its speed; then of the ordered queue's."""
    with redrive(bench) as empty:
        yield from _deep(bench, empty)
        yield from _ordered(bench, empty)


def _deep(bench: Bench, empty: Redrive) -> Iterator[Figure]:
    messages = bench.scale.backlog_messages
    depth = f"{messages:,} waiting"
    with redrive(bench) as server:
        queue = server.new_queue()
        filled = _fill(server, queue, messages)
        after_filling = server.process.resident_bytes()
        lanes = Lane("deep", server, lambda: queue), Lane("empty", empty, empty.new_queue)
        yield from _compare(bench, lanes, depth, DEEP_MIN)
        resident = max(after_filling, server.process.resident_bytes()) / 1e6
        yield Figure(f"{depth}, memory", resident, "MB", filled, under(RESIDENT_MB_MAX))
        yield Figure(
            f"{depth}, restart after kill -9",
            _restart_seconds(server),
            "s",
            "until it says that it is ready",
            under(RESTART_SECONDS_MAX),
        )


def _ordered(bench: Bench, empty: Redrive) -> Iterator[Figure]:
    groups = bench.scale.groups
    with redrive(bench) as server:
        queue = server.new_ordered_queue()
        _fill(server, queue, groups * _MESSAGES_PER_GROUP, groups)
        lanes = Lane("ordered", server, lambda: queue, groups), Lane("standard", empty, empty.new_queue)
        yield from _compare(bench, lanes, f"{groups:,} groups", ORDERED_MIN)


def _compare(bench: Bench, lanes: tuple[Lane, Lane], what: str, least: float) -> Iterator[Figure]:
    connections = bench.scale.connections[0]
    for load in _LOADS:
        runs = in_turn(bench.scale, lanes, load, connections)
        yield compared(f"{what}, {load}, {connections} connections", runs, at_least(least))


def _restart_seconds(server: Redrive) -> float:
    server.server.kill()
    began = time.perf_counter()
    server.server.start()
    return time.perf_counter() - began


# ---- filling ---------------------------------------------------------------------------------------------------


def _fill(server: Redrive, queue: str, messages: int, groups: int = 0) -> str:
    """Send that many messages, spread over groups if there are any; how fast that went."""
    began = time.perf_counter()
    uvloop.run(_send_all(server.url, queue, messages, groups))
    return f"filled at {messages / (time.perf_counter() - began):,.0f}/s"


async def _send_all(url: str, queue: str, messages: int, groups: int) -> None:
    starts = iter(range(0, messages, _MESSAGES_PER_CALL))
    connections = [await Connection.open(url) for _ in range(_FILLING_CONNECTIONS)]

    async def send(connection: Connection) -> None:
        for start in starts:
            numbers = range(start, min(start + _MESSAGES_PER_CALL, messages))
            wish = {"QueueUrl": queue, "Entries": [_entry(number, groups) for number in numbers]}
            answer = await connection.call("SendMessageBatch", wish)
            assert not answer.get("Failed"), answer

    await asyncio.gather(*map(send, connections))


def _entry(number: int, groups: int) -> dict[str, Any]:
    entry = {"Id": str(number), "MessageBody": "m" * BODY_BYTES}
    if groups:
        entry |= {"MessageGroupId": f"group-{number % groups}", "MessageDeduplicationId": f"fill-{number}"}
    return entry
