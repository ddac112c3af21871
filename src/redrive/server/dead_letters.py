"""The control routes behind `redrive dlq`: dead letters listed, shown and sent back."""

from typing import Any

from redrive.engine.engine import Engine
from redrive.engine.operations import BATCH_MAX, DeadLetter, DeadLetterQueue
from redrive.model.message import id_text
from redrive.model.queue import Queue, ResourceName
from redrive.protocols.aws.authentication import Authentication
from redrive.protocols.http import Request, Response
from redrive.server.owned import (
    OwnedRoute,
    OwnedRoutes,
    Unusable,
    document_of,
    json_answer,
    number,
    parameters,
)

PATH = "/_redrive/dead-letter"
QUEUES = f"{PATH}-queues"
LETTERS = f"{PATH}s"
PAGE_MAX = 1000
RATE_MAX = 500
TEXT_SHOWN_MAX = 64 * 1024


class DeadLetterRoutes:
    """Answers requests about the caller's own dead letters."""

    def __init__(self, engine: Engine, authentication: Authentication) -> None:
        """Answer for this engine, to callers who are told apart like this."""
        self._engine = engine
        routes: dict[tuple[str, str], OwnedRoute] = {
            ("GET", QUEUES): self._queues,
            ("GET", LETTERS): self._letters,
            ("POST", LETTERS): self._redrive,
        }
        self.answer = OwnedRoutes(authentication, routes).answer

    async def _queues(self, _: Request, where: ResourceName) -> Response:
        found = await self._engine.operations.dead_letter_queues(where.account, where.region)
        return json_answer(200, {"queues": [_shown_queue(one) for one in found]})

    async def _letters(self, request: Request, where: ResourceName) -> Response:
        asked = parameters(request)
        queue = await self._queue(where, asked.get("queue"))
        limit = number(asked.get("limit", "100"), 1, PAGE_MAX)
        letters = await self._engine.operations.dead_letters(queue, number(asked.get("after", "0"), 0), limit)
        now = self._engine.clock.now()
        return json_answer(200, {"letters": [_shown_letter(one, now) for one in letters]})

    async def _redrive(self, request: Request, where: ResourceName) -> Response:
        """`{"queue", "to"?, "ids"?, "rate"?}`: the chosen ones at once, or all of them as a task."""
        wish = document_of(request.body)
        source = await self._queue(where, wish.get("queue"))
        destination = None if wish.get("to") is None else await self._queue(where, wish["to"])
        ids = wish.get("ids")
        if ids is not None:
            seqs = [number(one, 1) for one in _list(ids)]
            moved = await self._engine.operations.move(source, seqs, destination)
            return json_answer(200, {"moved": moved.total})
        rate = None if wish.get("rate") is None else number(wish["rate"], 1, RATE_MAX)
        task = await self._engine.operations.start_redrive(source, destination, rate)
        return json_answer(202, {"task": task.id, "to_move": task.to_move})

    async def _queue(self, where: ResourceName, name: object) -> Queue:
        if not isinstance(name, str) or not name:
            raise Unusable("which queue?")
        queue = await self._engine.resources.queues.get(where._replace(name=name))
        if queue is None:
            raise Unusable(f"there is no queue {name} in {where.account} {where.region}")
        return queue


def _list(value: object) -> list[Any]:
    if not isinstance(value, list) or not 1 <= len(value) <= BATCH_MAX:
        raise Unusable(f"ids is a list of 1 to {BATCH_MAX}")
    return value


def _shown_queue(one: DeadLetterQueue) -> dict[str, Any]:
    return {
        "queue": one.queue.name.name,
        "letters": one.letters,
        "from_queues": [name.name for name in one.from_queues],
        "from_subscriptions": [
            {"topic": sub.topic.name, "id": sub.id, "endpoint": sub.endpoint_shown}
            for sub in one.from_subscriptions
        ],
    }


def _shown_letter(letter: DeadLetter, now: int) -> dict[str, Any]:
    delivery, subscription = letter.delivery, letter.from_subscription
    source: dict[str, Any] = {}
    if subscription is not None:
        source = {
            "topic": subscription.topic.name,
            "id": subscription.id,
            "endpoint": subscription.endpoint_shown,
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
