"""The options that name settings, the same for every command."""

import argparse
import os
from collections.abc import Iterator, Mapping
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from redrive.cli.terminal import note
from redrive.settings import ENVIRONMENT_PREFIX, Origin, Settings, read_settings

_CONFIG_VARIABLE: Final = "REDRIVE_CONFIG"
# Variables that are no settings of a server: of commands that ask one, and of Redrive's own tests.
_OTHER_VARIABLES: Final = frozenset({_CONFIG_VARIABLE, "REDRIVE_URL"})
_TEST_PREFIX: Final = "REDRIVE_TEST"

HELP = {
    "host": "address to listen on",
    "port": "port to listen on, 0 for any free one",
    "store": "sqlite:///PATH, sqlite://:memory: or postgresql://…",
    "clock": "system, or simulated: time passes by POST /_redrive/clock alone",
    "auth": "off (loopback only) or required",
    "tls": "off, or auto: make a local certificate authority",
    "tls_cert": "certificate file (PEM)",
    "tls_key": "key file (PEM)",
    "public_url": "what URLs in answers begin with",
    "region": "region of requests that name none",
    "allow_reset": "let POST /_redrive/reset remove everything",
    "fifo_quotas": "enforce the documented throughput of FIFO queues",
    "filter_policies_max": "how many filter policies an SNS topic may have",
    "forbid_private_endpoints": "push nothing to private, loopback and link-local addresses",
    "client_errors_count_as_delivered": "a 4xx that is not retried ends a delivery as done",
    "endpoint_ca_file": "certificates (PEM) that endpoints may show besides the system's",
    "smtp_host": "mail relay; without one, mail cannot be delivered",
    "smtp_port": "its port",
    "smtp_sender": "address that mail comes from",
    "smtp_user": "whom to log in as at the relay",
    "smtp_password": "its password; better in the environment than on a command line",
    "smtp_starttls": "encrypt the connection to the relay, or send nothing",
    "sms_gateway": "smpp://USER:PASSWORD@HOST:PORT or smpps://…: takes text messages; without one, there are none",
    "sms_part_price": "what each part of a text message costs, in USD",
    "blob_store": "folder or s3:// URL for blobs of storage accounts that azure_endpoints does not name",
    "azure_endpoints": "NAME=VALUE pairs: what stands behind resource ids; better in the file",
    "aws_endpoints": "NAME=URL pairs: which servers invoke functions (lambda=…) and fill streams (firehose=…)",
    "push_endpoints": "NAME=URL pairs: where mobile push services are, if not where they usually are",
    "log_level": "debug, info, warning or error",
}


def add_settings(command: argparse.ArgumentParser, names: frozenset[str] | None = None) -> None:
    """Let a command take these settings as flags, or all of them."""
    command.add_argument(
        "--config", type=Path, metavar="FILE", help=f"settings in a TOML file ({_CONFIG_VARIABLE})"
    )
    for field in fields(Settings):
        if names is not None and field.name not in names:
            continue
        flag = "--" + field.name.replace("_", "-")
        origin = _variable(field.name)
        if isinstance(field.default, bool):
            shown = f"{HELP[field.name]} ({origin})"
            command.add_argument(flag, action="store_const", const=True, help=shown)
        else:
            origin += f", default: {field.default}" if field.default else ""
            shown = f"{HELP[field.name]} ({origin})"
            command.add_argument(flag, metavar=field.name.rpartition("_")[2].upper(), help=shown)


def settings_of(parsed: argparse.Namespace) -> tuple[Settings, list[Origin]]:
    """The settings that a parsed command line, the environment and its file make together.

    Variables that look like settings and are none are told of: nothing else says that they have no effect.
    """
    for warning in _unknown(os.environ):
        note(warning)
    named = os.environ.get(_CONFIG_VARIABLE)
    return read_settings(vars(parsed), os.environ, parsed.config or (Path(named) if named else None))


def _unknown(environment: Mapping[str, str]) -> Iterator[str]:
    known = {_variable(field.name) for field in fields(Settings)} | _OTHER_VARIABLES
    for name in sorted(environment.keys() - known):
        if name.startswith(ENVIRONMENT_PREFIX) and not name.startswith(_TEST_PREFIX):
            near = get_close_matches(name, known, n=1)
            yield f"warning: {name} names no setting" + (f"; is {near[0]} meant?" if near else "")


def _variable(setting: str) -> str:
    return ENVIRONMENT_PREFIX + setting.upper()
