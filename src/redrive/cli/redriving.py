"""`redrive dlq redrive`, `tasks`, `cancel`, `pause` and `resume`: dead letters on their way back."""

import argparse
import asyncio
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from redrive.cli.client import PAGE_MAX, Client, Entry, with_client
from redrive.cli.terminal import add_json, many, moment, note, print_json
from redrive.engine.ports import Clock
from redrive.runtime.machine import SystemClock

LETTERS: Final = "/_redrive/dead-letters"
SEARCH_HELP: Final = "only those that this search finds: 'body.currency:EUR attempts:>3'"
_PLANS: Final = "/_redrive/dead-letter-plans"
_TASKS: Final = "/_redrive/dead-letter-tasks"
_LOOK_AGAIN_MS: Final = 200  # while the progress bar is shown


def register(actions: "argparse._SubParsersAction[Any]") -> tuple[argparse.ArgumentParser, ...]:
    """Add the commands to those of `redrive dlq`; returns their parsers."""
    back = actions.add_parser("redrive", help="send dead letters back to their origins, or to another queue")
    back.add_argument("queue", help="name, ARN or URL of the queue")
    back.add_argument(
        "id",
        type=int,
        nargs="*",
        help="ids of dead letters, moved in one transaction (default: all, as a task)",
    )
    back.add_argument("--to", metavar="QUEUE", help="send them to this queue instead")
    _add_cause(back)
    _add_pace(back)
    back.add_argument(
        "--delay", type=int, metavar="SECONDS", help="start after this delay; `cancel` works until then"
    )
    back.add_argument("--dry-run", action="store_true", help="show what would move, without moving it")
    back.add_argument("--wait", action="store_true", help="show the progress of the task until it ends")
    back.set_defaults(run=with_client(_redrive))
    tasks = actions.add_parser("tasks", help="list redrive tasks of a queue, latest first")
    tasks.add_argument("queue", help="name, ARN or URL of the queue")
    add_json(tasks)
    tasks.set_defaults(run=with_client(_tasks))
    change_commands = [_add_change(actions, verb, text) for verb, text in _CHANGES.items()]
    _add_pace(change_commands[-1])
    return back, tasks, *change_commands


_CHANGES: Final = {
    "cancel": "stop a redrive task; moved messages stay where they are",
    "pause": "pause a redrive task",
    "resume": "resume a paused redrive task, optionally at another pace",
}


