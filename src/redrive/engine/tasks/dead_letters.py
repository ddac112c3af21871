"""Dead letters seen from their side: which queues hold them, where each came from, and what it went through."""

from collections.abc import Sequence
from dataclasses import dataclass

from redrive.engine.ports import AttemptNote, Clock, FailureGroup, LookRequest, Store
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


@dataclass(frozen=True, slots=True)
class Cause:
    """The dead letters of a queue that have one cause.

    Attributes:
        group: Their cause and their number.
        from_queue: The queue they failed in, if it was one.
        from_subscription: The subscription they were for, if it was one.
        first: The one that arrived first; None: it went while this was looked at.
        last: The one that arrived last, whose notes say what the endpoint said.
    """

    group: FailureGroup
    from_queue: ResourceName | None
    from_subscription: Subscription | None
    first: DeadLetter | None
    last: DeadLetter | None


class DeadLetters:
    """Looks into dead-letter queues without touching them."""

    def __init__(self, store: Store, clock: Clock, resources: Resources) -> None:
        """Look through these parts."""
        self._store = store
        self._clock = clock
        self._queues = resources.queues
        self._subscriptions = resources.subscriptions

    async def queues(self, account: str, region: str, count_max: int | None = None) -> list[DeadLetterQueue]:
        """The dead-letter queues of an account's region that stand, by name; counted as far as `count_max`."""
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
                counts = await self._store.count(queue.id, self._clock.now(), count_max)
                found.append(
                    DeadLetterQueue(
                        queue, counts.available, sources.get(name, []), subscriptions.get(name, [])
                    )
                )
        return found

    async def sources(self, queue: Queue) -> list[Queue | Subscription]:
        """The queues and subscriptions that send their dead letters to this one."""
        return [
            *await self._queues.sources_of(queue.name),
            *await self._subscriptions.dead_lettering_to(queue.name),
        ]

    async def causes(self, queue: Queue, limit: int, count_max: int) -> list[Cause]:
        """The causes of a queue's dead letters, the most frequent first: three reads, and one for each origin.

        Args:
            queue: Where they are.
            limit: At most so many causes.
            count_max: Of each so many are counted.
        """
        groups = await self._store.failures(queue.id, limit, count_max)
        places = {seq for group in groups for seq in (group.first_seq, group.last_seq)}
        ends = await self.look(LookRequest(queue.id, len(places), seqs=sorted(places))) if places else []
        letters = {letter.delivery.seq: letter for letter in ends}
        origins = {number: await self.origin(number) for number in {group.key.origin for group in groups}}
        found = [
            Cause(
                group,
                *origins[group.key.origin],
                letters.get(group.first_seq),
                letters.get(group.last_seq),
            )
            for group in groups
        ]
        return sorted(found, key=lambda cause: -cause.group.number)

    async def letters(self, queue: Queue, after_seq: int, limit: int) -> list[DeadLetter]:
        """The messages in a dead-letter queue, in order of arrival."""
        return await self.look(LookRequest(queue.id, limit, after_seq))

    async def look(self, request: LookRequest) -> list[DeadLetter]:
        """A page of a dead-letter queue."""
        return await self.of(await self._store.look(request))

    async def peek(self, request: LookRequest) -> list[Delivery]:
        """A page of any queue as it is, for who looks through many: one read."""
        return await self._store.look(request)

    async def of(self, deliveries: Sequence[Delivery]) -> list[DeadLetter]:
        """Deliveries with where they came from, if they were dead-lettered, and their attempts that failed.

        One read for all notes, and one for each place they came from: of a page there are few.
        """
        if not deliveries:
            return []
        keys = [(delivery.origin or delivery.queue_id, delivery.message_id) for delivery in deliveries]
        notes = await self._store.notes_of_each(keys)
        origins = {each: await self.origin(each) for each in {delivery.origin for delivery in deliveries}}
        return [
            DeadLetter(delivery, *origins[delivery.origin], notes.get(key, ()))
            for delivery, key in zip(deliveries, keys, strict=True)
        ]

    async def origin(self, number: int | None) -> tuple[ResourceName | None, Subscription | None]:
        """The queue or the subscription that a number stands or stood for, as far as it is known."""
        if number is None:
            return None, None
        subscription = await self._subscriptions.of_backlog(number)
        return (None if subscription is not None else await self._queues.name_of(number)), subscription
