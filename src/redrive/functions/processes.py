"""Processes as Linux shows them: how much memory they hold, which ones belong to an environment, and how these are ended.

Also the ends of what belongs to servers that were killed.
"""

import asyncio
import contextlib
import logging
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from redrive.functions.isolation import FIRST_USER, Tools, kill_command
from redrive.model.function import Isolation

logger = logging.getLogger(__name__)

_PROC: Final = Path("/proc")
_LOOKS_MAX: Final = 50
_DESCRIPTORS_MAX: Final = 200
_COMMAND_SECONDS: Final = 30
_PAGE_BYTES: Final = 4096
_RESIDENT: Final = re.compile(rb"VmRSS:\s+(\d+) kB")
_USER: Final = re.compile(rb"Uid:\s+(\d+)")
_MOST: Final = re.compile(rb"VmHWM:\s+(\d+) kB")


def resident_kb(processes: Iterable[int]) -> list[int]:
    """The memory of each process that has any; one that has ended, or cannot be looked at, has none."""
    return [size for size in (_status(each, _RESIDENT) for each in processes) if size]


def memory_of(processes: Iterable[int]) -> int:
    """The most that processes have held each, in MB."""
    return sum(_status(each, _MOST) for each in processes) // 1024


def kill_all(name: str, is_owner: Callable[[str], bool]) -> list[int]:
    """Kill every process that has a variable in its environment with a value that is meant, whatever session it is in.

    What is forked meanwhile is found by the next look; each takes less time than the one before.

    Returns:
        A descriptor of each, or of the first of very many, which can be read when the process is gone.
    """
    return _kill_each(lambda: {process for process, value in _processes_with(name) if is_owner(value)})


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
    """Kill processes until no more are found, for they may fork; return descriptors to wait for their ends by."""
    killed: set[int] = set()
    descriptors: list[int] = []
    for _ in range(_LOOKS_MAX):
        processes = find() - killed
        if not processes:
            break
        killed |= processes
        for process in processes:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
                if len(descriptors) < _DESCRIPTORS_MAX:
                    descriptors.append(os.pidfd_open(process))
    return descriptors


def _processes() -> list[int]:
    return [int(name) for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208 - a start of a server looks too


def _processes_with(name: str) -> Iterator[tuple[int, str]]:
    """The processes that carry a variable, each with its value; one that has ended has no environment any more."""
    prefix = f"{name}=".encode()
    for process in _processes():
        with contextlib.suppress(OSError):
            with open(f"{_PROC}/{process}/environ", "rb") as file:  # noqa: PTH123 - a third of a Path's time, for each
                variables = file.read()
            if prefix in variables:
                values = [each for each in variables.split(b"\0") if each.startswith(prefix)]
                yield from ((process, each[len(prefix) :].decode(errors="replace")) for each in values[:1])


async def wait_for_end(process: int) -> None:
    """Return when the process with that descriptor is gone; the descriptor is closed."""
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
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - each has its own children
            with contextlib.suppress(OSError):
                for child in _read(f"/proc/{pid}/task/{thread}/children").split():
                    yield from family(int(child))


def _read(path: str) -> bytes:
    """A file of the kernel's, which gives a page at a time; `Path.read_bytes` takes three times as long."""
    file, content = os.open(path, os.O_RDONLY), b""
    try:
        while page := os.read(file, _PAGE_BYTES):
            content += page
    finally:
        os.close(file)
    return content


def _status(pid: int, line: re.Pattern[bytes]) -> int:
    """A number in a line of a process's status; 0 if it has ended."""
    try:
        match = line.search(_read(f"/proc/{pid}/status"))
    except OSError:
        return 0
    return int(match[1]) if match else 0


# Leftovers of servers that were killed: what their functions forked, and the folders they ran in.
#
# A function's process ends with its server, by its parent-death signal; what it forked does not. So each process
# carries in its environment the server that it belongs to, each folder carries it in its name, and the next server
# that starts on the machine ends what belongs to servers that are gone.

OWNER: Final = "REDRIVE_SERVER"  # in the environment of every process of a function
_FOLDER: Final = "redrive-functions-"
_OWNER: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)")


def this_server() -> str:
    """This process, unlike any other before and after it: its number, when it began, its namespace of numbers."""
    return f"{os.getpid()}.{_began_at(os.getpid())}.{_namespace()}"


def new_folder(isolation: Isolation) -> Path:
    """A folder of this server; where functions have users of their own, these find their code in it, and no list."""
    folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{this_server()}-"))
    if isolation is Isolation.USER:
        folder.chmod(0o711)
    return folder


def end_leftovers(tools: Tools) -> None:
    """End the processes that belong to servers which are gone, and remove their folders; write one log line about it.

    Args:
        tools: Which a server of root ends processes with that have their own user, as their folders have.
    """
    killed = kill_all(OWNER, _is_gone)
    folders = [folder for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*") if _is_orphan(folder)]
    for user in _users_of(folders):
        killed += kill_user(kill_command(tools, user), user)
    for process in killed:
        os.close(process)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    if killed or folders:
        logger.warning(
            "functions.leftovers processes=%d folders=%d: left by servers that were killed",
            len(killed),
            len(folders),
        )


def _users_of(folders: Sequence[Path]) -> set[int]:
    """The users of environments, whose folders these have in them."""
    if os.geteuid() != 0:
        return set()
    owners = {environment.lstat().st_uid for folder in folders for environment in folder.glob("*/*")}
    return {owner for owner in owners if owner >= FIRST_USER}


def _is_orphan(folder: Path) -> bool:
    """True if a folder of ours belongs to a server that has ended."""
    try:
        own = folder.lstat().st_uid == os.geteuid()  # anybody can make one of that name in /tmp
    except FileNotFoundError:  # another server, which ends or begins just now, has removed it
        return False
    return own and _is_gone(folder.name.removeprefix(_FOLDER).rpartition("-")[0])


def _is_gone(owner: str) -> bool:
    """True if a server of this namespace has ended; of another namespace's nothing is known."""
    match = _OWNER.fullmatch(owner)
    if match is None:
        return False
    process, began_at, namespace = match.groups()
    is_ours = namespace != "0" and namespace == _namespace()
    return is_ours and began_at != _began_at(int(process))


def _began_at(process: int) -> str:
    """The moment at which a process began, in the kernel's ticks; empty: there is none."""
    try:
        return (_PROC / str(process) / "stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _namespace() -> str:
    """The number of the namespace that numbers of processes are of."""
    try:
        return str((_PROC / "self/ns/pid").stat().st_ino)
    except OSError:
        return "0"
