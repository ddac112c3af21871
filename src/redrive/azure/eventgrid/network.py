"""From where a topic, a domain or a namespace may be reached: `publicNetworkAccess` and `inboundIpRules`.

Azure tells the public side from private endpoints. Here the private side is who comes from this machine or a private
network; a reverse proxy in front of the server is the client of all who come through it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final

ACCESS: Final = "publicNetworkAccess"
RULES: Final = "inboundIpRules"
MASK: Final = "ipMask"
DISABLED: Final = "Disabled"

Mask = IPv4Network | IPv6Network

# Loopback, RFC 1918, RFC 4193 and link-local. Not `is_private`: it has test networks and benchmarks in it too.
_PRIVATE_SIDE: Final = tuple(
    ip_network(text)
    for text in (
        *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"),
        *("::1/128", "fc00::/7", "fe80::/10"),
    )
)


@dataclass(frozen=True, slots=True)
class Network:
    """The addresses that may call a topic."""

    # Where they have to be in one of; None: they may come from anywhere.
    masks: tuple[Mask, ...] | None = None

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> "Network":
        """The network rules of accepted ARM properties."""
        if properties.get(ACCESS) == DISABLED:
            return _PRIVATE
        rules = properties.get(RULES)
        return cls(tuple(read_mask(rule[MASK]) for rule in rules)) if rules else OPEN

    def admits(self, client_host: str) -> bool:
        """True if who comes from an IP address may come in; what is not an address may not, where there are masks."""
        if self.masks is None:
            return True
        try:
            address = ip_address(client_host)
        except ValueError:
            return False
        if isinstance(address, IPv6Address):  # a socket for both families has IPv4's wrapped
            address = address.ipv4_mapped or address
        return any(address in mask for mask in self.masks)


def read_mask(text: str) -> Mask:
    """An address, or a range in CIDR's notation; bits beyond the range's are cut off.

    Raises:
        ValueError: Not an address or a network.
    """
    return ip_network(text, strict=False)


OPEN: Final = Network()
_PRIVATE: Final = Network(_PRIVATE_SIDE)
