"""Measurement of the event loop's delay."""

import asyncio

from redrive.runtime.machine import monotonic, watch_loop


async def test_a_loop_that_was_held_up_is_late_by_as_long() -> None:
    said: asyncio.Queue[float] = asyncio.Queue()
    watching = asyncio.create_task(watch_loop(said.put_nowait, 0.001))
    assert await said.get() >= 0
    await asyncio.sleep(0)  # it asks for its next call
    held_until = monotonic() + 0.05
    while monotonic() < held_until:
        pass
    while said.qsize():
        said.get_nowait()
    assert await said.get() > 0.02
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
