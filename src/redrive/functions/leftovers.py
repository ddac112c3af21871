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
from pathlib import Path
from typing import Final

from redrive.functions.processes import kill_all

logger = logging.getLogger(__name__)

OWNER: Final = "REDRIVE_SERVER"  # in the environment of every process of a function
_PROC: Final = Path("/proc")
_FOLDER: Final = "redrive-functions-"
_OWNER: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)")


def this_server() -> str:
    """This process, unlike any other before and after it: its number, when it began, its namespace of numbers."""
    return f"{os.getpid()}.{_began_at(os.getpid())}.{_namespace()}"


def new_folder() -> Path:
    """A folder of this server, where users of functions can look into."""
    folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{this_server()}-"))
    folder.chmod(0o755)  # a function may have a user of its own, who has to see its code
    return folder


def remove() -> None:
    """End the processes and remove the folders of servers that are gone."""
    killed = kill_all(OWNER, _is_gone)
    for process in killed:
        os.close(process)
    folders = [folder for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*") if _is_orphan(folder)]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    if killed or folders:
        logger.warning(
            "functions.leftovers processes=%d folders=%d: of servers that were killed",
            len(killed),
            len(folders),
        )


def _is_orphan(folder: Path) -> bool:
    return _is_gone(folder.name.removeprefix(_FOLDER).rpartition("-")[0])


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
