"""Bytes and connections held for clients, in all and for each address, so that no client can take all."""

from dataclasses import dataclass, field

from redrive.server.limits import HttpLimits


@dataclass(slots=True)
class _Share:
    """Connections, bytes of requests that are not answered yet, and of answers that are not read yet."""

    connections: int = 0
    bytes: int = 0
    unread: int = 0


@dataclass(slots=True)
class Held:
    """The connections and unanswered bytes of a front."""

    limits: HttpLimits
    _total: _Share = field(default_factory=_Share)
    _by_address: dict[str, _Share] = field(default_factory=dict)

    def admit(self, address: str) -> int:
        """Count a new connection in; by how many there are too many now."""
        own = self._by_address.setdefault(address, _Share())
        own.connections += 1
        self._total.connections += 1
        limits = self.limits
        return max(
            self._total.connections - limits.connections_max,
            own.connections - limits.connections_per_address_max,
        )

    def leave(self, address: str, counted: int, unread: int) -> None:
        """Count a connection out, with the bytes that were counted of it, and those of its answers."""
        own = self._by_address[address]
        for share in (own, self._total):
            share.connections -= 1
            share.bytes -= counted
            share.unread -= unread
        if not own.connections:
            del self._by_address[address]

    def add(self, address: str, more: int) -> bool:
        """Count bytes in, or out where `more` is negative; whether there is room for what is held now."""
        own = self._by_address[address]
        own.bytes += more
        self._total.bytes += more
        limits = self.limits
        return own.bytes <= limits.held_bytes_per_address_max and self._total.bytes <= limits.held_bytes_max

    def add_unread(self, address: str, more: int) -> bool:
        """Count bytes of answers in, or out where `more` is negative; whether there is room for what is held now."""
        own = self._by_address[address]
        own.unread += more
        self._total.unread += more
        limits = self.limits
        return (
            own.unread <= limits.unread_bytes_per_address_max
            and self._total.unread <= limits.unread_bytes_max
        )
