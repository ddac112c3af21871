"""The table of settings: a row has the name, the type, the default, the help and the check of one setting."""

import re
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, TypeVar, cast
from urllib.parse import urlsplit

from redrive.endpoints.sms.gateway import MEMORY, read_gateway
from redrive.settings.values import (
    SettingsInvalid,
    hosts_of,
    is_loopback,
    read_addresses,
    read_aws_endpoints,
    read_hosts,
    read_networks,
    read_push_endpoints,
)

T = TypeVar("T", str, int, bool)

_ROW: Final = "row"
_PORT_MAX: Final = 65_535
_ENVIRONMENT_CHARS_MAX: Final = 20
_WORKERS_MAX: Final = 64  # each has five connections to the database
_PRICE: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_TOKEN: Final = re.compile(r"[!-~]{16,256}")  # shorter ones can be guessed
_PASSWORD: Final = re.compile(r"(?<=://)([^:/@\s]*):\S*@")
_PASSWORD_OPTION: Final = re.compile(r"(?<=[?&]password=)[^&\s]*")


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A row of the table, besides the name, the type and the default, which are the field's."""

    help: str  # Help text on the command line
    choices: tuple[str, ...] = ()  # Every value it can have; empty: any of its type
    # Raises ValueError, with what is wrong behind the setting's name; SettingsInvalid says all of it.
    check: Callable[[Any], object] | None = None
    mask: Callable[[str], str] | None = None  # Masks secrets in a value

    def masked(self, value: str | int | bool) -> str:  # noqa: FBT001 - a setting's value, of any type
        """A value as a terminal or a log may show it."""
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return text if self.mask is None else self.mask(text)


def row_of(setting: "Field[Any]") -> SettingRow:
    """The rest of a setting's row."""
    return cast("SettingRow", setting.metadata[_ROW])


def _setting(
    default: T,
    help_text: str,
    *,
    choices: tuple[str, ...] = (),
    check: Callable[[T], object] | None = None,
    mask: Callable[[str], str] | None = None,
) -> T:
    return field(default=default, metadata={_ROW: SettingRow(help_text, choices, check, mask)})


def _switch(help_text: str) -> bool:
    return _setting(default=False, help_text=help_text)


# ---- checks and masks, by what a value is ----------------------------------------------------------------------------


def _check_port(port: int) -> None:
    if not 0 <= port <= _PORT_MAX:
        raise SettingsInvalid(f"port must be 0 to 65535, not {port}")


def _check_environment(name: str) -> None:
    if len(name) > _ENVIRONMENT_CHARS_MAX or not name.isprintable():
        raise SettingsInvalid(f"environment must be a name of at most {_ENVIRONMENT_CHARS_MAX} characters")


def _check_workers(workers: int) -> None:
    if not 1 <= workers <= _WORKERS_MAX:
        raise SettingsInvalid(f"workers must be 1 to {_WORKERS_MAX}, not {workers}")


def _check_store(url: str) -> None:
    """Refuse a URL that is of neither kind of store."""
    if url.startswith("sqlite://"):
        file = url.removeprefix("sqlite://").removeprefix("/")
        if not file:
            raise ValueError(f"{url} names no file: sqlite:///PATH")
        if file == ":memory:" and url != "sqlite://:memory:":
            raise ValueError(f"{url} names a file; a store in memory is sqlite://:memory:")
    elif url.startswith(("postgresql://", "postgres://")):
        hosts_of(url)
    else:
        raise ValueError(f"must begin with sqlite:// or postgresql://, not {url}")


def _check_blob_store(store: str) -> None:
    if "://" in store and not store.startswith(("file:///", "s3://")):
        raise ValueError(f"must be a folder or begin with s3://, not {store}")


def _check_price(price: str) -> None:
    if not _PRICE.fullmatch(price):
        raise ValueError(f"must be a price like 0.05, not {price}")


def _check_gateway(url: str) -> None:
    if url not in ("", MEMORY):
        read_gateway(url)


def _check_collector(url: str) -> None:
    parts = urlsplit(url)
    if url and (parts.scheme not in {"http", "https"} or not parts.hostname or parts.query):
        raise ValueError("must be the URL of a collector, like http://127.0.0.1:4318")


def _check_token(token: str) -> None:
    if token and not _TOKEN.fullmatch(token):
        raise ValueError("must have at least 16 ASCII characters, and no spaces")


def _hide(value: str) -> str:
    return "***" if value else ""


def _hide_passwords(urls: str) -> str:
    return _PASSWORD_OPTION.sub("***", _PASSWORD.sub(r"\1:***@", urls))


