"""The cost of a thousand long polls while nothing comes, and the time until one of them gets a message."""

import asyncio
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

import uvloop

from benchmarks.bench import Bench, Scale
from benchmarks.calls import Connection, request
from benchmarks.figures import Figure, under
from benchmarks.servers import Redrive, redrive

CPU_PERCENT_MAX: Final = 2.0
WAKE_UP_MS_MAX: Final = 20.0

_WAIT_SECONDS: Final = 20  # the longest that SQS allows
_SETTLING_SECONDS: Final = 1.0  # for the polls' first looks at the queue to be over
_LEASE_SECONDS: Final = 600  # longer than everything here: what was received does not come back


def counters(bench: Bench) -> Iterator[Figure]:
    """The processor's share of the idle server, then the time from a send to the poll that it wakes."""
    with redrive(bench) as server:
        cpu_share, delays_ms = uvloop.run(_watch(server, bench.scale))
    polls = f"{bench.scale.polls:,} long polls"
    yield Figure(
        f"{polls}, idle",
        cpu_share * 100,
        "% CPU",
        f"of one core, over {bench.scale.idle_seconds} s",
        under(CPU_PERCENT_MAX),
    )
    for name, share in (("p50", 0.50), ("p99", 0.99)):
        delay = sorted(delays_ms)[int(len(delays_ms) * share)]
        detail = f"from send to receive, {len(delays_ms)} sends one after the other"
        yield Figure(f"{polls}, wake-up {name}", delay, "ms", detail, under(WAKE_UP_MS_MAX))


class Woken(NamedTuple):
    """A poll that was answered.

    Attributes:
        at: When, in seconds of the performance counter.
        received: Whether with a message; its time may also have been up.
    """

    connection: Connection
    at: float
    received: bool


class Polls:
    """Connections that all wait at one queue, and wait again once answered."""

    def __init__(self, queue: str) -> None:
        self._wish = {
            "QueueUrl": queue,
            "WaitTimeSeconds": _WAIT_SECONDS,
            "VisibilityTimeout": _LEASE_SECONDS,
        }
        self._woken: asyncio.Queue[Woken] = asyncio.Queue()

    async def add(self, url: str) -> None:
        """Let one more wait."""
        self._wait(await Connection.open(url))

    def _wait(self, connection: Connection) -> None:
        answered = connection.send(request(connection.host, "ReceiveMessage", self._wish))

        def wake(answered: asyncio.Future[bytes]) -> None:
            received = b"Messages" in answered.result()
            self._woken.put_nowait(Woken(connection, time.perf_counter(), received))

        answered.add_done_callback(wake)

    @property
    def anyone_woke(self) -> bool:
        """True if a poll was answered that nobody has looked at."""
        return not self._woken.empty()

    async def received_at(self) -> float:
        """Return the time of the next message; a poll that was answered begins again."""
        while True:
            woken = await self._woken.get()
            self._wait(woken.connection)
            if woken.received:
                return woken.at


async def _watch(server: Redrive, scale: Scale) -> tuple[float, list[float]]:
    queue = server.new_queue()
    polls = Polls(queue)
    for _ in range(scale.polls):
        await polls.add(server.url)
    await asyncio.sleep(_SETTLING_SECONDS)
    before = server.process.cpu_seconds()
    await asyncio.sleep(scale.idle_seconds)
    cpu_share = (server.process.cpu_seconds() - before) / scale.idle_seconds
    assert not polls.anyone_woke, "a poll did not wait"
    return cpu_share, await _wake(server, queue, polls, scale.wake_ups)


async def _wake(server: Redrive, queue: str, polls: Polls, times: int) -> list[float]:
    sender = await Connection.open(server.url)
    call = request(sender.host, "SendMessage", {"QueueUrl": queue, "MessageBody": "wake up"})
    delays_ms = []
    for _ in range(times):
        began = time.perf_counter()
        sent = sender.send(call)
        delays_ms.append((await polls.received_at() - began) * 1000)
        assert b"MessageId" in await sent
    return delays_ms
