"""Settings: one frozen value, read once from flags, the environment, a file and the defaults, in that order."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from redrive.endpoints.sms.gateway import read_gateway

# The empty part before the first slash, three pairs (the last names the provider), a type and a name.
_OUTERMOST_PARTS: Final = 9
_ARN_COLONS: Final = 5  # arn:partition:service:region:account:resource
_PLACEHOLDER: Final = re.compile(r"\{(?:region|name)\}")
_FUNCTION_PARTS: Final = 7  # of those, a function's resource is function:name
_PRICE: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")

#: What `push_endpoints` can name.
PUSH_SERVICES: Final = ("adm", "adm_oauth", "apns", "apns_sandbox", "fcm", "google_oauth")
#: What `aws_endpoints` can name besides ARNs: services that deliveries are pushed to.
AWS_SERVICES: Final = ("lambda", "firehose")
#: The value that stands for Amazon's own server of a region.
AWS_ITSELF: Final = "aws"


class SettingsInvalid(Exception):  # noqa: N818 - an answer to whoever starts the server
    """A setting is unknown or unusable; the message says which, and what to do."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to serve.

    Attributes:
        host: The address to listen on.
        port: The port; 0 for any free one.
        store: `sqlite:///PATH`, `sqlite://:memory:` or `postgresql://…`.
        clock: `system`, or `simulated`: time then passes by `POST /_redrive/clock` alone.
        auth: `required`: only signed requests are answered. `off`: everybody is believed, on loopback alone.
        tls: `off`, or `auto`: a local authority and its certificate are made and kept beside the store.
        tls_cert: A certificate file (PEM), with `tls_key`.
        tls_key: Its key file (PEM).
        public_url: What URLs in answers begin with, where clients reach the server by another name.
        region: The region of requests that name none.
        allow_reset: Whether `POST /_redrive/reset` may remove everything.
        fifo_quotas: Whether the documented throughput of FIFO queues is enforced.
        filter_policies_max: How many filter policies an SNS topic may have.
        forbid_private_endpoints: Deliveries are not pushed to private, loopback and link-local addresses.
        client_errors_count_as_delivered: A 4xx answer that is not retried ends a delivery as done, where it would
            go to the dead letters.
        endpoint_ca_file: Certificates (PEM) that endpoints and the mail relay may show besides the system's.
        smtp_host: The relay that takes mail; without one, mail cannot be delivered.
        smtp_port: Its port.
        smtp_sender: The address that mail comes from.
        smtp_user: Whom to log in as at the relay.
        smtp_password: The password.
        smtp_starttls: Whether the connection to the relay has to be encrypted.
        sms_gateway: The message centre that takes text messages, `smpp://USER:PASSWORD@HOST:PORT?…` or `smpps://…`;
            without one, they cannot be delivered.
        sms_part_price: What each part of a text message costs, in USD; spending limits go by it.
        blob_store: Where blobs go whose storage account `azure_endpoints` does not name: a folder, or
            `s3://BUCKET[/PREFIX]`. Empty: `redrive-blobs`, beside the SQLite file or in the current directory.
        azure_endpoints: What stands behind the resource ids of destinations, `NAME=VALUE` with spaces between them:
            an id, or the name of a storage account or a namespace; its URL or connection string.
        aws_endpoints: Which servers invoke functions and fill delivery streams, `NAME=VALUE` with spaces between them:
            `lambda`, `firehose` or an ARN; a URL, or `aws` for Amazon's own. Without an entry nothing is delivered.
        push_endpoints: Where mobile push services are that are not where they usually are, `NAME=URL` with spaces
            between them: `apns`, `apns_sandbox`, `fcm`, `google_oauth`, `adm`, `adm_oauth`.
        log_level: `debug`, `info`, `warning` or `error`.
    """

    host: str = "127.0.0.1"
    port: int = 4566
    store: str = "sqlite:///redrive.db"
    clock: str = "system"
    auth: str = "off"
    tls: str = "off"
    tls_cert: str = ""
    tls_key: str = ""
    public_url: str = ""
    region: str = "us-east-1"
    allow_reset: bool = False
    fifo_quotas: bool = False
    filter_policies_max: int = 200
    forbid_private_endpoints: bool = False
    client_errors_count_as_delivered: bool = False
    endpoint_ca_file: str = ""
    smtp_host: str = ""
    smtp_port: int = 25
    smtp_sender: str = "redrive@localhost"
    smtp_user: str = ""
    smtp_password: str = ""
    smtp_starttls: bool = False
    sms_gateway: str = ""
    sms_part_price: str = "0"
    blob_store: str = ""
    azure_endpoints: str = ""
    aws_endpoints: str = ""
    push_endpoints: str = ""
    log_level: str = "info"

    def __post_init__(self) -> None:
        _one_of("clock", self.clock, ("system", "simulated"))
        _one_of("auth", self.auth, ("off", "required"))
        _one_of("tls", self.tls, ("off", "auto"))
        _one_of("log_level", self.log_level, ("debug", "info", "warning", "error"))
        if bool(self.tls_cert) != bool(self.tls_key):
            raise SettingsInvalid("tls_cert and tls_key go together")
        if not 0 <= self.port <= 65_535:  # noqa: PLR2004 - the largest port there is
            raise SettingsInvalid(f"port {self.port} is not a port")
        if self.auth == "off" and not is_loopback(self.host):
            raise SettingsInvalid(
                f"listening on {self.host} needs --auth required: without it anybody who reaches the port is believed"
            )
        _check_store(self.store)
        if "://" in self.blob_store and not self.blob_store.startswith(("file:///", "s3://")):
            raise SettingsInvalid(f"blob_store {self.blob_store} is neither a folder nor s3://")
        if self.sms_gateway:
            _check_gateway(self.sms_gateway)
        if not _PRICE.fullmatch(self.sms_part_price):
            raise SettingsInvalid(f"sms_part_price {self.sms_part_price} is not a price, as 0.05")
        read_addresses(self.azure_endpoints)
        read_push_endpoints(self.push_endpoints)
        read_aws_endpoints(self.aws_endpoints)


def _check_store(url: str) -> None:
    if url.startswith("sqlite://"):
        file = url.removeprefix("sqlite://").removeprefix("/")
        if not file:
            raise SettingsInvalid(f"store {url} names no file: sqlite:///PATH")
        if file == ":memory:" and url != "sqlite://:memory:":
            raise SettingsInvalid(f"store {url} names a file; a store in memory is sqlite://:memory:")
    elif url.startswith(("postgresql://", "postgres://")):
        try:
            _ = urlsplit(url).port
        except ValueError as error:
            raise SettingsInvalid(f"store has a URL that cannot be used: {error}") from None
    else:
        raise SettingsInvalid(f"store {url} is neither sqlite:// nor postgresql://")


def _check_gateway(url: str) -> None:
    try:
        read_gateway(url)
    except ValueError as error:
        raise SettingsInvalid(f"sms_gateway {error}") from None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def read_addresses(pairs: str) -> dict[str, str]:
    """The `azure_endpoints` setting taken apart; names in lower case.

    A name ends at its first equals sign: resource ids have none, keys and connection strings do.

    Raises:
        SettingsInvalid: Something is not `NAME=VALUE`.
    """
    named = _read_pairs("azure_endpoints", pairs)
    return {name.rstrip("/").lower(): value for name, value in named}


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
            raise SettingsInvalid(f"aws_endpoints names {' and '.join(AWS_SERVICES)}, or ARNs; not {name!r}")
        if value != AWS_ITSELF and not _is_url(_PLACEHOLDER.sub("x", value)):
            raise SettingsInvalid(
                f"aws_endpoints has for {name} neither {AWS_ITSELF!r} nor an http or https URL, without underscores in"
                " its host, and without braces but {region} and {name}"
            )
    return endpoints


def read_push_endpoints(pairs: str) -> dict[str, str]:
    """The `push_endpoints` setting taken apart; URLs without a slash at their end.

    Raises:
        SettingsInvalid: Something is not `NAME=URL`, or there is no such service.
    """
    urls = {name.lower(): url.rstrip("/") for name, url in _read_pairs("push_endpoints", pairs)}
    for name, url in urls.items():
        _one_of("a name in push_endpoints", name, PUSH_SERVICES)
        if not _is_url(url):
            raise SettingsInvalid(f"push_endpoints has for {name} no http or https URL")
    return urls


def _read_pairs(setting: str, pairs: str) -> Iterator[tuple[str, str]]:
    """Names and values; a complaint ends before the value, which may be a secret."""
    for pair in pairs.split():
        name, _, value = pair.partition("=")
        if not name or not value:
            raise SettingsInvalid(f"{setting} has NAME=VALUE pairs; {name!r} has no name or no value")
        yield name, value


def _is_url(value: str) -> bool:
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
    """What stands behind a resource id, by the nearest entry; None: the settings do not say.

    Nearest is the id itself, then those of the resources it is within, then the bare name of the outermost one: the
    connection string of a namespace or a storage account serves all its queues.

    Args:
        addresses: As `read_addresses` gives them.
        resource: `/subscriptions/…/resourceGroups/…/providers/{provider}/{type}/{name}[/{type}/{name} …]`.
    """
    parts = resource.rstrip("/").lower().split("/")
    for end in range(len(parts), _OUTERMOST_PARTS - 1, -2):
        found = addresses.get("/".join(parts[:end]))
        if found is not None:
            return found
    return addresses.get(parts[_OUTERMOST_PARTS - 1]) if len(parts) >= _OUTERMOST_PARTS else None


def aws_endpoint_of(endpoints: Mapping[str, str], arn: str) -> str | None:
    """Which server has a function or a stream, by the nearest entry; None: the settings do not say.

    Nearest is the ARN itself, then that of the function without its version or alias, then the service.

    Args:
        endpoints: As `read_aws_endpoints` gives them.
        arn: `arn:…:lambda:REGION:ACCOUNT:function:NAME[:QUALIFIER]`, or of any other resource.
    """
    parts = arn.split(":")
    unqualified = ":".join(parts[:_FUNCTION_PARTS])
    return endpoints.get(arn) or endpoints.get(unqualified) or endpoints.get(parts[2])


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise SettingsInvalid(f"{name} is one of {', '.join(allowed)}, not {value!r}")


@dataclass(frozen=True, slots=True)
class Origin:
    """A setting's value and where it came from."""

    name: str
    value: str | int | bool
    source: str


