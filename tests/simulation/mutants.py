"""Copies of the store with one thing wrong, and all that must be noticed, engines that are wrong (`spoilt`) included.

Each is broken in a way that somebody once shipped. A simulator that finds nothing proves nothing until it is shown to
find these.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from redrive.engine.ports import (
    Change,
    Claim,
    ClaimRequest,
    ClaimResult,
    Enqueued,
    Moved,
    MoveRequest,
    NewDelivery,
    OrderedPublication,
    Put,
    Remove,
    Settled,
    Settlement,
)
from redrive.model.delivery import Delivery, Limits
from redrive.model.errors import StoreUnavailable
from redrive.model.log import LogEvent
from tests.simulation.rules import Rule
from tests.simulation.spoilt import (
    Crowding,
    Dismissive,
    Forsaking,
    Greedy,
    Indiscriminate,
    Remembering,
    Restless,
    Untiring,
)
from tests.simulation.subscribers import LETTERED, PLAIN
from tests.simulation.world import InMemory


class Credulous(InMemory):
    """Accepts every token: settles by the delivery's place alone, as several queues do."""

    async def settle(
        self, queue_id: int, settlements: Sequence[Settlement], now: int, **how: bool
    ) -> list[Settled]:
        current = [one._replace(token=self._token(queue_id, one.seq, one.token)) for one in settlements]
        return await self.real.settle(queue_id, current, now, **how)

    async def extend(self, queue_id: int, claims: Sequence[Claim], now: int, **how: bool) -> list[Settled]:
        current = [one._replace(token=self._token(queue_id, one.seq, one.token)) for one in claims]
        return await self.real.extend(queue_id, current, now, **how)

    def _token(self, queue_id: int, seq: int, given: int) -> int:
        statement = "SELECT token FROM deliveries WHERE queue_id = ? AND seq = ? AND token IS NOT NULL"
        row: Any = self.real.connection.execute(statement, (queue_id, seq)).fetchone()
        return row[0] if row else given


class Impatient(InMemory):
    """Does not keep a group's turn: the next of a group is handed out while the one before is in flight."""

    async def claim(self, request: ClaimRequest) -> ClaimResult:
        return await self.real.claim(replace(request, ordered=False))


class Hasty(InMemory):
    """Hands out what is due within a second: a lease, a delay or a retry that ends too early."""

    async def claim(self, request: ClaimRequest) -> ClaimResult:
        return await self.real.claim(
            replace(request, now=request.now + 1_000, lease_ms=request.lease_ms - 1_000)
        )


class Tireless(InMemory):
    """Never gives up: a message is tried for ever, and no dead letter is made."""

    async def claim(self, request: ClaimRequest) -> ClaimResult:
        return await self.real.claim(replace(request, limits=Limits(request.limits.retention_ms)))


class Careless(InMemory):
    """Takes a dead letter out of its queue, and forgets to put it into the other."""

    async def claim(self, request: ClaimRequest) -> ClaimResult:
        return await self.real.claim(replace(request, dead_letters_to=None))


class Forgetful(InMemory):
    """Remembers no deduplication id."""

    async def enqueue(self, new_deliveries: Sequence[NewDelivery]) -> list[Enqueued]:
        return await self.real.enqueue([replace(one, deduplication_key=None) for one in new_deliveries])


class Optimistic(InMemory):
    """Answers before anything is on disk, and every fifth time nothing ever is."""

    _sent = 0

    async def enqueue(self, new_deliveries: Sequence[NewDelivery]) -> list[Enqueued]:
        self._sent += 1
        if self._sent % 5:
            return await self.real.enqueue(new_deliveries)
        return [
            Enqueued(one.message_id, self.real._id_sequences.next(), repeated=False) for one in new_deliveries
        ]


class Doubling(InMemory):
    """Redrives in two steps, the second of which does not happen: the dead letter is sent, and stays."""

    async def move(self, request: MoveRequest) -> Moved:
        before = {one.seq: one for one in await self.real.peek(request.queue_id, 1_000)}
        moved = await self.real.move(request)
        after = {one.seq for one in await self.real.peek(request.queue_id, 1_000)}
        gone = [one for seq, one in before.items() if seq not in after]
        await self.real.enqueue([_sent_again(one, ordered=request.ordered) for one in gone])
        return moved


