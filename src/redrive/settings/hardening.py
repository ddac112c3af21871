"""Hardening: the settings that leave a server open to others, each with what closes it.

The steps are those of docs/how-to/harden.md. A server on loopback with `--auth off` is open by choice; this is about one
that others can reach, or that keeps what others must not see.
"""

from collections.abc import Callable, Iterator, Mapping
from ipaddress import ip_address
from typing import Final, NamedTuple

from redrive.settings.table import Settings
from redrive.settings.values import (
    ANY_HOST,
    AWS_SERVICES,
    hosts_of,
    is_loopback,
    options_of,
    read_addresses,
    read_aws_endpoints,
    read_hosts,
    read_networks,
)

_EVERY_ADDRESS: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared, not bound
_CLOSED_ADDRESSES: Final = tuple(map(ip_address, ("127.0.0.1", "::1", "169.254.169.254", "fd00:ec2::254")))


class Finding(NamedTuple):
    """The answer to one check."""

    check: str  # Its name
    open: str = ""  # Open risk and its remedy; empty: none


def findings(settings: Settings) -> Iterator[Finding]:
    """All checks of the settings, in the order of the steps."""
    for check, risk_of in _CHECKS.items():
        yield Finding(check, risk_of(settings))


def _signatures_risk(settings: Settings) -> str:
    if settings.auth == "required":
        return ""
    return "anyone who reaches the port may act as any account; auth = required accepts only signed requests"


def _test_switches_risk(settings: Settings) -> str:
    """The risk of settings that are for tests alone; empty: none is on."""
    switches = ("allow_reset", "insecure_test_keys", "skip_queue_waits")
    active_names = [name for name in switches if getattr(settings, name)]
    if settings.clock == "simulated":
        active_names.append("clock")
    return f"{', '.join(active_names)}: for tests; leave them as they are by default" if active_names else ""


def _sealed_secrets_risk(settings: Settings) -> str:
    if settings.store_key_file:
        return ""
    return "anyone who reads the store or a backup has every secret in it; store_key_file encrypts them"


def _encryption_risk(settings: Settings) -> str:
    """A warning if clients cross a network without TLS; a proxy with an https address may have it."""
    is_encrypted = (
        bool(settings.tls_cert) or settings.tls != "off" or settings.public_url.startswith("https://")
    )
    if is_encrypted or is_loopback(settings.host):
        return ""
    return "requests and answers cross the network unencrypted; tls_cert with tls_key encrypts them, or tls = auto"


def _database_risk(settings: Settings) -> str:
    """A warning if a database on another machine is not asked for its certificate."""
    if not settings.store_is_shared:
        return ""
    is_verified = options_of(settings.store).get("sslmode") == "verify-full"
    if is_verified or all(not host or is_loopback(host) for host, _ in hosts_of(settings.store)):
        return ""
    return (
        "another machine may answer as the database; ?sslmode=verify-full at the end of store prevents that"
    )


def _listening_risk(settings: Settings) -> str:
    """The risk of listening at every address; empty: the host is one address."""
    if settings.host not in _EVERY_ADDRESS:
        return ""
    return (
        "the port can be reached from every network of the machine; set host to the address that clients use"
    )


def _hosts_risk(settings: Settings) -> str:
    if settings.auth == "required" or ANY_HOST not in read_hosts(settings.allow_hosts):
        return ""
    return "a web page can reach the server through a host name that points here (DNS rebinding); set allow_hosts"


def _pushes_risk(settings: Settings) -> str:
    """A warning if callers can have this machine push to addresses that only it reaches."""
    if not settings.forbids_private:
        return (
            "endpoints may be addresses that only this machine can reach; set forbid_private_endpoints = true"
        )
    networks = [
        str(network)
        for network in read_networks(settings.allow_private_endpoints)
        if any(address in network for address in _CLOSED_ADDRESSES)
    ]
    if not networks:
        return ""
    return f"{', '.join(networks)} in allow_private_endpoints opens this machine, or where clouds keep its credentials"


def _lent_credentials_risk(settings: Settings) -> str:
    """A warning if a service as a whole has an entry, so that any account's resources are called with its keys."""
    names = [name for name in read_aws_endpoints(settings.aws_endpoints) if name in AWS_SERVICES]
    names += [name for name in read_addresses(settings.azure_endpoints) if "/" not in name]
    if not names:
        return ""
    return f"every account uses the credentials of {', '.join(names)}; name ARNs and resource ids instead"


def _functions_risk(settings: Settings) -> str:
    if not settings.runs_functions or settings.functions_isolation != "none":
        return ""
    return "functions run as the server's user and can read its store; set functions_isolation = bubblewrap, or user"


def _mail_risk(settings: Settings) -> str:
    if not settings.smtp_host or settings.smtp_starttls or is_loopback(settings.smtp_host):
        return ""
    return "mail and the relay's password may be sent unencrypted; set smtp_starttls = true"


_CHECKS: Final[Mapping[str, Callable[[Settings], str]]] = {
    "signatures": _signatures_risk,
    "test switches": _test_switches_risk,
    "sealed secrets": _sealed_secrets_risk,
    "encryption": _encryption_risk,
    "database": _database_risk,
    "listening": _listening_risk,
    "hosts": _hosts_risk,
    "pushes": _pushes_risk,
    "lent credentials": _lent_credentials_risk,
    "functions": _functions_risk,
    "mail": _mail_risk,
}


# Allowed but risky settings: logged once, when the server starts.


def risks(settings: Settings) -> Iterator[str]:
    """The risks of these settings, each as a line for the log."""
    if settings.skip_queue_waits:
        yield "skip_queue_waits is on: queues can be recreated and purged again at once, where Amazon requires 60 seconds"
    if settings.insecure_test_keys:
        yield (
            f"server.insecure_test_keys host={settings.host}: anyone who can reach this server knows the access key test"
            " with the secret test, and may do everything with account 000000000000; never use this where others can"
            " reach it"
        )
    if settings.auth == "off" and ANY_HOST in read_hosts(settings.allow_hosts):
        yield (
            "server.any_host allow_hosts=*: any web page that is open on this machine can read and command this server,"
            " through a host name that points here (DNS rebinding); list your hosts instead"
        )
    if settings.functions == "on" and settings.functions_isolation == "none":
        yield (
            "server.functions_unconfined: anyone who may create a function runs programs as this server's user, who can"
            " read its store and its keys; functions_isolation = bubblewrap isolates them"
        )
    is_encrypted = settings.tls != "off" or bool(settings.tls_cert)
    if not is_encrypted and not is_loopback(settings.host):
        yield (
            f"server.plain_http host={settings.host}: anyone on the network path can read requests, messages and answers;"
            " --tls auto or --tls-cert with --tls-key encrypts them"
        )
