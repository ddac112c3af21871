"""Processes as Linux shows them: how much memory they hold, and which ones descend from an environment."""

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_RESIDENT: Final = re.compile(rb"VmRSS:\s+(\d+) kB")
_MOST: Final = re.compile(rb"VmHWM:\s+(\d+) kB")


def resident_mb(pid: int) -> int:
    """The memory of a process and its children now, in MB; 0 where it cannot be read."""
    return sum(_status(each, _RESIDENT) for each in _family(pid)) // 1024


def memory_of(pid: int) -> int:
    """The most that the process and its children have held each, in MB."""
    return sum(_status(each, _MOST) for each in _family(pid)) // 1024


def kill_all_of(name: str, value: str) -> list[int]:
    """Kill every process that has this in its environment, whatever session it moved to.

    Returns:
        A descriptor of each, which can be read when the process is gone.
    """
    wanted = f"{name}={value}".encode()
    killed = []
    for folder in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                killed.append(os.pidfd_open(int(folder.name)))
                os.kill(int(folder.name), signal.SIGKILL)
    return killed


async def gone(process: int) -> None:
    """Return when the process is gone whose descriptor that is, and close it."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    loop.add_reader(process, _set, ended)
    try:
        await ended
    finally:
        loop.remove_reader(process)
        os.close(process)


def _set(ended: "asyncio.Future[None]") -> None:
    if not ended.done():
        ended.set_result(None)


def _family(pid: int) -> Iterator[int]:
    yield pid
    try:
        children = (_PROC / str(pid) / "task" / str(pid) / "children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from _family(int(child))


def _status(pid: int, line: re.Pattern[bytes]) -> int:
    try:
        found = line.search((_PROC / str(pid) / "status").read_bytes())
    except OSError:
        return 0
    return int(found[1]) if found else 0
