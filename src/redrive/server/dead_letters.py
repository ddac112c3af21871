"""The control routes behind `redrive dlq` that look: dead-letter queues, why their messages died, and the messages."""

from typing import Any, Final

from redrive.aws.gateway.authentication import Authentication
from redrive.engine.engine import Engine
from redrive.engine.operations import CauseDetails, DeadLetter, DeadLetterQueue
from redrive.engine.ports import LookRequest, is_sealed
from redrive.model.http import Request, Response
from redrive.model.ids import id_text
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription
from redrive.server.owned import Audit, OwnedRoute, OwnedRoutes, json_answer, number, page_of, parameters
from redrive.server.redriving import PATH, RedriveRoutes, cause_of, existing

QUEUES: Final = f"{PATH}-queues"
LETTERS: Final = f"{PATH}s"
CAUSES: Final = f"{PATH}-causes"
CAUSES_MAX: Final = 200
COUNTED_MAX: Final = 100_000  # of each cause: 8 ms
TEXT_SHOWN_MAX: Final = 64 * 1024
_ENCRYPTED: Final = "(encrypted: receive it with the right to its key)"


class DeadLetterRoutes:
    """Answers requests about the caller's own dead letters."""

    def __init__(self, engine: Engine, authentication: Authentication, audit: Audit) -> None:
        self._engine = engine
        routes: dict[tuple[str, str], OwnedRoute] = {
            ("GET", QUEUES): self._queues,
            ("GET", LETTERS): self._letters,
            ("GET", CAUSES): self._causes,
            **RedriveRoutes(engine).routes,
        }
        self.answer = OwnedRoutes(authentication, routes, audit).answer

    async def _queues(self, _: Request, where: ResourceName) -> Response:
        queues = await self._engine.operations.dead_letter_queues(where.account, where.region)
        return json_answer(200, {"queues": [_shown_queue(queue) for queue in queues]})

    async def _letters(self, request: Request, where: ResourceName) -> Response:
        arguments = parameters(request)
        queue = await existing(self._engine, where, arguments.get("queue"))
        after, limit = page_of(arguments, "0")
        page = LookRequest(
            queue.id, limit + 1, number("after", after, 0), cause=cause_of(arguments.get("cause"))
        )
        letters = await self._engine.operations.look(page)
        now = self._engine.clock.now()
        documents = [shown_letter(letter, now) for letter in letters[:limit]]
        return json_answer(
            200, {"dead_letters": documents, "letters": documents, "more": len(letters) > limit}
        )

    async def _causes(self, request: Request, where: ResourceName) -> Response:
        """The causes of a queue's dead letters, the most frequent first."""
        arguments = parameters(request)
        queue = await existing(self._engine, where, arguments.get("queue"))
        operations = self._engine.operations
        causes = await operations.causes(queue, CAUSES_MAX, COUNTED_MAX)
        counts = await self._engine.messages.count(queue, COUNTED_MAX)
        documents = [_shown_cause(cause) for cause in causes]
        now = self._engine.clock.now()
        return json_answer(200, {"causes": documents, "available": counts.available, "now": now})


def _shown_queue(entry: DeadLetterQueue) -> dict[str, Any]:
    return {
        "queue": entry.queue.name.name,
        "dead_letters": entry.letters,
        "letters": entry.letters,
        "from_queues": [name.name for name in entry.from_queues],
        "from_subscriptions": [
            {"topic": sub.topic.name, "id": sub.id, "endpoint": sub.endpoint_place}
            for sub in entry.from_subscriptions
        ],
        "from_services": [
            {"service": sub.topic.region.partition(":")[2], "name": sub.topic.name}
            for sub in entry.from_carriers
        ],
    }


def _shown_cause(cause: CauseDetails) -> dict[str, Any]:
    count, last = cause.count, cause.last
    return {
        "cause": f"{count.cause.origin}:{count.cause.failure}",
        "failure": count.cause.failure,
        "from": source_of(cause.from_queue, cause.from_subscription),
        "dead_letters": count.number,
        "letters": count.number,
        "capped": count.capped,
        "first_sent_at": None if cause.first is None else cause.first.delivery.sent_at,
        "last_sent_at": None if last is None else last.delivery.sent_at,
        "last_response": last.notes[-1].response if last is not None and last.notes else "",
    }


def source_of(queue: ResourceName | None, subscription: Subscription | None) -> dict[str, Any]:
    """The origin of a dead letter: a queue, a subscription, or nothing that is known any more."""
    if subscription is not None:
        return {
            "topic": subscription.topic.name,
            "id": subscription.id,
            "endpoint": subscription.endpoint_place,
        }
    return {} if queue is None else {"queue": queue.name}


def shown_letter(letter: DeadLetter, now: int) -> dict[str, Any]:
    """A delivery as control routes show it: where it came from, what it went through, and what it says."""
    delivery = letter.delivery
    return {
        "id": delivery.seq,
        "message_id": id_text(delivery.message_id),
        "sent_at": delivery.sent_at,
        "attempts": letter.attempts,
        "group_id": delivery.group_id,
        "in_flight": delivery.available_at > now,
        "from": source_of(letter.from_queue, letter.from_subscription),
        "failure": delivery.failure,
        "reason": letter.notes[-1].reason if letter.notes else None,
        "history": [note._asdict() for note in letter.notes],
        "body": _ENCRYPTED if is_sealed(delivery) else delivery.body[:TEXT_SHOWN_MAX],
    }
