"""Dead letters seen from their side: which queues hold them, where each came from, and what it went through."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from redrive.engine.configuration.dead_letter_sources import UNKNOWN, DeadLetterSources, LetterOrigin, Sources
from redrive.engine.ports import (
    COUNTED_TOGETHER_MAX,
    AttemptNote,
    CauseCount,
    Clock,
    LookRequest,
    QueueStore,
    fair_share,
)
from redrive.engine.resources import Resources
from redrive.model.delivery import Delivery
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.topic import Subscription


@dataclass(frozen=True, slots=True)
class DeadLetterQueue:
    """A queue that others send their failures to."""

    queue: Queue
    letters: int  # How many may be redriven now
    from_queues: Sequence[ResourceName]  # Queues that send theirs here
    from_subscriptions: Sequence[Subscription]  # Subscriptions that do
    # Subscriptions that carry dead letters of something else here: of a function, for instance.
    from_carriers: Sequence[Subscription] = ()
    at_most: int | None = None  # The number that the count went as far as; None: to the end


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One message that could not be delivered or processed."""

    delivery: Delivery  # As it stands in its dead-letter queue
    from_queue: ResourceName | None  # The queue it failed in, if it was one
    from_subscription: Subscription | None  # The subscription it was for, if it was one
    # Its attempts as far as they are remembered; a queue's consumers never say why they gave up.
    notes: Sequence[AttemptNote]

    @property
    def attempts(self) -> int:
        """The number of attempts; for a message that consumers gave up, the number of receives, here and before."""
        return max((note.number for note in self.notes), default=self.delivery.attempts)


@dataclass(frozen=True, slots=True)
class CauseDetails:
    """The dead letters of a queue that have one cause."""

    count: CauseCount  # Their cause and their number
    from_queue: ResourceName | None  # The queue they failed in, if it was one
    from_subscription: Subscription | None  # The subscription they were for, if it was one
    first: DeadLetter | None  # The one that arrived first; None: it went while this was looked at
    last: DeadLetter | None  # The one that arrived last, whose notes say what the endpoint said


class DeadLetters:
    """Reads dead-letter queues without changing them."""

    def __init__(
        self, store: QueueStore, clock: Clock, resources: Resources, sources: DeadLetterSources
    ) -> None:
        self._store = store
        self._clock = clock
        self._queues = resources.queues
        self._sources = sources

    async def queues(self, account: str, region: str, count_max: int | None = None) -> list[DeadLetterQueue]:
        """The dead-letter queues of an account's region that stand, by name; counted as far as `count_max`.

        Those whose sources were all deleted are among them as long as they hold dead letters.
        """
        return await self.queues_of([ResourceName(account, region, "")], count_max)

    async def queues_of(
        self, scopes: Sequence[ResourceName], count_max: int | None = None
    ) -> list[DeadLetterQueue]:
        """The same of several accounts and regions: one read counts them all, each as far as `count_max` or less."""
        sources = {
            target: existing
            for location in scopes
            for target, existing in (await self._sources.by_target(location.account, location.region)).items()
        }
        existing = [await self._queues.get(name) for name in sources]
        queues = [queue for queue in existing if queue is not None]
        most = None if count_max is None else fair_share(COUNTED_TOGETHER_MAX, len(queues), count_max)
        numbers = await self._numbers(queues, most)
        return [
            DeadLetterQueue(queue, numbers[queue.id], *sources[queue.name][:3], most)
            for queue in queues
            if await self._is_target(queue, numbers[queue.id], sources[queue.name])
        ]

    async def _is_target(self, queue: Queue, number: int, sources: Sources) -> bool:
        """True if something sends its dead letters to a queue, or did before it was deleted and they are still there.

        What came after the last source was deleted is not a dead letter: the queue has found another use.
        """
        if sources.queues or sources.subscriptions or sources.carriers:
            return True
        if not number or sources.deleted_at is None:
            return False
        first = await self._store.look(LookRequest(queue.id, 1))
        return any(delivery.sent_at <= sources.deleted_at for delivery in first)

    async def _numbers(self, queues: Sequence[Queue], at_most: int | None) -> dict[int, int]:
        """The numbers of messages that may be redriven now."""
        now = self._clock.now()
        if at_most is None:
            return {queue.id: (await self._store.count(queue.id, now)).available for queue in queues}
        counts = await self._store.count_each([queue.id for queue in queues], now, at_most) if queues else {}
        return {queue_id: each.available for queue_id, each in counts.items()}

    async def targets(self, account: str, region: str) -> Collection[ResourceName]:
        """The queues of an account's region that others send their dead letters to, whether they stand or not."""
        return (await self._sources.by_target(account, region)).keys()

    async def sources(self, queue: Queue) -> list[Queue | Subscription]:
        """The queues and subscriptions that send their dead letters to this one."""
        return await self._sources.of(queue.name)

    async def scopes(self, account: str = "", after: ResourceName | None = None) -> list[ResourceName]:
        """The accounts and regions that have queues or topics (`DeadLetterSources.scopes`)."""
        return await self._sources.scopes(account, after)

    async def causes(self, queue: Queue, limit: int, count_max: int) -> list[CauseDetails]:
        """The causes of a queue's dead letters, the most frequent first: three reads, and two for unknown origins.

        Args:
            queue: Where they are.
            limit: At most so many causes.
            count_max: Of each so many are counted.
        """
        counts = await self.cause_counts(queue, limit, count_max)
        return await self.causes_of(counts, await self.of(await self.ends(queue, counts)))

    async def cause_counts(self, queue: Queue, limit: int, count_max: int) -> list[CauseCount]:
        """The dead letters of a queue by cause, the most frequent first: one read."""
        counts = await self._store.causes(queue.id, limit, count_max)
        return sorted(counts, key=lambda count: -count.number)

    async def ends(self, queue: Queue, counts: Sequence[CauseCount]) -> list[Delivery]:
        """The first and the last dead letter of each cause: one read."""
        seqs = sorted({seq for count in counts for seq in (count.first_seq, count.last_seq)})
        return await self.peek(LookRequest(queue.id, len(seqs), seqs=seqs)) if seqs else []

    async def causes_of(
        self, counts: Sequence[CauseCount], letters: Sequence[DeadLetter]
    ) -> list[CauseDetails]:
        """The causes with what these dead letters, among them the ends of each cause, say of them."""
        of_place = {letter.delivery.seq: letter for letter in letters}
        origins = await self._sources.origins({count.cause.origin for count in counts})
        return [
            CauseDetails(
                count,
                *origins[count.cause.origin],
                of_place.get(count.first_seq),
                of_place.get(count.last_seq),
            )
            for count in counts
        ]

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

        One read for all notes, and two for the places they came from, unless these are remembered.
        """
        if not deliveries:
            return []
        keys = [(delivery.origin or delivery.queue_id, delivery.message_id) for delivery in deliveries]
        notes = await self._store.notes_of_each(keys)
        numbers = {delivery.origin for delivery in deliveries if delivery.origin is not None}
        origins = await self._sources.origins(numbers)
        return [
            DeadLetter(delivery, *origins.get(delivery.origin or 0, UNKNOWN), notes.get(key, ()))
            for delivery, key in zip(deliveries, keys, strict=True)
        ]

    async def origin(self, number: int | None) -> LetterOrigin:
        """The queue or the subscription that a number stands or stood for, as far as it is known."""
        return UNKNOWN if number is None else (await self._sources.origins([number]))[number]
