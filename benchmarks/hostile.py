"""Twenty hostile connections: do the calls of others get through, who waits how long, and what memory is taken?

Each attack has an empty server of its own, which wants signatures. The calls of others are four connections that send
messages, signed, a hundred times a second each at most; a call that is not answered within eight seconds was not let
through. The longest wait is that of a request that costs the server nothing: as long as the event loop stood still, and
the time that the kernel gave the processor to others.
"""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import uvloop
from tests.services.server import Server, new_key, serving

from benchmarks.attackers import attacking
from benchmarks.attacks import ATTACKS, Attack, Holder
from benchmarks.attacks_of_holders import ATTACKS_OF_HOLDERS
from benchmarks.bench import Bench
from benchmarks.calls import CallFailedError, Connection
from benchmarks.figures import Figure, at_least
from benchmarks.processes import Process

SHARE_PERCENT_MIN: Final = 99.0

_CALLERS: Final = 4
_PATIENCE_SECONDS: Final = 8.0
_CALL_PAUSE_SECONDS: Final = 0.01
_PROBE_PAUSE_SECONDS: Final = 0.005
_MEMORY_PAUSE_SECONDS: Final = 0.1
_LEAVING_SECONDS: Final = 1.0  # for the server to see that everybody has left
_MIB: Final = 1024 * 1024
_PROBE: Final = b"GET /_localstack/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@dataclass(slots=True)
class Calls:
    """Durations of calls (ms): those answered with 200 in time, and the others until they were given up."""

    answered: list[float] = field(default_factory=list)
    unanswered: list[float] = field(default_factory=list)

    @property
    def count(self) -> int:
        """All of them."""
        return len(self.answered) + len(self.unanswered)

    @property
    def longest(self) -> float:
        """The longest that any took (ms)."""
        return max(*self.answered, *self.unanswered, 0.0, 0.0)


@dataclass(slots=True)
class Seen:
    """Observations from outside during an attack.

    Attributes:
        calls: Those of others.
        probes: Requests that cost nothing.
        before_bytes: Memory of the server before the attack.
        peak_bytes: The most during it.
        after_bytes: What it had when all hostile connections were closed.
    """

    calls: Calls = field(default_factory=Calls)
    probes: Calls = field(default_factory=Calls)
    before_bytes: int = 0
    peak_bytes: int = 0
    after_bytes: int = 0


def counters(bench: Bench) -> Iterator[Figure]:
    """For each attack: the share of calls answered, the longest wait, the memory that is not given back."""
    for name, prepare in {**ATTACKS, **ATTACKS_OF_HOLDERS}.items():
        with (
            bench.new_store() as store,
            serving(store, "--auth", "required", directory=bench.directory) as server,
        ):
            attack = prepare(Holder(server.url, new_key(store, "222222222222")))
            user = Holder(server.url, new_key(store, "111111111111"))
            call = user.sqs("SendMessage", {"QueueUrl": user.new_queue(), "MessageBody": "x" * 200})
            seen = uvloop.run(_watch(server, attack, call, bench.scale.seconds))
        yield from _figures(name, seen)


def _figures(name: str, seen: Seen) -> Iterator[Figure]:
    calls, answered = seen.calls, len(seen.calls.answered)
    detail = f"{answered:,} of {calls.count:,} calls, the slowest {calls.longest:,.0f} ms"
    share = 100 * answered / max(calls.count, 1)
    yield Figure(f"{name}: answered", share, "%", detail, at_least(SHARE_PERCENT_MIN))
    yield Figure(f"{name}: longest wait", seen.probes.longest, "ms", "of a request that costs nothing")
    before, peak, after = (part / _MIB for part in (seen.before_bytes, seen.peak_bytes, seen.after_bytes))
    detail = f"{before:,.0f} before, {peak:,.0f} at most, {after:,.0f} afterwards"
    yield Figure(f"{name}: memory kept", after - before, "MiB", detail)


async def _watch(server: Server, attack: Attack, call: bytes, seconds: float) -> Seen:
    process = Process(server.process.pid)
    seen = Seen(before_bytes=process.resident_bytes())
    with attacking(int(server.url.rpartition(":")[2]), attack):
        until = time.perf_counter() + seconds
        async with asyncio.TaskGroup() as group:
            group.create_task(_weigh(process, seen, until))
            group.create_task(_repeat(server.url, _PROBE, until, _PROBE_PAUSE_SECONDS, seen.probes))
            for _ in range(_CALLERS):
                group.create_task(_repeat(server.url, call, until, _CALL_PAUSE_SECONDS, seen.calls))
    await asyncio.sleep(_LEAVING_SECONDS)
    seen.after_bytes = process.resident_bytes()
    return seen


async def _weigh(process: Process, seen: Seen, until: float) -> None:
    while time.perf_counter() < until:
        seen.peak_bytes = max(seen.peak_bytes, process.resident_bytes())
        await asyncio.sleep(_MEMORY_PAUSE_SECONDS)


async def _repeat(url: str, request: bytes, until: float, pause: float, calls: Calls) -> None:
    """Send a request again and again, over a new connection where one was lost."""
    connection = None
    while time.perf_counter() < until:
        began = time.perf_counter()
        into = calls.answered
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                connection = connection or await Connection.open(url)
                await connection.send(request)
        except (OSError, TimeoutError, CallFailedError):
            into = calls.unanswered
            if connection is not None:
                connection.close()
            connection = None
        into.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(pause)
    if connection is not None:
        connection.close()
