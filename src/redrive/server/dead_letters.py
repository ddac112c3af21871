"""The control routes behind `redrive dlq`: dead letters listed, shown and sent back."""

from typing import Any, Final

from redrive.engine.engine import Engine
from redrive.engine.operations import BATCH_MAX, DeadLetter, DeadLetterQueue
from redrive.model.errors import NotFound
from redrive.model.ids import id_text
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.task import MoveTask
from redrive.protocols.aws.authentication import Authentication
from redrive.protocols.http import Request, Response
from redrive.server.naming import queue_named
from redrive.server.owned import (
    OwnedRoute,
    OwnedRoutes,
    Unusable,
    document_of,
    json_answer,
    number,
    page_of,
    parameters,
)

PATH: Final = "/_redrive/dead-letter"
QUEUES: Final = f"{PATH}-queues"
LETTERS: Final = f"{PATH}s"
TASKS: Final = f"{PATH}-tasks"
RATE_MAX: Final = 500
TEXT_SHOWN_MAX: Final = 64 * 1024


class DeadLetterRoutes:
    """Answers requests about the caller's own dead letters."""

    def __init__(self, engine: Engine, authentication: Authentication) -> None:
        """Answer for this engine, to callers who are told apart like this."""
        self._engine = engine
        routes: dict[tuple[str, str], OwnedRoute] = {
            ("GET", QUEUES): self._queues,
            ("GET", LETTERS): self._letters,
            ("POST", LETTERS): self._redrive,
            ("GET", TASKS): self._tasks,
            ("POST", TASKS): self._cancel,
        }
        self.answer = OwnedRoutes(authentication, routes).answer

    async def _queues(self, _: Request, where: ResourceName) -> Response:
        found = await self._engine.operations.dead_letter_queues(where.account, where.region)
        return json_answer(200, {"queues": [_shown_queue(queue) for queue in found]})

    async def _letters(self, request: Request, where: ResourceName) -> Response:
        asked = parameters(request)
        queue = await self._queue(where, asked.get("queue"))
        after, limit = page_of(asked, "0")
        letters = await self._engine.operations.dead_letters(queue, number(after, 0), limit + 1)
        now = self._engine.clock.now()
        shown = [shown_letter(letter, now) for letter in letters[:limit]]
        return json_answer(200, {"letters": shown, "more": len(letters) > limit})

    async def _redrive(self, request: Request, where: ResourceName) -> Response:
        """`{"queue", "to"?, "ids"?, "rate"?}`: the chosen ones at once, or all of them as a task."""
        wish = document_of(request.body)
        source = await self._queue(where, wish.get("queue"))
        destination = None if wish.get("to") is None else await self._queue(where, wish["to"])
        ids = wish.get("ids")
        if ids is not None:
            seqs = [number(letter_id, 1) for letter_id in _list(ids)]
            moved = await self._engine.operations.move(source, seqs, destination)
            return json_answer(200, {"moved": moved.total})
        rate = None if wish.get("rate") is None else number(wish["rate"], 1, RATE_MAX)
        task = await self._engine.operations.start_redrive(source, destination, rate)
        return json_answer(202, {"task": task.id, "to_move": task.to_move})

    async def _tasks(self, request: Request, where: ResourceName) -> Response:
        """The redrive tasks of a queue, latest first; the last ten are remembered."""
        queue = await self._queue(where, parameters(request).get("queue"))
        tasks = await self._engine.operations.redrive_tasks(queue.name)
        return json_answer(200, {"tasks": [_shown_task(task) for task in tasks]})

    async def _cancel(self, request: Request, where: ResourceName) -> Response:
        """`{"queue", "cancel": true, "task"?}`: let a task stop, the running one if none is named."""
        wish = document_of(request.body)
        if wish.get("cancel") is not True:
            raise Unusable('expected {"queue": "…", "cancel": true}')
        queue = await self._queue(where, wish.get("queue"))
        name = wish.get("task")
        if name is None:
            tasks = await self._engine.operations.redrive_tasks(queue.name)
            name = next((task.id for task in tasks if task.state.active), None)
        if name is None:
            raise Unusable(f"no task of {queue.name.name} is running")
        try:
            task = await self._engine.operations.cancel_redrive(queue.name, str(name))
        except NotFound:
            raise Unusable(f"there is no task {name} of {queue.name.name}") from None
        return json_answer(200, {"task": _shown_task(task)})

    async def _queue(self, where: ResourceName, text: object) -> Queue:
        name = queue_named(where, text)
        queue = await self._engine.resources.queues.get(name)
        if queue is None:
            raise Unusable(f"there is no queue {name.name} in {name.account} {name.region}")
        return queue


def _list(value: object) -> list[Any]:
    if not isinstance(value, list) or not 1 <= len(value) <= BATCH_MAX:
        raise Unusable(f"ids is a list of 1 to {BATCH_MAX}")
    return value


def _shown_queue(found: DeadLetterQueue) -> dict[str, Any]:
    return {
        "queue": found.queue.name.name,
        "letters": found.letters,
        "from_queues": [name.name for name in found.from_queues],
        "from_subscriptions": [
            {"topic": sub.topic.name, "id": sub.id, "endpoint": sub.endpoint_place}
            for sub in found.from_subscriptions
        ],
    }


def _shown_task(task: MoveTask) -> dict[str, Any]:
    return {
        "task": task.id,
        "state": task.state,
        "started_at": task.started_at,
        "to_move": task.to_move,
        "moved": task.moved,
        "to": None if task.destination is None else task.destination.name,
        "rate": task.rate_max,
        "failure": task.failure,
    }


def shown_letter(letter: DeadLetter, now: int) -> dict[str, Any]:
    """A delivery as control routes show it: where it came from, what it went through, and what it says."""
    delivery, subscription = letter.delivery, letter.from_subscription
    source: dict[str, Any] = {}
    if subscription is not None:
        source = {
            "topic": subscription.topic.name,
            "id": subscription.id,
            "endpoint": subscription.endpoint_place,
        }
    elif letter.from_queue is not None:
        source = {"queue": letter.from_queue.name}
    return {
        "id": delivery.seq,
        "message_id": id_text(delivery.message_id),
        "sent_at": delivery.sent_at,
        "attempts": letter.attempts,
        "group_id": delivery.group_id,
        "in_flight": delivery.available_at > now,
        "from": source,
        "reason": letter.notes[-1].reason if letter.notes else None,
        "history": [note._asdict() for note in letter.notes],
        "body": delivery.body[:TEXT_SHOWN_MAX],
    }
