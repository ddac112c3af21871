"""Plans of redrives: the messages that a task would move, counted before anything is moved; and the canary."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from redrive.engine.ports import Cause, Clock, LookRequest, MovedTo, MoveRequest, MoveTarget, QueueStore
from redrive.engine.resources import Resources
from redrive.engine.tasks.searching import add_attempts
from redrive.model.delivery import Delivery
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.search import asks_attempts, read_search
from redrive.model.task import LOOK_AGAIN_MS, UNTRIED, CarefulPace, MoveChoice, Sampled, SampleOutcomes
from redrive.model.topic import Subscription

# Targets of a redrive: the queues and backlogs that dead letters go back to.


class RedriveTargets:
    """Finds where dead letters came from, if that still exists.

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
        configured: dict[int, Queue | Subscription] = {**of_queues, **of_topics}
        others = [await self.origin(number) for number in sorted(set(numbers) - configured.keys())]
        return [*configured.values(), *(origin for origin in others if origin is not None)]

    async def existing_targets(self, origins: Sequence[Queue | Subscription]) -> dict[int, MoveTarget]:
        """The origins that are still there, by number: one may be deleted in the hours that a task takes."""
        targets = [await self._target(origin) for origin in origins]
        return {target.queue_id: target for target in targets if target is not None}

    async def of_numbers(self, numbers: Iterable[int | None]) -> dict[int, MoveTarget]:
        """The queues and backlogs of these numbers that are still there."""
        origins = [await self.origin(number) for number in set(numbers) if number is not None]
        return await self.existing_targets([origin for origin in origins if origin is not None])

    async def origin(self, number: int) -> Queue | Subscription | None:
        """The queue or the subscription of a number, if it stands."""
        subscription = await self._subscriptions.of_backlog(number)
        return subscription if subscription is not None else await self._queues.of_number(number)

    async def dead_letters_of(self, number: int) -> MoveTarget | None:
        """The dead-letter queue that an origin sends to now, if it has one and that stands."""
        origin = await self.origin(number)
        if origin is None or origin.dead_letter is None:
            return None
        name = origin.dead_letter.queue if isinstance(origin, Queue) else origin.dead_letter
        queue = await self._queues.get(name)
        return None if queue is None else MoveTarget(queue.id, queue.ordered)

    async def _target(self, origin: Queue | Subscription) -> MoveTarget | None:
        """The queue or backlog of an origin, unless it was deleted, or replaced by another of that name."""
        if isinstance(origin, Queue):
            queue = await self._queues.get(origin.name)
            exists = queue is not None and queue.id == origin.id
            return MoveTarget(origin.id, origin.ordered) if exists else None
        subscription = await self._subscriptions.get(origin.topic, origin.id)
        topic = await self._topics.get(origin.topic)
        if subscription is None or topic is None or subscription.queue_id != origin.queue_id:
            return None
        return MoveTarget(origin.queue_id, topic.ordered)


#: Of a plan of one cause: the others of the queue are not counted, for which a million take 80 ms.
IN_FLIGHT_MAX: Final = 100_000
RATE_MAX: Final = 500  # a second, of a steady pace, which is StartMessageMoveTask's
COUNTED_MAX: Final = 10_000_000  # dead letters of a plan: 0.8 s, beside those who receive
SEARCHED_MAX: Final = 20_000  # dead letters that the plan of a search looks at: 0.2 s, others in between
SLICE: Final = 1_000  # of them at once: under 10 ms
CAUSES_MAX: Final = 1_000  # of a queue are looked through for origins that its configuration does not name


def cause_of(choice: MoveChoice) -> Cause | None:
    """The cause that a choice is of; None: of any."""
    return Cause(choice.origin, choice.failure) if choice.failure else None


@dataclass(frozen=True, slots=True)
class RedriveOptions:
    """The options of a redrive: some messages alone, or a limited pace."""

    choice: MoveChoice | None = None  # The cause of the dead letters that go; None: all of them
    last_seq: int | None = None  # Only deliveries up to this sequence number; None: up to the current one
    careful: CarefulPace | None = None  # Begin with a few; None: at the rate that is given
    delay_ms: int = 0  # Begin so much later: until then to cancel undoes all
    keeps_origin: bool = False  # Set them aside at the destination, as the dead letters they are
    by: str = ""  # Caller that started it


