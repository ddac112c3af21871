"""`redrive dlq`: see what is in dead-letter queues and why; `redriving` has the commands that send it back."""

import argparse
from typing import Final

from redrive.cli import mending, redriving
from redrive.cli.client import Client, add_server, asking
from redrive.cli.listing import Entry, Listing, add_json, add_listing
from redrive.cli.terminal import CommandFailed, many, moment, note, print_json, shortened

_REASON_WIDTH: Final = 17  # of the longest, name_not_resolved
_QUEUE_HELP: Final = "its name, ARN or URL"


def register(command: argparse.ArgumentParser) -> None:
    """Add its own commands."""
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    queues = actions.add_parser("queues", help="list dead-letter queues and their sources")
    queues.add_argument("prefix", nargs="?", default="", help="only names that begin with this")
    add_json(queues)
    queues.set_defaults(run=asking(_queues))
    listing = actions.add_parser("list", help="list the dead letters of a queue")
    listing.add_argument("queue", help=_QUEUE_HELP)
    add_listing(listing, "ID")
    listing.set_defaults(run=asking(_list))
    show = actions.add_parser("show", help="show one dead letter: body, origin and attempts")
    show.add_argument("queue", help=_QUEUE_HELP)
    show.add_argument("id", type=int, nargs="?", help="its id (default: the oldest)")
    add_json(show)
    show.set_defaults(run=asking(_show))
    for action in (queues, listing, show, *redriving.register(actions), *mending.register(actions)):
        add_server(action)


def _queues(client: Client, parsed: argparse.Namespace) -> int:
    answer = client.get("/_redrive/dead-letter-queues")
    queues = [queue for queue in answer["queues"] if queue["queue"].startswith(parsed.prefix)]
    if parsed.json:
        print_json({"queues": queues})
        return 0
    if not queues:
        beginning = f" whose names begin with {parsed.prefix}" if parsed.prefix else ""
        note(f"there are no dead-letter queues{beginning}")
    for queue in queues:
        print(f"{queue['queue']:40} {queue['dead_letters']:>8} {many(queue['dead_letters'], 'dead letter')}")
        for name in queue["from_queues"]:
            print(f"    from queue {name}")
        for subscription in queue["from_subscriptions"]:
            print(f"    from topic {subscription['topic']} to {subscription['endpoint']}")
        for source in queue["from_services"]:
            print(f"    from {source['service']} {source['name']}")
    return 0


def _list(client: Client, parsed: argparse.Namespace) -> int:
    nothing = f"there is nothing in {parsed.queue}{' after that' if parsed.after else ''}"
    listing = Listing(redriving.LETTERS, "dead_letters", lambda letter: letter["id"], _print_letters, nothing)
    return listing.run(client, parsed, queue=parsed.queue)


def _print_letters(letters: list[Entry]) -> None:
    for letter in letters:
        attempts = f"{letter['attempts']:>6} {many(letter['attempts'], 'attempt'):8}"
        print(
            f"{letter['id']:>10}  {moment(letter['sent_at'])}  {attempts}  {letter['reason'] or '-':{_REASON_WIDTH}}"
            f" {redriving.origin(letter['from'])}  {shortened(letter['body'])}"
        )


def _show(client: Client, parsed: argparse.Namespace) -> int:
    letter = _letter(client, parsed.queue, parsed.id)
    if parsed.json:
        print_json(letter)
        return 0
    print(f"id        {letter['id']}")
    print(f"message   {letter['message_id']}")
    print(f"sent      {moment(letter['sent_at'])}")
    print(f"from      {redriving.origin(letter['from'])}")
    print(f"attempts  {letter['attempts']}")
    print_attempts(letter["history"])
    print(f"\n{letter['body']}")
    return 0


def print_attempts(history: list[Entry]) -> None:
    """Print a line an attempt: when it ended, why, the endpoint's status, how long it took and what was said."""
    for attempt in history:
        print(
            f"  {attempt['number']:>6}  {moment(attempt['at'])}  {attempt['reason']:16} {attempt['status'] or '-':>4}"
            f"  {attempt['duration_ms']:>6} ms  {shortened(attempt['response'])}".rstrip()
        )


def _letter(client: Client, queue: str, letter_id: int | None) -> Entry:
    """The letter of that id, or the oldest one."""
    after = 0 if letter_id is None else letter_id - 1
    letters: list[Entry] = client.get(redriving.LETTERS, queue=queue, after=after, limit=1)["dead_letters"]
    if letter_id is None and not letters:
        raise CommandFailed(f"there is nothing in {queue}")
    if letter_id is not None and (not letters or letters[0]["id"] != letter_id):
        raise CommandFailed(f"there is no dead letter {letter_id} in {queue}")
    return letters[0]
