"""`redrive completion`: a script that lets a shell complete the command line."""

import argparse

import shtab

from redrive.cli.main import parser


def register(command: argparse.ArgumentParser) -> None:
    """Add its options; the script is written for the whole command line."""
    command.description = (
        'Print a script that lets a shell complete the command line: eval "$(redrive completion bash)".'
    )
    command.add_argument("shell", choices=shtab.SUPPORTED_SHELLS)
    command.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Print the script."""
    print(shtab.complete(parser(), parsed.shell))
    return 0
