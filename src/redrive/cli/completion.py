"""`redrive completion`: a script that lets a shell complete the command line."""

import argparse
from collections.abc import Callable
from typing import Any

import shtab


def register(
    commands: "argparse._SubParsersAction[Any]", parser: Callable[[], argparse.ArgumentParser]
) -> None:
    """Add the command, which writes the script for all that `parser` takes."""
    command = commands.add_parser(
        "completion",
        help="print a script that lets a shell complete commands and options",
        description='Print a script that lets a shell complete the command line: eval "$(redrive completion bash)".',
    )
    command.add_argument("shell", choices=shtab.SUPPORTED_SHELLS)
    command.set_defaults(run=lambda parsed: _run(parser(), parsed.shell))


def _run(parser: argparse.ArgumentParser, shell: str) -> int:
    print(shtab.complete(parser, shell))
    return 0
