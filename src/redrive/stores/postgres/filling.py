"""Orders are filled delivery by delivery: groups, expired and exhausted deliveries, repeated attempts, throttles.

Each pass looks at the front of the line, locks the groups it finds there, looks again at what it may now touch, and
lets `planning` decide. It passes again while the order is not full and the line has more to offer.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from asyncpg import Connection

from redrive.engine.ports import Claimed, ClaimOrder
from redrive.model.delivery import Delivery, Place
from redrive.stores.postgres import arriving, pacing, repeating, rows
from redrive.stores.postgres.planning import Candidate, Followers, Plan, plan

# A claim of no duration is due again at once: what carries the order's own token is not looked at twice.
_LINE: Final = (
    "SELECT seq, place, group_id FROM deliveries"
    " WHERE queue_id = $1 AND place > 0 AND available_at <= $2 AND token IS DISTINCT FROM $3"
    " ORDER BY available_at, seq LIMIT $4"
)
_CANDIDATES: Final = (
    f"SELECT {rows.COLUMNS}, place FROM deliveries"  # noqa: S608 - constants
    " WHERE queue_id = $1 AND seq = ANY($2::bigint[]) AND place > 0 AND available_at <= $3"
    " ORDER BY available_at, seq FOR UPDATE SKIP LOCKED"
)
_CLAIM: Final = (
    "UPDATE deliveries SET available_at = $3, token = $4, first_claimed_at = coalesce(first_claimed_at, $5),"
    " attempts = attempts + CASE WHEN $6 AND token IS NOT NULL THEN 0 ELSE 1 END,"
    " place = CASE WHEN $7 THEN place ELSE 1 END"
    " WHERE queue_id = $1 AND seq = ANY($2::bigint[])"
)

# One claim removes no more expired and exhausted deliveries than this on its way (about 50 ms): whoever asked is told
# to come again at once, and in between the other callers have their turn.
REMOVALS_MAX: Final = 1000
_PASSES_MAX: Final = 40  # each claims or removes something, or lost it to another node
_WINDOW: Final = 100  # what a pass looks at when the one before it found deliveries to remove


class Filled(NamedTuple):
    """An order's answer, and whether the quick way would have done."""

    claimed: Claimed
    was_ordinary: bool


async def fill(connection: Connection, orders: Sequence[ClaimOrder]) -> list[Filled]:
    """Fill several orders for one queue, one after the other in one transaction."""
    async with connection.transaction():
        return [await _Filling(connection, order, may_wait=order is orders[0]).fill() for order in orders]


