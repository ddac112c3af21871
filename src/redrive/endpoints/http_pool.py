"""Connections to webhooks: kept while they rest, bounded in number, opened to no address that is forbidden."""

import asyncio
import socket
import ssl
from collections import Counter, deque
from collections.abc import Callable
from ipaddress import ip_address
from typing import Final, NamedTuple

import aiohappyeyeballs

from redrive.endpoints.addresses import AddressInfo, SystemResolver
from redrive.endpoints.http_connection import HttpConnection
from redrive.endpoints.kept_connection import SingleFlight

_NAMES_SECONDS: Final = 10  # how long the addresses of a name are remembered
# After which the next address of a name is tried beside the one before (RFC 8305).
_NEXT_ADDRESS_SECONDS: Final = 0.25


class WebOrigin(NamedTuple):
    """The other end of connections."""

    host: str  # A name, or an address without brackets
    port: int
    secure: bool  # TLS is spoken


class ForbiddenAddressError(OSError):
    """No connection was made, since none may be made to that address."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address


class HttpConnections:
    """The connections of one endpoint.

    Args:
        forbids: Whether no connection may be made to an IP address.
        trust: The certificates that are trusted, made when the first connection is.
        connections_max: In use at once.
        connections_per_origin_max: The same for one host and port.
    """

    def __init__(
        self,
        forbids: Callable[[str], bool],
        trust: Callable[[], ssl.SSLContext],
        connections_max: int,
        connections_per_origin_max: int,
    ) -> None:
        self._forbids = forbids
        self._make_trust = trust
        self._trust: ssl.SSLContext | None = None
        self._connections_max = connections_max
        self._per_origin_max = connections_per_origin_max
        self._resolver = SystemResolver()
        self._names: SingleFlight[tuple[str, int], deque[AddressInfo]] = SingleFlight(bool)
        self._open: set[HttpConnection] = set()
        self._resting: dict[WebOrigin, list[HttpConnection]] = {}  # open, and used by nobody
        self._used: Counter[WebOrigin] = Counter()
        self._used_in_all = 0
        self._waiting: dict[WebOrigin, deque[asyncio.Future[None]]] = {}  # for room, in their order

    async def take(self, origin: WebOrigin) -> tuple[HttpConnection, bool]:
        """A connection that nobody else uses, and whether it was opened for this; `give_back` ends its use.

        Raises:
            ForbiddenAddressError: Its addresses are not to be called.
            OSError: It cannot be opened.
            ValueError: There can be no such host.
        """
        if self._has_room(origin):
            self._count(origin, 1)
        else:
            await self._await_turn(origin)
        resting = self._resting.get(origin, [])
        while resting:
            connection = resting.pop()
            if connection.usable:
                return connection, False
        self._resting.pop(origin, None)
        try:
            return await self._connect(origin), True
        except BaseException:
            self._free(origin)
            raise

    def take_resting(self, origin: WebOrigin) -> HttpConnection | None:
        """As `take`, without waiting: a connection that rests; None: none does, or there is no room for another use."""
        resting = self._resting.get(origin)
        while resting and self._has_room(origin):
            connection = resting.pop()
            if connection.usable:
                self._count(origin, 1)
                return connection
        return None

    def give_back(self, origin: WebOrigin, connection: HttpConnection) -> None:
        """Use it no more."""
        if connection.usable:
            self._resting.setdefault(origin, []).append(connection)
        self._free(origin)

    async def close(self) -> None:
        """Close all of them."""
        await self._names.close()
        await asyncio.gather(*(connection.close() for connection in self._open))
        self._resolver.close()

    # ---- how many --------------------------------------------------------------------------------------------

    def _has_room(self, origin: WebOrigin) -> bool:
        return self._used_in_all < self._connections_max and self._used[origin] < self._per_origin_max

    def _count(self, origin: WebOrigin, change: int) -> None:
        self._used_in_all += change
        self._used[origin] += change
        if not self._used[origin]:
            del self._used[origin]

    async def _await_turn(self, origin: WebOrigin) -> None:
        """Wait until there is room; whoever gives it has counted the use already."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(origin, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._free(origin)
            raise

    def _free(self, origin: WebOrigin) -> None:
        """End a use; its place goes to the longest waiting for the same origin, or for another."""
        self._count(origin, -1)
        if self._waiting:
            for other in (origin, *self._waiting):
                if self._has_room(other) and self._give_turn(other):
                    return

    def _give_turn(self, origin: WebOrigin) -> bool:
        """Let the longest waiting for this origin go on, its use counted; False if nobody waits."""
        waiting = self._waiting.get(origin, deque())
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                self._count(origin, 1)
                turn.set_result(None)
                return True
        self._waiting.pop(origin, None)
        return False

    # ---- a new one -------------------------------------------------------------------------------------------

    async def _connect(self, origin: WebOrigin) -> HttpConnection:
        """Open a connection to an origin; the host of a certificate has no dot at its end."""
        tcp_socket = await self._socket(await self._addresses(origin.host, origin.port))
        if origin.secure and self._trust is None:
            self._trust = self._make_trust()
        _, connection = await asyncio.get_running_loop().create_connection(
            HttpConnection,
            sock=tcp_socket,
            ssl=self._trust if origin.secure else None,
            server_hostname=origin.host.rstrip(".") if origin.secure else None,
        )
        self._open.add(connection)
        connection.closed.add_done_callback(lambda _: self._forget(origin, connection))
        return connection

    def _forget(self, origin: WebOrigin, connection: HttpConnection) -> None:
        """Drop a connection that was closed."""
        self._open.discard(connection)
        resting = self._resting.get(origin)
        if resting is None:
            return
        if connection in resting:
            resting.remove(connection)
        if not resting:
            del self._resting[origin]

    async def _socket(self, infos: list[AddressInfo]) -> socket.socket:
        """A socket to the first of the addresses that answers; forbidden ones are left out, where sockets are made."""
        forbidden: list[str] = []

        def make(info: AddressInfo) -> socket.socket:
            family, kind, protocol, _, address = info
            if self._forbids(host := str(address[0])):
                forbidden.append(host)  # the error below is merged with those of the other addresses
                raise ForbiddenAddressError(host)
            return socket.socket(family, kind, protocol)

        try:
            return await aiohappyeyeballs.start_connection(
                infos, happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS, socket_factory=make
            )
        except OSError as error:
            if len(forbidden) == len(infos):
                raise ForbiddenAddressError(forbidden[0]) from error
            raise

    async def _addresses(self, host: str, port: int) -> list[AddressInfo]:
        """The addresses of a host, another one first each time.

        An address in numbers has to have the usual form: `127.1` and `2130706433` are refused; the system takes them.
        """
        if ":" in host or host.replace(".", "").isdigit():
            ip_address(host.partition("%")[0])
            return [*socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)]
        name = (host, port)
        infos = await self._names.of(name, lambda: self._resolved(name))
        infos.rotate(-1)
        return list(infos)

    async def _resolved(self, name: tuple[str, int]) -> deque[AddressInfo]:
        infos = deque(await self._resolver.resolve(*name))
        infos.rotate(1)
        asyncio.get_running_loop().call_later(_NAMES_SECONDS, self._names.forget, name, infos)
        return infos
