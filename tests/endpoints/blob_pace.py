"""Measures the blobs a second that BlobEndpoint writes to a folder, and the processor's time for each.

python -m tests.endpoints.blob_pace FOLDER
"""

import asyncio
import sys
import time
from pathlib import Path

import uvloop

from redrive.endpoints import blob_store
from redrive.endpoints.blob import BlobEndpoint
from tests.contracts.endpoints.storage import blob_push

_TEXT = "x" * 1024
_BLOBS = 1000


async def pace(folder: Path, at_once: int) -> tuple[float, float]:
    """Blobs a second, and microseconds of the processor for each."""
    endpoint = BlobEndpoint(lambda: 0, lambda _: None, str(folder))
    turns = asyncio.Semaphore(at_once)

    async def write(number: int) -> None:
        async with turns:
            attempt = await endpoint.push(blob_push(_TEXT, path=f"ORDERS/2026/11/20/9/{number}.json"))
            assert attempt.delivered, attempt

    await write(0)
    began, busy = time.perf_counter(), time.process_time()
    await asyncio.gather(*(write(number) for number in range(_BLOBS)))
    return _BLOBS / (time.perf_counter() - began), (time.process_time() - busy) / _BLOBS * 1e6


def _leave(folder: Path, path: str) -> None:
    """Let the system flush when it likes."""


async def main(folder: Path) -> None:
    for flushed in (True, False):
        if not flushed:
            blob_store._sync = _leave
        for at_once in (1, 32):
            a_second, busy_us = await pace(folder / str(flushed) / str(at_once), at_once)
            line = f"{flushed=!s:5} {at_once:2} at once: {a_second:6.0f} a second, {busy_us:4.0f} µs each\n"
            sys.stdout.write(line)


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1])))
