"""Limits of one client: every bound of the HTTP front, each with its reason."""

from dataclasses import dataclass, field
from typing import Final

SLICE_BYTES: Final = 16 * 1024
"""How much is parsed before looking up again. One read of the event loop may hold 256 KiB, that is ten
thousand tiny pipelined requests; a slice holds six hundred, and a usual SendMessage whole."""


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """The bounds of an `HttpFront`."""

    # Longer targets get 414. A presigned URL takes 2 KiB; RFC 9112 asks for 8000.
    request_line_bytes_max: int = 16 * 1024
    # A bigger head gets 431. A security token is the longest header known, at 8 KiB.
    header_bytes_max: int = 64 * 1024
    header_count_max: int = 128  # More header lines get 431. SDKs send 10 to 20, proxies add as many.
    # A bigger body gets 413, by Content-Length alone where there is one. The largest call of any protocol
    # spoken here is a Lambda payload of 6 MB, or a template with its parameters.
    body_bytes_max: int = 16 * 1024 * 1024
    # The body that anybody may send, without the head being looked at. Of a bigger one the head decides: the
    # protocol says how large its bodies are, and whether the caller shows a credential.
    body_bytes_unasked: int = 64 * 1024
    # Of requests that are not answered yet, in all; who goes on sending beyond it gets 503. What is below
    # `SLICE_BYTES` on a connection is not counted, so that usual calls always pass.
    held_bytes_max: int = 256 * 1024 * 1024
    # The same for one address, so that nobody has all the room. Half: clients behind one proxy have one
    # address.
    held_bytes_per_address_max: int = 128 * 1024 * 1024
    # Of answers that clients do not read, in all; the connection that goes beyond it is closed. An answer may
    # have 64 MiB, and whoever asks on a thousand connections and reads none would take all memory.
    unread_bytes_max: int = 1024 * 1024 * 1024
    # The same for one address: thirty downloads of 16 MiB that all stand still.
    unread_bytes_per_address_max: int = 512 * 1024 * 1024
    # From the first byte of a request to the end of its head, and for a TLS handshake; then 408. Slow-loris
    # clients live on servers that lack it.
    header_seconds: float = 10.0
    # How long a connection may rest between requests. More than the 60 s after which load balancers drop
    # theirs, so that they never send into a closing one.
    keep_alive_seconds: float = 75.0
    # What a body, or a client reading its response, gets on top of `bytes_per_second`.
    grace_seconds: float = 30.0
    # The slowest transfer put up with, both ways; a 2G telephone does better.
    bytes_per_second: int = 16 * 1024
    # How long a refused client's bytes are read and thrown away: closing at once would reset the connection
    # and could destroy the answer before it is read.
    linger_seconds: float = 2.0
    # Requests that may wait behind the one being answered before reading stops (a slice of `SLICE_BYTES` may
    # carry more). They are answered one after the other, so more only costs memory. While reading is stopped,
    # a client that leaves is noticed after the next answer.
    pipelined_max: int = 4
    # One more is answered 503 and closed. A resting connection takes about 5 KiB.
    connections_max: int = 10_000
    # The same for one address: four fifths, so that nobody can keep all others out.
    connections_per_address_max: int = 8_000
    # How often deadlines are looked at and the Date header is renewed: one timer for all.
    sweep_seconds: float = 1.0


# Bytes and connections held for clients, in all and for each address, so that no client can take all.


@dataclass(slots=True)
class _Share:
    """Connections, bytes of requests that are not answered yet, and of answers that are not read yet."""

    connections: int = 0
    bytes: int = 0
    unread: int = 0


@dataclass(slots=True)
class ClientLoad:
    """The connections and unanswered bytes of a front."""

    limits: HttpLimits
    _total: _Share = field(default_factory=_Share)
    _by_address: dict[str, _Share] = field(default_factory=dict)

    def admit(self, address: str) -> int:
        """Count a new connection in; returns by how many there are too many now, 0 or less where there is room."""
        of_address = self._by_address.setdefault(address, _Share())
        of_address.connections += 1
        self._total.connections += 1
        limits = self.limits
        return max(
            self._total.connections - limits.connections_max,
            of_address.connections - limits.connections_per_address_max,
        )

    def leave(self, address: str, counted: int, unread: int) -> None:
        """Count a connection out, with the bytes that were counted of it, and those of its answers."""
        of_address = self._by_address[address]
        for share in (of_address, self._total):
            share.connections -= 1
            share.bytes -= counted
            share.unread -= unread
        if not of_address.connections:
            del self._by_address[address]

    def add(self, address: str, more: int) -> bool:
        """Count bytes in, or out where `more` is negative; True if there is room for what is held now."""
        of_address = self._by_address[address]
        of_address.bytes += more
        self._total.bytes += more
        limits = self.limits
        return (
            of_address.bytes <= limits.held_bytes_per_address_max
            and self._total.bytes <= limits.held_bytes_max
        )

    def add_unread(self, address: str, more: int) -> bool:
        """As `add`, for bytes of answers that the client has not read."""
        of_address = self._by_address[address]
        of_address.unread += more
        self._total.unread += more
        limits = self.limits
        return (
            of_address.unread <= limits.unread_bytes_per_address_max
            and self._total.unread <= limits.unread_bytes_max
        )
