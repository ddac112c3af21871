"""Costs of requests to the server's process: its processor time, and the memory that it keeps."""

import os
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Final, NamedTuple

from tests.services.server import Server

_NANOSECONDS: Final = 1e9


class Wire(NamedTuple):
    """A request as it is sent.

    Attributes:
        method: GET or POST.
        target: Path and query.
        headers: Besides those that a client has to send.
        body: As it is sent.
    """

    method: str = "GET"
    target: str = "/"
    headers: dict[str, str] = {}  # noqa: RUF012 - never changed
    body: bytes = b""


#: What a stranger's plainest request costs, which the others are compared with.
PLAIN: Final = Wire(target="/?Action=ListQueues&Version=2012-11-05")


def send(server: Server, wire: Wire, connection: HTTPConnection | None = None) -> tuple[int, bytes]:
    """The status and body of the answer; 0 where the server closed the connection without one."""
    own = connection or server.connect()
    try:
        own.request(wire.method, wire.target, wire.body, wire.headers)
        answer = own.getresponse()
        return answer.status, answer.read()
    except (ConnectionError, OSError):
        return 0, b""
    finally:
        if connection is None:
            own.close()


def processor_seconds(server: Server) -> float:
    """Return the processor time that all threads of the server have used so far."""
    spent = 0
    for thread in Path(f"/proc/{server.process.pid}/task").iterdir():
        spent += int((thread / "schedstat").read_text().split()[0])
    return spent / _NANOSECONDS


def resident_bytes(server: Server) -> int:
    """The memory that the process has."""
    pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def spent(server: Server, once: Callable[[], object], times: int) -> float:
    """The processor time (s) that something costs the server, the least of several readings."""
    readings = []
    for _ in range(times):
        before = processor_seconds(server)
        once()
        readings.append(processor_seconds(server) - before)
    return min(readings)


def times_plain(server: Server, wire: Wire, times: int = 3) -> float:
    """Return the cost of a request as a multiple of a plain one."""
    plain = spent(server, lambda: send(server, PLAIN), 20)
    return spent(server, lambda: send(server, wire), times) / plain
