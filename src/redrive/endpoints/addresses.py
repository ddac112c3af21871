"""Addresses that a push may go to: URLs read, names resolved, and private networks refused."""

import asyncio
import re
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final, TypeAlias
from urllib.parse import unquote, urlsplit

from yarl import URL

# Names that are asked for at once. A dead name server is waited for up to ten seconds in glibc, and the loop's own
# threads (libuv has four) serve everything else; so many dead names at once are needed to hold up a living one.
_LOOKUPS_MAX: Final = 32

# A URL of these characters goes out as it was given. Quoting it anew would turn %2F into a slash in a query, and
# break the signature of a presigned URL.
_SENDABLE: Final = re.compile(r"[!-~]+")

Network: TypeAlias = IPv4Network | IPv6Network

AddressInfo: TypeAlias = tuple[int, int, int, str, Any]
"""An answer of `socket.getaddrinfo`."""

# Addresses that carry an IPv4 address in their last four bytes: a translator on the way unpacks it.
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")

# Addresses that Python's tables (3.11: of 2022) take for public, or that public tables cannot know.
_NOT_PUBLIC: Final[tuple[Network, ...]] = tuple(
    ip_network(network)
    for network in (
        "192.0.0.0/24",  # protocol assignments (RFC 6890): Oracle's machines have their credentials there
        "168.63.129.16/32",  # a machine of Azure reaches its host there: DHCP, DNS, the agent's secrets
        "::/96",  # IPv4-compatible (RFC 4291, deprecated): some systems connect to the IPv4 address
        "::ffff:0:0:0/96",  # IPv4-translated (RFC 2765)
        "64:ff9b:1::/48",  # translators of the local network (RFC 8215)
        "3fff::/20",  # documentation (RFC 9637)
        "5f00::/16",  # segment routing (RFC 9602)
        "fec0::/10",  # site-local (RFC 3879, deprecated)
    )
)


@dataclass(frozen=True, slots=True, eq=False)  # each is read once, and remembered: so it can be a key
class Destination:
    """A URL taken apart."""

    url: URL  # Without user and password
    user: str | None  # As it stood before the @, percent-decoded; None if there was none
    password: str  # The same

    @property
    def secure(self) -> bool:
        """True if it is https."""
        return self.url.scheme == "https"


def read_url(text: str) -> Destination:
    """Take an endpoint's URL apart.

    Raises:
        ValueError: It is not a http or https URL, or its host has an underscore, which SNS refuses.
    """
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("An endpoint is an http or https URL with a host")
    if "_" in parts.hostname:
        raise ValueError("The host of an endpoint cannot have an underscore")
    userinfo, _, host_and_port = parts.netloc.rpartition("@")
    without_user = parts._replace(netloc=host_and_port).geturl()
    user, _, password = userinfo.partition(":")
    url = URL(without_user, encoded=_SENDABLE.fullmatch(without_user) is not None)
    return Destination(url, unquote(user) if userinfo else None, unquote(password))


def is_private(address: str) -> bool:
    """True if an IP address leads anywhere but the public internet: private, loopback, link-local, reserved.

    The addresses where clouds serve credentials to their machines are among them (169.254.169.254, fd00:ec2::254,
    100.100.100.200, 168.63.129.16). An IPv6 address that wraps an IPv4 one is judged by what it wraps.
    """
    parsed = _unwrapped(address)
    if any(parsed in network for network in _NOT_PUBLIC):
        return True
    return not parsed.is_global or parsed.is_multicast


def is_within(address: str, networks: Sequence[Network]) -> bool:
    """True if an IP address, or the IPv4 address that it wraps, lies in one of these networks."""
    parsed = _unwrapped(address)
    return any(parsed in network for network in networks)


def _unwrapped(address: str) -> IPv4Address | IPv6Address:
    """The IPv4 address that an IPv6 address stands for (translated, mapped, 6to4); else the address itself."""
    parsed = ip_address(address)
    if isinstance(parsed, IPv4Address):
        return parsed
    if parsed in _TRANSLATED:
        return IPv4Address(parsed.packed[-4:])
    return parsed.ipv4_mapped or parsed.sixtofour or parsed


class SystemResolver:
    """Asks what the system asks (hosts file, name servers, plug-ins), in threads of its own."""

    def __init__(self) -> None:
        """Begin without a thread; they come as they are needed."""
        self._threads = ThreadPoolExecutor(_LOOKUPS_MAX, thread_name_prefix="redrive-names")

    async def resolve(
        self, host: str, port: int, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[AddressInfo]:
        """The addresses of a host; raises OSError if it has none."""
        ask = partial(socket.getaddrinfo, host, port, family, socket.SOCK_STREAM)
        return [*await asyncio.get_running_loop().run_in_executor(self._threads, ask)]

    def close(self) -> None:
        """Let the threads end when their look-ups do."""
        self._threads.shutdown(wait=False, cancel_futures=True)
