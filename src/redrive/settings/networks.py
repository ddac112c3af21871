"""Addresses and networks as settings have them."""

from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from redrive.settings.invalid import SettingsInvalid


def is_loopback(host: str) -> bool:
    """True if only this machine can reach a server that listens there."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def read_networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """The `allow_private_endpoints` setting taken apart: networks and addresses with commas or spaces between them.

    Raises:
        SettingsInvalid: A part is not a network in CIDR notation, or has bits set behind its prefix.
    """
    try:
        return tuple(ip_network(part) for part in text.replace(",", " ").split())
    except ValueError as error:
        raise SettingsInvalid(f"allow_private_endpoints has no network like 10.0.0.0/8: {error}") from None
