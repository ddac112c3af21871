"""Dead letters: which queues hold them, where each came from, what it went through, and moves of chosen ones."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from redrive.engine.configuration.dead_letter_sources import (
    UNKNOWN,
    DeadLetterOrigin,
    DeadLetterSources,
    Sources,
)
from redrive.engine.node.memory import NodeCounters
from redrive.engine.ports import (
    COUNTED_TOGETHER_MAX,
    AttemptNote,
    CauseCount,
    Clock,
    LookRequest,
    MessageStore,
    Moved,
    MoveRequest,
    MoveTarget,
    QueueStore,
    Runtime,
    fair_share,
)
from redrive.engine.receive.notifier import QueueNotifier
from redrive.engine.resources import Resources
from redrive.engine.tasks.redrive_plan import RedriveTargets
from redrive.engine.tasks.searching import add_attempts
from redrive.model.delivery import Delivery
from redrive.model.errors import AlreadyExists, Refused
from redrive.model.names import ResourceName
from redrive.model.queue import DAY_MS, Queue
from redrive.model.topic import Subscription


@dataclass(frozen=True, slots=True)
class DeadLetterQueue:
    """A queue that others send their failures to."""

    queue: Queue
    number: int  # Dead letters that may be redriven now
    from_queues: Sequence[ResourceName]  # Queues that send theirs here
    from_subscriptions: Sequence[Subscription]  # Subscriptions that do
    # Subscriptions by which services send dead letters of their own here: those of a function, for instance.
    from_services: Sequence[Subscription] = ()
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
        return await self.queues_of([ResourceName(account, region)], count_max)

    async def queues_of(
        self, scopes: Sequence[ResourceName], count_max: int | None = None
    ) -> list[DeadLetterQueue]:
        """As `queues`, for several accounts and regions: one read counts them all, each up to `count_max` or less."""
        sources: dict[ResourceName, Sources] = {}
        for scope in scopes:
            sources |= await self._sources.by_target(scope.account, scope.region)
        queues_or_none = [await self._queues.get(name) for name in sources]
        queues = [queue for queue in queues_or_none if queue is not None]
        number_max = None if count_max is None else fair_share(COUNTED_TOGETHER_MAX, len(queues), count_max)
        numbers = await self._numbers(queues, number_max)
        dead_letter_queues: list[DeadLetterQueue] = []
        for queue in queues:
            number, its_sources = numbers[queue.id], sources[queue.name]
            if await self._is_target(queue, number, its_sources):
                senders = its_sources.queues, its_sources.subscriptions, its_sources.services
                dead_letter_queues.append(DeadLetterQueue(queue, number, *senders, number_max))
        return dead_letter_queues

    async def _is_target(self, queue: Queue, number: int, sources: Sources) -> bool:
        """True if something sends its dead letters to a queue, or did before it was deleted and they are still there.

        What came after the last source was deleted is not a dead letter: the queue has found another use.
        """
        if sources.queues or sources.subscriptions or sources.services:
            return True
        if not number or sources.deleted_at is None:
            return False
        first = await self._store.look(LookRequest(queue.id, 1))
        return any(delivery.sent_at <= sources.deleted_at for delivery in first)

    async def _numbers(self, queues: Sequence[Queue], at_most: int | None) -> dict[int, int]:
        """The numbers of messages that may be redriven now, by queue; counted up to `at_most` each, or exactly (None)."""
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

        At most `limit` of them; of each, dead letters are counted up to `count_max`.
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
        by_seq = {letter.delivery.seq: letter for letter in letters}
        origins = await self._sources.origins({count.cause.origin for count in counts})
        return [
            CauseDetails(
                count, *origins[count.cause.origin], by_seq.get(count.first_seq), by_seq.get(count.last_seq)
            )
            for count in counts
        ]

    async def letters(self, queue: Queue, after_seq: int, limit: int) -> list[DeadLetter]:
        """The messages in a dead-letter queue, in order of arrival."""
        return await self.look(LookRequest(queue.id, limit, after_seq))

    async def look(self, request: LookRequest) -> list[DeadLetter]:
        """A page of a dead-letter queue."""
        return await self.of(await self._store.look(request))

    async def peek(self, request: LookRequest, *, with_attempts: bool = False) -> list[Delivery]:
        """A page of any queue as it is, to be looked through: one read, or two with the attempts of dead letters."""
        page = await self._store.look(request)
        return await add_attempts(self._store, page) if with_attempts else page

    async def of(self, deliveries: Sequence[Delivery]) -> list[DeadLetter]:
        """Deliveries with where they came from, if they were dead-lettered, and their attempts that failed.

        One read for all notes, and two for the places they came from, unless these are remembered.
        """
        if not deliveries:
            return []
        # Attempts are noted under the queue or backlog in which they were made.
        keys = [(delivery.origin or delivery.queue_id, delivery.message_id) for delivery in deliveries]
        notes = await self._store.notes_of_each(keys)
        numbers = {delivery.origin for delivery in deliveries if delivery.origin is not None}
        origins = await self._sources.origins(numbers)
        return [
            DeadLetter(delivery, *origins.get(delivery.origin or 0, UNKNOWN), notes.get(key, ()))
            for delivery, key in zip(deliveries, keys, strict=True)
        ]

    async def origin(self, number: int | None) -> DeadLetterOrigin:
        """The queue or the subscription that a number stands or stood for, as far as it is known."""
        return UNKNOWN if number is None else (await self._sources.origins([number]))[number]


BATCH_MAX = 100  # a batch is one transaction: long enough to be quick, short enough to hold up nobody
SET_ASIDE = "redrive-set-aside"  # of each account and region, made when it is first needed
_SET_ASIDE_KEPT_MS = 14 * DAY_MS  # as long as a queue may keep messages


class ChosenMoves:
    """Moves selected dead letters, up to `BATCH_MAX` in one transaction."""

    def __init__(
        self,
        messages: MessageStore,
        store: QueueStore,
        runtime: Runtime,
        resources: Resources,
        notifier: QueueNotifier,
        counters: NodeCounters,
    ) -> None:
        self._messages = messages
        self._store = store
        self._runtime = runtime
        self._queues = resources.queues
        self._targets = RedriveTargets(resources)
        self._notifier = notifier
        self._counters = counters

    async def move(
        self,
        source: Queue,
        seqs: Sequence[int],
        destination: Queue | None,
        bodies: Mapping[int, str] | None = None,
    ) -> Moved:
        """Move dead letters at once, in one transaction; those that are in flight or not there stay.

        Args:
            source: Where they are.
            seqs: Which; at most `BATCH_MAX`.
            destination: Where to; None: each where it came from.
            bodies: Other bodies for some of them: the old ones are gone then.

        Raises:
            Refused: A message that would have another body is encrypted: nobody could open the new one; or it is a
                publication of another account, in whose name the new one would be signed.
        """
        request = await self._request(source, seqs)
        if destination is not None:
            request = replace(request, destination=MoveTarget(destination.id, destination.ordered))
        else:
            letters = await self._store.look(LookRequest(source.id, BATCH_MAX, seqs=seqs))
            await self._check_own_words(
                source, [letter for letter in letters if letter.seq in (bodies or {})]
            )
            targets = await self._targets.of_numbers(letter.origin for letter in letters)
            request = replace(request, origins=targets)
        moved = await self._messages.move(replace(request, bodies=bodies or {}))
        self._counters.queue(source).messages_redriven += moved.total
        return self._announce(moved)

    async def set_aside(self, source: Queue, seqs: Sequence[int]) -> Moved:
        """Move dead letters to their account's and region's queue for this, where they stay what they are for 14 days."""
        aside = await self.aside_of(source.name)
        request = replace(
            await self._request(source, seqs),
            destination=MoveTarget(aside.id, aside.ordered),
            keeps_origin=True,
        )
        return self._announce(await self._messages.move(request))

    async def bring_back(self, aside: Queue, seqs: Sequence[int]) -> Moved:
        """Move what was set aside back to the dead-letter queues that their origins have now."""
        letters = await self._store.look(LookRequest(aside.id, BATCH_MAX, seqs=seqs))
        origins = {letter.origin for letter in letters if letter.origin is not None}
        targets = {number: await self._targets.dead_letters_of(number) for number in origins}
        request = replace(
            await self._request(aside, seqs),
            origins={number: target for number, target in targets.items() if target is not None},
            keeps_origin=True,
        )
        return self._announce(await self._messages.move(request))

    async def aside_of(self, source: ResourceName) -> Queue:
        """The queue for what is set aside in an account's region, made if it is not there."""
        name = source._replace(name=SET_ASIDE)
        queue = await self._queues.get(name)
        if queue is not None:
            return queue
        try:
            return await self._queues.create(Queue(0, name, retention_ms=_SET_ASIDE_KEPT_MS))
        except AlreadyExists:  # created concurrently
            return await self.aside_of(source)

    async def _check_own_words(self, source: Queue, letters: Sequence[Delivery]) -> None:
        """Refuse other bodies for what a topic of another account published."""
        for letter in letters:
            origin = None if letter.origin is None else await self._targets.origin(letter.origin)
            if isinstance(origin, Subscription) and origin.topic.account != source.name.account:
                raise Refused(
                    f"message {letter.seq} was published by account {origin.topic.account} and keeps its body: the topic"
                    f" {origin.topic.name} would sign the new one"
                )

    async def _request(self, source: Queue, seqs: Sequence[int]) -> MoveRequest:
        """A request to move these deliveries, to which the destination is added."""
        return MoveRequest(
            queue_id=source.id,
            ordered=source.ordered,
            limit=min(len(seqs), BATCH_MAX),
            now=self._runtime.clock.now(),
            seq_max=await self._store.last_seq(),
            message_ids=[self._runtime.message_id() for _ in seqs],
            seqs=seqs,
        )

    def _announce(self, moved: Moved) -> Moved:
        for queue_id, number in moved.per_queue.items():
            self._notifier.announce(queue_id, number)
        return moved
