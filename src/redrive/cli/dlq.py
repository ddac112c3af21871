"""`redrive dlq`: what is in dead-letter queues and why, and changes of single messages; `redriving` sends them back."""

import argparse
import sys
from pathlib import Path
from typing import Any, Final

from redrive.cli import redriving
from redrive.cli.client import Client, Entry, Listing, add_listing, add_server, with_client
from redrive.cli.redriving import LETTERS, SEARCH_HELP, cause_members, origin
from redrive.cli.terminal import CommandFailed, add_json, many, moment, note, print_json, printable, shorten

_REASON_WIDTH: Final = 17  # of the longest, name_not_resolved
_QUEUE_HELP: Final = "name, ARN or URL of the queue"


def register(command: argparse.ArgumentParser) -> None:
    """Add its own commands."""
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    queues = actions.add_parser("queues", help="list dead-letter queues and their sources")
    queues.add_argument("prefix", nargs="?", default="", help="only names that begin with this")
    add_json(queues)
    queues.set_defaults(run=with_client(_queues))
    listing = actions.add_parser("list", help="list the dead letters of a queue")
    listing.add_argument("queue", help=_QUEUE_HELP)
    add_listing(listing, "ID")
    listing.set_defaults(run=with_client(_list))
    show = actions.add_parser("show", help="show one dead letter: body, origin and attempts")
    show.add_argument("queue", help=_QUEUE_HELP)
    show.add_argument("id", type=int, nargs="?", help="id of the dead letter (default: the oldest)")
    add_json(show)
    show.set_defaults(run=with_client(_show))
    for action in (queues, listing, show, *redriving.register(actions), *register_changes(actions)):
        add_server(action)


def _queues(client: Client, parsed: argparse.Namespace) -> int:
    """Print the dead-letter queues and their sources."""
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
            f" {redriving.origin(letter['from'])}  {shorten(letter['body'])}"
        )


def _show(client: Client, parsed: argparse.Namespace) -> int:
    """Print one dead letter with its attempts."""
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
    print(f"\n{printable(letter['body'])}")
    return 0


