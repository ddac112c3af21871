"""Output of commands on a terminal: moments, counts, notes beside a list, and failures."""

import argparse
import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


class CommandFailed(Exception):  # noqa: N818 - a message for the user
    """A command could not do its work; the message says why, and ends it with status 1."""


def note(text: str) -> None:
    """Say something beside the output, so that a program that reads the output does not read it."""
    print(f"redrive: {text}", file=sys.stderr)


def add_json(command: argparse.ArgumentParser) -> None:
    """Let a command's output be printed for programs."""
    command.add_argument("--json", action="store_true", help="print JSON")


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document for programs: JSON, indented, as the control route behind the command answers it."""
    print(json.dumps(document, indent=2, ensure_ascii=False))


def moment(moment_ms: int) -> str:
    """A moment as a terminal shows it, in UTC."""
    return f"{datetime.fromtimestamp(moment_ms / 1000, UTC):%Y-%m-%d %H:%M:%SZ}"


def many(number: int, word: str) -> str:
    """The word for a count of things: `row` for one, `rows` for others."""
    return word if number == 1 else f"{word}s"


def printable(text: str) -> str:
    """Somebody else's text with blanks for what a terminal would obey; line breaks and tabs stay."""
    return "".join(each if each.isprintable() or each in "\n\t" else " " for each in text)


def shorten(text: str, chars_max: int = 60) -> str:
    """The printable text on one line of at most so many characters."""
    line = " ".join(printable(text).split())
    return line if len(line) <= chars_max else line[: chars_max - 1] + "…"