EVERYTHING = RedriveOptions()


class RedrivePlan(NamedTuple):
    """The messages that a redrive would move."""

    number: int  # So many, as far as their origins are still there
    in_flight: int  # So many others are being received, and stay
    last_seq: int  # Deliveries that arrive later, with higher numbers, stay
    # So many of them stay unless a destination is named: their origin is unknown, or was deleted. Those in
    # flight are counted too, up to all of `number`.
    without_origin: int = 0
    looked_at: int = 0  # So many were looked at for a search, where there are more; 0: all were


class NextFinds(NamedTuple):
    """The results of a search that are moved next."""

    seqs: Sequence[int]  # Their sequence numbers
    looked_to: int  # Sequence number of the last delivery examined
    ended: bool  # There is nothing behind it


class RedrivePlanner:
    """Counts what a redrive would move."""

    def __init__(self, store: QueueStore, clock: Clock, targets: RedriveTargets) -> None:
        self._store = store
        self._clock = clock
        self._targets = targets

    async def plan(self, source: Queue, choice: MoveChoice | None = None) -> RedrivePlan:
        """The messages that a task would move if it were started now, which does nothing."""
        plan = await self.count(source, choice)
        if choice is not None:
            return plan
        staying = plan.number + plan.in_flight - await self._number_with_origin(source)
        return plan._replace(without_origin=min(plan.number, max(0, staying)))

    async def count(self, source: Queue, choice: MoveChoice | None = None) -> RedrivePlan:
        """The plan of a task that starts, which does not count messages without an origin."""
        last_seq = await self._store.last_seq()
        # Of a choice the messages are counted below: here only what is in flight matters.
        count_max = COUNTED_MAX if choice is None else IN_FLIGHT_MAX
        counts = await self._store.count(source.id, self._clock.now(), count_max)
        if choice is None:
            return RedrivePlan(counts.available, counts.claimed, last_seq)
        if choice.query:
            return await self._count_finds(source, choice, RedrivePlan(0, counts.claimed, last_seq))
        cause = cause_of(choice)
        of_cause = await self._store.causes(source.id, 1, COUNTED_MAX, COUNTED_MAX, cause)
        number = sum(count.number for count in of_cause)
        return RedrivePlan(max(0, number - len(choice.excepted)), counts.claimed, last_seq)

    async def _count_finds(self, source: Queue, choice: MoveChoice, plan: RedrivePlan) -> RedrivePlan:
        """The plan with what a search finds among the oldest that it may look at."""
        holds, now = read_search(choice.query, choice.asked_at), self._clock.now()
        position, looked_at = max(0, choice.first_seq - 1), 0
        while looked_at < SEARCHED_MAX:
            request = LookRequest(source.id, SLICE, position, cause=cause_of(choice))
            page = await self._look(choice, request)
            free = [each for each in page if each.token is None or each.available_at <= now]
            plan = plan._replace(number=plan.number + sum(holds(each) for each in free))
            if len(page) < SLICE:
                return plan
            looked_at += len(page)
            position = page[-1].seq
        return plan._replace(looked_at=looked_at)

    async def _look(self, choice: MoveChoice, request: LookRequest) -> Sequence[Delivery]:
        page = await self._store.look(request)
        return await add_attempts(self._store, page) if asks_attempts(choice.query) else page

    async def next_finds(self, choice: MoveChoice, request: MoveRequest, looked_to: int) -> NextFinds:
        """The finds of a search in the slice behind the last place that was looked at, as many as the move takes."""
        position = max(looked_to, choice.first_seq - 1)
        page = await self._look(choice, LookRequest(request.queue_id, SLICE, position, cause=request.cause))
        holds = read_search(choice.query, choice.asked_at)
        in_range = [each for each in page if each.seq <= request.seq_max]
        seqs = [each.seq for each in in_range if holds(each)]
        if len(seqs) > request.limit:
            first_seqs = seqs[: request.limit]
            return NextFinds(first_seqs, looked_to=first_seqs[-1], ended=False)
        ended = len(page) < SLICE or len(in_range) < len(page)
        return NextFinds(seqs, in_range[-1].seq if in_range else position, ended)

    async def _number_with_origin(self, source: Queue) -> int:
        """The dead letters of a queue, those in flight included, whose origin stands."""
        counts = await self._store.causes(source.id, CAUSES_MAX, COUNTED_MAX, COUNTED_MAX)
        targets = await self._targets.of_numbers({count.cause.origin for count in counts})
        return sum(count.number for count in counts if count.cause.origin in targets)


