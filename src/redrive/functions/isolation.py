"""Isolation: what a function's process is started under, as a command in front of its own.

No code of ours runs between fork and exec: `setpriv` and `prlimit` (util-linux) and `bwrap` (bubblewrap) do it, so that a
server with threads forks safely.
"""

import hmac
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from redrive.model.errors import Refused
from redrive.model.function import FunctionVersion, Isolation

OPEN_FILES_MAX: Final = 1024  # as recorded inside Lambda
PROCESSES_MAX: Final = 742  # likewise
_FIRST_USER: Final = 200_000
_USERS: Final = 2**30  # a thousand functions share a user with a probability of 1 in 2,000


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of a function's process.

    Attributes:
        task: The code.
        layers: What layers bring, under one folder.
        runtime: The runtime clients that Redrive brings.
        temporary: The environment's own /tmp.
    """

    task: str
    layers: str
    runtime: str
    temporary: str


INSIDE: Final = Folders("/var/task", "/opt", "/var/runtime", "/tmp")  # noqa: S108 - the path in a namespace of its own


def check(isolation: Isolation) -> None:
    """Find out whether this machine can isolate so.

    Raises:
        Refused: It cannot, with the reason.
    """
    if isolation is Isolation.USER and os.geteuid() != 0:
        raise Refused("functions can have users of their own only where the server runs as root")
    if isolation is Isolation.BUBBLEWRAP and shutil.which("bwrap") is None:
        raise Refused("bwrap is not installed (Debian: apt-get install bubblewrap)")
    if isolation is not Isolation.NONE and shutil.which("setpriv") is None:
        raise Refused("setpriv is not installed (Debian: apt-get install util-linux)")


def seen(isolation: Isolation, folders: Folders) -> Folders:
    """The folders as the process sees them."""
    return INSIDE if isolation is Isolation.BUBBLEWRAP else folders


def command(isolation: Isolation, user: int, folders: Folders, programs: Sequence[str]) -> list[str]:
    """The command that stands before the function's own.

    Args:
        isolation: How.
        user: The function's, by `user_of`.
        folders: Outside any namespace.
        programs: Folders of interpreters, which have to be seen inside a namespace.
    """
    before = _limits(counted=isolation is not Isolation.NONE)
    if isolation is Isolation.USER:
        before += ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs"]
    elif shutil.which("setpriv"):
        before += ["setpriv", "--no-new-privs"]
    if shutil.which("setpriv"):
        before += ["--pdeathsig=KILL", "--"]
    if isolation is Isolation.BUBBLEWRAP:
        before += _bubble(folders, programs)
    return before


def user_of(function: FunctionVersion, key: bytes) -> int:
    """The user of a function: the same for all its versions and over restarts.

    It is drawn with a key: otherwise whoever makes functions could choose a name whose user is another function's.
    """
    digest = hmac.digest(key, function.name.key.encode(), "sha256")
    return _FIRST_USER + int.from_bytes(digest[:8]) % _USERS


def _limits(*, counted: bool) -> list[str]:
    """The limits of a process; `counted`: the processes of its user, or of its namespace, are the function's alone."""
    if sys.platform != "linux" or shutil.which("prlimit") is None:
        return []
    processes = [f"--nproc={PROCESSES_MAX}"] if counted else []
    return ["prlimit", f"--nofile={OPEN_FILES_MAX}", *processes, "--core=0", "--"]


def _bubble(folders: Folders, programs: Sequence[str]) -> list[str]:
    """Namespaces of its own but for the network, on whose loopback the Runtime API listens."""
    arguments = [
        "bwrap",
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--die-with-parent",
    ]
    for path in (
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/lib64",
        "/etc/ssl",
        "/etc/alternatives",
        "/etc/ld.so.cache",
    ):
        arguments += ["--ro-bind-try", path, path]
    for path in (
        "/etc/resolv.conf",
        "/etc/hosts",
        "/etc/nsswitch.conf",
        "/etc/localtime",
        "/etc/java-17-openjdk",
    ):
        arguments += ["--ro-bind-try", path, path]
    # Before the interpreters, which may be installed below /tmp themselves.
    arguments += ["--bind", folders.temporary, INSIDE.temporary]
    for path in programs:
        if not Path(path).is_relative_to("/usr"):
            arguments += ["--ro-bind", path, path]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    arguments += ["--ro-bind", folders.task, INSIDE.task, "--ro-bind", folders.layers, INSIDE.layers]
    arguments += ["--ro-bind", folders.runtime, INSIDE.runtime, "--chdir", INSIDE.task, "--"]
    return arguments
