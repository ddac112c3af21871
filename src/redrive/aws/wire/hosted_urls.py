"""URLs of what has a host of its own on AWS: functions' and APIs'."""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

_HERE: Final = "localhost"


@dataclass(frozen=True, slots=True)
class HostedUrls:
    """The marks of requests to such a URL, whoever sends them."""

    label: str  # Stands in the name of the host: `.lambda-url.`
    path: re.Pattern[str]  # Matches the beginning of a path that stands for the host
    body_bytes_max: int


def hosted_url(base_url: str, name: str, path: str) -> str:
    """The URL as callers are told it, without a slash at its end.

    Names below `localhost` lead to this machine (RFC 6761), so the name stands in the host as on AWS; names below an
    address or a container's name lead nowhere, so there a path stands for it. Both forms work everywhere.

    Args:
        base_url: What the URLs of this server begin with.
        name: The first part of the host's name: `ID.lambda-url.REGION`.
        path: The path that stands for it.
    """
    parts = urlsplit(base_url)
    if not _is_here(parts.hostname or ""):
        return f"{base_url}{path}"
    port = "" if parts.port is None else f":{parts.port}"
    return f"{parts.scheme}://{name}.{_HERE}{port}"


def _is_here(host: str) -> bool:
    """True if a host is this machine: `localhost`, a name below it, or a loopback address."""
    if host == _HERE or host.endswith(f".{_HERE}"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
