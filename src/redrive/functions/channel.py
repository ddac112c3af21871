"""The channel to a launcher: what it is to run goes in, sockets that listen in its network namespace come out."""

import asyncio
import json
import socket
from collections.abc import Mapping, Sequence
from typing import Self


class Channel:
    """A pair of connected sockets, one of which the launcher inherits."""

    def __init__(self) -> None:
        self._ours, self.theirs = socket.socketpair()
        self._ours.settimeout(0)

    def __enter__(self) -> Self:
        """Hand `theirs` to a process within."""
        return self

    def __exit__(self, *_: object) -> None:
        """The process has it."""
        self.theirs.close()

    async def tell(
        self, command: Sequence[str], variables: Mapping[str, str], folder: str, ports: Sequence[int]
    ) -> list[socket.socket]:
        """Tell the launcher what to run; the sockets that listen on these ports of its namespace.

        Raises:
            OSError: It ended before it could listen.
        """
        document = {"command": list(command), "variables": variables, "folder": folder, "ports": list(ports)}
        with self._ours as ours:
            await asyncio.get_running_loop().sock_sendall(ours, json.dumps(document).encode())
            ours.shutdown(socket.SHUT_WR)
            return await _received(ours, len(ports)) if ports else []


def _set(readable: "asyncio.Future[None]") -> None:
    if not readable.done():
        readable.set_result(None)


async def _received(channel: socket.socket, count: int) -> list[socket.socket]:
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()
    loop.add_reader(channel, _set, readable)
    try:
        await readable
    finally:
        loop.remove_reader(channel)
    _, descriptors, *_ = socket.recv_fds(channel, 1, count)
    listeners = [socket.socket(fileno=descriptor) for descriptor in descriptors]
    if len(listeners) < count:
        raise ConnectionResetError("the launcher ended")
    return listeners
