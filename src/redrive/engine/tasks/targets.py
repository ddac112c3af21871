"""Targets of a redrive: the queues and backlogs that dead letters go back to."""

from collections.abc import Iterable, Sequence

from redrive.engine.ports import Target
from redrive.engine.resources import Resources
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.topic import Subscription


class RedriveTargets:
    """Finds where dead letters came from, as far as that still stands.

    A subscription's backlog is the same kind of queue as any: what is redriven into it is pushed again, from its first
    attempt.
    """

    def __init__(self, resources: Resources) -> None:
        self._queues = resources.queues
        self._topics = resources.topics
        self._subscriptions = resources.subscriptions

    async def origins(self, source: ResourceName, numbers: Iterable[int] = ()) -> list[Queue | Subscription]:
        """The queues and subscriptions whose dead letters come to `source`, and those of these numbers besides."""
        of_queues = {queue.id: queue for queue in await self._queues.sources_of(source)}
        of_topics = {
            subscription.queue_id: subscription
            for subscription in await self._subscriptions.dead_lettering_to(source)
        }
        known: dict[int, Queue | Subscription] = {**of_queues, **of_topics}
        others = [await self.origin(number) for number in sorted(set(numbers) - known.keys())]
        return [*known.values(), *(origin for origin in others if origin is not None)]

    async def standing(self, origins: Sequence[Queue | Subscription]) -> dict[int, Target]:
        """The origins that are still there, by number: one may be deleted in the hours that a task takes."""
        targets = [await self._target(origin) for origin in origins]
        return {target.queue_id: target for target in targets if target is not None}

    async def of_numbers(self, numbers: Iterable[int | None]) -> dict[int, Target]:
        """The queues and backlogs of these numbers that are still there."""
        found = [await self.origin(number) for number in set(numbers) if number is not None]
        return await self.standing([origin for origin in found if origin is not None])

    async def origin(self, number: int) -> Queue | Subscription | None:
        """The queue or the subscription of a number, if it stands."""
        subscription = await self._subscriptions.of_backlog(number)
        return subscription if subscription is not None else await self._queues.of_number(number)

    async def dead_letters_of(self, number: int) -> Target | None:
        """The dead-letter queue that an origin sends to now, if it has one and that stands."""
        origin = await self.origin(number)
        if origin is None or origin.dead_letter is None:
            return None
        name = origin.dead_letter.queue if isinstance(origin, Queue) else origin.dead_letter
        queue = await self._queues.get(name)
        return None if queue is None else Target(queue.id, queue.ordered)

    async def _target(self, origin: Queue | Subscription) -> Target | None:
        if isinstance(origin, Queue):
            queue = await self._queues.get(origin.name)
            stands = queue is not None and queue.id == origin.id
            return Target(origin.id, origin.ordered) if stands else None
        subscription = await self._subscriptions.get(origin.topic, origin.id)
        topic = await self._topics.get(origin.topic)
        if subscription is None or topic is None or subscription.queue_id != origin.queue_id:
            return None
        return Target(origin.queue_id, topic.ordered)