# The canary of a careful redrive: how the messages fare that it moved last.
#
# A redriven delivery runs through its whole schedule before it is a dead letter again: a minute by the default of SNS, a
# day at Event Grid. So what comes back is too late a sign. A failed attempt leaves a note at once, and a delivery that
# was taken is gone without one. Both are read by key, so it does not matter which node pushes.

SAMPLE_MAX = 50
_ATTEMPTS_END_MS = 2_000  # at an endpoint that answers; a consumer takes as long as it likes


def sample_of(became: Mapping[int, MovedTo]) -> Sequence[Sampled]:
    """A sample of the messages that were just moved, spread over all of them."""
    moved = list(became.values())
    step = -(-len(moved) // SAMPLE_MAX) or 1
    return [Sampled(each.queue_id, each.seq, each.message_id.hex()) for each in moved[::step]]


class Canary:
    """Looks at what became of messages that were moved."""

    def __init__(self, store: QueueStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def outcomes(self, sample: Sequence[Sampled], now: int) -> SampleOutcomes:
        """The outcomes of a sample, by two reads for each queue that it went to.

        A message has failed if an attempt at it is noted, or if a consumer let it come back; one that is gone was taken.
        """
        if not sample:
            return UNTRIED
        ids = {each: bytes.fromhex(each.message_id) for each in sample}
        notes_by_message = await self._store.notes_of_each([(each.queue_id, ids[each]) for each in sample])
        still_there = await self._still_there(sample, now)
        failed = taken = 0
        for each in sample:
            came_back = still_there.get((each.queue_id, each.seq))  # None: it is not there any more
            if (each.queue_id, ids[each]) in notes_by_message or came_back:
                failed += 1
            elif came_back is None:
                taken += 1
        return SampleOutcomes(len(sample), taken, failed)

    async def last_outcomes(self, sample: Sequence[Sampled], outcomes: SampleOutcomes) -> SampleOutcomes:
        """The outcomes of a sample (`outcomes` at the last look) once all of it was tried, or two seconds have passed.

        A few failures decide; the attempts made beside them end milliseconds later, and belong to what is told.
        """
        until = self._clock.now() + _ATTEMPTS_END_MS
        while outcomes.waiting and self._clock.now() < until:
            await self._clock.sleep_until(self._clock.now() + LOOK_AGAIN_MS)
            outcomes = await self.outcomes(sample, self._clock.now())
        return outcomes

    async def failure_text(self, sample: Sequence[Sampled]) -> str:
        """The most common cause among a sample's failed attempts, `: server_error 503`; empty if nobody said any."""
        keys = [(each.queue_id, bytes.fromhex(each.message_id)) for each in sample]
        notes_by_message = await self._store.notes_of_each(keys)
        causes = Counter(notes[0].failure for notes in notes_by_message.values())
        return f": {causes.most_common(1)[0][0]}" if causes else ""

    async def _still_there(self, sample: Iterable[Sampled], now: int) -> dict[tuple[int, int], bool]:
        """The messages still in their queue: True if a consumer received one and let it come back."""
        by_queue: dict[int, list[int]] = {}
        for each in sample:
            by_queue.setdefault(each.queue_id, []).append(each.seq)
        still_there: dict[tuple[int, int], bool] = {}
        for queue_id, seqs in by_queue.items():
            for row in await self._store.look(LookRequest(queue_id, len(seqs), seqs=seqs)):
                still_there[queue_id, row.seq] = row.attempts > 0 and row.available_at <= now
        return still_there