def _sent_again(one: Delivery, *, ordered: bool) -> NewDelivery:
    return NewDelivery(
        *(one.queue_id, one.message_id, one.body, one.headers, one.available_at, one.enqueued_at),
        group_id=one.group_id,
        ordered=ordered,
    )


class Resurrecting(InMemory):
    """Says that a delivery is deleted and keeps it, every tenth time: what was deleted comes back."""

    _settled = 0

    async def settle(
        self, queue_id: int, settlements: Sequence[Settlement], now: int, **how: bool
    ) -> list[Settled]:
        self._settled += 1
        if self._settled % 10:
            return await self.real.settle(queue_id, settlements, now, **how)
        return [Settled(done=True) for _ in settlements]


class Eager(InMemory):
    """Tries again at once what should wait."""

    async def settle(
        self, queue_id: int, settlements: Sequence[Settlement], now: int, **how: bool
    ) -> list[Settled]:
        hurried = [one._replace(available_at=min(one.available_at, now)) for one in settlements]
        return await self.real.settle(queue_id, hurried, now, **how)


class Repetitive(InMemory):
    """Lets a publication through its gate as often as it comes."""

    needs = PLAIN

    _published = 0

    async def publish(self, publications: Sequence[OrderedPublication]) -> list[Enqueued]:
        self._published += 1
        return await self.real.publish(
            [replace(publication, key=f"{publication.key} {self._published}") for publication in publications]
        )


class Pedantic(InMemory):
    """Counts an attempt whose node died as one that failed."""

    async def claim(self, request: ClaimRequest) -> ClaimResult:
        return await self.real.claim(replace(request, resumes=False))


class Wordless(InMemory):
    """Forgets what the end of a delivery leads to."""

    needs = LETTERED

    async def settle(
        self, queue_id: int, settlements: Sequence[Settlement], now: int, **how: bool
    ) -> list[Settled]:
        ends = [one._replace(follow_ups=()) for one in settlements]
        return await self.real.settle(queue_id, ends, now, **how)


class Talkative(Wordless):
    """Lets what an end leads to arrive whether the claim was met or not."""

    async def settle(
        self, queue_id: int, settlements: Sequence[Settlement], now: int, **how: bool
    ) -> list[Settled]:
        settled = await super().settle(queue_id, settlements, now, **how)
        await self.real.enqueue([new_delivery for one in settlements for new_delivery in one.follow_ups])
        return settled


class Breathless(InMemory):
    """Knows no pace."""

    needs = PLAIN

    async def claim(self, request: ClaimRequest) -> ClaimResult:
        return await self.real.claim(replace(request, rate_max=None))


class Halting(InMemory):
    """Stops in the middle of every fourth change of several documents: the first half of them is written."""

    _changed = 0

    async def write(
        self,
        changes: Sequence[Change],
        new_deliveries: Sequence[NewDelivery] = (),
        log_events: Sequence[LogEvent] = (),
    ) -> list[int]:
        documents = [change for change in changes if isinstance(change, Put | Remove)]
        self._changed += len(documents) > 1
        if len(documents) < 2 or self._changed % 4:
            return await self.real.write(changes, new_deliveries, log_events)
        await self.real.write(documents[: len(documents) // 2])
        raise StoreUnavailable("it died in the middle of a write")


# Each with the rule that says it best; others may be broken on the way there.
MUTANTS: Final[dict[type[InMemory], Rule]] = {
    Credulous: Rule.STALE,
    Impatient: Rule.ORDER,
    Hasty: Rule.EARLY,
    Tireless: Rule.EXHAUSTED,
    Careless: Rule.BURIED,
    Forgetful: Rule.DEDUPLICATED,
    Optimistic: Rule.LOST,
    Doubling: Rule.AGREES,
    Resurrecting: Rule.BACK,
    Eager: Rule.EARLY,
    Repetitive: Rule.DEDUPLICATED,
    Pedantic: Rule.COUNTED,
    Wordless: Rule.LED,
    Talkative: Rule.LED,
    Breathless: Rule.PACED,
    Indiscriminate: Rule.FILTERED,
    Remembering: Rule.LOST,
    Restless: Rule.RESTED,
    Forsaking: Rule.SETTLED,
    Crowding: Rule.PROBED,
    Greedy: Rule.BATCHED,
    Untiring: Rule.OVERDUE,
    Dismissive: Rule.TAKEN,
    Halting: Rule.WHOLE,
}
