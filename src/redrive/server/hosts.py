"""Hosts: the names that this server answers to where nobody has to prove who they are.

A web page can have a name of its own lead to 127.0.0.1 after it was loaded (DNS rebinding), and then reads what it asks
for. So a server that trusts every caller answers to names alone that no page on the internet can have.
"""

import re
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from redrive.aws.wire.profiles import profiles
from redrive.settings import Settings, read_hosts

#: Names that nobody can register: RFC 6761's for this machine and for tests, and ICANN's for private networks, which
#: Docker Desktop, Podman and Lima use for the machine that a container runs on (`host.docker.internal`).
_NOT_REGISTERED: Final = (".localhost", ".test", ".internal")
#: Names that clients use for this server, and whose owners let none of them lead to an address of one's choice.
_OF_VENDORS: Final = (".localhost.localstack.cloud", ".eventgrid.azure.net")
_REGION: Final = r"[a-z]{2}(?:-[a-z]+)+(?:-\d+)?"
_SERVICES: Final = "|".join(
    sorted({name for each in profiles().values() for name in (each.endpoint_prefix, *each.hosts)})
)
#: The endpoints of the services that are offered here, and buckets and APIs below them. Machines, load balancers and
#: websites of Amazon's customers have names below `amazonaws.com` as well, and serve pages.
_OF_AMAZON: Final = re.compile(
    rf"(?:(?:{_SERVICES})(?:-fips)?(?:\.dualstack)?(?:[.-]{_REGION})?|{_REGION}\.queue"
    rf"|(?:[^.]+\.)+s3(?:-fips)?(?:\.dualstack)?(?:[.-]{_REGION})?|[^.]+\.execute-api\.{_REGION})\.amazonaws\.com(?:\.cn)?"
)
_ANY: Final = "*"
_CHARS_MAX: Final = 300  # a name of DNS has 253 at most
_REMEMBERED_MAX: Final = 256  # Host headers; a browser's user has a handful


class KnownHosts:
    """The hosts that requests may name.

    Attributes:
        lately: Host headers that were asked for lately and name this server: one look-up for nearly every request.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        """Answer to these names besides.

        Args:
            names: Each with the names below it; `*` for all there are.
        """
        self._names = {name.lower().lstrip("*.") or _ANY for name in names}
        self._endings = (*_NOT_REGISTERED, *_OF_VENDORS, *(f".{name}" for name in self._names))
        self.lately = {"localhost", "127.0.0.1"}

    def __contains__(self, host: str) -> bool:
        """True if a Host header, with its port, names this server."""
        if host in self.lately:
            return True
        if len(host) > _CHARS_MAX or not self._names_us(name_of(host)):
            return False
        if len(self.lately) >= _REMEMBERED_MAX:
            self.lately.clear()
        self.lately.add(host)
        return True

    def _names_us(self, name: str) -> bool:
        """True if a name is ours: an address, a name without dots (a container's, a machine's), or one that ends so."""
        return (
            "." not in name
            or _is_address(name)
            or _ANY in self._names
            or f".{name}".endswith(self._endings)
            or _OF_AMAZON.fullmatch(name) is not None
        )


def known_hosts(settings: Settings) -> KnownHosts:
    """The hosts of a server: those that its settings name, and that of its public URL."""
    public = urlsplit(settings.public_url).hostname
    return KnownHosts([*read_hosts(settings.allow_hosts), *([public] if public else [])])


def name_of(host: str) -> str:
    """The name or address in a Host header, without the port, in lower case."""
    name = host.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0].removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
