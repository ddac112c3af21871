"""The control routes behind `redrive dlq`: dead letters listed, shown and sent back."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

import orjson

from redrive.engine.dead_letters import DeadLetter, DeadLetterQueue
from redrive.engine.engine import Engine
from redrive.engine.redrive import BATCH_MAX
from redrive.model.errors import RedriveError, StoreUnavailable
from redrive.model.message import id_text
from redrive.model.queue import Queue, ResourceName
from redrive.protocols.aws.authentication import Authentication
from redrive.protocols.aws.wire.errors import AwsError
from redrive.protocols.http import Request, Response

PATH = "/_redrive/dead-letter"
QUEUES = f"{PATH}-queues"
LETTERS = f"{PATH}s"
SIGNING_NAME = "redrive"  # the service a request is signed for, where signatures are required
PAGE_MAX = 1000
RATE_MAX = 500
TEXT_SHOWN_MAX = 64 * 1024


class DeadLetterRoutes:
    """Answers requests about the caller's own dead letters."""

    def __init__(self, engine: Engine, authentication: Authentication) -> None:
        """Answer for this engine, to callers who are told apart like this."""
        self._engine = engine
        self._authentication = authentication
        self._routes = {
            ("GET", QUEUES): self._queues,
            ("GET", LETTERS): self._letters,
            ("POST", LETTERS): self._redrive,
        }

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        route = self._routes.get((request.method, request.path))
        if route is None:
            return _json(404, {"message": f"no route {request.method} {request.path}"})
        try:
            caller = await self._authentication.caller(request, SIGNING_NAME)
            return await route(request, ResourceName(caller.principal.account, caller.region, ""))
        except AwsError as error:
            return _json(error.status, {"message": error.message})
        except _Unusable as error:
            return _json(400, {"message": str(error)})
        except StoreUnavailable as error:
            return _json(503, {"message": str(error)})
        except RedriveError as error:
            return _json(409, {"message": f"{type(error).__name__}: {error}"})

    async def _queues(self, _: Request, where: ResourceName) -> Response:
        found = await self._engine.dead_letters.queues(where.account, where.region)
        return _json(200, {"queues": [_shown_queue(one) for one in found]})

    async def _letters(self, request: Request, where: ResourceName) -> Response:
        asked = {name: values[-1] for name, values in parse_qs(request.query).items()}
        queue = await self._queue(where, asked.get("queue"))
        limit = _number(asked.get("limit", "100"), 1, PAGE_MAX)
        letters = await self._engine.dead_letters.letters(queue, _number(asked.get("after", "0"), 0), limit)
        now = self._engine.clock.now()
        return _json(200, {"letters": [_shown_letter(one, now) for one in letters]})

    async def _redrive(self, request: Request, where: ResourceName) -> Response:
        """`{"queue", "to"?, "ids"?, "rate"?}`: the chosen ones at once, or all of them as a task."""
        wish = _document(request.body)
        source = await self._queue(where, wish.get("queue"))
        destination = None if wish.get("to") is None else await self._queue(where, wish["to"])
        ids = wish.get("ids")
        if ids is not None:
            seqs = [_number(one, 1) for one in _list(ids)]
            moved = await self._engine.redriver.move(source, seqs, destination)
            return _json(200, {"moved": moved.total})
        rate = None if wish.get("rate") is None else _number(wish["rate"], 1, RATE_MAX)
        task = await self._engine.redriver.start(source, destination, rate)
        return _json(202, {"task": task.id, "to_move": task.to_move})

    async def _queue(self, where: ResourceName, name: object) -> Queue:
        if not isinstance(name, str) or not name:
            raise _Unusable("which queue?")
        queue = await self._engine.queues.get(where._replace(name=name))
        if queue is None:
            raise _Unusable(f"there is no queue {name} in {where.account} {where.region}")
        return queue


class _Unusable(Exception):  # noqa: N818 - an answer, not a failure
    """The request cannot be used; the message says why."""


def _document(body: bytes) -> Mapping[str, Any]:
    try:
        document = orjson.loads(body)
    except ValueError:
        raise _Unusable("the body is no JSON") from None
    if not isinstance(document, dict):
        raise _Unusable("the body is no JSON object")
    return document


def _list(value: object) -> list[Any]:
    if not isinstance(value, list) or not 1 <= len(value) <= BATCH_MAX:
        raise _Unusable(f"ids is a list of 1 to {BATCH_MAX}")
    return value


def _number(value: object, least: int, most: int = 2**63 - 1) -> int:
    text = str(value)
    if not (text.isascii() and text.isdigit()) or not least <= int(text[:20]) <= most:
        raise _Unusable(f"{text!r} is not a number from {least} to {most}")
    return int(text)


def _shown_queue(one: DeadLetterQueue) -> dict[str, Any]:
    return {
        "queue": one.queue.name.name,
        "letters": one.letters,
        "from_queues": [name.name for name in one.from_queues],
        "from_subscriptions": [
            {"topic": sub.topic.name, "id": sub.id, "endpoint": sub.endpoint}
            for sub in one.from_subscriptions
        ],
    }


def _shown_letter(letter: DeadLetter, now: int) -> dict[str, Any]:
    delivery, subscription = letter.delivery, letter.from_subscription
    source: dict[str, Any] = {}
    if subscription is not None:
        source = {"topic": subscription.topic.name, "id": subscription.id, "endpoint": subscription.endpoint}
    elif letter.from_queue is not None:
        source = {"queue": letter.from_queue.name}
    return {
        "id": delivery.seq,
        "message_id": id_text(delivery.message_id),
        "sent_at": delivery.sent_at,
        "attempts": delivery.attempts,
        "group_id": delivery.group_id,
        "in_flight": delivery.available_at > now,
        "from": source,
        "reason": letter.notes[-1].reason if letter.notes else None,
        "history": [note._asdict() for note in letter.notes],
        "body": delivery.body[:TEXT_SHOWN_MAX],
    }


def _json(status: int, document: Mapping[str, Any]) -> Response:
    return Response(status, orjson.dumps(document))
