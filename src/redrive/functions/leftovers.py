"""Leftovers of servers that were killed: what their functions forked, and the folders they ran in.

A function's process ends with its server, by its parent-death signal; what it forked does not. So each process carries in
its environment the server that it belongs to, each folder carries it in its name, and the next server that starts on the
machine ends what belongs to servers that are gone.
"""

import logging
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from redrive.functions.isolation import FIRST_USER, Tools, kill_command
from redrive.functions.processes import kill_all, kill_user
from redrive.model.function import Isolation

logger = logging.getLogger(__name__)

OWNER: Final = "REDRIVE_SERVER"  # in the environment of every process of a function
_PROC: Final = Path("/proc")
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


def remove(tools: Tools) -> None:
    """End the processes and remove the folders of servers that are gone.

    Args:
        tools: Which a server of root ends processes with that have a user of their own, as their folders have.
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
            "functions.leftovers processes=%d folders=%d: of servers that were killed",
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
    try:
        own = folder.lstat().st_uid == os.geteuid()  # anybody can make one of that name in /tmp
    except FileNotFoundError:  # another server, which ends or begins just now, has removed it
        return False
    return own and _is_gone(folder.name.removeprefix(_FOLDER).rpartition("-")[0])


def _is_gone(owner: str) -> bool:
    """True if a server of this namespace has ended; of another namespace's nothing is known."""
    read = _OWNER.fullmatch(owner)
    return read is not None and read[3] == _namespace() != "0" and read[2] != _began_at(int(read[1]))


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
