"""`redrive`: the command line, whose commands have their options and their work in the modules beside this one."""

import argparse
import difflib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, NoReturn

from typing_extensions import override

import redrive
from redrive.cli.terminal import CommandFailed, note
from redrive.model.errors import StoreUnavailable
from redrive.settings import SettingsInvalid

# The command line's parser: a mistake is told in one line, with the option that was probably meant.

_USAGE_ERROR = 2  # as argparse and most shells' commands have it


class CommandLine(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage of all options before it."""

    @override
    def error(self, message: str) -> NoReturn:
        note(f"{message} (see {self.prog} --help)")
        sys.exit(_USAGE_ERROR)

    def refuse_unknown(self, unknown: list[str]) -> NoReturn:
        """End with status 2: this command does not know these words. An option that is spelled similarly is suggested."""
        word = unknown[0].partition("=")[0]
        if not word.startswith("-"):
            self.error(f"unexpected argument {word}")
        similar = difflib.get_close_matches(word, self._option_string_actions, n=1)
        self.error(f"unknown option {word}" + (f"; did you mean {similar[0]}?" if similar else ""))

    def command_of(self, words: Sequence[str]) -> "CommandLine":
        """The innermost command that a command line names, such as `redrive store backup`."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - argparse has no other way to walk its commands
                for number, word in enumerate(words):
                    if word in action.choices:
                        command: CommandLine = action.choices[word]
                        return command.command_of(words[number + 1 :])
        return self


# As if by the signals SIGINT and SIGPIPE: what a shell makes of a program that ends by one.
_INTERRUPTED: Final = 130
_NOBODY_READS: Final = 141


class Command(NamedTuple):
    """A command: its help, and the function that adds its options."""

    module: str  # Module of this package
    help: str
    register: str = "register"


COMMANDS: Final = {
    "serve": Command("serve", "start the server"),
    "demo": Command(
        "demo", "run the demo: orders are published, fail, are retried, dead-lettered and redriven"
    ),
    "console": Command("console", "print the address of the web console, or a link that signs in"),
    "queues": Command("resources", "list queues and their message counts", "register_queues"),
    "topics": Command(
        "resources",
        "list topics, their subscriptions and how many deliveries wait for each",
        "register_topics",
    ),
    "trace": Command("trace", "show where the deliveries of a message are, and how their attempts ended"),
    "dlq": Command("dlq", "list, show and redrive dead letters"),
    "endpoints": Command("endpoints", "show the state of endpoints, and close circuit breakers"),
    "schedule": Command("schedule", "show when failed deliveries are retried"),
    "keys": Command("keys", "create, list and delete access keys"),
    "store": Command("store", "back up, verify or migrate a store, or spread it over a cluster"),
    "env": Command("env", "print shell variables that direct AWS tools to a server instead of AWS"),
    "config": Command("settings", "print the settings and the origin of each", "register_config"),
    "doctor": Command(
        "settings",
        "check for settings that expose the server, and whether the store is healthy",
        "register_doctor",
    ),
    "completion": Command("completion", "print a script that lets a shell complete commands and options"),
}


def parser(command: str | None = None) -> CommandLine:
    """The command line; the module of `command` alone is imported and adds its options (None: all modules do).

    What commands bring along (a server, botocore, rich) would be a third of a server's start.
    """
    top = CommandLine(
        prog="redrive",
        description="Durable event delivery that you run yourself: SQS, SNS and Event Grid on one engine, nothing lost.",
    )
    top.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, help_text, register) in COMMANDS.items():
        subparser = commands.add_parser(name, help=help_text)
        if command in (name, None):
            getattr(importlib.import_module(f"redrive.cli.{module}"), register)(subparser)
    return top


class _Version(argparse.Action):
    """As argparse's own, but the version is read only where it is asked for."""

    @override
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"redrive {redrive.__version__}")
        parser.exit()


def main(arguments: Sequence[str] | None = None, worker: Any = None) -> int:
    """Run a command; returns its exit status. One of several processes that serve is a `worker`."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    top = parser(next((word for word in words if not word.startswith("-")), ""))
    if not words:
        top.print_help()
        return 2
    parsed, unknown = top.parse_known_args(words, argparse.Namespace(words=words, worker=worker))
    if unknown:
        top.command_of(words).refuse_unknown(unknown)
    try:
        status: int = parsed.run(parsed)
        sys.stdout.flush()  # here, where a closed pipe is handled
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
