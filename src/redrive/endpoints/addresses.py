"""Where a push may go: URLs read, names resolved, and networks that are nobody's business outside."""

import asyncio
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import unquote, urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

# Names that are asked for at once. A dead name server is waited for up to ten seconds in glibc, and the loop's own
# threads (libuv has four) serve everything else; so many dead names at once are needed to hold up a living one.
_LOOKUPS_MAX: Final = 32

# A URL of these characters goes out as it was given. Quoting it anew would turn %2F into a slash in a query, and
# break the signature of a presigned URL.
_SENDABLE: Final = re.compile(r"[!-~]+")

# Addresses that carry an IPv4 address in their last four bytes: a translator on the way unpacks it.
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class Destination:
    """A URL taken apart.

    Attributes:
        url: Without user and password.
        user: As it stood before the @, percent-decoded; None where there was none.
        password: The same.
    """

    url: URL
    user: str | None
    password: str

    @property
    def secure(self) -> bool:
        """Whether it is https."""
        return self.url.scheme == "https"


def read_url(text: str) -> Destination:
    """Take an endpoint's URL apart.

    Raises:
        ValueError: It is no http or https URL, or its host has an underscore, which SNS refuses.
    """
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("An endpoint is an http or https URL with a host")
    if "_" in parts.hostname:
        raise ValueError("The host of an endpoint cannot have an underscore")
    userinfo, _, place = parts.netloc.rpartition("@")
    bare = parts._replace(netloc=place).geturl()
    user, _, password = userinfo.partition(":")
    url = URL(bare, encoded=_SENDABLE.fullmatch(bare) is not None)
    return Destination(url, unquote(user) if userinfo else None, unquote(password))


def is_private(address: str) -> bool:
    """Whether an IP address leads anywhere but the public internet: private, loopback, link-local, reserved.

    An IPv6 address that wraps an IPv4 one is judged by what it wraps.
    """
    parsed = ip_address(address)
    if isinstance(parsed, IPv6Address):
        wrapped = parsed.ipv4_mapped or parsed.sixtofour
        if wrapped is None and parsed in _TRANSLATED:
            return is_private(str(ip_address(parsed.packed[-4:])))
        if wrapped is not None:
            return is_private(str(wrapped))
    return not parsed.is_global or parsed.is_multicast


class SystemResolver(AbstractResolver):
    """Asks what the system asks (hosts file, name servers, plug-ins), in threads of its own."""

    def __init__(self) -> None:
        """Begin without a thread; they come as they are needed."""
        self._threads = ThreadPoolExecutor(_LOOKUPS_MAX, thread_name_prefix="redrive-names")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a host.

        Raises:
            OSError: It has none.
        """
        found = await asyncio.get_running_loop().run_in_executor(
            self._threads, socket.getaddrinfo, host, port, family, socket.SOCK_STREAM
        )
        return [
            ResolveResult(
                hostname=host,
                host=str(address[0]),
                port=port,
                family=found_family,
                proto=protocol,
                flags=socket.AI_NUMERICHOST,
            )
            for found_family, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        """Let the threads end when their look-ups do."""
        self._threads.shutdown(wait=False, cancel_futures=True)
