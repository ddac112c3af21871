"""Redrive: planned, started, watched, paused and cancelled."""

from collections.abc import Sequence
from typing import Any, Final

from redrive.console.charts import Curve, sparkline
from redrive.console.commands import redrive_command
from redrive.console.outcomes import DEAD_AGAIN_MAX, WAITING_MAX, RedriveOutcome, outcome_of, progress_chart
from redrive.console.pages.dead_letters import COUNTED_MAX, origin_text, read_cause
from redrive.console.safety_checks import checks_of, verdict_of
from redrive.console.visit import REFUSED, Missing, Page, Redirect, Unusable, Visit, searched
from redrive.console.words import failure_words, many, moment, why_stopped
from redrive.engine.operations import (
    BATCH_MAX,
    RATE_MAX,
    SET_ASIDE,
    TASK,
    DeadLetterOrigin,
    RedriveOptions,
    RedrivePlan,
)
from redrive.engine.ports import Cause, CauseCount
from redrive.model.errors import TaskActive
from redrive.model.queue import Queue
from redrive.model.task import CarefulPace, MoveChoice, MoveTask, TaskState
from redrive.model.topic import Subscription

CAUSES_SHOWN: Final = 20
LISTED_MAX: Final = 1_000  # tasks looked through
ROWS_SHOWN: Final = 100
SUGGESTED_MAX: Final = 50  # names of queues
START_DELAY_MS: Final = 5000
RATE: Final = 50  # messages a second
_RATE_DIGITS: Final = 3
_STEPS_DRAWN: Final = 24
_GREW_PERMILLE: Final = 10
_PACES: Final = {"careful": "carefully", "steady": "at a steady pace", "fast": "as fast as possible"}
_DONE: Final = {"pause": "Paused", "cancel": "Stopped", "resume": "Resumed"}
_CONFLICT: Final = 409


async def plan(visit: Visit) -> Page:
    """The numbers that a redrive would move, and to where: a page, so that no polling can press it."""
    return await plan_page(visit, await visit.queue(), "")


async def plan_page(
    visit: Visit, queue: Queue, notice: str, status: int = 200, rehearsed: Sequence[Any] = (), did: str = ""
) -> Page:
    """The plan that an address or a form asks for.

    Args:
        visit: The form's.
        queue: The dead-letter queue.
        notice: Why it is shown again; empty: it was asked for.
        status: The answer's.
        rehearsed: The answers to copies, where there was a rehearsal.
        did: What was done, for the audit.
    """
    operations = visit.engine.operations
    ids = visit.numbers("id", BATCH_MAX)
    what = visit.parameter("what", "picked" if ids else "all")
    choice = _choice(visit, ids if what == "except" else [])
    if what == "picked":
        if not ids:
            raise Unusable("Nothing is selected: tick some messages first, or take all of them.")
        numbers = RedrivePlan(len(ids), 0, 0)
    else:
        numbers = await operations.redrives.plan(queue, choice)
    number = numbers.number
    origin = (
        None if choice is None or not choice.failure else await operations.dead_letters.origin(choice.origin)
    )
    running = [
        task
        for task in await visit.installation.redrives.all()
        if task.source == queue.name and task.state.active
    ]
    moves = await _moves(visit, queue) if choice is None and what == "all" else []
    receivers = await _receivers(visit, queue, origin, [came_from for _, came_from in moves])
    checks = await checks_of(
        visit,
        queue,
        numbers,
        receivers,
        running[0] if running else None,
        origin_known=origin is None or origin != (None, None),
    )
    values = {
        "queue": queue,
        "what": what,
        "ids": ids,
        "number": number,
        "last_seq": numbers.last_seq,
        "moves": [(each.cause.failure, each.number, origin_text(*came_from)) for each, came_from in moves],
        "stays": 0 if moves else await _stays(visit, queue, number),
        "checks": checks,
        "verdict": verdict_of(checks),
        "running": visit.link("dead-letters", queue.name.name, "tasks", running[0].id) if running else "",
        "steady_takes": number * 1000 // _rate(visit),
        "careful": _careful(number),
        "queues": await _queue_names(visit),
        "cause": visit.parameter("cause"),
        "failure": "" if choice is None else choice.failure,
        "q": visit.parameter("q").strip() if what != "picked" else "",
        "until": visit.parameter("until"),
        "asked_at_ms": choice.asked_at if choice else 0,
        "looked_at": numbers.looked_at,
        "origin": "where each came from" if origin is None else origin_text(*origin),
        "notice": notice,
        "pace": visit.parameter("pace", "careful"),
        "rate": visit.parameter("rate", str(RATE)),
        "to": visit.parameter("to"),
        "back": visit.link(
            "dead-letters", queue.name.name, cause=visit.parameter("cause"), q=visit.parameter("q")
        ),
        "command": _command(visit, queue, what, ids),
        "rehearsed": rehearsed,
        "rehearsal": visit.link("dead-letters", queue.name.name, "rehearse"),
        "start": visit.link("dead-letters", queue.name.name, "plan"),
        "copies": visit.parameter("copies", "10"),
        "url": visit.parameter("url"),
    }
    return Page("plan.html", values, status, did=did)


