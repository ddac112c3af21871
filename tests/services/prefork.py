"""A program with its imports done, forked for each start: `python -P prefork.py SOCKET PROGRAM MODULE …`.

`tests.services.programs` starts this file and holds the other end of the socket. A message there asks for a process: its
words, environment and directory as JSON, and four descriptors, its standard input, output and error and a socket to
report on. The report is the process's number, then its exit status as `subprocess` has it. When the socket's other end
closes, this process ends, and its children with it.

The interpreters of other environments run this file too, so that it imports nothing but the standard library.

A forked process is a process of its own: signals, limits, open files, exit status and what is left behind by kill -9 are
real. Different from a cold start are:

- what the imports took from the environment, `PYTHON…` variables and the locale: they are this process's;
- `sys.stdin`, `sys.stdout` and `sys.stderr`, made for no terminal, which lead to the files of the forked process;
- the seed of `hash()`, which all forks share; `random` is seeded anew, and `os.urandom` needs no seed;
- `/proc/…/environ` and `cmdline`, which show this process's;
- the memory, which is shared until it is written to, and what the imports left, which `gc` does not look at.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

REQUEST_BYTES_MAX: Final = 200_000
_PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True)
class Child:
    """A forked process, as its parent knows it."""

    pid: int
    ended: int  # a pidfd, which is readable once it has
    report: socket.socket

    def reap(self) -> None:
        """Tell its exit status."""
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        with contextlib.suppress(OSError):  # nobody waits for it any more
            self.report.send(json.dumps(status).encode())
        self.close()

    def close(self) -> None:
        """Let go of the descriptors."""
        os.close(self.ended)
        self.report.close()


def forks(control: socket.socket, left: Mapping[str, str]) -> list[str]:
    """Fork a process for each request; returns in the forked ones, with their words, the command first.

    Args:
        control: Brings the requests.
        left: What each environment gets besides.

    Raises:
        SystemExit: In the parent, when nobody can ask any more.
    """
    children: dict[int, Child] = {}
    with selectors.PollSelector() as selector, control:
        selector.register(control, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd in children:
                    selector.unregister(key.fd)
                    children.pop(key.fd).reap()
                    continue
                message, descriptors, _, _ = socket.recv_fds(control, REQUEST_BYTES_MAX, 4)
                if not message:
                    raise SystemExit(0)
                *streams, report = descriptors
                pid = os.fork()
                if not pid:
                    for child in children.values():
                        child.close()
                    os.close(report)
                    return _become(json.loads(message), left, streams)
                for stream in streams:
                    os.close(stream)
                child = Child(pid, os.pidfd_open(pid), socket.socket(fileno=report))
                child.report.send(json.dumps(pid).encode())
                children[child.ended] = child
                selector.register(child.ended, selectors.EVENT_READ)


def _become(request: dict[str, object], left: Mapping[str, str], streams: list[int]) -> list[str]:
    """Take on the environment, directory and streams asked for; the words."""
    words, environment, directory = request["words"], request["environment"], request["directory"]
    assert isinstance(words, list)
    assert isinstance(environment, dict)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ.clear()
    os.environ.update({**environment, **left})
    time.tzset()
    os.chdir(str(directory))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    return [str(word) for word in words]


def main(descriptor: str, program: str, *modules: str) -> None:
    """Import, fork, and in each forked process run a package as `python -m` does, or a function as its script does."""
    before = dict(os.environ)
    for name in modules:
        importlib.import_module(name)
    left = {name: value for name, value in os.environ.items() if before.get(name) != value}
    gc.collect()
    gc.freeze()  # a collection would write to, and so copy, the memory that all share
    control = socket.socket(fileno=int(descriptor))
    try:
        words = forks(control, left)
    except KeyboardInterrupt:  # of everybody at this terminal
        return
    sys.argv[:] = words
    module, _, function = program.partition(":")
    if function:
        sys.exit(getattr(importlib.import_module(module), function)())
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
