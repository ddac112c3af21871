"""`redrive`: one file a command, each with `register` and `run`."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, Final

from redrive import __version__
from redrive.cli.command_line import CommandLine
from redrive.cli.terminal import CommandFailed, note
from redrive.model.errors import StoreUnavailable
from redrive.settings import SettingsInvalid

# As if by the signals SIGINT and SIGPIPE: what a shell makes of a program that ends by one.
_INTERRUPTED: Final = 130
_NOBODY_READS: Final = 141

#: Modules of this package, each with `register`. The one that is asked for is imported: what commands bring along to ask
#: servers and to draw on terminals (botocore, rich) would be a third of a server's start.
COMMANDS: Final = (
    "serve",
    "demo",
    "console",
    "queues",
    "topics",
    "trace",
    "dlq",
    "endpoints",
    "schedule",
    "keys",
    "store",
    "config",
    "doctor",
    "completion",
)


def parser(command: str = "") -> CommandLine:
    """The command line of a command, or the whole where there is none of that name."""
    top = CommandLine(
        prog="redrive",
        description="Durable event delivery that you run yourself: SQS, SNS and Event Grid on one engine, nothing lost.",
    )
    top.add_argument("--version", action="version", version=f"redrive {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in (command,) if command in COMMANDS else COMMANDS:
        importlib.import_module(f"redrive.cli.{name}").register(commands)
    return top


def main(arguments: Sequence[str] | None = None, worker: Any = None) -> int:
    """Run a command; its exit status.

    Args:
        arguments: The command line; None: this process's.
        worker: What `serve` has where it is one of several processes.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    top = parser(words[0] if words else "")
    if not words:
        top.print_help()
        return 2
    parsed, unknown = top.parse_known_args(words, argparse.Namespace(words=words, worker=worker))
    top.refuse_unknown(unknown)
    try:
        status: int = parsed.run(parsed)
        sys.stdout.flush()  # here, where it is known what to do if nobody reads it
    except BrokenPipeError:  # `redrive dlq list … | head`: whoever read had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
        return _NOBODY_READS
    except KeyboardInterrupt:
        return _INTERRUPTED
    except SettingsInvalid as error:
        note(str(error))
        return 2
    except (CommandFailed, StoreUnavailable) as error:
        note(str(error))
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
