"""The HTTP front: accepts connections, sweeps their deadlines, drains them."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from redrive.server.connection import Connection, Handler, OnRefused, Shared
from redrive.server.limits import ClientLoad, HttpLimits
from redrive.server.reading import BodyBound
from redrive.server.rendering import Renderer

__all__ = ["Handler", "HttpFront", "HttpLimits"]

_SETTLING_SECONDS: Final = 0.1
_BACKLOG: Final = 1024
"""Connections the kernel completes ahead of us: a restart brings every long poll back in one second."""


async def bound(host: str, port: int) -> list[socket.socket]:
    """Sockets for every address that a host has, not listened on yet: the port is known before anybody is answered.

    Args:
        host: A name or an address; empty for every address of the machine.
        port: The same for all of them; 0 for any that is free.

    Raises:
        OSError: An address cannot be had.
    """
    loop = asyncio.get_running_loop()
    addresses = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(addresses):
            common_port = port or (sockets[0].getsockname()[1] if sockets else 0)
            new_socket = _bound(family, kind, protocol, (address[0], common_port, *address[2:]))
            if new_socket is not None:
                sockets.append(new_socket)
    except OSError:
        for each in sockets:
            each.close()
        raise
    return sockets


def url_of(host: str, sockets: Sequence[socket.socket], *, encrypted: bool) -> str:
    """The URL of what these sockets accept; `host` as it was asked for."""
    if host in ("", "0.0.0.0", "::"):  # noqa: S104 - every address: name one that can be asked for
        host = "localhost"
    bracketed = f"[{host}]" if ":" in host else host
    return f"{'https' if encrypted else 'http'}://{bracketed}:{sockets[0].getsockname()[1]}"


def _bound(family: int, kind: int, protocol: int, address: tuple[object, ...]) -> socket.socket | None:
    """A bound socket; None for an address family that this machine does not have."""
    try:
        new_socket = socket.socket(family, kind, protocol)
    except OSError:
        return None
    try:
        new_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            new_socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        new_socket.setblocking(False)  # noqa: FBT003 - the method's only argument
        new_socket.bind(address)
    except OSError:
        new_socket.close()
        raise
    return new_socket


class HttpFront:
    """An HTTP/1.1 server for one handler.

    A handler answers at once with a `Response`, or returns an awaitable of one: a coroutine, or a `Future`
    that belongs to this request alone. If the client disconnects, `Request.on_gone` is called where it
    was set, and the handler goes on. What a handler raises is logged with a request id and answered 500.

    Args:
        handler: Called once for each whole request, one at a time on each connection.
        limits: What a client may cost.
        now: Milliseconds since the epoch, for the Date header. Time-outs use the event loop's own time.
        new_request_id: Names a failure, in the log and in the answer.
        body_bound: How large the body of a request may be, where it is larger than anybody's may; None: as the limits
            have it.
        on_refused: Told of each request that is not a whole request, with the client's address and how it is answered.
    """

    def __init__(
        self,
        handler: Handler,
        limits: HttpLimits,
        *,
        now: Callable[[], int],
        new_request_id: Callable[[], str],
        body_bound: BodyBound | None = None,
        on_refused: OnRefused | None = None,
    ) -> None:
        self._handler = handler
        self._limits = limits
        self._now = now
        self._new_request_id = new_request_id
        self._body_bound = body_bound
        self._on_refused = on_refused
        self._servers: list[asyncio.Server] = []
        self._port: int | None = None
        self.shared: Shared
        self._timer: asyncio.TimerHandle

    @property
    def port(self) -> int:
        """The port listened on; raises RuntimeError before `start`."""
        if self._port is None:
            raise RuntimeError("The front has not been started")
        return self._port

    async def start(self, host: str, port: int, ssl_context: ssl.SSLContext | None = None) -> None:
        """Listen on `host`, on any free port where `port` is 0; with `ssl_context`, for https.

        Raises:
            OSError: The address cannot be had.
        """
        await self.listen(await bound(host, port), ssl_context)

    async def listen(
        self, sockets: Sequence[socket.socket], ssl_context: ssl.SSLContext | None = None
    ) -> None:
        """Listen on sockets that are bound; with `ssl_context`, for https."""
        loop = asyncio.get_running_loop()
        renderer = Renderer(self._now)
        self.shared = Shared(
            self._handler,
            self._limits,
            renderer,
            self._new_request_id,
            loop,
            ClientLoad(self._limits),
            self._body_bound,
            self._on_refused,
        )
        self._servers = [
            await loop.create_server(
                partial(Connection, self.shared, "https" if ssl_context else "http"),
                sock=each,
                backlog=_BACKLOG,
                ssl=ssl_context,
                ssl_handshake_timeout=self._limits.header_seconds if ssl_context else None,
            )
            for each in sockets
        ]
        self._port = sockets[0].getsockname()[1]
        self._sweep()

    async def retire(self, seconds: float) -> None:
        """Accept nothing more, and answer on the connections that are open, each for the last time, for so long at most.

        For a server whose sockets others listen on: what connects from now on is theirs.
        """
        for server in self._servers:
            server.close()
        # The loop may have accepted some already, whose requests are on their way: they are none to be refused.
        self.shared.loop.call_later(_SETTLING_SECONDS, self._answer_last)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.shared.emptied.wait(), seconds)

    def _answer_last(self) -> None:
        self.shared.is_draining = True
        if not self.shared.connections:
            self.shared.emptied.set()

    async def drain(self, seconds: float) -> None:
        """Stop accepting, close what rests, answer what is under way, and close the rest after `seconds`."""
        if not self._servers:
            return
        shared = self.shared
        shared.is_draining = True
        for server in self._servers:
            server.close()
        for connection in list(shared.connections):
            connection.drain()
        try:
            await asyncio.wait_for(self._until_empty(), seconds)
        except TimeoutError:
            for connection in list(shared.connections):
                connection.abort()
            await self._until_empty()
        self._timer.cancel()

    async def _until_empty(self) -> None:
        if self.shared.connections:
            await self.shared.emptied.wait()

    def _sweep(self) -> None:
        """Look at every deadline. Ten thousand comparisons take half a millisecond, once a second."""
        shared = self.shared
        self._timer = shared.loop.call_later(self._limits.sweep_seconds, self._sweep)
        shared.renderer.tick()
        now = shared.loop.time()
        for connection in [each for each in shared.connections if each.deadline <= now]:
            connection.expire(now)
