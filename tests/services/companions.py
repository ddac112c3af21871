"""Servers of other makers that a test run starts when it first needs them, and that end with it.

Whichever process of the run asks first starts a server; the others read where it is. What ends it is a shell that
watches the process which owns the run, so that a killed run leaves nothing behind either.
"""

import fcntl
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

# The server's own standard output is the pipe that its readiness is read from. The shell lets go of it, so that the
# pipe's end is the server's end; and it goes on by itself, so that nobody here has a child to look after.
_WATCHED: Final = '{ "$@" & server=$!; exec >/dev/null; tail --pid="$OWNER" -f /dev/null; kill "$server"; } &'

_OWNER: Final = re.compile(r"redrive-tests-(\d+)-.*")
_READ_BYTES: Final = 1 << 16


class CompanionMissingError(RuntimeError):
    """This machine lacks what the server is started from; the message says what installs it."""


def shared(run_directory: Path, name: str, start: Callable[[Path], Mapping[str, str]]) -> Mapping[str, str]:
    """Return the address of the run's server of this name, started by whichever process asks first.

    Args:
        run_directory: Where the processes of the run meet; `redrive-tests-{pid of its owner}-…`.
        name: The server's.
        start: Starts it in a directory of its own, and says what it is reached by.
    """
    found = run_directory / f"{name}.json"
    with (run_directory / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.exists():
            directory = run_directory / name
            directory.mkdir()
            found.write_text(json.dumps(dict(start(directory))))
    reached: Mapping[str, str] = json.loads(found.read_text())
    return reached


def run(directory: Path, *command: str, ready: str, count: int = 1, **environment: str) -> None:
    """Start a server that ends with the run that `directory` is in, and return when it says that it is ready.

    What it writes later goes to `log` too, for as long as this process lives: a server whose pipe nobody reads stops
    in the midst of a line after 64 kB.

    Args:
        directory: The server's; its errors go to `log` there.
        command: What starts it.
        ready: A part of the line that it then writes.
        count: After how many of those lines it is.
        environment: What its environment has besides this process's.
    """
    (owner,) = (found[1] for part in directory.parts if (found := _OWNER.fullmatch(part)))
    with (directory / "log").open("a") as log:
        shell = subprocess.Popen(
            ["/bin/sh", "-c", _WATCHED, "sh", *command],
            env=os.environ | environment | {"OWNER": owner},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,  # what interrupts the tests is not the server's to hear
        )
    with shell:
        assert shell.stdout is not None
        rest = os.dup(shell.stdout.fileno())
        said: list[str] = []
        while sum(ready in line for line in said) < count:
            said.append(shell.stdout.readline())
            if not said[-1]:
                told = "".join(said) + (directory / "log").read_text()
                os.close(rest)
                raise RuntimeError(f"{command[0]} did not start:\n{told}")
    threading.Thread(target=_drain, args=(rest, directory / "log"), name=directory.name, daemon=True).start()


def _drain(pipe: int, log: Path) -> None:
    """Copy to a log until the server that writes is gone."""
    with log.open("ab", buffering=0) as file:
        while written := os.read(pipe, _READ_BYTES):
            file.write(written)
    os.close(pipe)


def program(name: str, advice: str) -> str:
    """Return the path of a program.

    Raises:
        CompanionMissingError: It is not on the PATH.
    """
    found = shutil.which(name)
    if found is None:
        raise CompanionMissingError(f"{name} is not on the PATH: {advice}")
    return found
