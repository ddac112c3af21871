"""Programs written in Python that tests start again and again: their imports are done once in each process of the run.

Importing is most of what a start costs: 1.6 s of a processor for the server, 0.5 s for the AWS CLI. How a forked start
differs from a cold one is said in `tests.services.prefork`. Some tests start cold all the same; with
`REDRIVE_TESTS_START=cold`, or outside of pytest (the benchmarks, `python -m tests.crash`), all do.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Protocol

START_VARIABLE: Final = "REDRIVE_TESTS_START"
FORKED: Final = "forked"
_PREFORK: Final = Path(__file__).with_name("prefork.py")
_STDERR: Final = 2
_REPORT_BYTES: Final = 20  # a number
_LIBC: Final = ctypes.CDLL(None)
_PR_SET_PDEATHSIG: Final = 1
_forked: "Final[list[Program]]" = []


class Process(Protocol):
    """A started program; `subprocess.Popen` is one."""

    pid: int
    returncode: Any
    stdout: IO[str] | None

    def poll(self) -> int | None:
        """The exit status; None while it runs."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, so many seconds at most; the exit status."""
        ...

    def send_signal(self, sig: int) -> None:
        """Send a signal, if it runs."""
        ...

    def kill(self) -> None:
        """Send SIGKILL, if it runs."""
        ...


class ForkedProcess:
    """A process that was forked elsewhere, and what its parent reports of it."""

    def __init__(self, report: socket.socket, words: Sequence[str], stdout: IO[str] | None) -> None:
        """Hear its number.

        Raises:
            RuntimeError: There is nobody to fork it.
        """
        self.returncode: int | None = None
        self.stdout = stdout
        self._report = report
        self._words = words
        told = report.recv(_REPORT_BYTES)
        if not told:
            raise RuntimeError("the process that forks has ended; its standard error says why")
        self.pid: int = json.loads(told)

    def poll(self) -> int | None:
        """The exit status; None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, so many seconds at most; the exit status.

        Raises:
            subprocess.TimeoutExpired: It runs on.
        """
        if self.returncode is None:
            if not select.select([self._report], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self._words, timeout or 0)
            told = self._report.recv(_REPORT_BYTES)
            self.returncode = json.loads(told) if told else -signal.SIGKILL  # its parent ended, and so it
            self._report.close()
        return self.returncode

    def send_signal(self, sig: int) -> None:
        """Send a signal, if it runs."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, sig)

    def kill(self) -> None:
        """Send SIGKILL, if it runs."""
        self.send_signal(signal.SIGKILL)


@dataclass
class Program:
    """A program.

    Attributes:
        name: Of a package that `python -m` runs, or `module:function` as an installed script has it.
        modules: Imported before the first start.
        command: A cold start's.
        environment: The one that the imports see.
        interpreter: Python, of the environment that the program is in.
    """

    name: str
    modules: Sequence[str]
    command: Sequence[str]
    environment: Mapping[str, str]
    interpreter: str = sys.executable
    _control: socket.socket | None = None
    _prefork: "subprocess.Popen[bytes] | None" = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        directory: Path | None = None,
        *,
        stdout: int = subprocess.PIPE,
        stderr: int | None = None,
        cold: bool = False,
    ) -> Process:
        """Start it; its input is empty, and it ends with this process.

        Args:
            words: Its arguments.
            environment: Its environment.
            directory: Its current directory; this process's if None.
            stdout: Its standard output, a descriptor or a pipe to this process.
            stderr: Its standard error, a descriptor or `STDOUT`; this process's if None.
            cold: Let a new interpreter import everything.
        """
        if cold or os.environ.get(START_VARIABLE) != FORKED:
            return subprocess.Popen(
                [*self.command, *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                cwd=directory,
                text=True,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - one system call, and no lock is taken
            )
        asked = {
            "words": [self.command[0], *words],
            "environment": dict(environment),
            "directory": str(directory or Path.cwd()),
        }
        with contextlib.ExitStack() as ours:
            reading = None
            if stdout == subprocess.PIPE:
                end, stdout = os.pipe()
                ours.callback(os.close, stdout)
                reading = os.fdopen(end)
            nothing = ours.enter_context(Path(os.devnull).open())
            report, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours.enter_context(theirs)
            if stderr is None or stderr == subprocess.STDOUT:
                stderr = stdout if stderr else _STDERR
            streams = (nothing.fileno(), stdout, stderr)
            socket.send_fds(self._asking(), [json.dumps(asked).encode()], [*streams, theirs.fileno()])
        return ForkedProcess(report, words, reading)

    def run(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        directory: Path | None = None,
        timeout: float | None = None,
    ) -> "subprocess.CompletedProcess[str]":
        """Run it to its end, so many seconds at most; its exit status, output and error output."""
        with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as complained:
            process = self.start(
                words, environment, directory, stdout=said.fileno(), stderr=complained.fileno()
            )
            try:
                status = process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise
            for file in (said, complained):
                file.seek(0)
            return subprocess.CompletedProcess(words, status, said.read(), complained.read())

    def end(self) -> None:
        """End what was forked, and what forks."""
        if self._prefork is not None and self._control is not None:
            self._control.close()
            self._prefork.wait()
            self._prefork = self._control = None

    def _asking(self) -> socket.socket:
        """The socket that takes requests."""
        with self._lock:
            if self._control is None:
                self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                _forked.append(self)
                with theirs:
                    self._prefork = subprocess.Popen(
                        [self.interpreter, "-P", _PREFORK, str(theirs.fileno()), self.name, *self.modules],
                        env=self.environment,
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        pass_fds=[theirs.fileno()],
                    )
            return self._control


def end_all() -> None:
    """End everything that was forked for this process."""
    while _forked:
        _forked.pop().end()


def _end_with_parent() -> None:
    """Let a test run that is killed leave no process behind (Linux)."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port() -> int:
    """A port nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
