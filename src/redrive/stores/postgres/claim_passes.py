"""Orders are filled delivery by delivery: groups, and deliveries that are expired or exhausted.

Each pass looks at the front of the line, locks the groups it finds there, looks again at what it may now touch, and
lets `redrive.model.claiming` decide. It passes again while there is room and the line has more to offer.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from asyncpg import Connection

from redrive.engine.ports import REMOVALS_MAX, ClaimRequest, ClaimResult
from redrive.model.claiming import (
    ClaimPlan,
    ClaimShare,
    Followers,
    Placed,
    plan_endings,
    plan_fair,
    plan_ordered,
)
from redrive.model.delivery import Delivery, LinePosition
from redrive.stores.postgres import arrivals, rows
from redrive.stores.postgres.access_paths import key_of

# A claim of no duration is due again at once: what carries one of the orders' own tokens is not looked at twice.
_LINE: Final = rows.front(
    "place, group_id", "available_at <= $2 AND (token = ANY($3::bigint[])) IS NOT TRUE", "$4"
)
# Those of the front that are not offered any more. The others are not locked: they may be claimed meanwhile.
_ENDED: Final = (
    "SELECT seq, place, group_id FROM ("
    + rows.front("place, group_id, attempts, enqueued_at", "available_at <= $2", "$3")
    + ") AS front WHERE attempts >= $4 OR enqueued_at <= $5"
)
_NEVER: Final = -1  # before every `enqueued_at`
_ENDLESS: Final = 2**31 - 1
_CLAIM: Final = (
    "UPDATE deliveries d SET token = own.token, available_at = own.available_at, attempts = own.attempts,"
    " first_claimed_at = own.first_claimed_at, place = CASE WHEN $2 THEN place ELSE 1 END"
    " FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::integer[], $7::bigint[])"
    f" AS own (seq, token, available_at, attempts, first_claimed_at) WHERE {key_of('d')}"
)

_PASSES_MAX: Final = 40  # each claims or removes something, or lost it to another node
_WINDOW: Final = 100  # what a pass looks at once deliveries were removed: more may be, and fill no room


class ClaimPassResult(NamedTuple):
    """An order's answer, and whether the quick way would have done."""

    claimed: ClaimResult
    was_ordinary: bool


