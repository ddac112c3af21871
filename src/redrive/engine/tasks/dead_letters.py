"""Dead letters seen from their side: which queues hold them, where each came from, and what it went through."""

from collections.abc import Sequence
from dataclasses import dataclass

from redrive.engine.ports import AttemptNote, Clock, Store
from redrive.engine.resources import Resources
from redrive.model.delivery import Delivery
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.topic import Subscription


@dataclass(frozen=True, slots=True)
class DeadLetterQueue:
    """A queue that others send their failures to.

    Attributes:
        queue: The queue.
        letters: How many may be redriven now.
        from_queues: Queues that send theirs here.
        from_subscriptions: Subscriptions that do.
    """

    queue: Queue
    letters: int
    from_queues: Sequence[ResourceName]
    from_subscriptions: Sequence[Subscription]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One message that could not be delivered or processed.

    Attributes:
        delivery: As it stands in its dead-letter queue.
        from_queue: The queue it failed in, if it was one.
        from_subscription: The subscription it was for, if it was one.
        notes: Its attempts as far as they are remembered; a queue's consumers never say why they gave up.
    """

    delivery: Delivery
    from_queue: ResourceName | None
    from_subscription: Subscription | None
    notes: Sequence[AttemptNote]

    @property
    def attempts(self) -> int:
        """The number of attempts; for a message that consumers gave up, the number of receives, here and before."""
        return max((note.number for note in self.notes), default=self.delivery.attempts)


class DeadLetters:
    """Looks into dead-letter queues without touching them."""

    def __init__(self, store: Store, clock: Clock, resources: Resources) -> None:
        """Look through these parts."""
        self._store = store
        self._clock = clock
        self._queues = resources.queues
        self._subscriptions = resources.subscriptions

    async def queues(self, account: str, region: str) -> list[DeadLetterQueue]:
        """The dead-letter queues of an account's region that stand, by name."""
        sources: dict[ResourceName, list[ResourceName]] = {}
        for source in await self._queues.with_dead_letters(ResourceName(account, region, "")):
            if source.dead_letter is not None:
                sources.setdefault(source.dead_letter.queue, []).append(source.name)
        subscriptions: dict[ResourceName, list[Subscription]] = {}
        for subscription in await self._subscriptions.of_account(account, region):
            if subscription.dead_letter is not None:
                subscriptions.setdefault(subscription.dead_letter, []).append(subscription)
        found = []
        for name in sorted({*sources, *subscriptions}):
            queue = await self._queues.get(name)
            if queue is not None:
                counts = await self._store.count(queue.id, self._clock.now())
                found.append(
                    DeadLetterQueue(
                        queue, counts.available, sources.get(name, []), subscriptions.get(name, [])
                    )
                )
        return found

    async def letters(self, queue: Queue, after_seq: int, limit: int) -> list[DeadLetter]:
        """The messages in a dead-letter queue, in order of arrival."""
        return [await self.letter(each) for each in await self._store.peek(queue.id, limit, after_seq)]

    async def letter(self, delivery: Delivery) -> DeadLetter:
        """A delivery with where it came from, if it was dead-lettered, and the attempts that failed, here or there."""
        if delivery.origin is None:
            notes = await self._store.notes(delivery.queue_id, delivery.message_id)
            return DeadLetter(delivery, None, None, notes)
        subscription = await self._subscriptions.of_backlog(delivery.origin)
        from_queue = None if subscription is not None else await self._queues.name_of(delivery.origin)
        notes = await self._store.notes(delivery.origin, delivery.message_id)
        return DeadLetter(delivery, from_queue, subscription, notes)
