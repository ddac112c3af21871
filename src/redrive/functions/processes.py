"""Processes as Linux shows them: how much memory they hold, and which ones descend from an environment."""

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_LOOKS_MAX: Final = 50
_DESCRIPTORS_MAX: Final = 200
_RESIDENT: Final = re.compile(rb"VmRSS:\s+(\d+) kB")
_MOST: Final = re.compile(rb"VmHWM:\s+(\d+) kB")


def resident_mb(processes: Iterable[int]) -> int:
    """The memory of processes now, in MB; that of one which cannot be looked at counts as none."""
    return sum(_status(each, _RESIDENT) for each in processes) // 1024


def memory_of(processes: Iterable[int]) -> int:
    """The most that processes have held each, in MB."""
    return sum(_status(each, _MOST) for each in processes) // 1024


def kill_all(name: str, meant: Callable[[str], bool]) -> list[int]:
    """Kill every process that has a variable in its environment with a value that is meant, whatever session it is in.

    What is forked meanwhile is found by the next look; each takes less time than the one before.

    Returns:
        A descriptor of each, or of the first of very many, which can be read when the process is gone.
    """
    killed: set[int] = set()
    descriptors: list[int] = []
    for _ in range(_LOOKS_MAX):
        found = {process for process, value in _carrying(name) if process not in killed and meant(value)}
        if not found:
            break
        killed |= found
        for process in found:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
                if len(descriptors) < _DESCRIPTORS_MAX:
                    descriptors.append(os.pidfd_open(process))
    return descriptors


def _carrying(name: str) -> Iterator[tuple[int, str]]:
    """The processes that carry a variable, each with its value; one that has ended has no environment any more."""
    wanted = f"{name}=".encode()
    for folder in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            variables = (folder / "environ").read_bytes()
            if wanted in variables:
                found = [each for each in variables.split(b"\0") if each.startswith(wanted)]
                yield from ((int(folder.name), each[len(wanted) :].decode()) for each in found[:1])


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


def family(pid: int) -> Iterator[int]:
    """A process, and all that descends from it and has not lost its parent."""
    yield pid
    try:
        children = (_PROC / str(pid) / "task" / str(pid) / "children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from family(int(child))


def _status(pid: int, line: re.Pattern[bytes]) -> int:
    try:
        found = line.search((_PROC / str(pid) / "status").read_bytes())
    except OSError:
        return 0
    return int(found[1]) if found else 0
