"""The control routes behind `redrive dlq` that change something: redrive, its tasks, edits, and what is set aside."""

from collections.abc import Mapping
from typing import Any, Final

from redrive.engine.engine import Engine
from redrive.engine.operations import BATCH_MAX, RATE_MAX, RedriveOptions
from redrive.engine.ports import Cause
from redrive.model.errors import NotFound
from redrive.model.http import Request, Response
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.search import SearchInvalidError, read_search
from redrive.model.task import CarefulPace, MoveChoice, MoveTask
from redrive.server.owned import (
    ControlRefusal,
    OwnedRoute,
    document_of,
    json_answer,
    number,
    parameters,
    queue_named,
)

PATH: Final = "/_redrive/dead-letter"
LETTERS: Final = f"{PATH}s"
TASKS: Final = f"{PATH}-tasks"
PLANS: Final = f"{PATH}-plans"
EDITS: Final = f"{PATH}-edits"
ASIDE: Final = f"{PATH}s-set-aside"
BACK: Final = f"{PATH}s-brought-back"
DELAY_SECONDS_MAX: Final = 3600
PACES: Final = ("careful", "fast")


class RedriveRoutes:
    """Sends the caller's own dead letters back, or aside."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.routes: Mapping[tuple[str, str], OwnedRoute] = {
            ("POST", LETTERS): self._redrive,
            ("GET", PLANS): self._plan,
            ("GET", TASKS): self._tasks,
            ("POST", TASKS): self._change_task,
            ("POST", EDITS): self._edit,
            ("POST", ASIDE): self._set_aside,
            ("POST", BACK): self._bring_back,
        }

    async def _redrive(self, request: Request, where: ResourceName) -> Response:
        """Redrive dead letters named by id at once; those of a cause or a search, or all of them, as a task.

        `{"queue", "to"?, "ids"?, "rate"?, "pace"?, "cause"?, "except"?, "search"?, "delay_seconds"?}`.
        """
        members = document_of(request.body)
        source = await find_queue(self._engine, where, members.get("queue"))
        destination = await self._destination(where, members)
        if members.get("ids") is not None:
            moved = await self._engine.operations.moves.move(source, _ids(members["ids"]), destination)
            return json_answer(200, {"moved": moved.total})
        pace = pace_of(members)
        redrive = RedriveOptions(
            choice=choice_of(members, self._engine.clock.now()),
            careful=pace if isinstance(pace, CarefulPace) else None,
            delay_ms=1000 * number("delay_seconds", members.get("delay_seconds", 0), 0, DELAY_SECONDS_MAX),
        )
        rate = pace if isinstance(pace, int) and pace else None
        task = await self._engine.operations.redrives.start(source, destination, rate, redrive)
        return json_answer(202, {"task": task.id, "to_move": task.to_move})

    async def _plan(self, request: Request, where: ResourceName) -> Response:
        """The numbers that a redrive would move, and that stay because they are in flight or have no known origin."""
        arguments = parameters(request)
        source = await find_queue(self._engine, where, arguments.get("queue"))
        plan = await self._engine.operations.redrives.plan(
            source, choice_of(arguments, self._engine.clock.now())
        )
        answer = {
            "to_move": plan.number,
            "in_flight": plan.in_flight,
            "without_origin": plan.without_origin,
            "last_id": plan.last_seq,
            "looked_at": plan.looked_at,
        }
        return json_answer(200, answer)

    async def _tasks(self, request: Request, where: ResourceName) -> Response:
        """The redrive tasks of a queue, latest first; the last ten are remembered."""
        queue = await find_queue(self._engine, where, parameters(request).get("queue"))
        tasks = await self._engine.operations.redrives.tasks_of(queue.name)
        return json_answer(200, {"tasks": [shown_task(task) for task in tasks]})

    async def _change_task(self, request: Request, where: ResourceName) -> Response:
        """`{"queue", "cancel" | "pause" | "resume": true, "task"?, "pace"?, "rate"?}`; without a task, the active one."""
        members = document_of(request.body)
        verbs = [verb for verb in ("cancel", "pause", "resume") if members.get(verb) is True]
        if len(verbs) != 1:
            raise ControlRefusal('expected {"queue": "…", "cancel": true}, or pause, or resume')
        queue = await find_queue(self._engine, where, members.get("queue"))
        name = str(members["task"]) if members.get("task") else await self._active(queue)
        operations = self._engine.operations
        try:
            if verbs == ["cancel"]:
                task = await operations.redrives.cancel(queue.name, name)
            elif verbs == ["pause"]:
                task = await operations.redrives.pause(queue.name, name)
            else:
                task = await operations.redrives.resume(queue.name, name, pace_of(members))
        except NotFound:
            raise ControlRefusal(f"there is no task {name} of {queue.name.name}") from None
        return json_answer(200, {"task": shown_task(task)})

    async def _destination(self, where: ResourceName, members: Mapping[str, Any]) -> Queue | None:
        """The queue that the member `to` names; None: each dead letter goes where it came from."""
        return None if members.get("to") is None else await find_queue(self._engine, where, members["to"])

    async def _active(self, queue: Queue) -> str:
        """The id of a queue's active task."""
        tasks = await self._engine.operations.redrives.tasks_of(queue.name)
        name = next((task.id for task in tasks if task.state.active), None)
        if name is None:
            raise ControlRefusal(f"{queue.name.name} has no active redrive task")
        return name

    async def _edit(self, request: Request, where: ResourceName) -> Response:
        """`{"queue", "id", "body", "to"?}`: send one back with another body, in place of the old one."""
        members = document_of(request.body)
        source = await find_queue(self._engine, where, members.get("queue"))
        destination = await self._destination(where, members)
        seq, body = number("id", members.get("id"), 1), members.get("body")
        if not isinstance(body, str) or not body:
            raise ControlRefusal("body is the new text of the message")
        moved = await self._engine.operations.moves.move(source, [seq], destination, {seq: body})
        return json_answer(200, {"moved": moved.total})

    async def _set_aside(self, request: Request, where: ResourceName) -> Response:
        """`{"queue", "ids"}`: put them into the queue for such, as they are."""
        members = document_of(request.body)
        source = await find_queue(self._engine, where, members.get("queue"))
        moved = await self._engine.operations.moves.set_aside(source, _ids(members.get("ids")))
        aside_queue = await self._engine.operations.moves.aside_of(source.name)
        return json_answer(200, {"moved": moved.total, "to": aside_queue.name.name})

    async def _bring_back(self, request: Request, where: ResourceName) -> Response:
        """`{"ids"}`: put what was set aside into its dead-letter queue again."""
        aside_queue = await self._engine.operations.moves.aside_of(where)
        seqs = _ids(document_of(request.body).get("ids"))
        moved = await self._engine.operations.moves.bring_back(aside_queue, seqs)
        return json_answer(200, {"moved": moved.total})


