"""`redrive config`: print the settings, and where each comes from."""

import argparse
from typing import Any, Final
from urllib.parse import urlsplit

from redrive.cli.options import add_settings, settings_of
from redrive.settings import Origin

_SECRETS: Final = frozenset({"aws_endpoints", "azure_endpoints", "smtp_password"})


def register(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the command."""
    command = commands.add_parser(
        "config",
        help="print the settings and where each comes from",
        description="Print the settings that serve would use, and where each comes from.",
    )
    add_settings(command)
    command.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Print a line a setting."""
    _, origins = settings_of(parsed)
    for origin in origins:
        print(f"{origin.name:12} {_shown(origin):32} {origin.source}")
    return 0


def _shown(origin: Origin) -> str:
    """A setting as a terminal may show it: passwords and keys as stars."""
    value = str(origin.value)
    if isinstance(origin.value, bool):
        return value.lower()
    if origin.name in _SECRETS:
        return "***" if value else ""
    password = urlsplit(value).password if origin.name in ("store", "sms_gateway") else None
    return value.replace(f":{password}@", ":***@") if password else value
