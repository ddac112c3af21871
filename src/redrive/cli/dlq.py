"""`redrive dlq`: see what is in dead-letter queues and why, and send it back."""

import argparse
from collections.abc import Iterator
from typing import Any, Final

from redrive.cli.client import Client, add_server, asking
from redrive.cli.terminal import CommandFailed, many, moment, note, shortened

_REASON_WIDTH: Final = 17  # of the longest, name_not_resolved
_PAGE: Final = 1000  # as many letters as the server shows at once


def register(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the command and its own commands."""
    command = commands.add_parser("dlq", help="list, show and redrive dead letters")
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    queues = actions.add_parser("queues", help="list the dead-letter queues and who sends to them")
    queues.set_defaults(run=asking(_queues))
    listing = actions.add_parser("list", help="list the dead letters of a queue")
    listing.add_argument("queue")
    listing.add_argument("--limit", type=int, default=100, help="at most so many (default: 100)")
    listing.add_argument("--after", type=int, default=0, metavar="ID", help="only those after this one")
    listing.set_defaults(run=asking(_list))
    show = actions.add_parser("show", help="show one dead letter: its body, its origin and its attempts")
    show.add_argument("queue")
    show.add_argument("id", type=int, nargs="?", help="which one; none: the oldest")
    show.set_defaults(run=asking(_show))
    back = actions.add_parser("redrive", help="send dead letters back where they came from, or elsewhere")
    back.add_argument("queue")
    back.add_argument("id", type=int, nargs="*", help="these, at once and together; none: all, as a task")
    back.add_argument("--to", metavar="QUEUE", help="to this queue instead")
    back.add_argument("--rate", type=int, metavar="N", help="at most N messages a second")
    back.add_argument("--dry-run", action="store_true", help="say what would go where, and do nothing")
    back.set_defaults(run=asking(_redrive))
    for action in (queues, listing, show, back):
        add_server(action)


def _queues(client: Client, _: argparse.Namespace) -> int:
    queues = client.get("/_redrive/dead-letter-queues")["queues"]
    if not queues:
        note("there are no dead-letter queues")
    for one in queues:
        print(f"{one['queue']:40} {one['letters']:>8} {many(one['letters'], 'letter')}")
        for name in one["from_queues"]:
            print(f"    from queue {name}")
        for subscription in one["from_subscriptions"]:
            print(f"    from topic {subscription['topic']} to {subscription['endpoint']}")
    return 0


def _list(client: Client, parsed: argparse.Namespace) -> int:
    letters = _letters(client, parsed.queue, parsed.after, parsed.limit)
    if not letters:
        note(f"there is nothing in {parsed.queue}{' after that' if parsed.after else ''}")
    for letter in letters:
        attempts = f"{letter['attempts']:>6} {many(letter['attempts'], 'attempt'):8}"
        print(
            f"{letter['id']:>10}  {moment(letter['sent_at'])}  {attempts}  {letter['reason'] or '-':{_REASON_WIDTH}}"
            f" {_origin(letter['from'])}  {shortened(letter['body'])}"
        )
    return 0


def _show(client: Client, parsed: argparse.Namespace) -> int:
    letter = _letter(client, parsed.queue, parsed.id)
    print(f"id        {letter['id']}")
    print(f"message   {letter['message_id']}")
    print(f"sent      {moment(letter['sent_at'])}")
    print(f"from      {_origin(letter['from'])}")
    print(f"attempts  {letter['attempts']}")
    for attempt in letter["history"]:
        print(
            f"  {attempt['number']:>6}  {moment(attempt['at'])}  {attempt['reason']:16} {attempt['status'] or '-':>4}"
            f"  {attempt['duration_ms']:>6} ms  {shortened(attempt['response'])}"
        )
    print(f"\n{letter['body']}")
    return 0


def _letter(client: Client, queue: str, letter_id: int | None) -> dict[str, Any]:
    """The letter of that id, or the oldest one."""
    found = _letters(client, queue, 0 if letter_id is None else letter_id - 1, 1)
    if letter_id is None and not found:
        raise CommandFailed(f"there is nothing in {queue}")
    if letter_id is not None and (not found or found[0]["id"] != letter_id):
        raise CommandFailed(f"there is no dead letter {letter_id} in {queue}")
    return found[0]


def _redrive(client: Client, parsed: argparse.Namespace) -> int:
    if parsed.dry_run:
        return _rehearse(client, parsed)
    wish: dict[str, Any] = {"queue": parsed.queue}
    if parsed.to:
        wish["to"] = parsed.to
    if parsed.id:
        wish["ids"] = parsed.id
    if parsed.rate:
        wish["rate"] = parsed.rate
    answer = client.post("/_redrive/dead-letters", wish)
    if "moved" in answer:
        print(f"{answer['moved']} of {len(parsed.id)} moved")
        return 0 if answer["moved"] == len(parsed.id) else 1
    moves = f"{answer['to_move']} {many(answer['to_move'], 'message')}"
    print(f"task {answer['task']} moves {moves}; it goes on though the server is restarted")
    return 0


def _rehearse(client: Client, parsed: argparse.Namespace) -> int:
    wanted = set(parsed.id)
    missing, number = set(wanted), 0
    for letter in _all(client, parsed.queue):
        number = letter["id"]
        if not wanted or number in wanted:
            stays = "  stays: it is in flight" if letter["in_flight"] else ""
            unknown = "" if parsed.to or letter["from"] else "  stays: nobody knows where it came from"
            print(f"{number:>10}  to {parsed.to or _origin(letter['from'])}{stays or unknown}")
        missing.discard(number)
    for number in sorted(missing):
        note(f"there is no dead letter {number} in {parsed.queue}")
    if not number:
        note(f"there is nothing in {parsed.queue}")
    return 1 if missing else 0


def _all(client: Client, queue: str) -> Iterator[dict[str, Any]]:
    after = 0
    while letters := _letters(client, queue, after, _PAGE):
        yield from letters
        after = letters[-1]["id"]


def _letters(client: Client, queue: str, after: int, limit: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/_redrive/dead-letters", queue=queue, after=after, limit=limit)[
        "letters"
    ]
    return found


def _origin(source: dict[str, Any]) -> str:
    if "queue" in source:
        return f"queue {source['queue']}"
    return f"{source['topic']} to {source['endpoint']}" if source else "unknown"
