"""`redrive env`: lines that point a shell at a server, and keep its commands from the real AWS."""

import argparse
import os
import re
import shlex
from typing import Final

from redrive.cli.client import add_region, add_url
from redrive.server.client_environment import client_variables, misleading_variables

_ACCOUNT: Final = re.compile(r"\d{12}")
# Version 1 of the AWS CLI ignores AWS_ENDPOINT_URL for SQS, and version 2 reads it since 2.13 only.
_FUNCTION: Final = 'aws() { command aws --endpoint-url "$AWS_ENDPOINT_URL" "$@"; }'


def register(command: argparse.ArgumentParser) -> None:
    """Add its options."""
    command.description = (
        "Print lines that point a shell at a server, and keep its commands from the real AWS:"
        ' eval "$(redrive env)".'
    )
    add_url(command)
    add_region(command)
    command.add_argument(
        "--account", type=_account, default="000000000000", help="12 digits (default: 000000000000)"
    )
    command.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Print the lines, for any shell that follows POSIX."""
    variables = client_variables(os.environ, parsed.url, parsed.region, parsed.account)
    for name in misleading_variables(os.environ, variables):
        print(f"unset {name}")
    for name, value in variables.items():
        print(f"export {name}={shlex.quote(value)}")
    print(_FUNCTION)
    return 0


def _account(text: str) -> str:
    if not _ACCOUNT.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not an account: 12 digits")
    return text
