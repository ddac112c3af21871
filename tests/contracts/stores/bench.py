"""A queue laid on the bench: the store's verbs with everything that a test does not care about filled in."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redrive.engine.ports import (
    Claim,
    ClaimRequest,
    ClaimResult,
    Counts,
    Enqueued,
    Moved,
    MoveRequest,
    MoveTarget,
    NewDelivery,
    Settled,
    Settlement,
    Store,
)
from redrive.model.delivery import Delivery, Limits, Outcome

NOON = 1_000_000  # the moment at which tests begin (ms)
LEASE_MS = 30_000
FIVE_MINUTES_MS = 300_000
DONE = Settled(done=True)

_numbers = itertools.count(1)


def fresh_id() -> bytes:
    """A message id, different each time."""
    return next(_numbers).to_bytes(16, "big")


def fresh_token() -> int:
    """A claim token, different each time."""
    return next(_numbers)


def bodies(deliveries: Sequence[Delivery]) -> list[str]:
    """Return the messages' bodies: the shortest way to say which they are."""
    return [delivery.body for delivery in deliveries]


def refused(reason: str) -> Settled:
    """The answer of a settlement or extension that was not met."""
    return Settled(done=False, reason=reason)


@dataclass
class Bench:
    """One queue of a store."""

    store: Store
    id: int
    ordered: bool = False

    @property
    def target(self) -> MoveTarget:
        """This queue as a place that deliveries go to."""
        return MoveTarget(self.id, self.ordered)

    def new_delivery(
        self, body: str, now: int = NOON, *, delay_ms: int = 0, group: str | None = None, **others: Any
    ) -> NewDelivery:
        """A message on its way in."""
        return NewDelivery(
            queue_id=self.id,
            message_id=fresh_id(),
            body=body,
            headers=None,
            available_at=now + delay_ms,
            enqueued_at=now,
            group_id=group,
            ordered=self.ordered,
            **others,
        )

    async def send(self, *texts: str, now: int = NOON, **others: Any) -> list[int]:
        """Enqueue these bodies in one call; their places."""
        new_deliveries = [self.new_delivery(text, now, **others) for text in texts]
        return [enqueued.seq for enqueued in await self.store.enqueue(new_deliveries)]

    async def send_once(self, body: str, key: str, now: int = NOON, *, group: str = "g") -> Enqueued:
        """Enqueue one message that is not to be repeated for five minutes."""
        until = now + FIVE_MINUTES_MS
        new_delivery = self.new_delivery(
            body, now, group=group, deduplication_key=key, deduplicate_until=until
        )
        (enqueued,) = await self.store.enqueue([new_delivery])
        return enqueued

    async def request(
        self, now: int = NOON, limit: int = 10, lease_ms: int = LEASE_MS, **others: Any
    ) -> ClaimResult:
        """Claim, with all that the answer says."""
        request = ClaimRequest(self.id, self.ordered, limit, now, lease_ms, fresh_token(), **others)
        return await self.store.claim(request)

    async def claim(self, now: int = NOON, limit: int = 10, **others: Any) -> list[Delivery]:
        """Claim, and look at the deliveries alone."""
        return (await self.request(now, limit, **others)).deliveries

    async def claim_one(self, now: int = NOON, **others: Any) -> Delivery:
        """Claim the one delivery that is there to be claimed."""
        (delivery,) = await self.claim(now, 1, **others)
        return delivery

    async def settle(
        self, delivery: Delivery, now: int = NOON, outcome: Outcome = Outcome.DELIVERED, **others: Any
    ) -> Settled:
        """End one claim."""
        assert delivery.token is not None
        settlement = Settlement(delivery.seq, delivery.token, outcome, **others)
        (settled,) = await self.store.settle(self.id, [settlement], now, ordered=self.ordered)
        return settled

    async def extend(self, delivery: Delivery, until: int, now: int = NOON) -> Settled:
        """Let one claim hold until then."""
        assert delivery.token is not None
        claims = [Claim(delivery.seq, delivery.token, until)]
        (settled,) = await self.store.extend(self.id, claims, now, ordered=self.ordered)
        return settled

    async def move(
        self, now: int = NOON, limit: int = 10, seq_max: int | None = None, **others: Any
    ) -> tuple[Moved, list[bytes]]:
        """Move what waits; also the ids that were offered for it."""
        ids = [fresh_id() for _ in range(limit)]
        last = await self.store.last_seq() if seq_max is None else seq_max
        request = MoveRequest(self.id, self.ordered, limit, now, last, ids, **others)
        return await self.store.move(request), ids

    async def peek(self, limit: int = 1000, after_seq: int = 0) -> list[Delivery]:
        """All that is in the queue."""
        return await self.store.peek(self.id, limit, after_seq)

    async def count(self, now: int = NOON) -> Counts:
        """The numbers of deliveries by state."""
        return await self.store.count(self.id, now)

    async def bury(self, *texts: str, into: "Bench", now: int = NOON, group: str | None = None) -> None:
        """Send these bodies here and let each die at once, so that they are in the dead-letter queue."""
        await self.send(*texts, now=now, group=group)
        for delivery in await self.claim(now, len(texts)):
            await self.settle(delivery, now, Outcome.DEAD_LETTERED, target=into.target)

    def dying(self, attempts_max: int, into: "Bench") -> dict[str, Any]:
        """Arguments of a claim for a queue with a dead-letter queue."""
        return {
            "limits": Limits(attempts_max=attempts_max, dead_letters=True),
            "dead_letters_to": into.target,
        }
