"""A clock that is set while the server runs: everything that waits waits by it, so somebody has to be told."""

import asyncio
import contextlib
import random

import pytest

from redrive.runtime.machine import warn_of_jumps
from redrive.testing.virtual import VirtualClock, run_virtual


def warnings_of(caplog: pytest.LogCaptureFixture, *jumps_ms: int) -> list[str]:
    """The warnings of a minute, at whose end the clock jumps, and of the next ones."""

    async def story(clock: VirtualClock, _rng: random.Random) -> None:
        offset_ms = 0
        watching = asyncio.create_task(warn_of_jumps(lambda: clock.now() + offset_ms))
        for jump_ms in jumps_ms:
            await clock.sleep_until(clock.now() + 60_000)
            offset_ms += jump_ms
        await clock.sleep_until(clock.now() + 60_000)
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching

    run_virtual(story)
    return [record.getMessage() for record in caplog.records]


def test_a_jump_back_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings_of(caplog, -3_600_000) == [
        "clock.jumped seconds=-3600.0: in-flight and delayed messages come back that much later"
    ]


def test_a_jump_ahead_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings_of(caplog, 10_000) == [
        "clock.jumped seconds=+10.0: in-flight and delayed messages come back that much earlier"
    ]


def test_each_jump_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    assert len(warnings_of(caplog, -5_000, 0, 5_000)) == 2


def test_small_corrections_are_not_told_of_however_many(caplog: pytest.LogCaptureFixture) -> None:
    """As NTP makes them, and as time passes between two looks."""
    assert warnings_of(caplog, 500, -500, 500, -900) == []
