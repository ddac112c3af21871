"""`redrive completion`: a script that lets a shell complete the command line."""

import argparse
from typing import Any

import shtab

from redrive.cli.main import parser


def register(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the command, which writes the script for the whole command line."""
    command = commands.add_parser(
        "completion",
        help="print a script that lets a shell complete commands and options",
        description='Print a script that lets a shell complete the command line: eval "$(redrive completion bash)".',
    )
    command.add_argument("shell", choices=shtab.SUPPORTED_SHELLS)
    command.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Print the script."""
    print(shtab.complete(parser(), parsed.shell))
    return 0
