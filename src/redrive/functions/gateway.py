"""The gateway: the one address that a function in a network namespace of its own can reach, which is this server.

Its program connects to a socket that listens on the namespace's loopback, at the server's own port, so that URLs in
answers lead back here as well. What is sent there goes to the server's address outside, byte by byte: TLS is between
the function and the server.
"""

import asyncio
import contextlib
import ipaddress
import socket
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

API_PORT: Final = 9001  # of the Runtime API inside, as in Lambda
# The server's port inside, where its own is the Runtime API's, or is one that needs privileges.
_BESIDE_API_PORT: Final = 9002
_UNPRIVILEGED_PORT: Final = 4566
_PRIVILEGED: Final = 1024
_PIECE_BYTES: Final = 64 * 1024
_CONNECTIONS_MAX: Final = 64  # of an environment; each takes two of the server's descriptors
_WELL_KNOWN: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address of the server, outside and inside a namespace."""

    host: str  # Target host of connections
    port: int  # Likewise
    port_inside: int  # Loopback port on which functions reach it
    url_inside: str  # URL that functions are given
    hosts: str  # The text of their /etc/hosts

    @classmethod
    def of(cls, url: str) -> "ServerAddress":
        """The address of a server whose URL is this."""
        parts = urlsplit(url)
        host, port = parts.hostname or "localhost", parts.port or _WELL_KNOWN[parts.scheme]
        unprivileged = _UNPRIVILEGED_PORT if port < _PRIVILEGED else port
        inside = _BESIDE_API_PORT if port == API_PORT else unprivileged
        name = "127.0.0.1" if _is_address(host) else host
        names = "localhost" if name == "127.0.0.1" else f"localhost {name}"
        inside_url = f"{parts.scheme}://{name}:{inside}{parts.path}"
        return cls(host, port, inside, inside_url, f"127.0.0.1 {names}\n")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class FunctionGateway:
    """The connections of one environment to the server."""

    def __init__(self, endpoint: ServerAddress) -> None:
        self._endpoint = endpoint
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def open(self, listener: socket.socket) -> None:
        """Accept connections of this socket, which listens in the environment's namespace."""
        self._server = await asyncio.start_server(self._accept, sock=listener, limit=_PIECE_BYTES)

    def close(self) -> None:
        """Accept no more, and cut off those that are there."""
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection of the function until it ends; too many at once are closed."""
        task = asyncio.current_task()
        if len(self._connections) >= _CONNECTIONS_MAX or task is None:
            writer.close()
            return
        self._connections.add(task)
        try:
            await self._relay(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # an end went away, or the environment did; the other end is cut off below
        finally:
            self._connections.discard(task)
            writer.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect to the server, and carry what both ends write to the other."""
        upstream, back = await asyncio.open_connection(
            self._endpoint.host, self._endpoint.port, limit=_PIECE_BYTES
        )
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_carry(reader, back))
                both.create_task(_carry(upstream, writer))
        except* OSError:
            pass  # as above
        finally:
            back.close()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Write to one end what the other sends, until its end."""
    while piece := await reader.read(_PIECE_BYTES):
        writer.write(piece)
        await writer.drain()
    with contextlib.suppress(OSError):  # the other end has closed already
        writer.write_eof()