async def find_queue(engine: Engine, where: ResourceName, text: object) -> Queue:
    """The queue that is meant; raises ControlRefusal if nothing is named, or what is named does not stand."""
    name = queue_named(where, text)
    queue = await engine.resources.queues.get(name)
    if queue is None:
        raise ControlRefusal(f"there is no queue {name.name} in {name.account} {name.region}")
    return queue


def cause_of(text: object) -> Cause | None:
    """Read a cause as the listing of causes writes it: the number of its origin, a colon and the failure.

    Raises:
        ControlRefusal: It is written otherwise.
    """
    if text is None:
        return None
    origin, colon, failure = str(text).partition(":")
    if not colon or not failure:
        raise ControlRefusal("cause is one of those that `redrive dlq causes` lists")
    return Cause(number("origin", origin, 1), failure)


def choice_of(members: Mapping[str, Any], now: int) -> MoveChoice | None:
    """The choice of dead letters to redrive, by cause or by search; None: all of them.

    Raises:
        ControlRefusal: It is not one, there are exceptions without one, or the search cannot be read.
    """
    cause = cause_of(members.get("cause"))
    excepted = members.get("except") or []
    query = str(members.get("search") or "").strip()
    if query:
        return _search_choice(query, cause, excepted, now)
    if cause is None:
        if excepted:
            raise ControlRefusal('"except" can only be given with "cause"')
        return None
    return MoveChoice(cause.origin, cause.failure, _ids(excepted) if excepted else [])


def _search_choice(query: str, cause: Cause | None, excepted: object, now: int) -> MoveChoice:
    """The choice of what a search finds now, perhaps among the dead letters of one cause."""
    if excepted:
        raise ControlRefusal("except does not go with a search")
    try:
        read_search(query, now)
    except SearchInvalidError as error:
        raise ControlRefusal(str(error)) from None
    return MoveChoice(cause.origin if cause else 0, cause.failure if cause else "", (), query, now)


def pace_of(members: Mapping[str, Any]) -> CarefulPace | int | None:
    """The requested pace: careful, or so many a second, 0 for as fast as possible; None: the request has none.

    Raises:
        ControlRefusal: Neither, or both.
    """
    pace, rate = members.get("pace"), members.get("rate")
    if pace is not None and (pace not in PACES or rate is not None):
        raise ControlRefusal(
            '"pace" must be "careful" or "fast", and excludes "rate", which is a steady pace'
        )
    if pace is not None:
        return CarefulPace() if pace == "careful" else 0
    return None if rate is None else number("rate", rate, 1, RATE_MAX)


def _ids(value: object) -> list[int]:
    if not isinstance(value, list) or not 1 <= len(value) <= BATCH_MAX:
        raise ControlRefusal(f'"ids" must be a list of 1 to {BATCH_MAX} ids')
    return [number("ids", letter_id, 1) for letter_id in value]


def shown_task(task: MoveTask) -> dict[str, Any]:
    """A redrive task as control routes show it."""
    pace = "steady" if task.rate_max else "fast"
    return {
        "task": task.id,
        "state": task.state,
        "started_at": task.started_at,
        "starts_at": task.starts_at or task.started_at,
        "to_move": task.to_move,
        "moved": task.moved,
        "to": None if task.destination is None else task.destination.name,
        "rate": task.rate_max,
        "pace": "careful" if task.careful else pace,
        "cause": None if task.choice is None else f"{task.choice.origin}:{task.choice.failure}",
        "looked_at": task.fares.looked_at,
        "taken": task.fares.taken,
        "failed": task.fares.failed,
        "stopped_why": task.stopped_why or None,
        "failure": task.failure,
    }
