"""The control routes that look: behind `redrive queues`, `topics` and `trace`, and behind `redrive dlq`."""

from typing import Any, Final

from redrive.aws.gateway.authentication import Authentication
from redrive.engine.engine import Engine
from redrive.engine.operations import CauseDetails, DeadLetter, DeadLetterQueue, TracedDelivery
from redrive.engine.ports import LookRequest
from redrive.model.delivery import is_sealed
from redrive.model.http import Request, Response
from redrive.model.names import ResourceName, id_text
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic
from redrive.server.owned import (
    Audit,
    ControlRefusal,
    OwnedRoute,
    OwnedRoutes,
    json_answer,
    number,
    page_of,
    parameters,
)
from redrive.server.redriving import LETTERS, PATH, RedriveRoutes, cause_of, find_queue

DEAD_LETTER_QUEUES: Final = f"{PATH}-queues"

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
            ("GET", DEAD_LETTER_QUEUES): self._queues,
            ("GET", LETTERS): self._letters,
            ("GET", CAUSES): self._causes,
            **RedriveRoutes(engine).routes,
        }
        self.answer = OwnedRoutes(authentication, routes, audit).answer

    async def _queues(self, _: Request, where: ResourceName) -> Response:
        queues = await self._engine.operations.dead_letters.queues(where.account, where.region)
        return json_answer(200, {"queues": [_shown_queue(queue) for queue in queues]})

    async def _letters(self, request: Request, where: ResourceName) -> Response:
        """A page of a queue's dead letters, or of one cause's; `letters` is the former name of `dead_letters`."""
        arguments = parameters(request)
        queue = await find_queue(self._engine, where, arguments.get("queue"))
        after, limit = page_of(arguments, "0")
        page = LookRequest(
            queue.id, limit + 1, number("after", after, 0), cause=cause_of(arguments.get("cause"))
        )
        letters = await self._engine.operations.dead_letters.look(page)
        now = self._engine.clock.now()
        documents = [shown_letter(letter, now) for letter in letters[:limit]]
        return json_answer(
            200, {"dead_letters": documents, "letters": documents, "more": len(letters) > limit}
        )

    async def _causes(self, request: Request, where: ResourceName) -> Response:
        """The causes of a queue's dead letters, the most frequent first."""
        arguments = parameters(request)
        queue = await find_queue(self._engine, where, arguments.get("queue"))
        operations = self._engine.operations
        causes = await operations.dead_letters.causes(queue, CAUSES_MAX, COUNTED_MAX)
        counts = await self._engine.messages.count(queue, COUNTED_MAX)
        documents = [_shown_cause(cause) for cause in causes]
        now = self._engine.clock.now()
        return json_answer(200, {"causes": documents, "available": counts.available, "now": now})


def _shown_queue(entry: DeadLetterQueue) -> dict[str, Any]:
    """A dead-letter queue and its origins; `letters` is the former name of `dead_letters`."""
    return {
        "queue": entry.queue.name.name,
        "dead_letters": entry.number,
        "letters": entry.number,
        "from_queues": [name.name for name in entry.from_queues],
        "from_subscriptions": [
            {"topic": each.topic.name, "id": each.id, "endpoint": each.redacted_endpoint}
            for each in entry.from_subscriptions
        ],
        "from_services": [  # a service's private topics have its name behind their region
            {"service": each.topic.region.partition(":")[2], "name": each.topic.name}
            for each in entry.from_services
        ],
    }


def _shown_cause(cause: CauseDetails) -> dict[str, Any]:
    """A cause with its first and last dead letter; `letters` is the former name of `dead_letters`."""
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
            "endpoint": subscription.redacted_endpoint,
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


QUEUES: Final = "/_redrive/queues"
TOPICS: Final = "/_redrive/topics"
TRACE: Final = "/_redrive/trace"
SUBSCRIPTIONS_SHOWN_MAX: Final = 100  # of each topic
PATHS: Final = (QUEUES, TOPICS, TRACE)