def print_attempts(history: list[Entry]) -> None:
    """Print a line an attempt: when it ended, why, the endpoint's status, how long it took and what was said."""
    for attempt in history:
        print(
            f"  {attempt['number']:>6}  {moment(attempt['at'])}  {attempt['reason']:16} {attempt['status'] or '-':>4}"
            f"  {attempt['duration_ms']:>6} ms  {shorten(attempt['response'])}".rstrip()
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


_CAUSES: Final = "/_redrive/dead-letter-causes"
_PLANS: Final = "/_redrive/dead-letter-plans"
_EDITS: Final = "/_redrive/dead-letter-edits"
_FAILURE_WIDTH: Final = 22  # of the longest, name_not_resolved with a status


def register_changes(actions: "argparse._SubParsersAction[Any]") -> tuple[argparse.ArgumentParser, ...]:
    """Add the commands that change dead letters to those of `redrive dlq`; returns their parsers."""
    causes = actions.add_parser(
        "causes", aliases=["groups"], help="list the causes of failure in a dead-letter queue, with counts"
    )
    causes.add_argument("queue", help="name, ARN or URL of the queue")
    add_json(causes)
    causes.set_defaults(run=with_client(_causes))
    plan = actions.add_parser("plan", help="show what a redrive would move, without moving it")
    plan.add_argument("queue", help="name, ARN or URL of the queue")
    plan.add_argument("--cause", help="only dead letters with this cause, as shown by `redrive dlq causes`")
    plan.add_argument("--search", help=SEARCH_HELP)
    add_json(plan)
    plan.set_defaults(run=with_client(_plan), excepted=None)
    edit = actions.add_parser("edit", help="replace the body of one dead letter and send it back")
    edit.add_argument("queue", help="name, ARN or URL of the queue")
    edit.add_argument("id", type=int, help="id of the dead letter")
    edit.add_argument(
        "--body-file", required=True, metavar="FILE", help="file with the new body; - for standard input"
    )
    edit.add_argument("--to", metavar="QUEUE", help="send it to this queue instead of its origin")
    edit.set_defaults(run=with_client(_edit))
    aside = actions.add_parser("set-aside", help="move dead letters unchanged to the queue redrive-set-aside")
    aside.add_argument("queue", help="name, ARN or URL of the queue")
    aside.add_argument("id", type=int, nargs="+", help="ids of dead letters, moved in one transaction")
    aside.set_defaults(run=with_client(_set_aside))
    back = actions.add_parser(
        "bring-back", help="move messages that were set aside back to their dead-letter queues"
    )
    back.add_argument("id", type=int, nargs="+", help="ids of the messages in redrive-set-aside")
    back.set_defaults(run=with_client(_bring_back))
    return causes, plan, edit, aside, back


def _causes(client: Client, parsed: argparse.Namespace) -> int:
    """Print the causes of a queue's dead letters; those whose cause is unknown as one number."""
    answer = client.get(_CAUSES, queue=parsed.queue)
    if parsed.json:
        print_json(answer)
        return 0
    for cause in answer["causes"]:
        _print_cause(cause)
    others = answer["available"] - sum(cause["dead_letters"] for cause in answer["causes"])
    if others > 0:
        print(f"{others:>10}  no reason is known: sent here by hand, or dead before reasons were kept")
    if not answer["causes"] and others <= 0:
        note(f"there are no dead letters in {parsed.queue}")
    return 0


def _print_cause(cause: Entry) -> None:
    number = f"{cause['dead_letters']}{'+' if cause['capped'] else ''}"
    sent = f"{_moment(cause['first_sent_at'])} to {_moment(cause['last_sent_at'])}"
    print(f"{number:>10}  {cause['failure']:{_FAILURE_WIDTH}} {origin(cause['from'])}  sent {sent}")
    if cause["last_response"]:
        print(f"{'':12}last said: {shorten(cause['last_response'])}")
    print(f"{'':12}--cause '{cause['cause']}'")


def _moment(at: int | None) -> str:
    return "?" if at is None else moment(at)


def _plan(client: Client, parsed: argparse.Namespace) -> int:
    """Print how many messages a redrive would move, and why others stay."""
    answer = client.get(_PLANS, queue=parsed.queue, **cause_members(parsed))
    if parsed.json:
        print_json(answer)
        return 0
    print(
        f"{answer['to_move']} {many(answer['to_move'], 'dead letter')} would move, up to id {answer['last_id']}"
    )
    if answer["looked_at"]:
        print(f"they are among the oldest {answer['looked_at']}; the redrive looks at the others as it goes")
    if answer["in_flight"]:
        stay, they = ("stays", "it is") if answer["in_flight"] == 1 else ("stay", "they are")
        print(f"{answer['in_flight']} of the queue {stay}: {they} in flight")
    if answer["without_origin"]:
        stay, their = ("stays", "its") if answer["without_origin"] == 1 else ("stay", "their")
        print(
            f"{answer['without_origin']} of them {stay} unless --to names a queue: {their} origin is unknown, or"
            " was deleted"
        )
    return 0


def _edit(client: Client, parsed: argparse.Namespace) -> int:
    """Send one dead letter back with another body."""
    document = {"queue": parsed.queue, "id": parsed.id, "body": _read_text(parsed.body_file)}
    moved = client.post(_EDITS, document | ({"to": parsed.to} if parsed.to else {}))["moved"]
    if not moved:
        raise CommandFailed(
            f"{parsed.id} was not sent: it is in flight, does not exist, or has no known origin"
        )
    print(f"{parsed.id} was sent with the new body")
    return 0


def _read_text(file: str) -> str:
    """The text of a file, or of standard input."""
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise CommandFailed(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise CommandFailed(f"cannot read {file}: {error}") from None


def _set_aside(client: Client, parsed: argparse.Namespace) -> int:
    answer = client.post(f"{LETTERS}-set-aside", {"queue": parsed.queue, "ids": parsed.id})
    print(f"{answer['moved']} of {len(parsed.id)} put into {answer['to']}, where they are kept for 14 days")
    return 0 if answer["moved"] == len(parsed.id) else 1


def _bring_back(client: Client, parsed: argparse.Namespace) -> int:
    moved = client.post(f"{LETTERS}-brought-back", {"ids": parsed.id})["moved"]
    print(f"{moved} of {len(parsed.id)} brought back")
    return 0 if moved == len(parsed.id) else 1
