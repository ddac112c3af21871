"""`redrive queues` and `redrive topics`: what an account has in a region, and how many messages wait in each."""

import argparse
from collections.abc import Callable

from redrive.cli.client import Client, Entry, Listing, add_listing, add_server, with_client
from redrive.cli.terminal import many


def register_queues(command: argparse.ArgumentParser) -> None:
    """Add the options of `redrive queues`."""
    _register(command, "queue", _show_queues)


def register_topics(command: argparse.ArgumentParser) -> None:
    """Add the options of `redrive topics`."""
    _register(command, "topic", _show_topics)


def _register(command: argparse.ArgumentParser, kind: str, show: Callable[[list[Entry]], None]) -> None:
    """Add the options of a listing of `queue`s or `topic`s; `show` prints its entries."""
    command.add_argument("prefix", nargs="?", default="", help="only names that begin with this")
    add_listing(command, "NAME")
    add_server(command)

    def run(client: Client, parsed: argparse.Namespace) -> int:
        beginning = f" whose names begin with {parsed.prefix}" if parsed.prefix else ""
        nothing = f"there are no {kind}s{beginning}"
        listing = Listing(f"/_redrive/{kind}s", f"{kind}s", lambda entry: entry[kind], show, nothing)
        return listing.run(client, parsed, prefix=parsed.prefix)

    command.set_defaults(run=with_client(run))


def _show_queues(queues: list[Entry]) -> None:
    print(f"{'queue':40} {'available':>10} {'in flight':>10} {'delayed':>8}  dead letters to")
    for queue in queues:
        letters = queue["dead_letter_queue"]
        target = f"{letters} after {queue['receives_max']}" if letters else "-"
        print(
            f"{queue['queue']:40} {queue['available']:>10} {queue['in_flight']:>10} {queue['delayed']:>8}  {target}"
        )


def _show_topics(topics: list[Entry]) -> None:
    for topic in topics:
        subscriptions = topic["subscriptions"]
        number = f"{len(subscriptions)}{'+' if topic['more_subscriptions'] else ''}"
        print(f"{topic['topic']:40} {number:>8} {many(len(subscriptions), 'subscription')}")
        for subscription in subscriptions:
            print(f"    {_line(subscription)}")


def _line(subscription: Entry) -> str:
    """A subscription in one line."""
    parts = [subscription["id"], subscription["protocol"], subscription["endpoint"]]
    parts.append(f"{subscription['owed']} waiting" if subscription["confirmed"] else "not confirmed")
    if subscription["dead_letter_queue"]:
        parts.append(f"dead letters to {subscription['dead_letter_queue']}")
    return "  ".join(parts)
