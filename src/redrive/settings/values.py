"""Values of settings taken apart: addresses, networks, host names, and the `NAME=VALUE` pairs behind ids and services."""

import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import parse_qs, urlsplit


class SettingsInvalid(Exception):  # noqa: N818 - a message for the operator
    """A setting is unknown or unusable; the message says which, and what to do."""


class CertificateUnusable(OSError):  # noqa: N818 - as above
    """A certificate or key that the settings name cannot be used; the message names its file."""


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
    """The hosts and ports that a URL names; a host is empty if it names none, which means a socket of this machine.

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


# The empty part before the first slash, three pairs (the last names the provider), a type and a name.
_OUTERMOST_PARTS: Final = 9
_ARN_COLONS: Final = 5  # arn:partition:service:region:account:resource
_PLACEHOLDER: Final = re.compile(r"\{(?:region|name)\}")
_FUNCTION_PARTS: Final = 7  # of those, a function's resource is function:name

#: What `push_endpoints` can name.
PUSH_SERVICES: Final = ("adm", "adm_oauth", "apns", "apns_sandbox", "fcm", "google_oauth")
#: What `aws_endpoints` can name besides ARNs: services that deliveries are pushed to.
AWS_SERVICES: Final = ("lambda", "firehose")
#: The value that stands for Amazon's own server of a region.
AWS_ITSELF: Final = "aws"


def read_addresses(pairs: str) -> dict[str, str]:
    """The `azure_endpoints` setting taken apart; names in lower case.

    A name ends at its first equals sign: resource ids have none, keys and connection strings do.

    Raises:
        SettingsInvalid: Something is not `NAME=VALUE`.
    """
    return {name.rstrip("/").lower(): value for name, value in _read_pairs("azure_endpoints", pairs)}


def read_aws_endpoints(pairs: str) -> dict[str, str]:
    """The `aws_endpoints` setting taken apart; names as they are, since case matters in ARNs.

    Raises:
        SettingsInvalid: Something is not `NAME=VALUE`, is named otherwise than a service or an ARN, or is no URL. What it
            says ends before the value, which may have a key in it.
    """
    endpoints = dict(_read_pairs("aws_endpoints", pairs))
    for name, value in endpoints.items():
        service = name.split(":")[2] if name.startswith("arn:") and name.count(":") >= _ARN_COLONS else name
        if service not in AWS_SERVICES:
            raise SettingsInvalid(
                f"aws_endpoints takes the names {' and '.join(AWS_SERVICES)}, or ARNs; not {name!r}"
            )
        if value != AWS_ITSELF and not _is_url(_PLACEHOLDER.sub("x", value)):
            raise SettingsInvalid(
                f"aws_endpoints: the value for {name} must be {AWS_ITSELF!r} or an http or https URL, whose host has no"
                " underscore, and whose only braces are {region} and {name}"
            )
    return endpoints


def read_push_endpoints(pairs: str) -> dict[str, str]:
    """The `push_endpoints` setting taken apart; URLs without a slash at their end.

    Raises:
        SettingsInvalid: Something is not `NAME=URL`, or there is no such service.
    """
    urls = {name.lower(): url.rstrip("/") for name, url in _read_pairs("push_endpoints", pairs)}
    for name, url in urls.items():
        if name not in PUSH_SERVICES:
            raise SettingsInvalid(
                f"a name in push_endpoints must be one of {', '.join(PUSH_SERVICES)}, not {name!r}"
            )
        if not _is_url(url):
            raise SettingsInvalid(f"push_endpoints: the value for {name} must be an http or https URL")
    return urls


def _read_pairs(setting: str, pairs: str) -> Iterator[tuple[str, str]]:
    """Names and values; a complaint ends before the value, which may be a secret."""
    for pair in pairs.split():
        name, _, value = pair.partition("=")
        if not name or not value:
            raise SettingsInvalid(f"{setting} must list NAME=VALUE pairs; {name!r} has no name or no value")
        yield name, value


def _is_url(value: str) -> bool:
    """True for an http or https URL without braces, whose host has no underscore."""
    try:
        parts = urlsplit(value)
        host = parts.hostname or ""
        return (
            parts.scheme in ("http", "https")
            and bool(host)
            and "_" not in host
            and not set("{}") & set(value)
        )
    except ValueError:
        return False


def address_of(addresses: Mapping[str, str], resource: str) -> str | None:
    """The address of a resource id, by the nearest entry; None: the settings do not say.

    Nearest is the id itself, then those of the resources it is within, then the bare name of the outermost one: the
    connection string of a namespace or a storage account serves all its queues.

    Args:
        addresses: As `read_addresses` gives them.
        resource: `/subscriptions/…/resourceGroups/…/providers/{provider}/{type}/{name}[/{type}/{name} …]`.
    """
    parts = resource.rstrip("/").lower().split("/")
    for end in range(len(parts), _OUTERMOST_PARTS - 1, -2):
        address = addresses.get("/".join(parts[:end]))
        if address is not None:
            return address
    return addresses.get(parts[_OUTERMOST_PARTS - 1]) if len(parts) >= _OUTERMOST_PARTS else None


def aws_endpoint_of(endpoints: Mapping[str, str], arn: str) -> str | None:
    """The server of the function or stream with an ARN, by the nearest entry; None: the settings do not say.

    Nearest is the ARN itself, then that of the function without its version or alias, then the service.
    """
    parts = arn.split(":")
    unqualified = ":".join(parts[:_FUNCTION_PARTS])
    return endpoints.get(arn) or endpoints.get(unqualified) or endpoints.get(parts[2])
