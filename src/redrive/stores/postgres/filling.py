"""Orders are filled delivery by delivery: groups, expired and exhausted deliveries, repeated attempts, throttles.

Each pass looks at the front of the line, locks the groups it finds there, looks again at what it may now touch, and
lets `planning` decide. It passes again while there is room and the line has more to offer.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from asyncpg import Connection

from redrive.engine.ports import Claimed, ClaimOrder
from redrive.model.delivery import Delivery, Place
from redrive.stores.postgres import arriving, pacing, repeating, rows
from redrive.stores.postgres.planning import Followers, Plan, Share, plan_endings, plan_fair, plan_ordered
from redrive.stores.postgres.reaching import own

# A claim of no duration is due again at once: what carries one of the orders' own tokens is not looked at twice.
_LINE: Final = (
    "SELECT seq, place, group_id FROM deliveries"
    " WHERE queue_id = $1 AND place > 0 AND available_at <= $2 AND (token = ANY($3::bigint[])) IS NOT TRUE"
    " ORDER BY available_at, seq LIMIT $4"
)
# Those of the front that are not offered any more. The others are not locked: they may be claimed meanwhile.
_ENDED: Final = (
    "SELECT seq, place, group_id FROM (SELECT seq, place, group_id, attempts, enqueued_at FROM deliveries"
    " WHERE queue_id = $1 AND place > 0 AND available_at <= $2 ORDER BY available_at, seq LIMIT $3) AS front"
    " WHERE attempts >= $4 OR enqueued_at <= $5"
)
_NEVER: Final = -1  # before every `enqueued_at`
_ENDLESS: Final = 2**31 - 1
_OWN: Final = own(
    "$3::bigint[], $4::bigint[], $5::bigint[], $6::integer[], $7::bigint[]",
    "seq, token, available_at, attempts, first_claimed_at",
)
_CLAIM: Final = (
    f"WITH {_OWN} UPDATE deliveries d SET token = own.token, available_at = own.available_at,"  # noqa: S608 - constants
    " attempts = own.attempts, first_claimed_at = own.first_claimed_at,"
    " place = CASE WHEN $2 THEN place ELSE 1 END FROM own WHERE d.ctid = own.at"
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


def wants_next_at(order: ClaimOrder, claimed: Claimed) -> bool:
    """Whether the answer says when the next delivery falls due."""
    return not claimed.deliveries or (order.looks_ahead and len(claimed.deliveries) < order.limit)


async def fill(connection: Connection, orders: Sequence[ClaimOrder]) -> list[Filled]:
    """Fill orders that are alike, those for attempts and throttled queues one by one, in one transaction."""
    async with connection.transaction():
        if orders[0].claims_nothing:
            return [await _send_on(connection, order) for order in orders]
        if orders[0].attempt_id or orders[0].rate_max is not None:
            return [await _fill_alone(connection, order, may_wait=order is orders[0]) for order in orders]
        filling = _Filling(connection, orders)
        await filling.fill()
        return [Filled(share.claimed, filling.ordinary) for share in filling.shares]


async def _send_on(connection: Connection, order: ClaimOrder) -> Filled:
    filling = _Filling(connection, [order])
    await filling.send_on()
    return Filled(filling.shares[0].claimed, was_ordinary=False)


async def _fill_alone(connection: Connection, order: ClaimOrder, *, may_wait: bool) -> Filled:
    if order.attempt_id:
        repeated = await repeating.repeat(connection, order, may_wait=may_wait)
        if repeated:
            return Filled(Claimed(repeated), was_ordinary=False)
        may_wait = False
    if order.rate_max is None:
        claimed = await _fill_one(connection, order, may_wait=may_wait)
    else:
        claimed = await _fill_paced(connection, order, order.rate_max, may_wait=may_wait)
    if order.attempt_id and claimed.deliveries:
        await repeating.remember(connection, order, claimed.deliveries)
    return Filled(claimed, was_ordinary=False)


async def _fill_paced(connection: Connection, order: ClaimOrder, rate_max: int, *, may_wait: bool) -> Claimed:
    pace = await pacing.slow_down(connection, order, rate_max)
    wait_until = pace.wait_until(order.now)
    if wait_until is not None:
        return Claimed(next_at=wait_until)
    claimed = await _fill_one(connection, order, may_wait=may_wait)
    await pacing.count(connection, order, pace, len(claimed.deliveries))
    return claimed


async def _fill_one(connection: Connection, order: ClaimOrder, *, may_wait: bool) -> Claimed:
    filling = _Filling(connection, [order], may_wait=may_wait)
    await filling.fill()
    return filling.shares[0].claimed


class _Filling:
    """Orders for one queue being filled.

    Attributes:
        shares: The orders with what they got.
        ordinary: Whether nothing out of the ordinary was met.
    """

    def __init__(
        self, connection: Connection, orders: Sequence[ClaimOrder], *, may_wait: bool = True
    ) -> None:
        self._connection = connection
        self._order = orders[0]  # of what is alike in all of them
        self._now = max(order.now for order in orders)
        self._tokens = [order.token for order in orders]
        self._may_wait = may_wait  # only for a transaction's first locks, see `rows`
        self._more = True  # whether another pass may find more
        self._removed = 0
        self.shares = [Share(order) for order in orders]
        self.ordinary = True

    async def fill(self) -> None:
        window = 0
        for _ in range(_PASSES_MAX):
            room = sum(share.room for share in self.shares)
            if not self._more or not room or self._removed >= REMOVALS_MAX:
                break
            await self._pass(room, max(window, room))
            window = _WINDOW if self._removed else 0
        asking = [share.claimed for share in self.shares if wants_next_at(share.order, share.claimed)]
        if asking:
            next_at = await self._connection.fetchval(rows.NEXT_AT, self._order.queue_id)
            for claimed in asking:
                claimed.next_at = next_at

    async def send_on(self) -> None:
        """Send what a claim would not offer any more where it goes; the rest stays untouched."""
        order = self._order
        limits = order.limits
        ended = await self._connection.fetch(
            _ENDED,
            order.queue_id,
            order.now,
            order.limit,
            limits.attempts_max if limits.ends_exhausted else _ENDLESS,
            _NEVER if limits.retention_ms is None else order.now - limits.retention_ms,
        )
        line = await rows.due(self._connection, order.queue_id, await self._lock(ended), order.now)
        await self._apply(plan_endings(self.shares[0], line, order.now))

    async def _pass(self, room: int, window: int) -> None:
        queue_id = self._order.queue_id
        front = await self._connection.fetch(_LINE, queue_id, self._now, self._tokens, window)
        free = await self._lock(front)
        line = await rows.due(self._connection, queue_id, free, self._now)
        followers, all_followers = await self._followers(line, room)
        give_out = plan_ordered if self._order.ordered else plan_fair
        plan = give_out(self.shares, line, followers, self._now)
        await self._apply(plan)
        self._more = bool(len(front) == window or len(line) < len(front) or plan.removed or not all_followers)

    async def _lock(self, front: Sequence[Any]) -> list[int]:
        """Lock the groups at the front of the line; the places of those deliveries that may be touched now."""
        needed = {seq: self._groups_to_lock(place, name) for seq, place, name in front}
        groups = {group for wanted in needed.values() for group in wanted}
        if groups:
            self.ordinary = False
        if self._may_wait:
            self._may_wait = False
            await rows.lock_groups(self._connection, groups)
        else:
            groups = await rows.try_groups(self._connection, groups)
        return [seq for seq, wanted in needed.items() if wanted <= groups]

    def _groups_to_lock(self, place: int, name: str | None) -> rows.Groups:
        order = self._order
        wanted: rows.Groups = set()
        if name is not None and (order.ordered or place == Place.TURN):
            wanted.add((order.queue_id, name))
        buries = order.limits.attempts_max or order.limits.buries_expired
        if name is not None and order.dead_letters_to is not None and buries:
            wanted.add((order.dead_letters_to.queue_id, name))
        return wanted

    async def _followers(self, line: Sequence[rows.Placed], room: int) -> tuple[Followers, bool]:
        """Who waits behind the turns at the front, and whether that is all of them.

        An ordered queue gives as much as possible of its first groups; a fair one a little of each.
        """
        names = [one.group_id for one, place in line if place == Place.TURN]
        if not names:
            return {}, True
        most = max(share.room for share in self.shares)
        each = most if self._order.ordered else room // len(names) + 1
        limit = room if self._order.ordered else each * len(names)
        found = await self._connection.fetch(rows.FOLLOWERS, self._order.queue_id, names, each, limit)
        followers: Followers = {}
        for record in found:
            delivery = rows.delivery_of(record)
            followers.setdefault(delivery.group_id or "", []).append(delivery)
        full = len(found) == limit or any(len(members) == each for members in followers.values())
        return followers, not full

    async def _apply(self, plan: Plan) -> None:
        order = self._order
        if plan.removed:
            await self._remove(plan)
        if plan.claimed:
            await self._claim(plan.claimed)
        await rows.pass_turns(self._connection, order.queue_id, plan.handed_on, self._now)
        await rows.pass_turns(self._connection, order.queue_id, plan.left - plan.handed_on)

    async def _remove(self, plan: Plan) -> None:
        order = self._order
        self.ordinary = False
        self._removed += len(plan.removed)
        await self._connection.execute(rows.REMOVE, order.queue_id, [one.seq for one in plan.removed])
        if order.dead_letters_to is not None:
            await arriving.bury(self._connection, plan.dead, order, order.dead_letters_to, self._now)

    async def _claim(self, deliveries: Sequence[Delivery]) -> None:
        await self._connection.execute(
            _CLAIM,
            self._order.queue_id,
            self._order.ordered,
            [one.seq for one in deliveries],
            [one.token for one in deliveries],
            [one.available_at for one in deliveries],
            [one.attempts for one in deliveries],
            [one.first_claimed_at for one in deliveries],
        )
