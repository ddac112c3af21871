"""A worker of `redrive serve --workers N`, as its supervisor starts it: with a channel, sockets and its command line."""

import socket
import sys
from collections.abc import Sequence

from redrive.cli.main import main


def command(words: Sequence[str], channel: int, sockets: Sequence[int]) -> list[str]:
    """The command line of a worker.

    Args:
        words: Of the command line that started the supervisor.
        channel: The file descriptor of the worker's end.
        sockets: Those of the sockets that it accepts from.
    """
    descriptors = ",".join(map(str, sockets))
    return [sys.executable, "-m", __name__, str(channel), descriptors, *words]


def start(channel: str, sockets: str, words: Sequence[str]) -> int:
    """Serve as a worker; returns the exit status."""
    from redrive.workers.worker import Worker  # noqa: PLC0415 - only workers need it

    connections = [socket.socket(fileno=int(number)) for number in (channel, *sockets.split(","))]
    for each in connections:
        each.setblocking(False)  # noqa: FBT003 - the method's only argument
        each.set_inheritable(False)
    return main(words, Worker(connections[0], connections[1:]))


if __name__ == "__main__":
    sys.exit(start(sys.argv[1], sys.argv[2], sys.argv[3:]))
