"""Listings: how commands ask for them page by page, and print them for people or for programs."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from redrive.cli.client import Client
from redrive.cli.terminal import note, print_json

PAGE_MAX: Final = 1000  # entries that the server shows at once

Entry = dict[str, Any]


def add_listing(command: argparse.ArgumentParser, after: str) -> None:
    """Let a listing be cut into pages and be printed for programs; `after` is what its entries are known by."""
    command.add_argument(
        "--limit", type=int, default=100, metavar="N", help="maximum number of entries (default: 100)"
    )
    command.add_argument("--after", default="", metavar=after, help="start after this entry")
    add_json(command)


def add_json(command: argparse.ArgumentParser) -> None:
    """Let a command's output be printed for programs."""
    command.add_argument("--json", action="store_true", help="print the answer as JSON")


@dataclass(frozen=True, slots=True)
class Listing:
    """A listing that the server has."""

    path: str  # Its route
    member: str  # The member of the answer that has the entries
    key: Callable[[Entry], object]  # What an entry is known by, for the page after it
    show: Callable[[list[Entry]], None]  # Prints entries for people
    nothing: str  # What is said where there are none

    def run(self, client: Client, parsed: argparse.Namespace, **parameters: Any) -> int:
        """Ask for as many of the server's pages as it takes, and print what they have.

        Args:
            client: Asks.
            parsed: After which entry, at most how many, and whether as JSON.
            parameters: Others of the route.

        Raises:
            CommandFailed: The server refused, or did not answer as Redrive does.
        """
        entries: list[Entry] = []
        after, more = parsed.after, True
        while more and (len(entries) < parsed.limit or not entries):
            position = {"after": after} if after else {}
            limit = min(PAGE_MAX, parsed.limit - len(entries))
            page = client.get(self.path, limit=limit, **position, **parameters)
            entries += page[self.member]
            after = self.key(entries[-1]) if entries else after
            more = page["more"]
        if parsed.json:
            print_json({self.member: entries, "more": more})
            return 0
        if entries:
            self.show(entries)
        else:
            note(self.nothing)
        if more:
            note(f"there are more: --after {after}")
        return 0
