"""Claims end, or hold until another moment.

Calls for one queue go together, as sets: what is done with is removed by one statement, and so is what waits for
another attempt. Where that is all, the statement commits for itself.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from asyncpg import Connection

from redrive.engine.ports import Claim, MoveTarget, Settled, Settlement
from redrive.model.delivery import DeadLetterReason, Delivery, LinePosition, Outcome, enter
from redrive.stores.postgres import arrivals, notes, rows
from redrive.stores.postgres.access_paths import key_of, of
from redrive.stores.postgres.call_lanes import CallLanes
from redrive.stores.postgres.connections import Connections
from redrive.stores.postgres.fencing import (
    DONE,
    EVER,
    GONE,
    MET,
    OWN,
    OWN_UNTIL,
    SUPERSEDED,
    WHICH,
    Fence,
    HeldClaim,
)
from redrive.stores.postgres.listening import Notices

# Only a delivery that was tried before has left notes of its attempts.
_DELETE: Final = f"""
    WITH gone AS (
        DELETE FROM deliveries d USING {OWN} WHERE {MET}
        RETURNING {WHICH}, d.place, d.group_id, d.message_id, d.attempts
    ), forgotten AS (
        DELETE FROM attempts a USING gone
        WHERE {key_of("a", "gone.message_id", "message_id", tie="gone.own_seq")} AND gone.attempts > 1
    )
    SELECT own_seq, own_token, place, group_id FROM gone
