"""Addresses, networks and host names as settings have them."""

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import parse_qs, urlsplit

from redrive.settings.invalid import SettingsInvalid

ANY_HOST: Final = "*"
_HOST_NAME: Final = re.compile(r"(\*\.|\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*", re.IGNORECASE)


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
        raise SettingsInvalid(
            f"allow_private_endpoints must list networks such as 10.0.0.0/8: {error}"
        ) from None


def read_hosts(text: str) -> tuple[str, ...]:
    """The `allow_hosts` setting taken apart: names with commas or spaces between them, or `*`.

    Raises:
        SettingsInvalid: A part is not a name, as a URL or a port.
    """
    names = tuple(text.replace(",", " ").split())
    for name in names:
        if name != ANY_HOST and not _HOST_NAME.fullmatch(name):
            raise SettingsInvalid(f"allow_hosts must list host names without scheme or port, not {name!r}")
    return names


# The URL of a PostgreSQL database, which may name several hosts: `postgresql://user@one:5432,two/database?option=value`.


def hosts_of(url: str) -> Sequence[tuple[str, int | None]]:
    """The hosts and ports that a URL names; a host is empty where it names none, which means a socket of this machine.

    Raises:
        ValueError: A port is none.
    """
    try:
        hosts = urlsplit(url).netloc.rpartition("@")[2].split(",")
        parts = [urlsplit(f"//{host}") for host in hosts]
        return [(part.hostname or "", part.port) for part in parts]
    except ValueError as error:
        raise ValueError(f"has a URL that cannot be used: {error}") from None


def options_of(url: str) -> Mapping[str, str]:
    """The options behind the question mark; of one given twice the last counts."""
    return {name: values[-1] for name, values in parse_qs(urlsplit(url).query).items()}
