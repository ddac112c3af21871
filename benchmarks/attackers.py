"""Hostile connections, in a process of their own so that what measures is not disturbed by them."""

import asyncio
import contextlib
import multiprocessing
from collections.abc import Iterator
from multiprocessing.synchronize import Event
from typing import Final

import uvloop

from benchmarks.attacks import Attack
from benchmarks.load import LoadFailedError

CONNECTIONS: Final = 20

_PATIENCE_SECONDS: Final = 30.0  # for an answer; then the connection is made anew
_PAUSE_SECONDS: Final = 0.02  # before a connection that was refused is made anew
_DRIP_SECONDS: Final = 0.5  # between two bytes of a request that is not ended


@contextlib.contextmanager
def attacking(port: int, attack: Attack) -> Iterator[None]:
    """Hostile connections to a server on loopback as long as the block."""
    context = multiprocessing.get_context("spawn")
    connected = context.Event()
    process = context.Process(target=_run, args=(port, attack, connected), daemon=True)
    process.start()
    try:
        if not connected.wait(_PATIENCE_SECONDS):
            raise LoadFailedError("the hostile connections were not made")
        yield
    finally:
        process.terminate()
        process.join()


def _run(port: int, attack: Attack, connected: Event) -> None:
    uvloop.run(_attack(port, attack, connected))


async def _attack(port: int, attack: Attack, connected: Event) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()
    connected.set()
    async with asyncio.TaskGroup() as group:
        for first in range(CONNECTIONS):
            group.create_task(_connect_again(port, attack, first))


async def _connect_again(port: int, attack: Attack, number: int) -> None:
    while True:
        with contextlib.suppress(OSError, EOFError, TimeoutError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with contextlib.closing(writer):
                while True:
                    writer.write(attack.requests[number % len(attack.requests)])
                    number += CONNECTIONS + 1
                    await (_hold(reader, writer) if attack.is_held else _answer(reader))
        await asyncio.sleep(_PAUSE_SECONDS)


async def _answer(reader: asyncio.StreamReader) -> None:
    async with asyncio.timeout(_PATIENCE_SECONDS):
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r\n")[0]))


async def _hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Let a byte follow now and then, until the server has had enough."""
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRIP_SECONDS):
                await reader.readuntil(b"\r\n\r\n")
                return
        writer.write(b"x")
