"""`redrive serve`: start the server."""

import argparse
from typing import Any

from redrive.cli import log_format
from redrive.cli.options import add_settings, settings_of
from redrive.cli.terminal import CommandFailed


def register(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the command."""
    command = commands.add_parser("serve", help="start the server", description="Start the server.")
    add_settings(command)
    command.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT."""
    from redrive.app import serve  # noqa: PLC0415 - 200 ms of imports that the other commands do not need
    from redrive.server.tls import CertificateUnusable  # noqa: PLC0415 - likewise

    settings, origins = settings_of(parsed)
    log_format.set_up(settings.log_level, settings.log_format)
    try:
        serve(settings, ready, origins)
    except CertificateUnusable as error:
        raise CommandFailed(str(error)) from None
    except OSError as error:
        raise CommandFailed(f"cannot serve on {settings.host}:{settings.port}: {error}") from None
    return 0


def ready(url: str) -> None:
    """Say that requests are accepted; scripts wait for this line."""
    print(f"Redrive ready on {url}", flush=True)
