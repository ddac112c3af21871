"""Isolation: what a function's process is started under, as a command in front of its own.

No code of ours runs between fork and exec: `setpriv` and `prlimit` (util-linux) and `bwrap` (bubblewrap) do it, so that a
server with threads forks safely. They begin with the server's rights, so nothing of the function reaches them: their
paths are absolute, their environment is empty but for two marks, and their directory is `/`. The function's variables
go past them, to the launcher behind the last of them (`launch.py`).
"""

import hmac
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from redrive.model.errors import Refused
from redrive.model.function import Isolation
from redrive.model.names import ResourceName

OPEN_FILES_MAX: Final = 1024  # as recorded inside Lambda
PROCESSES_MAX: Final = 742  # likewise
FIRST_USER: Final = 200_000
_USERS: Final = 2**30  # a thousand environments share a user with a probability of 1 in 2,000
_BUBBLEWRAP_SINCE: Final = (0, 8)  # --disable-userns
_TRIAL_SECONDS: Final = 10


class Owner(NamedTuple):
    """The user of an environment's processes, and the group that may read its function's code; where it has its own."""

    user: int
    group: int


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of a function's process."""

    task: str  # The code
    layers: str  # Folder with the contents of the layers
    runtime: str  # The runtime clients that Redrive brings
    temporary: str  # The environment's own /tmp
    hosts: str = "/etc/hosts"  # The file that is /etc/hosts in its own namespace


INSIDE: Final = Folders("/var/task", "/opt", "/var/runtime", "/tmp")  # noqa: S108 - the path in its own namespace


@dataclass(frozen=True, slots=True)
class Tools:
    """The programs that isolate, by absolute paths; empty: this machine lacks it and the isolation does not need it."""

    prlimit: str  # Sets limits
    setpriv: str  # Drops rights
    bwrap: str  # Makes namespaces
    python: str  # Runs the launcher


def find_tools(isolation: Isolation) -> Tools:
    """Find the programs that an isolation needs on the operator's PATH.

    Raises:
        Refused: This machine cannot isolate in that way, with the reason.
    """
    python = str(Path(sys.executable).resolve())
    tools = Tools(_path_of("prlimit"), _path_of("setpriv"), _path_of("bwrap"), python)
    if isolation is not Isolation.NONE and not (tools.setpriv and tools.prlimit):
        raise Refused("setpriv and prlimit are not installed (Debian: apt-get install util-linux)")
    if isolation is Isolation.USER:
        _check_users(tools)
    if isolation is Isolation.BUBBLEWRAP:
        _check_bubblewrap(tools)
    return tools


def _path_of(tool: str) -> str:
    path = shutil.which(tool) if sys.platform == "linux" else None
    return str(Path(path).absolute()) if path else ""


def _check_users(tools: Tools) -> None:
    """Refuse where the server cannot run functions as other users."""
    if os.geteuid() != 0:
        raise Refused("functions can have users of their own only where the server runs as root")
    first = [tools.setpriv, *_rights(Isolation.USER, Owner(FIRST_USER, FIRST_USER)), "--", "/usr/bin/env"]
    if _output_of([*first, tools.python, "-I", "-S", "-c", "import ctypes"]).returncode:
        raise Refused(f"other users cannot run {tools.python}: install Redrive where they can read it")


def _check_bubblewrap(tools: Tools) -> None:
    """Refuse where bwrap is absent, too old, or may make no namespaces."""
    if not tools.bwrap:
        raise Refused("bwrap is not installed (Debian: apt-get install bubblewrap)")
    if os.geteuid() == 0:
        raise Refused("functions would run as root: run the server as another user, or choose user")
    version = re.search(r"(\d+)\.(\d+)", _output_of([tools.bwrap, "--version"]).stdout)
    if version is None or (int(version[1]), int(version[2])) < _BUBBLEWRAP_SINCE:
        raise Refused("bwrap is older than 0.8")
    nothing = Folders("/usr", "/usr", "/usr", "/usr")
    trial = _output_of([*_bubble(tools, nothing, (), 1), "/usr/bin/env", "true"])
    if trial.returncode:
        raise Refused(f"this machine does not let bwrap make namespaces: {trial.stderr.strip()}")


def _output_of(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603 - our own
        command, capture_output=True, text=True, check=False, timeout=_TRIAL_SECONDS, env={}
    )