@dataclass(slots=True)
class _Filling:
    """One order being filled.

    Attributes:
        may_wait: Whether the next locks may be waited for: only a transaction's first ones (see `rows`).
        ordinary: Whether nothing out of the ordinary was met.
        more: Whether another pass may find more.
    """

    connection: Connection
    order: ClaimOrder
    may_wait: bool
    claimed: Claimed = field(default_factory=Claimed)
    ordinary: bool = True
    more: bool = True

    async def fill(self) -> Filled:
        order = self.order
        if order.attempt_id and (repeated := await repeating.repeat(self.connection, order, self.may_wait)):
            return Filled(Claimed(repeated), was_ordinary=False)
        if order.rate_max is not None and (wait_until := await pacing.slow_down(self.connection, order)):
            return Filled(Claimed(next_at=wait_until), was_ordinary=False)
        await self._pass_along()
        if order.rate_max is not None:
            await pacing.count(self.connection, order, len(self.claimed.deliveries))
        if not self.claimed.deliveries:
            self.claimed.next_at = await self.connection.fetchval(rows.NEXT_AT, order.queue_id)
        elif order.attempt_id:
            await repeating.remember(self.connection, order, self.claimed.deliveries)
        return Filled(self.claimed, self.ordinary)

    async def _pass_along(self) -> None:
        window = self.order.limit
        for _ in range(_PASSES_MAX):
            room = self.order.limit - len(self.claimed.deliveries)
            removed = self.claimed.expired + self.claimed.dead_lettered
            if not self.more or not room or removed >= REMOVALS_MAX:
                return
            await self._pass(room, max(window, room))
            window = _WINDOW

    async def _pass(self, room: int, window: int) -> None:
        order = self.order
        line = await self.connection.fetch(_LINE, order.queue_id, order.now, order.token, window)
        free = await self._lock(line)
        seen = await self.connection.fetch(_CANDIDATES, order.queue_id, free, order.now)
        candidates = [Candidate(rows.delivery_of(record), record["place"]) for record in seen]
        followers, all_followers = await self._followers(candidates, room)
        planned = plan(order, candidates, followers, room)
        await self._apply(planned)
        lost = len(candidates) < len(line)
        self.more = bool(len(line) == window or lost or planned.removed or not all_followers)

    async def _lock(self, line: Sequence[Any]) -> list[int]:
        """Lock the groups at the front of the line; the places of those deliveries that may be touched now."""
        needed = {seq: self._groups_to_lock(place, name) for seq, place, name in line}
        groups = {group for wanted in needed.values() for group in wanted}
        if groups:
            self.ordinary = False
        if self.may_wait:
            self.may_wait = False
            await rows.lock_groups(self.connection, groups)
        else:
            groups = await rows.try_groups(self.connection, groups)
        return [seq for seq, wanted in needed.items() if wanted <= groups]

    def _groups_to_lock(self, place: int, name: str | None) -> rows.Groups:
        if name is None:
            return set()
        order = self.order
        wanted = set()
        if order.ordered or place == Place.TURN:
            wanted.add((order.queue_id, name))
        if order.dead_letters_to is not None and order.limits.attempts_max:
            wanted.add((order.dead_letters_to.queue_id, name))
        return wanted

    async def _followers(self, candidates: Sequence[Candidate], room: int) -> tuple[Followers, bool]:
        """Who waits behind the turns at the front, and whether that is all of them.

        An ordered queue gives as much as possible of its first group; a fair one a little of each.
        """
        order = self.order
        names = [one.delivery.group_id for one in candidates if one.place == Place.TURN]
        if not names:
            return {}, True
        each = room if order.ordered else room // len(names) + 1
        limit = room if order.ordered else each * len(names)
        behind = await self.connection.fetch(rows.FOLLOWERS, order.queue_id, names, each, limit)
        followers: Followers = {}
        for record in behind:
            delivery = rows.delivery_of(record)
            followers.setdefault(delivery.group_id or "", []).append(Candidate(delivery, Place.BEHIND))
        full = len(behind) == limit or any(len(members) == each for members in followers.values())
        return followers, not full

    async def _apply(self, planned: Plan) -> None:
        order, claimed = self.order, self.claimed
        await self._remove(planned)
        if planned.claimed:
            await self._claim(planned.claimed)
            claimed.deliveries += planned.claimed
        await rows.pass_turns(self.connection, order.queue_id, planned.handed_on, order.now)
        await rows.pass_turns(self.connection, order.queue_id, planned.left - planned.handed_on)

    async def _remove(self, planned: Plan) -> None:
        if not planned.removed:
            return
        order = self.order
        self.ordinary = False
        self.claimed.expired += len(planned.expired)
        self.claimed.dead_lettered += len(planned.dead)
        seqs = [delivery.seq for delivery in (*planned.dead, *planned.expired)]
        await self.connection.execute(rows.REMOVE, order.queue_id, seqs)
        if order.dead_letters_to is not None:
            await arriving.bury(self.connection, planned.dead, order.dead_letters_to, order.now)

    async def _claim(self, deliveries: Iterable[Delivery]) -> None:
        order = self.order
        until = order.now + order.lease_ms
        seqs = []
        for delivery in deliveries:
            seqs.append(delivery.seq)
            if not (order.resumes and delivery.token is not None):
                delivery.attempts += 1
            if delivery.first_claimed_at is None:
                delivery.first_claimed_at = order.now
            delivery.token, delivery.available_at = order.token, until
        await self.connection.execute(
            _CLAIM, order.queue_id, seqs, until, order.token, order.now, order.resumes, order.ordered
        )