class ResourceRoutes:
    """Answers requests about the caller's own queues, topics and messages."""

    def __init__(self, engine: Engine, authentication: Authentication) -> None:
        self._engine = engine
        routes: dict[tuple[str, str], OwnedRoute] = {
            ("GET", QUEUES): self._queues,
            ("GET", TOPICS): self._topics,
            ("GET", TRACE): self._trace,
        }
        self.answer = OwnedRoutes(authentication, routes).answer

    async def _queues(self, request: Request, where: ResourceName) -> Response:
        """Queues by name, each with its counts."""
        beginning, after_key, limit = _page(request, where)
        queues = await self._engine.resources.queues.find(beginning, after_key, limit + 1)
        documents = [await self._shown_queue(queue) for queue in queues[:limit]]
        return json_answer(200, {"queues": documents, "more": len(queues) > limit})

    async def _shown_queue(self, queue: Queue) -> dict[str, Any]:
        """A queue with its counts."""
        counts = await self._engine.messages.count(queue)
        return {
            "queue": queue.name.name,
            "fifo": queue.ordered,
            "available": counts.available,
            "in_flight": counts.claimed,
            "delayed": counts.delayed,
            "dead_letter_queue": None if queue.dead_letter is None else queue.dead_letter.queue.name,
            "receives_max": None if queue.dead_letter is None else queue.dead_letter.attempts_max,
        }

    async def _topics(self, request: Request, where: ResourceName) -> Response:
        """Topics by name, each with its subscriptions and what they are owed."""
        beginning, after_key, limit = _page(request, where)
        topics = await self._engine.resources.topics.find(beginning, after_key, limit + 1)
        documents = [await self._shown_topic(topic) for topic in topics[:limit]]
        return json_answer(200, {"topics": documents, "more": len(topics) > limit})

    async def _shown_topic(self, topic: Topic) -> dict[str, Any]:
        """A topic with its first subscriptions."""
        subscriptions = await self._engine.resources.subscriptions.of(
            topic.name, limit=SUBSCRIPTIONS_SHOWN_MAX + 1
        )
        first_page = subscriptions[:SUBSCRIPTIONS_SHOWN_MAX]
        return {
            "topic": topic.name.name,
            "fifo": topic.ordered,
            "subscriptions": [await self._shown_subscription(each) for each in first_page],
            "more_subscriptions": len(subscriptions) > SUBSCRIPTIONS_SHOWN_MAX,
        }

    async def _shown_subscription(self, subscription: Subscription) -> dict[str, Any]:
        """A subscription with the number of deliveries in its backlog."""
        counts = await self._engine.messages.count_backlog(subscription)
        dead_letter = subscription.dead_letter
        return {
            "id": subscription.id,
            "protocol": subscription.protocol,
            "endpoint": subscription.redacted_endpoint,
            "confirmed": subscription.confirmed,
            "owed": sum(counts),
            "dead_letter_queue": None if dead_letter is None else dead_letter.name,
        }

    async def _trace(self, request: Request, where: ResourceName) -> Response:
        """The deliveries of a message."""
        message_id = parameters(request).get("message", "")
        if not message_id:
            raise ControlRefusal("no message is named")
        trace = await self._engine.operations.trace(where.account, where.region, message_id)
        now = self._engine.clock.now()
        documents = [_shown_traced(traced, now) for traced in trace.deliveries]
        return json_answer(200, {"deliveries": documents, "partial": trace.partial, "now": now})


def _page(request: Request, where: ResourceName) -> tuple[ResourceName, str, int]:
    """The page of a list that is asked for: how its names begin, the key that it comes after, and how many it shows."""
    arguments = parameters(request)
    after, limit = page_of(arguments)
    after_key = where._replace(name=after).key if after else ""
    return where._replace(name=arguments.get("prefix", "")), after_key, limit


def _shown_traced(traced: TracedDelivery, now: int) -> dict[str, Any]:
    """One delivery of a traced message, and the queue or subscription that holds it."""
    delivery, subscription = traced.letter.delivery, traced.subscription
    waiting_state = "in_flight" if delivery.token is not None else "delayed"
    owner = None
    if subscription is not None:
        owner = {
            "topic": subscription.topic.name,
            "id": subscription.id,
            "protocol": subscription.protocol,
            "endpoint": subscription.redacted_endpoint,
        }
    return {
        "queue": None if traced.queue is None else traced.queue.name.name,
        "subscription": owner,
        "state": waiting_state if delivery.available_at > now else "available",
        "available_at": delivery.available_at,
        "dead_letter": delivery.origin is not None,
        **shown_letter(traced.letter, now),
    }