def _add_change(actions: "argparse._SubParsersAction[Any]", verb: str, text: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = actions.add_parser(verb, help=text)
    command.add_argument("queue", help="name, ARN or URL of the queue")
    command.add_argument("task", nargs="?", help="task id (default: the one that is running)")
    command.set_defaults(run=with_client(_change), verb=verb, rate=None, pace=None)
    return command


def _add_cause(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--cause", help="only dead letters with this cause, as shown by `redrive dlq causes`"
    )
    command.add_argument(
        "--except",
        dest="excepted",
        type=int,
        action="append",
        metavar="ID",
        help="leave out the dead letter with this id",
    )
    command.add_argument("--search", help=SEARCH_HELP)


def _add_pace(command: argparse.ArgumentParser) -> None:
    pace = command.add_mutually_exclusive_group()
    pace.add_argument("--rate", type=int, metavar="N", help="maximum messages per second")
    pace.add_argument(
        "--pace",
        choices=("careful", "fast"),
        help="careful: move ten, then more while they are delivered, stop when they fail; fast: no limit",
    )


def origin(source: Entry) -> str:
    """The origin of a dead letter, for a terminal."""
    if "queue" in source:
        return f"queue {source['queue']}"
    return f"{source['topic']} to {source['endpoint']}" if source else "unknown"


def _redrive(client: Client, parsed: argparse.Namespace) -> int:
    """Redrive dead letters; 1 if not all of those named were moved, or (with --wait) the task did not complete."""
    if parsed.dry_run:
        return _dry_run(client, parsed)
    members: dict[str, Any] = {"queue": parsed.queue}
    if parsed.to:
        members["to"] = parsed.to
    if parsed.id:
        members["ids"] = parsed.id
    if parsed.delay:
        members["delay_seconds"] = parsed.delay
    answer = client.post(LETTERS, {**members, **cause_members(parsed), **_pace_members(parsed)})
    if "moved" in answer:
        print(f"{answer['moved']} of {len(parsed.id)} moved")
        return 0 if answer["moved"] == len(parsed.id) else 1
    moves = f"{answer['to_move']} {many(answer['to_move'], 'message')}"
    print(f"task {answer['task']} moves {moves}; it continues if the server is restarted")
    return asyncio.run(_watch(client, SystemClock(), parsed.queue, answer["task"])) if parsed.wait else 0


async def _watch(client: Client, clock: Clock, queue: str, task_id: str) -> int:
    """Show the progress of a task until it ends, as a bar in a terminal; returns 1 if it did not complete.

    To stop watching does not stop the task.
    """
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("moved"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as progress:
        bar = progress.add_task(queue)
        while True:
            task = next(task for task in client.get(_TASKS, queue=queue)["tasks"] if task["task"] == task_id)
            progress.update(bar, completed=task["moved"], total=max(task["to_move"], task["moved"]))
            if task["state"] not in ("waiting", "running", "cancelling"):
                break
            await clock.sleep_until(clock.now() + _LOOK_AGAIN_MS)
    print(f"{task['state']}: {task['moved']} of {task['to_move']} moved{_remainder(task)}{_failure(task)}")
    return 0 if task["state"] == "completed" else 1


def cause_members(parsed: argparse.Namespace) -> dict[str, Any]:
    """The members of a request that select dead letters: by cause, by a search, without some ids."""
    members: dict[str, Any] = {"cause": parsed.cause} if parsed.cause else {}
    members |= {"search": parsed.search} if parsed.search else {}
    return members | ({"except": parsed.excepted} if parsed.excepted else {})


def _pace_members(parsed: argparse.Namespace) -> dict[str, Any]:
    members: dict[str, Any] = {"pace": parsed.pace} if parsed.pace else {}
    return members | ({"rate": parsed.rate} if parsed.rate else {})


def _dry_run(client: Client, parsed: argparse.Namespace) -> int:
    """Print the dead letters that would move, or why they stay; 1 if one of those named is not there."""
    ids = set(parsed.id)
    missing_ids, is_empty = set(ids), True
    cause = {"cause": parsed.cause} if parsed.cause else {}
    if parsed.search:
        return _print_search_count(client, parsed)
    for letter in _all(client, parsed.queue, cause):
        if letter["id"] in (parsed.excepted or ()):
            continue
        letter_id, is_empty = letter["id"], False
        if not ids or letter_id in ids:
            in_flight = "  stays: it is in flight" if letter["in_flight"] else ""
            no_origin = "" if parsed.to or letter["from"] else "  stays: its origin is unknown"
            print(f"{letter_id:>10}  to {parsed.to or origin(letter['from'])}{in_flight or no_origin}")
        missing_ids.discard(letter_id)
    for letter_id in sorted(missing_ids):
        note(f"there is no dead letter {letter_id} in {parsed.queue}")
    if is_empty and not missing_ids:
        note(f"there is nothing in {parsed.queue}")
    return 1 if missing_ids else 0


def _print_search_count(client: Client, parsed: argparse.Namespace) -> int:
    plan = client.get(_PLANS, queue=parsed.queue, **cause_members(parsed))
    scope = f", of the oldest {plan['looked_at']} that were looked at" if plan["looked_at"] else ""
    print(f"{plan['to_move']} {many(plan['to_move'], 'message')} found{scope}")
    return 0


def _all(client: Client, queue: str, cause: Mapping[str, str]) -> Iterator[Entry]:
    after = 0
    while letters := client.get(LETTERS, queue=queue, after=after, limit=PAGE_MAX, **cause)["dead_letters"]:
        yield from letters
        after = letters[-1]["id"]


def _tasks(client: Client, parsed: argparse.Namespace) -> int:
    """Print the redrive tasks of a queue."""
    answer = client.get(_TASKS, queue=parsed.queue)
    if parsed.json:
        print_json(answer)
        return 0
    if not answer["tasks"]:
        note(f"there are no redrive tasks of {parsed.queue}")
    for task in answer["tasks"]:
        target = f"to queue {task['to']}" if task["to"] else "back"
        rate = f"  at most {task['rate']} a second" if task["rate"] else ""
        rate = "  carefully" if task["pace"] == "careful" else rate
        print(
            f"{task['task']}  {moment(task['started_at'])}  {task['state']:10}"
            f" {task['moved']:>8} of {task['to_move']} moved{_remainder(task)}  {target}{rate}{_failure(task)}"
        )
    return 0


def _change(client: Client, parsed: argparse.Namespace) -> int:
    """Cancel, pause or resume a task."""
    members = {"queue": parsed.queue, parsed.verb: True, **({"task": parsed.task} if parsed.task else {})}
    task = client.post(_TASKS, members | _pace_members(parsed))["task"]
    effect = {"cancel": "stops", "pause": "pauses", "resume": "goes on"}[parsed.verb]
    print(f"task {task['task']} {effect}; {task['moved']} of {task['to_move']} moved so far")
    return 0


def _remainder(task: Entry) -> str:
    """The deliveries that a completed task left, as text: in flight or expired by then, or without an origin."""
    remaining = task["to_move"] - task["moved"]
    return f", {remaining} left" if task["state"] == "completed" and remaining > 0 else ""


def _failure(task: Entry) -> str:
    reason = task["failure"] or task["stopped_why"]
    return f": {reason}" if reason else ""