def folders_inside(isolation: Isolation, folders: Folders) -> Folders:
    """The folders as the process sees them."""
    return INSIDE if isolation is Isolation.BUBBLEWRAP else folders


def command(
    isolation: Isolation,
    tools: Tools,
    owner: Owner,
    folders: Folders,
    programs: Sequence[str],
    storage_mb: int,
) -> list[str]:
    """The command that stands before the function's own, up to the launcher and without its argument.

    In a namespace, `programs` are the folders of interpreters, which have to be seen there, and /tmp holds `storage_mb`.
    The folders are those outside of it.
    """
    before = _limits(tools, counted=isolation is not Isolation.NONE)
    if tools.setpriv:
        before += [tools.setpriv, *_rights(isolation, owner), "--no-new-privs", "--pdeathsig=KILL", "--"]
    if isolation is Isolation.BUBBLEWRAP:
        before += _bubble(tools, folders, [*programs, str(Path(tools.python).parents[1])], storage_mb)
    launcher = f"{folders_inside(isolation, folders).runtime}/launcher.py"
    return [*before, tools.python, "-I", "-S", launcher]


def kill_command(tools: Tools, user: int) -> list[str]:
    """The command that ends all processes of a user at once, which no process can outrun by forking."""
    kill = "import os; os.kill(-1, 9)"
    rights = [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    return [tools.setpriv, *rights, "--", tools.python, "-I", "-S", "-c", kill]


def _rights(isolation: Isolation, owner: Owner) -> list[str]:
    if isolation is not Isolation.USER:
        return []
    return [f"--reuid={owner.user}", f"--regid={owner.group}", "--clear-groups"]


def owner_of(function: ResourceName, temporary: str, key: bytes) -> Owner:
    """The owner of an environment: its user by its /tmp, its group by its function; the same over restarts.

    Both are drawn with a key: otherwise whoever makes functions could choose a name whose group is another function's.
    """
    environment = f"{function.key}\0{Path(temporary).name}"
    return Owner(_drawn(environment, key), group_of(function, key))


def group_of(function: ResourceName, key: bytes) -> int:
    """The group of a function's environments."""
    return _drawn(function.key, key)


def _drawn(text: str, key: bytes) -> int:
    return FIRST_USER + int.from_bytes(hmac.digest(key, text.encode(), "sha256")[:8]) % _USERS


def _limits(tools: Tools, *, counted: bool) -> list[str]:
    """The limits of a process; `counted`: the processes of its user, or of its namespace, are its environment's alone."""
    if not tools.prlimit:
        return []
    processes = [f"--nproc={PROCESSES_MAX}"] if counted else []
    return [tools.prlimit, f"--nofile={OPEN_FILES_MAX}", *processes, "--core=0", "--"]


def _bubble(tools: Tools, folders: Folders, programs: Sequence[str], storage_mb: int) -> list[str]:
    """Separate namespaces: only /tmp is writable, and the network is an empty loopback."""
    arguments = [tools.bwrap, "--unshare-user", "--disable-userns", "--unshare-pid", "--unshare-ipc"]
    arguments += ["--unshare-uts", "--unshare-net", "--unshare-cgroup-try"]
    arguments += ["--die-with-parent", "--cap-drop", "ALL", "--clearenv"]
    for path in ("/usr", "/bin", "/sbin", "/lib", "/lib64"):
        arguments += ["--ro-bind-try", path, path]
    for name in ("ssl/certs", "ssl/openssl.cnf", "alternatives", "ld.so.cache", "nsswitch.conf", "localtime"):
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    arguments += ["--ro-bind-try", "/etc/java-17-openjdk", "/etc/java-17-openjdk"]
    arguments += ["--ro-bind", folders.hosts, "/etc/hosts"]
    # Before the interpreters, which may be installed below /tmp themselves.
    arguments += ["--size", str(storage_mb * 2**20), "--tmpfs", INSIDE.temporary]
    for path in programs:
        if not Path(path).is_relative_to("/usr"):
            arguments += ["--ro-bind", path, path]
    arguments += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
    arguments += ["--ro-bind", folders.task, INSIDE.task, "--ro-bind", folders.layers, INSIDE.layers]
    arguments += ["--ro-bind", folders.runtime, INSIDE.runtime, "--remount-ro", "/"]
    return [*arguments, "--chdir", "/", "--"]
