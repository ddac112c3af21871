"""`redrive queues`: the queues of an account's region, and how many messages each has."""

import argparse

from redrive.cli.client import Client, add_server, asking
from redrive.cli.listing import Entry, Listing, add_listing


def register(command: argparse.ArgumentParser) -> None:
    """Add its options."""
    command.add_argument("prefix", nargs="?", default="", help="only names that begin with this")
    add_listing(command, "NAME")
    add_server(command)
    command.set_defaults(run=asking(_run))


def _run(client: Client, parsed: argparse.Namespace) -> int:
    nothing = f"there are no queues{f' whose names begin with {parsed.prefix}' if parsed.prefix else ''}"
    listing = Listing("/_redrive/queues", "queues", lambda queue: queue["queue"], _show, nothing)
    return listing.run(client, parsed, prefix=parsed.prefix)


def _show(queues: list[Entry]) -> None:
    print(f"{'queue':40} {'available':>10} {'in flight':>10} {'delayed':>8}  dead letters to")
    for queue in queues:
        letters = queue["dead_letter_queue"]
        target = f"{letters} after {queue['receives_max']}" if letters else "-"
        print(
            f"{queue['queue']:40} {queue['available']:>10} {queue['in_flight']:>10} {queue['delayed']:>8}  {target}"
        )