class ClaimPasses:
    """Orders for one queue being filled.

    Attributes:
        shares: The orders with what they got.
        ordinary: Whether nothing out of the ordinary was met.
    """

    def __init__(
        self, connection: Connection, requests: Sequence[ClaimRequest], locks: rows.GroupLocks
    ) -> None:
        self._connection = connection
        self._order = requests[0]  # of what is alike in all of them
        self._now = max(request.now for request in requests)
        self._tokens = [request.token for request in requests]
        self._locks = locks
        self._may_have_more = True  # whether another pass may find more
        self._removal_count = 0  # deliveries that left the queue, in all passes
        self.shares = [ClaimShare(request) for request in requests]
        self.ordinary = True

    async def lock_front(self) -> None:
        """Begin with the locks of the groups that stand at the front of the line."""
        await self._lock(await self._front(self._order.limit))

    async def fill(self) -> None:
        """Pass over the front of the line until the orders are filled or it has no more."""
        window = 0
        for _ in range(_PASSES_MAX):
            room = sum(share.room for share in self.shares)
            if not self._may_have_more or not room or self._removal_count >= REMOVALS_MAX:
                break
            await self._pass(room, max(window, room))
            window = _WINDOW if self._removal_count else 0  # where some left, many behind them may leave too
        answers_without_next_at = [share.claimed for share in self.shares if share.wants_next_at]
        if answers_without_next_at:
            next_at = await self._connection.fetchval(rows.NEXT_AT, self._order.queue_id)
            for claimed in answers_without_next_at:
                claimed.next_at = next_at

    async def send_on(self) -> None:
        """Send what a claim would not offer any more where it goes; the rest stays untouched."""
        request = self._order
        limits = request.limits
        endings = await self._connection.fetch(
            _ENDED,
            request.queue_id,
            request.now,
            request.limit,
            limits.attempts_max if limits.ends_exhausted else _ENDLESS,
            _NEVER if limits.retention_ms is None else request.now - limits.retention_ms,
        )
        line = await rows.due(self._connection, request.queue_id, await self._lock(endings), request.now)
        await self._apply(plan_endings(self.shares[0], line, request.now))

    async def _pass(self, room: int, window: int) -> None:
        """Look at the first `window` deliveries, and fill orders for up to `room` of them and those behind them."""
        queue_id = self._order.queue_id
        front = await self._front(window)
        free = await self._lock(front)
        line = await rows.due(self._connection, queue_id, free, self._now)
        followers, all_followers = await self._followers(line, room)
        give_out = plan_ordered if self._order.ordered else plan_fair
        plan = give_out(self.shares, line, followers, self._now)
        await self._apply(plan)
        self._may_have_more = bool(
            len(front) == window or len(line) < len(front) or plan.removed or not all_followers
        )

    async def _front(self, window: int) -> list[Any]:
        records: list[Any] = await self._connection.fetch(
            _LINE, self._order.queue_id, self._now, self._tokens, window
        )
        return records

    async def _lock(self, front: Sequence[Any]) -> list[int]:
        """Lock the groups at the front of the line; the places of those deliveries that may be touched now."""
        needed = {seq: self._groups_to_lock(turn, name) for seq, turn, name in front}
        if any(needed.values()):
            self.ordinary = False
        return await self._locks.lock(needed)

    def _groups_to_lock(self, turn: int, name: str | None) -> rows.Groups:
        """The groups of a delivery that a claim may change: its own, and where it would be dead-lettered to."""
        request = self._order
        groups: rows.Groups = set()
        if name is not None and (request.ordered or turn == LinePosition.HEAD):
            groups.add((request.queue_id, name))
        buries = request.limits.attempts_max or request.limits.buries_expired
        if name is not None and request.dead_letters_to is not None and buries:
            groups.add((request.dead_letters_to.queue_id, name))
        return groups

    async def _followers(self, line: Sequence[Placed], room: int) -> tuple[Followers, bool]:
        """The deliveries behind the turns at the front that may be claimed too; whether there are no others.

        An ordered queue gives as much as possible of its first groups; a fair one a little of each.
        """
        names = [delivery.group_id for delivery, turn in line if turn == LinePosition.HEAD]
        if not names or (not self._order.ordered and len(line) >= room):  # else the line alone is enough
            return {}, True
        room_max = max(share.room for share in self.shares)
        each_max = room_max if self._order.ordered else room // len(names) + 1
        limit = room if self._order.ordered else each_max * len(names)
        records = await self._connection.fetch(rows.FOLLOWERS, self._order.queue_id, names, each_max, limit)
        followers: Followers = {}
        for record in records:
            delivery = rows.delivery_of(record)
            followers.setdefault(delivery.group_id or "", []).append(delivery)
        is_cut_off = len(records) == limit or any(len(members) == each_max for members in followers.values())
        return followers, not is_cut_off

    async def _apply(self, plan: ClaimPlan) -> None:
        """Carry out a plan, and give the turns used or lost to the next of each group: see `rows.pass_turns`."""
        request = self._order
        if plan.removed:
            await self._remove(plan)
        if plan.claimed:
            await self._claim(plan.claimed)
        await rows.pass_turns(self._connection, request.queue_id, plan.turns_used, self._now)
        await rows.pass_turns(self._connection, request.queue_id, plan.turns_lost - plan.turns_used)

    async def _remove(self, plan: ClaimPlan) -> None:
        """Remove what leaves the queue; the dead letters among it enter their queue."""
        request = self._order
        self.ordinary = False
        self._removal_count += len(plan.removed)
        await self._connection.execute(rows.REMOVE, request.queue_id, [each.seq for each in plan.removed])
        if request.dead_letters_to is not None:
            await arrivals.bury(self._connection, plan.dead, request, request.dead_letters_to, self._now)

    async def _claim(self, deliveries: Sequence[Delivery]) -> None:
        await self._connection.execute(
            _CLAIM,
            self._order.queue_id,
            self._order.ordered,
            [each.seq for each in deliveries],
            [each.token for each in deliveries],
            [each.available_at for each in deliveries],
            [each.attempts for each in deliveries],
            [each.first_claimed_at for each in deliveries],
        )
