"""The last link of the chain that starts a function: it is told by a socket what to run, and becomes that.

Run as `python -I -S launcher.py FD`, with the function's rights and nothing of its environment. The document that comes
by the socket has `command`, `variables`, `folder`, and the `ports` of loopback to listen on: sockets that listen in this
network namespace go back to the server, which so can be asked from a namespace that nothing else leads into or out of.
"""

import contextlib
import ctypes
import json
import os
import socket
import sys

_PR_SET_CHILD_SUBREAPER = 36


def main(descriptor: int) -> None:
    """Become the function's program."""
    with socket.socket(fileno=descriptor) as channel:
        with channel.makefile("rb") as pipe:
            document = json.loads(pipe.read())
        listeners = [socket.create_server(("127.0.0.1", port), backlog=128) for port in document["ports"]]
        if listeners:  # made here, inside the namespace; a message of descriptors needs a byte beside them
            socket.send_fds(channel, [b"."], [listener.fileno() for listener in listeners])
        for listener in listeners:
            listener.close()
    # What it forks stays below it in the tree of processes, whatever parents end between them.
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.chdir(document["folder"])
    os.execve(document["command"][0], document["command"], document["variables"])  # noqa: S606 - that is what it is for


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]))
    except OSError as error:
        sys.exit(f"{error.filename or 'launcher'}: {error.strerror}")
