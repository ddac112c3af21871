"""Processes as Linux shows them: how much memory they hold, and which ones descend from an environment."""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_LOOKS_MAX: Final = 50
_DESCRIPTORS_MAX: Final = 200
_COMMAND_SECONDS: Final = 30
_RESIDENT: Final = re.compile(rb"VmRSS:\s+(\d+) kB")
_USER: Final = re.compile(rb"Uid:\s+(\d+)")
_MOST: Final = re.compile(rb"VmHWM:\s+(\d+) kB")


def resident_kb(processes: Iterable[int]) -> list[int]:
    """The memory of each process that has any; one that has ended, or cannot be looked at, has none."""
    return [size for size in (_status(each, _RESIDENT) for each in processes) if size]


def memory_of(processes: Iterable[int]) -> int:
    """The most that processes have held each, in MB."""
    return sum(_status(each, _MOST) for each in processes) // 1024


def kill_all(name: str, meant: Callable[[str], bool]) -> list[int]:
    """Kill every process that has a variable in its environment with a value that is meant, whatever session it is in.

    What is forked meanwhile is found by the next look; each takes less time than the one before.

    Returns:
        A descriptor of each, or of the first of very many, which can be read when the process is gone.
    """
    return _kill_each(lambda: {process for process, value in _carrying(name) if meant(value)})


def kill_user(command: Sequence[str], user: int) -> list[int]:
    """Kill every process of a user by a command that does so; what `kill_all` returns."""
    subprocess.run(command, check=False, env={}, timeout=_COMMAND_SECONDS)  # noqa: S603 - our own
    return _kill_each(lambda: {process for process in _processes() if _status(process, _USER) == user})


def kill_family(parent: int) -> None:
    """Kill all that descends from a process, which is stopped meanwhile: what loses its parent comes to it."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(parent, signal.SIGSTOP)
    for process in _kill_each(lambda: set(family(parent)) - {parent}):
        os.close(process)


def _kill_each(find: Callable[[], set[int]]) -> list[int]:
    killed: set[int] = set()
    descriptors: list[int] = []
    for _ in range(_LOOKS_MAX):
        found = find() - killed
        if not found:
            break
        killed |= found
        for process in found:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
                if len(descriptors) < _DESCRIPTORS_MAX:
                    descriptors.append(os.pidfd_open(process))
    return descriptors


def _processes() -> list[int]:
    return [int(folder.name) for folder in _PROC.glob("[0-9]*")]


def _carrying(name: str) -> Iterator[tuple[int, str]]:
    """The processes that carry a variable, each with its value; one that has ended has no environment any more."""
    wanted = f"{name}=".encode()
    for process in _processes():
        with contextlib.suppress(OSError):
            variables = (_PROC / str(process) / "environ").read_bytes()
            if wanted in variables:
                found = [each for each in variables.split(b"\0") if each.startswith(wanted)]
                yield from ((process, each[len(wanted) :].decode(errors="replace")) for each in found[:1])


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
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - each has children of its own
            with contextlib.suppress(OSError):
                for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split():
                    yield from family(int(child))


def _status(pid: int, line: re.Pattern[bytes]) -> int:
    try:
        found = line.search((_PROC / str(pid) / "status").read_bytes())
    except OSError:
        return 0
    return int(found[1]) if found else 0
