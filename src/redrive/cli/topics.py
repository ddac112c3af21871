"""`redrive topics`: the topics of an account's region, their subscriptions, and how many deliveries wait for each."""

import argparse

from redrive.cli.client import Client, add_server, asking
from redrive.cli.listing import Entry, Listing, add_listing
from redrive.cli.terminal import many


def register(command: argparse.ArgumentParser) -> None:
    """Add its options."""
    command.add_argument("prefix", nargs="?", default="", help="only names that begin with this")
    add_listing(command, "NAME")
    add_server(command)
    command.set_defaults(run=asking(_run))


def _run(client: Client, parsed: argparse.Namespace) -> int:
    nothing = f"there are no topics{f' whose names begin with {parsed.prefix}' if parsed.prefix else ''}"
    listing = Listing("/_redrive/topics", "topics", lambda topic: topic["topic"], _show, nothing)
    return listing.run(client, parsed, prefix=parsed.prefix)


def _show(topics: list[Entry]) -> None:
    for topic in topics:
        subscriptions = topic["subscriptions"]
        number = f"{len(subscriptions)}{'+' if topic['more_subscriptions'] else ''}"
        print(f"{topic['topic']:40} {number:>8} {many(len(subscriptions), 'subscription')}")
        for subscription in subscriptions:
            print(f"    {_line(subscription)}")


def _line(subscription: Entry) -> str:
    parts = [subscription["id"], subscription["protocol"], subscription["endpoint"]]
    parts.append(f"{subscription['owed']} waiting" if subscription["confirmed"] else "not confirmed")
    if subscription["dead_letter_queue"]:
        parts.append(f"dead letters to {subscription['dead_letter_queue']}")
    return "  ".join(parts)