ENVIRONMENT_PREFIX = "REDRIVE_"


def read_settings(
    flags: Mapping[str, Any], environment: Mapping[str, str], file: Path | None
) -> tuple[Settings, list[Origin]]:
    """Put the settings together; a flag wins over the environment, that over the file, that over the default.

    Args:
        flags: By setting name; None for a flag that was not given.
        environment: `REDRIVE_PORT=5000`.
        file: TOML, a setting a line.

    Raises:
        SettingsInvalid: Something is unknown or unusable.
    """
    from_file = _read_file(file)
    values: dict[str, Any] = {}
    origins: list[Origin] = []
    for field in fields(Settings):
        variable = ENVIRONMENT_PREFIX + field.name.upper()
        if flags.get(field.name) is not None:
            value, source = flags[field.name], "flag"
        elif variable in environment:
            value, source = environment[variable], f"environment ({variable})"
        elif field.name in from_file:
            value, source = from_file[field.name], f"file ({file})"
        else:
            value, source = field.default, "default"
        values[field.name] = _typed(field.name, value, type(field.default))
        origins.append(Origin(field.name, values[field.name], source))
    return Settings(**values), origins


def _read_file(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        values = tomllib.loads(file.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise SettingsInvalid(f"cannot read {file}: {error}") from None
    unknown = values.keys() - {field.name for field in fields(Settings)}
    if unknown:
        raise SettingsInvalid(f"{file} has unknown settings: {', '.join(sorted(unknown))}")
    return values


def _typed(name: str, value: object, wanted: type) -> str | int | bool:
    text = str(value)
    if wanted is bool:
        if text.lower() not in ("true", "false", "1", "0"):
            raise SettingsInvalid(f"{name} is true or false, not {text!r}")
        return text.lower() in ("true", "1")
    if wanted is int:
        if not text.isdigit():
            raise SettingsInvalid(f"{name} is a number, not {text!r}")
        return int(text)
    return (
        " ".join(f"{key}={_unspaced(item)}" for key, item in value.items())
        if isinstance(value, dict)
        else text
    )


def _unspaced(value: object) -> str:
    """A value within a table."""
    text = str(value)
    if not text or any(character.isspace() for character in text):
        raise SettingsInvalid("a value in a table is empty or has a space in it")
    return text