"""
_TAKE_OUT: Final = f"DELETE FROM deliveries d USING {OWN} WHERE {MET} RETURNING {of('d')}, {WHICH}, d.place"
_RETRY: Final = (
    f"UPDATE deliveries d SET available_at = own.until, token = NULL FROM {OWN_UNTIL} WHERE {MET}"
    f" RETURNING {WHICH}, d.message_id"
)
# A claim that is over already is given back, to its place of arrival: its moment comes negated. A group of an ordered
# queue goes behind those that waited (recorded).
_EXTEND: Final = (
    "UPDATE deliveries d SET available_at = CASE WHEN own.until >= 0 THEN own.until"
    " WHEN d.place = 1 THEN least(d.enqueued_at, -own.until)"
    f" ELSE -own.until END FROM {OWN_UNTIL} WHERE {MET} RETURNING {WHICH}"
)


class EndCall(NamedTuple):
    """One call: claims of a queue that end."""

    queue_id: int
    settlements: Sequence[Settlement]
    now: int
    ordered: bool
    strict_lease: bool


class ExtendCall(NamedTuple):
    """One call: claims of a queue that hold until another moment."""

    queue_id: int
    claims: Sequence[Claim]
    now: int
    ordered: bool
    strict_lease: bool


class _End(NamedTuple):
    """One settlement among those of many calls."""

    settlement: Settlement
    held: HeldClaim
    now: int


class ClaimSettler:
    """Ends and extends claims, those of one queue together."""

    def __init__(self, connections: Connections, notices: Notices) -> None:
        self._notices = notices
        # In a queue without order, the claim has already made the next delivery of the group its head. So deletions need
        # no locks, and several statements may be under way at once.
        self._deletions = CallLanes(connections, _delete, 2, key=lambda call: call.queue_id)
        self._others = CallLanes(connections, self._settle, 1, key=lambda call: (call.queue_id, call.ordered))
        self._extensions = CallLanes(
            connections, self._extend, 1, key=lambda call: (call.queue_id, call.ordered)
        )

    async def settle(self, call: EndCall) -> list[Settled]:
        """End claims; see `Store.settle`."""
        plain = not call.ordered and all(
            _is_removal(settlement) and not settlement.follow_ups for settlement in call.settlements
        )
        return await (self._deletions if plain else self._others).submit(call)

    async def extend(self, call: ExtendCall) -> list[Settled]:
        """Let claims hold longer, or no longer; see `Store.extend`."""
        return await self._extensions.submit(call)

    async def idle(self) -> None:
        """Return when every call is answered."""
        for lanes in (self._deletions, self._others, self._extensions):
            await lanes.idle()

    async def _settle(self, connection: Connection, calls: Sequence[EndCall]) -> list[list[Settled]]:
        """Settle calls of one queue in one transaction, and announce the queues that deliveries may be claimed in now."""
        ends = _first_ends(calls)
        settle_pass = _SettlePass(connection, calls[0].queue_id, ordered=calls[0].ordered)
        groups = await settle_pass.groups(ends)
        async with connection.transaction():
            await rows.lock_groups(connection, groups)
            await settle_pass.remove([end for end in ends if _is_removal(end.settlement)])
            await settle_pass.retry([end for end in ends if end.settlement.outcome is Outcome.RETRY])
            await settle_pass.send_on([end for end in ends if end.settlement.target is not None])
            await settle_pass.finish()
            await settle_pass.lead_on(ends)
        for queue_id in settle_pass.news:
            self._notices.arrived(queue_id)
        return _answers(settle_pass.fence, ends, calls)

    async def _extend(self, connection: Connection, calls: Sequence[ExtendCall]) -> list[list[Settled]]:
        """Extend claims of calls of one queue, or give their deliveries back, in one transaction."""
        queue_id, ordered = calls[0].queue_id, calls[0].ordered
        # The moment of a claim that is given back is negative, as `_EXTEND` reads it.
        held_claims: list[HeldClaim] = []
        for call in calls:
            holds = call.now if call.strict_lease else EVER
            for seq, token, until in call.claims:
                held_claims.append(HeldClaim(seq, token, holds, until if until > call.now else -until))
        fence = Fence(connection, queue_id)
        groups = await _groups_in(connection, {queue_id}, queue_id, held_claims) if ordered else ()
        async with connection.transaction():
            await rows.lock_groups(connection, groups)
            await fence.meet(_EXTEND, held_claims, until=True)
        if any(until <= call.now for call in calls for *_, until in call.claims):
            self._notices.arrived(queue_id)
        return [[fence.answer(seq, token, again=DONE) for seq, token, _ in call.claims] for call in calls]


def _is_removal(settlement: Settlement) -> bool:
    return settlement.target is None and settlement.outcome is not Outcome.RETRY


def _end(settlement: Settlement, call: EndCall) -> _End:
    """A settlement with the claim that it needs; without `strict_lease` the claim may have run out long ago."""
    holds = call.now if call.strict_lease else EVER
    held = HeldClaim(settlement.seq, settlement.token, holds, settlement.available_at)
    return _End(settlement, held, call.now)


def _first_ends(calls: Sequence[EndCall]) -> list[_End]:
    """The settlements, of each claim the first: whatever else is asked of it comes too late."""
    first: dict[tuple[int, int], _End] = {}
    for call in calls:
        for settlement in call.settlements:
            first.setdefault((settlement.seq, settlement.token), _end(settlement, call))
    return list(first.values())


def _answers(fence: Fence, ends: Sequence[_End], calls: Sequence[EndCall]) -> list[list[Settled]]:
    """The answer to each settlement; to the second one of a claim, that it was superseded by a retry or is gone."""
    retried = {
        (end.settlement.seq, end.settlement.token) for end in ends if end.settlement.outcome is Outcome.RETRY
    }

    def answer(settlement: Settlement) -> Settled:
        seq, token = settlement.seq, settlement.token
        return fence.answer(seq, token, again=SUPERSEDED if (seq, token) in retried else GONE)

    return [[answer(settlement) for settlement in call.settlements] for call in calls]


async def _groups_in(
    connection: Connection, queues: set[int], queue_id: int, held: Sequence[HeldClaim]
) -> rows.Groups:
    """In each of these queues, the groups of these deliveries."""
    names = await rows.groups_of(connection, queue_id, [each.seq for each in held])
    return {(queue, name) for queue in queues for name in names}


async def _delete(connection: Connection, calls: Sequence[EndCall]) -> list[list[Settled]]:
    """Delete deliveries of one queue; no transaction, as it takes one statement."""
    fence = Fence(connection, calls[0].queue_id)
    await fence.meet(
        _DELETE, [_end(settlement, call).held for call in calls for settlement in call.settlements]
    )
    return [
        [fence.answer(settlement.seq, settlement.token, GONE) for settlement in call.settlements]
        for call in calls
    ]


class _SettlePass:
    """Claims of one queue being ended, in one transaction.

    Attributes:
        fence: Which of the claims were met.
        news: Queues that have something to claim, now or at a moment that other nodes do not know.
    """

    def __init__(self, connection: Connection, queue_id: int, *, ordered: bool) -> None:
        self._connection = connection
        self._queue_id = queue_id
        self._ordered = ordered
        self._groups_to_pass_on: set[str] = set()
        self._new_notes: list[notes.Written] = []
        self._ids_to_forget: list[bytes] = []  # of messages whose notes are not needed any more
        self.fence = Fence(connection, queue_id)
        self.news: set[int] = set()  # queues in which something may be claimed now

    async def groups(self, ends: Sequence[_End]) -> rows.Groups:
        """The groups to be locked."""
        queues = {end.settlement.target.queue_id for end in ends if end.settlement.target}
        if self._ordered:
            queues.add(self._queue_id)
        groups = arrivals.groups_of(
            [new_delivery for end in ends for new_delivery in end.settlement.follow_ups]
        )
        if queues:
            held_claims = [end.held for end in ends]
            groups |= await _groups_in(self._connection, queues, self._queue_id, held_claims)
        return groups

    async def remove(self, ends: Sequence[_End]) -> None:
        for record in await self.fence.meet(_DELETE, [end.held for end in ends]):
            self._leave_turn(record)

    async def retry(self, ends: Sequence[_End]) -> None:
        """Let deliveries be claimed again at their moment, and note the attempts that failed."""
        records = await self.fence.meet(_RETRY, [end.held for end in ends], until=True)
        messages = {(record["own_seq"], record["own_token"]): record["message_id"] for record in records}
        if messages:
            self.news.add(self._queue_id)
        self._new_notes += [
            (self._queue_id, messages[settlement.seq, settlement.token], settlement.note)
            for settlement, *_ in ends
            if settlement.note and (settlement.seq, settlement.token) in messages
        ]

    async def send_on(self, ends: Sequence[_End]) -> None:
        """Let deliveries enter another queue: as dead letters, or because that is where they were pushed to."""
        targets = {
            (end.settlement.seq, end.settlement.token): (end, end.settlement.target)
            for end in ends
            if end.settlement.target
        }
        records = await self.fence.meet(_TAKE_OUT, [end.held for end, _ in targets.values()])
        seqs = await rows.next_seqs(self._connection, len(records))
        deliveries = []
        for record, seq in zip(records, seqs, strict=True):
            self._leave_turn(record)
            end, target = targets[record["own_seq"], record["own_token"]]
            delivery = rows.delivery_of(record)
            if end.settlement.content is not None:
                delivery.body, delivery.headers, delivery.sealed = end.settlement.content
            deliveries.append(self._enter_target(delivery, seq, end, target))
            self.news.add(target.queue_id)
            if target.copies is not None:
                await arrivals.copy(
                    self._connection, [(delivery, DeadLetterReason.REJECTED)], target, end.now
                )
                self.news.add(target.copies.queue_id)
        await arrivals.admit(self._connection, deliveries)

    def _enter_target(self, delivery: Delivery, seq: int, end: _End, target: MoveTarget) -> Delivery:
        """The delivery as it enters the target; its notes stay only if it is a dead letter."""
        settlement = end.settlement
        if settlement.outcome is not Outcome.DEAD_LETTERED:
            self._ids_to_forget.append(delivery.message_id)
        elif settlement.note is not None:
            self._new_notes.append((self._queue_id, delivery.message_id, settlement.note))
        return enter(
            delivery,
            settlement.outcome,
            target.queue_id,
            seq,
            end.now,
            ordered=target.ordered,
            as_new=settlement.as_new,
            failure=settlement.failure,
        )

    async def finish(self) -> None:
        """Pass the turns on that were left, and keep or forget notes."""
        await notes.write(self._connection, self._new_notes)
        await notes.forget(self._connection, self._queue_id, self._ids_to_forget)
        if await rows.pass_turns(self._connection, self._queue_id, self._groups_to_pass_on):
            self.news.add(self._queue_id)

    async def lead_on(self, ends: Sequence[_End]) -> None:
        """Let what the ends led to arrive: last, when all turns that were left are passed on."""
        new_deliveries = [
            new_delivery
            for end in ends
            if end.settlement.follow_ups and self.fence.was_met(end.settlement.seq, end.settlement.token)
            for new_delivery in end.settlement.follow_ups
        ]
        if arrivals.are_plain(new_deliveries):
            await arrivals.enqueue_plain(self._connection, [new_deliveries])
        else:
            await arrivals.add_locked(self._connection, new_deliveries)
        self.news.update(new_delivery.queue_id for new_delivery in new_deliveries)

    def _leave_turn(self, record: Any) -> None:
        if record["place"] == LinePosition.HEAD and record["group_id"] is not None:
            self._groups_to_pass_on.add(record["group_id"])
