"""The control routes behind `redrive queues`, `redrive topics` and `redrive trace`."""

from typing import Any, Final

from redrive.aws.gateway.authentication import Authentication
from redrive.engine.engine import Engine
from redrive.engine.operations import TracedDelivery
from redrive.model.http import Request, Response
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic
from redrive.server.dead_letters import shown_letter
from redrive.server.owned import ControlRefusal, OwnedRoute, OwnedRoutes, json_answer, page_of, parameters

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
        counts = await self._engine.messages.count_backlog(subscription)
        dead_letter = subscription.dead_letter
        return {
            "id": subscription.id,
            "protocol": subscription.protocol,
            "endpoint": subscription.endpoint_place,
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
    delivery, subscription = traced.letter.delivery, traced.subscription
    held = "in_flight" if delivery.token is not None else "delayed"
    owner = None
    if subscription is not None:
        owner = {
            "topic": subscription.topic.name,
            "id": subscription.id,
            "protocol": subscription.protocol,
            "endpoint": subscription.endpoint_place,
        }
    return {
        "queue": None if traced.queue is None else traced.queue.name.name,
        "subscription": owner,
        "state": held if delivery.available_at > now else "available",
        "available_at": delivery.available_at,
        "dead_letter": delivery.origin is not None,
        **shown_letter(traced.letter, now),
    }