async def _stays(visit: Visit, queue: Queue, number: int) -> int:
    """The messages of a queue that are not among so many; 0 too where there are more than are counted."""
    counts = await visit.engine.messages.count(queue, COUNTED_MAX)
    return max(0, counts.available - number) if counts.available < COUNTED_MAX else 0


def _rate(visit: Visit) -> int:
    """The messages a second of a steady pace that was typed, or the usual one."""
    typed = visit.parameter("rate")
    return max(1, int(typed)) if typed.isascii() and typed.isdigit() and len(typed) <= _RATE_DIGITS else RATE


def _careful(number: int) -> tuple[int, Curve | None]:
    """The time (ms) that a careful pace takes for so many messages, and its rate meanwhile."""
    pace = CarefulPace()
    takes = pace.duration_ms(number)
    rates = [pace.rate_after(takes * step // _STEPS_DRAWN) for step in range(_STEPS_DRAWN + 1)]
    summary = f"{rates[0]} messages a second at first, {rates[-1]} at last"
    return takes, sparkline(rates, summary) if rates[-1] > rates[0] else None


async def _receivers(
    visit: Visit, queue: Queue, origin: DeadLetterOrigin | None, origins: Sequence[DeadLetterOrigin]
) -> list[Subscription]:
    """The subscriptions that messages of the chosen cause, or of all, go back to."""
    if origin is not None:
        return [] if origin.subscription is None else [origin.subscription]
    if 0 < len(origins) < CAUSES_SHOWN:
        by_key = {
            each.subscription.key: each.subscription for each in origins if each.subscription is not None
        }
        return list(by_key.values())
    sources = await visit.engine.operations.dead_letters.sources(queue)
    return [source for source in sources if isinstance(source, Subscription)]


async def _moves(visit: Visit, queue: Queue) -> list[tuple[CauseCount, DeadLetterOrigin]]:
    """The causes of what moves where everything does, with their numbers and origins."""
    dead_letters = visit.engine.operations.dead_letters
    counts = await dead_letters.cause_counts(queue, CAUSES_SHOWN, COUNTED_MAX)
    return [(each, await dead_letters.origin(each.cause.origin)) for each in counts]


async def _queue_names(visit: Visit) -> list[str]:
    """Names to suggest as a destination."""
    queues = await visit.engine.resources.queues.find(visit.scope, "", SUGGESTED_MAX)
    return [queue.name.name for queue in queues]


async def start(visit: Visit) -> Page | Redirect:
    """Begin what was planned, unless it is not what was planned any more."""
    queue = await visit.queue()
    operations = visit.engine.operations
    ids = visit.numbers("id", BATCH_MAX)
    destination = await _destination(visit)
    if visit.parameter("what") == "picked":
        moved = await operations.moves.move(queue, ids, destination)
        sentence = f"{moved.total} of {len(ids)} sent back"
        return Redirect(
            visit.link("dead-letters", queue.name.name, cause=visit.parameter("cause")), sentence=sentence
        )
    choice = _choice(visit, ids if visit.parameter("what") == "except" else [])
    expected = visit.number("number")
    number = (await operations.redrives.plan(queue, choice)).number
    if abs(number - expected) * 1000 > max(expected, 1) * _GREW_PERMILLE:
        sentence = f"There were {expected:,} when this was planned, and are {number:,} now. Check again."
        return await plan_page(visit, queue, sentence, _CONFLICT)
    pace = visit.parameter("pace", "careful")
    options = RedriveOptions(
        choice=choice,
        last_seq=visit.number("last_seq") or None,
        careful=CarefulPace() if pace == "careful" else None,
        delay_ms=START_DELAY_MS,
        by=visit.session.key_id,
    )
    rate = visit.number("rate", RATE) if pace == "steady" else None
    if rate is not None and not 1 <= rate <= RATE_MAX:
        return await plan_page(visit, queue, f"A steady pace is 1 to {RATE_MAX} a second.", REFUSED)
    try:
        task = await operations.redrives.start(queue, destination, rate, options)
    except TaskActive:
        return await plan_page(visit, queue, "Another redrive of this queue is under way.", _CONFLICT)
    cause = "all causes" if choice is None else failure_words(choice.text)
    did = f"Redrive {task.id[:8]} of {number:,} {many(number, 'message')} ({cause}), {_PACES.get(pace, pace)}"
    return Redirect(visit.link("dead-letters", queue.name.name, "tasks", task.id), sentence=did)


async def listing(visit: Visit) -> Page:
    """The redrives of an account and region, those under way first and then the latest: the last ten of each queue."""
    scope = visit.scope
    tasks = await visit.engine.resources.documents.find(
        TASK, f"{scope.account}/{scope.region}/", limit=LISTED_MAX
    )
    tasks.sort(key=lambda task: (not task.state.active, -task.started_at))
    rows = [
        {
            "task": task,
            "choice": "All" if task.choice is None else task.choice.text,
            "link": visit.link("dead-letters", task.source.name, "tasks", task.id),
            "left": max(0, task.to_move - task.moved),
        }
        for task in tasks[:ROWS_SHOWN]
    ]
    return Page(
        "redrives.html", {"rows": rows}, live_seconds=2 if any(task.state.active for task in tasks) else 10
    )


async def task(visit: Visit) -> Page:
    """A task: how far it is, how the messages fare that it moved, and what can be done about it."""
    queue = await visit.queue()
    record = await _task(visit, queue)
    seconds = max(1000, visit.now - max(record.started_at, record.starts_at, record.resumed_at)) / 1000
    rate = (record.moved - record.moved_before) / seconds if record.state is TaskState.RUNNING else 0
    remaining = max(0, record.to_move - record.moved)
    outcome = await outcome_of(visit, queue, record)
    values: dict[str, Any] = {
        "queue": queue,
        "task": record,
        "left": remaining,
        "rate": rate,
        "chart": progress_chart(record, visit.now),
        "took": record.progress[-1].at - record.progress[0].at if record.progress else 0,
        "seconds_left": round(remaining / rate * 1000) if rate and not record.careful else 0,
        "starts_in": -(min(0, visit.now - record.starts_at) // 1000) * 1000,  # whole seconds, up
        "active": record.state.active,
        "outcome": outcome,
        "at_most": DEAD_AGAIN_MAX,
        "waiting_at_most": WAITING_MAX,
        "summary": _summary(record, remaining, outcome),
        "back": visit.link("dead-letters", queue.name.name),
    }
    seconds_when_over = 2 if outcome.waiting else 0
    return Page("task.html", values, live_seconds=1 if record.state.active else seconds_when_over)


def _summary(record: MoveTask, remaining: int, outcome: RedriveOutcome) -> str:
    """The result of a task in a sentence, to be pasted where people talk of it."""
    choice = "all dead letters" if record.choice is None else failure_words(record.choice.text)
    who = f" by {record.by}" if record.by else ""
    why = f" It stopped by itself: {why_stopped(record.stopped_why)}." if record.stopped_why else ""
    return (
        f"Redrive of {record.source.name} ({choice}), started {moment(record.started_at)[:19]}Z{who}: {record.state},"
        f" {record.moved:,} of {record.to_move:,} moved, {remaining:,} stayed; {outcome.text}.{why}"
    )


async def change(visit: Visit) -> Redirect:
    """Pause a task, let it go on, or cancel it."""
    queue = await visit.queue()
    record = await _task(visit, queue)
    operations = visit.engine.operations
    verb = visit.parameter("do")
    if verb == "pause":
        await operations.redrives.pause(queue.name, record.id)
    elif verb == "cancel":
        await operations.redrives.cancel(queue.name, record.id)
    elif verb == "resume":
        paces: dict[str, CarefulPace | int] = {"careful": CarefulPace(), "fast": 0}
        await operations.redrives.resume(queue.name, record.id, paces.get(visit.parameter("pace")))
    else:
        raise Unusable("The form names no action for the task.")
    did = f"{_DONE[verb]} when {record.moved:,} of {record.to_move:,} had moved"
    return Redirect(visit.link("dead-letters", queue.name.name, "tasks", record.id), sentence=did)


async def set_aside(visit: Visit) -> Redirect:
    """Put picked dead letters out of the way."""
    queue = await visit.queue()
    ids = _picked(visit)
    moved = await visit.engine.operations.moves.set_aside(queue, ids)
    sentence = f"{moved.total} of {len(ids)} set aside, where they are kept for 14 days"
    aside = f"/{visit.args['account']}/{visit.args['region']}/dead-letters/{SET_ASIDE}/bring-back"
    fields = {"id": [str(each.seq) for each in moved.became.values()], "to": [queue.name.name]}
    link = visit.link("dead-letters", queue.name.name, cause=visit.parameter("cause"))
    return Redirect(link, sentence=sentence, undo=(aside, fields) if moved.total else None)


async def bring_back(visit: Visit) -> Redirect:
    """Put what was set aside into its dead-letter queue again."""
    queue = await visit.queue()
    ids = _picked(visit)
    moved = await visit.engine.operations.moves.bring_back(queue, ids)
    sentence = f"{moved.total} of {len(ids)} brought back"
    return Redirect(visit.link("dead-letters", visit.parameter("to", queue.name.name)), sentence=sentence)


def _picked(visit: Visit) -> list[int]:
    ids = visit.numbers("id", BATCH_MAX)
    if not ids:
        raise Unusable("Nothing is selected: tick some messages first.")
    return ids


def _choice(visit: Visit, excepted: list[int]) -> MoveChoice | None:
    """The choice of a plan: of a cause, of a search, or of both; None: everything.

    Raises:
        Unusable: Bodies are hidden, so they cannot be searched.
        SearchInvalidError: The search cannot be read.
    """
    cause_text, query = visit.parameter("cause"), visit.parameter("q").strip()
    cause = Cause(0, "") if cause_text in ("", "all") else read_cause(cause_text)
    if not query:
        return MoveChoice(*cause, excepted) if cause.failure else None
    searched(visit, query)
    return MoveChoice(*cause, (), query, visit.number("asked_at") or visit.now, visit.number("until"))


async def _destination(visit: Visit) -> Queue | None:
    """The queue that the form names to send messages to; None: each goes back to where it came from."""
    name = visit.parameter("to").strip()
    if not name:
        return None
    queue = await visit.engine.resources.queues.get(visit.scope._replace(name=name))
    if queue is None:
        raise Unusable(f"There is no queue {name[:80]} to send them to.")
    return queue


async def _task(visit: Visit, queue: Queue) -> MoveTask:
    """The redrive task of the queue that the address names; raises Missing if there is none."""
    tasks = await visit.engine.operations.redrives.tasks_of(queue.name)
    record = next((each for each in tasks if each.id == visit.args["task"]), None)
    if record is None:
        raise Missing(
            f"There is no task {visit.args['task'][:40]} of {queue.name.name}; the last ten are kept."
        )
    return record


def _command(visit: Visit, queue: Queue, what: str, ids: list[int]) -> str:
    """The command that does the same as the plan, on this server."""
    words = ["dlq", "redrive", queue.name.name]
    cause, query = visit.parameter("cause"), visit.parameter("q").strip()
    if what == "picked":
        return redrive_command(visit, *words, *map(str, ids))
    words += ["--cause", cause] if cause and cause != "all" else []
    words += ["--search", query] if query else []
    if what == "except":
        words += [word for each in ids for word in ("--except", str(each))]
    return redrive_command(visit, *words, "--pace", "careful", "--wait")