# ---- the table -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a server; `docs/reference/settings.md` says more of each."""

    host: str = _setting("127.0.0.1", "address to listen on")
    port: int = _setting(4566, "port to listen on, 0 for any free one", check=_check_port)
    workers: int = _setting(
        1, "number of processes that serve the address; more than one needs PostgreSQL", check=_check_workers
    )
    store: str = _setting(
        "sqlite:///redrive.db",
        "sqlite:///PATH, sqlite://:memory: or postgresql://…",
        check=_check_store,
        mask=_hide_passwords,
    )
    store_key_file: str = _setting(
        "",
        "file with the keys that encrypt configuration and secrets in the store: 32 bytes in base64, one per line",
    )
    kms_root_key: str = _setting(
        "", "file, or env:NAME, with the root keys that encrypt KMS keys: 32 bytes in base64, one per line"
    )
    clock: str = _setting(
        "system",
        "system, or simulated: time passes only by POST /_redrive/clock",
        choices=("system", "simulated"),
    )
    auth: str = _setting("off", "off (loopback only) or required", choices=("off", "required"))
    tls: str = _setting("off", "off, or auto: make a local certificate authority", choices=("off", "auto"))
    tls_cert: str = _setting("", "certificate file (PEM)")
    tls_key: str = _setting("", "key file (PEM)")
    public_url: str = _setting(
        "", "beginning of URLs in answers, if clients use another address than this server's"
    )
    allow_hosts: str = _setting(
        "", "NAME,…: further values of the Host header to accept with auth off", check=read_hosts
    )
    metrics_token: str = _setting(
        "",
        "bearer token for /_redrive/metrics; without one, only this machine may read them",
        check=_check_token,
        mask=_hide,
    )
    insecure_test_keys: bool = _switch(
        "INSECURE, for development: accept the access key test with the secret test, and short secrets"
    )
    resources: str = _setting(
        "", "files or directories (TOML, JSON) that declare queues, topics and keys, separated by colons"
    )
    init_scripts: str = _setting(
        "",
        "folder whose ready.d has programs (*.sh, *.py) that this server runs as its own user once it answers",
    )
    region: str = _setting("us-east-1", "region of requests that name none")
    allow_reset: bool = _switch("let POST /_redrive/reset and /_localstack/state/reset remove everything")
    fifo_quotas: bool = _switch("enforce the documented throughput of FIFO queues")
    queue_urls: str = _setting(
        "plain", "plain, or how queue URLs name their region: path or host", choices=("plain", "path", "host")
    )
    skip_queue_waits: bool = _switch(
        "for development: allow recreating and purging queues again within 60 seconds"
    )
    filter_policies_max: int = _setting(200, "how many filter policies an SNS topic may have")
    forbid_private_endpoints: bool = _switch(
        "never push to private, loopback and link-local addresses, even on a server for this machine alone"
    )
    allow_private_endpoints: str = _setting(
        "", "CIDR,…: private networks to which pushes are allowed nevertheless", check=read_networks
    )
    client_errors_count_as_delivered: bool = _switch("count a 4xx that is not retried as delivered")
    endpoint_ca_file: str = _setting("", "CA certificates (PEM) to trust, besides the system's, when pushing")
    smtp_host: str = _setting("", "mail relay; without one, mail cannot be delivered")
    smtp_port: int = _setting(25, "port of the mail relay")
    smtp_sender: str = _setting("redrive@localhost", "sender address of mail")
    smtp_user: str = _setting("", "user name at the mail relay")
    smtp_password: str = _setting(
        "", "password at the mail relay; safer in the environment than on a command line", mask=_hide
    )
    smtp_starttls: bool = _switch("require an encrypted connection to the mail relay")
    sms_gateway: str = _setting(
        "",
        "smpp://USER:PASSWORD@HOST:PORT or smpps://…: message centre for text messages; memory: keep them for tests",
        check=_check_gateway,
        mask=_hide_passwords,
    )
    sms_part_price: str = _setting("0", "what each part of a text message costs, in USD", check=_check_price)
    blob_store: str = _setting(
        "",
        "folder or s3:// URL for blobs of storage accounts that are not in azure_endpoints",
        check=_check_blob_store,
        mask=_hide_passwords,
    )
    azure_endpoints: str = _setting(
        "",
        "NAME=VALUE pairs: the addresses of Azure resource ids; easier to write in the file",
        check=read_addresses,
        mask=_hide,
    )
    aws_endpoints: str = _setting(
        "",
        "NAME=URL pairs: servers that invoke functions (lambda=…) and fill delivery streams (firehose=…)",
        check=read_aws_endpoints,
        mask=_hide,
    )
    functions: str = _setting(
        "auto",
        "on: run the functions that callers create, on this machine; off: refuse them; auto: on where that is safe",
        choices=("auto", "off", "on"),
    )
    functions_isolation: str = _setting(
        "none",
        "isolation of functions: none, user (one per environment; needs root) or bubblewrap",
        choices=("none", "user", "bubblewrap"),
    )
    functions_java_client: str = _setting(
        "", "folder with the jars of Lambda's runtime interface client, for functions in Java"
    )
    functions_ended_runtimes: str = _setting(
        "refuse",
        "runtimes that AWS no longer supports (python3.7, nodejs14.x …): refuse them as AWS does, or run them",
        choices=("refuse", "run"),
    )
    functions_live_folder: str = _setting(
        "", "folder below which functions may run from folders that are checked for changes before each call"
    )
    push_endpoints: str = _setting(
        "",
        "NAME=URL pairs: addresses of mobile push services, in place of the usual ones",
        check=read_push_endpoints,
        mask=_hide_passwords,
    )
    console: str = _setting(
        "full",
        "the web console: full, read-only (no changes) or off",
        choices=("full", "read-only", "off"),
    )
    docs: str = _setting("", "folder of the built documentation (.site/html), shown at /_redrive/docs/")
    console_bodies: str = _setting(
        "shown", "shown, or hidden: the console shows no message bodies", choices=("shown", "hidden")
    )
    environment: str = _setting(
        "",
        "a name that the console shows on every page, such as production; up to 20 characters",
        check=_check_environment,
    )
    log_level: str = _setting(
        "info", "debug, info, warning or error", choices=("debug", "info", "warning", "error")
    )
    log_format: str = _setting("text", "text, or json: one object per event", choices=("text", "json"))
    request_log: bool = _switch("log a line for each request, without bodies and secrets")
    otlp_endpoint: str = _setting(
        "",
        "OpenTelemetry collector (http://host:4318) to send traces and metrics to; needs the extra otlp",
        check=_check_collector,
    )

    def __post_init__(self) -> None:
        """Check each value, and refuse settings that exclude each other."""
        for setting in fields(self):
            _check(setting.name, getattr(self, setting.name), row_of(setting))
        if bool(self.tls_cert) != bool(self.tls_key):
            raise SettingsInvalid("tls_cert needs tls_key, and tls_key needs tls_cert")
        if self.workers > 1 and not self.store_is_shared:
            raise SettingsInvalid(
                f"workers = {self.workers} needs a PostgreSQL store: a SQLite store belongs to one process"
            )
        if self.workers > 1 and self.init_scripts:
            raise SettingsInvalid(
                f"workers = {self.workers} and init_scripts exclude each other: each worker would run the scripts"
            )
        if self.workers > 1 and self.clock == "simulated":
            raise SettingsInvalid(
                f"workers = {self.workers} needs the system's clock: a simulated clock belongs to one process"
            )
        if self.auth == "off" and not is_loopback(self.host):
            raise SettingsInvalid(
                f"listening on {self.host} needs --auth required: without it anyone who can reach the port is trusted"
            )

    @property
    def store_is_shared(self) -> bool:
        """True if several processes may serve from the store; a SQLite store belongs to one."""
        return not self.store.startswith("sqlite:")

    @property
    def store_file(self) -> Path | None:
        """The file of a SQLite store; None: it is in memory, or in a database."""
        if self.store_is_shared or self.store == "sqlite://:memory:":
            return None
        return Path(self.store.removeprefix("sqlite:///").removeprefix("sqlite://"))

    @property
    def blobs_at(self) -> str:
        """The place of blobs: `blob_store`, or a folder beside the SQLite file, or else where the server was started.

        What is backed up together lies together.
        """
        folder = Path() if self.store_file is None else self.store_file.parent
        return self.blob_store or str(folder / "redrive-blobs")

    @property
    def forbids_private(self) -> bool:
        """True if private addresses are refused as endpoints: any client could subscribe them."""
        return self.forbid_private_endpoints or self._is_reached_by_others

    @property
    def runs_functions(self) -> bool:
        """True if this server runs functions.

        By itself it does so on a developer's own machine, where whoever reaches it could run programs anyway, and where
        it knows its callers and keeps what they bring from its store.
        """
        if self.functions != "auto":
            return self.functions == "on"
        return not self._is_reached_by_others or (
            self.auth == "required" and self.functions_isolation != "none"
        )

    @property
    def _is_reached_by_others(self) -> bool:
        """True if others than the machine's own user reach this server.

        One on loopback that asks for signatures or has a public URL is not a developer's own: it is behind a proxy.
        """
        return self.auth == "required" or bool(self.public_url) or not is_loopback(self.host)


def _check(name: str, value: str | int | bool, row: SettingRow) -> None:  # noqa: FBT001 - a setting's value, of any type
    """Refuse a value that is not among the choices of its setting, or that its check refuses."""
    if row.choices and value not in row.choices:
        raise SettingsInvalid(f"{name} must be one of {', '.join(row.choices)}, not {value!r}")
    if row.check is not None:
        try:
            row.check(value)
        except ValueError as error:
            raise SettingsInvalid(f"{name} {error}") from None
