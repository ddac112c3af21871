"""Claims end: by their own token, or not at all.

Calls for one queue go together, as sets: what is done with is removed by one statement, and so is what waits for
another attempt. Where that is all, the statement commits for itself.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from asyncpg import Connection

from redrive.engine.ports import Settled, Settlement, Target
from redrive.model.delivery import Delivery, Ending, Place, as_dead_letter, as_handed_over
from redrive.stores.postgres import arriving, notes, rows
from redrive.stores.postgres.connections import Connections
from redrive.stores.postgres.listening import Notices
from redrive.stores.postgres.merging import Lanes
from redrive.stores.postgres.reaching import each, of, own

_CLAIM: Final = "AND d.token = one.token AND d.available_at > one.holds"
_OWN: Final = own("$2::bigint[], $3::bigint[], $4::bigint[]", "seq, token, holds", _CLAIM)
_OWN_UNTIL: Final = own(
    "$2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]", "seq, token, holds, until", _CLAIM
)

# Only a delivery that was tried before has left notes of its attempts.
_DELETE: Final = f"""
    WITH {_OWN}, gone AS (
        DELETE FROM deliveries d USING own WHERE d.ctid = own.at
        RETURNING d.seq, d.place, d.group_id, d.message_id, d.attempts
    ), forgotten AS (
        DELETE FROM attempts WHERE ctid = ANY(ARRAY(
            SELECT note.at FROM gone CROSS JOIN LATERAL ({notes.OF_MESSAGE.format("gone.message_id")}) AS note
            WHERE gone.attempts > 1))
    )
    SELECT seq, place, group_id FROM gone
"""  # noqa: S608 - constants
_TAKE_OUT: Final = (
    f"WITH {_OWN} DELETE FROM deliveries d USING own WHERE d.ctid = own.at RETURNING {of('d')}, d.place"  # noqa: S608 - constants
)
_RETRY: Final = (
    f"WITH {_OWN_UNTIL} UPDATE deliveries d SET available_at = own.until, token = NULL"  # noqa: S608 - constants
    " FROM own WHERE d.ctid = own.at RETURNING d.seq, d.message_id"
)
_EXTEND: Final = (
    f"WITH {_OWN_UNTIL} UPDATE deliveries d SET available_at = own.until"  # noqa: S608 - constants
    " FROM own WHERE d.ctid = own.at RETURNING d.seq"
)
_TOKENS: Final = f"SELECT one.seq, found.token FROM unnest($2::bigint[]) AS one (seq) {each('token')}"  # noqa: S608 - constants
_EVER: Final = -1  # every claim runs out later than this: the comparison always holds

_DONE: Final = Settled(done=True)

Claim = tuple[int, int, int]  # seq, token, until


class Ends(NamedTuple):
    """One call: claims of a queue that end."""

    queue_id: int
    settlements: Sequence[Settlement]
    now: int
    ordered: bool


class Extensions(NamedTuple):
    """One call: claims of a queue that hold until another moment."""

    queue_id: int
    claims: Sequence[Claim]
    now: int
    ordered: bool


class _End(NamedTuple):
    """One settlement among those of many calls."""

    settlement: Settlement
    now: int
    holds: int


class Settler:
    """Ends and extends claims, those of one queue together."""

    def __init__(self, connections: Connections, notices: Notices) -> None:
        """Settle on these connections, and tell other nodes what they may be waiting for."""
        self._notices = notices
        # A delivery claimed from a queue without order has no turn: it handed it on. So deletions need no locks, and
        # several statements may be under way at once.
        self._deletions = Lanes(connections, _delete, 2, key=lambda call: call.queue_id)
        self._others = Lanes(connections, self._settle, 1, key=lambda call: (call.queue_id, call.ordered))
        self._extensions = Lanes(connections, self._extend, 1, key=lambda call: (call.queue_id, call.ordered))

    async def settle(self, call: Ends) -> list[Settled]:
        """End claims; see `Store.settle`."""
        plain = not call.ordered and all(_is_removal(one) for one in call.settlements)
        return await (self._deletions if plain else self._others).submit(call)

    async def extend(self, call: Extensions) -> list[Settled]:
        """Let claims hold longer, or no longer; see `Store.extend`."""
        return await self._extensions.submit(call)

    async def idle(self) -> None:
        """Return when every call is answered."""
        for lanes in (self._deletions, self._others, self._extensions):
            await lanes.idle()

    async def _settle(self, connection: Connection, calls: Sequence[Ends]) -> list[list[Settled]]:
        queue_id, ordered = calls[0].queue_id, calls[0].ordered
        ends = [
            _End(one, call.now, call.now if ordered else _EVER) for call in calls for one in call.settlements
        ]
        async with connection.transaction():
            settling = _Settling(connection, queue_id, ordered=ordered)
            await settling.lock(ends)
            await settling.remove([end for end in ends if _is_removal(end.settlement)])
            await settling.retry([end for end in ends if end.settlement.ending is Ending.RETRY])
            await settling.send_on([end for end in ends if end.settlement.target is not None])
            await settling.finish()
        for heard in settling.news:
            self._notices.arrived(heard)
        return await _answers(connection, queue_id, settling.done, [_claims(call) for call in calls])

    async def _extend(self, connection: Connection, calls: Sequence[Extensions]) -> list[list[Settled]]:
        queue_id, ordered = calls[0].queue_id, calls[0].ordered
        asked = [
            (seq, token, call.now if ordered else _EVER, until)
            for call in calls
            for seq, token, until in call.claims
        ]
        async with connection.transaction():
            if ordered:
                await _lock(connection, queue_id, [seq for seq, *_ in asked], [queue_id])
            done = {seq for (seq,) in await _on(connection, _EXTEND, queue_id, asked)}
        if any(until <= call.now for call in calls for *_, until in call.claims):
            self._notices.arrived(queue_id)
        claims = [[(seq, token) for seq, token, _ in call.claims] for call in calls]
        return await _answers(connection, queue_id, done, claims)


def _is_removal(one: Settlement) -> bool:
    return one.target is None and one.ending is not Ending.RETRY


def _claims(call: Ends) -> list[tuple[int, int]]:
    return [(one.seq, one.token) for one in call.settlements]


async def _on(
    connection: Connection, statement: str, queue_id: int, own: Iterable[tuple[int, ...]]
) -> list[Any]:
    """Run a statement on claims; sorted, so that two of them do not wait for each other in a circle."""
    columns = list(zip(*sorted(own), strict=True))
    records: list[Any] = await connection.fetch(statement, queue_id, *columns) if columns else []
    return records


async def _lock(connection: Connection, queue_id: int, seqs: Sequence[int], queues: Sequence[int]) -> None:
    """Lock, in each of these queues, the groups of these deliveries; a delivery's group never changes."""
    names = await rows.groups_of(connection, queue_id, seqs)
    await rows.lock_groups(connection, ((queue, name) for queue in queues for name in names))


async def _delete(connection: Connection, calls: Sequence[Ends]) -> list[list[Settled]]:
    queue_id = calls[0].queue_id
    claims = [_claims(call) for call in calls]
    own = [(seq, token, _EVER) for some in claims for seq, token in some]
    gone = await _on(connection, _DELETE, queue_id, own)
    return await _answers(connection, queue_id, {record[0] for record in gone}, claims)


async def _answers(
    connection: Connection, queue_id: int, done: set[int], claims: Sequence[Sequence[tuple[int, int]]]
) -> list[list[Settled]]:
    """Tell each caller which of its claims were met, and why the others were not."""
    refused = [seq for some in claims for seq, _ in some if seq not in done]
    tokens = dict(await connection.fetch(_TOKENS, queue_id, refused)) if refused else {}
    left = set(done)

    def answer(seq: int, token: int) -> Settled:
        if seq in left:
            left.remove(seq)  # asked for twice, it is met once
            return _DONE
        if seq in done or seq not in tokens:
            return Settled(done=False, reason="gone")
        return Settled(done=False, reason="lapsed" if tokens[seq] == token else "superseded")

    return [[answer(seq, token) for seq, token in some] for some in claims]


class _Settling:
    """Claims of one queue being ended, in one transaction.

    Attributes:
        done: The deliveries whose claims were met.
        news: Queues that have something to claim, now or at a moment that other nodes do not know.
    """

    def __init__(self, connection: Connection, queue_id: int, *, ordered: bool) -> None:
        self._connection = connection
        self._queue_id = queue_id
        self._ordered = ordered
        self._left: set[str] = set()
        self._written: list[notes.Written] = []
        self._through: list[bytes] = []
        self.done: set[int] = set()
        self.news: set[int] = set()

    async def lock(self, ends: Sequence[_End]) -> None:
        queues = {end.settlement.target.queue_id for end in ends if end.settlement.target}
        if self._ordered:
            queues.add(self._queue_id)
        if queues:
            seqs = [end.settlement.seq for end in ends]
            await _lock(self._connection, self._queue_id, seqs, list(queues))

    async def remove(self, ends: Sequence[_End]) -> None:
        for seq, place, group_id in await self._on(_DELETE, ends):
            self._left_by(seq, place, group_id)

    async def retry(self, ends: Sequence[_End]) -> None:
        own = [(one.seq, one.token, holds, one.available_at) for one, _, holds in ends]
        messages = dict(await _on(self._connection, _RETRY, self._queue_id, own))
        if messages:
            self.done |= messages.keys()
            self.news.add(self._queue_id)
        self._written += [
            (self._queue_id, messages[one.seq], one.note)
            for one, *_ in ends
            if one.note and one.seq in messages
        ]

    async def send_on(self, ends: Sequence[_End]) -> None:
        """Let deliveries enter another queue: as dead letters, or because that is where they were pushed to."""
        targets = {end.settlement.seq: (end, end.settlement.target) for end in ends if end.settlement.target}
        taken = await self._on(_TAKE_OUT, [end for end, _ in targets.values()])
        seqs = await rows.next_seqs(self._connection, len(taken))
        admitted = []
        for record, seq in zip(taken, seqs, strict=True):
            self._left_by(record["seq"], record["place"], record["group_id"])
            end, target = targets[record["seq"]]
            admitted.append(self._sent_on(rows.delivery_of(record), seq, end, target))
            self.news.add(target.queue_id)
        await arriving.admit(self._connection, admitted)

    def _sent_on(self, delivery: Delivery, seq: int, end: _End, target: Target) -> Delivery:
        if end.settlement.ending is not Ending.DEAD_LETTERED:
            self._through.append(delivery.message_id)
            return as_handed_over(delivery, target.queue_id, seq, end.now)
        if end.settlement.note is not None:
            self._written.append((self._queue_id, delivery.message_id, end.settlement.note))
        return as_dead_letter(delivery, target.queue_id, seq, end.now, ordered=target.ordered)

    async def finish(self) -> None:
        """Pass the turns on that were left, and keep or forget notes."""
        await notes.write(self._connection, self._written)
        await notes.forget(self._connection, self._queue_id, self._through)
        if await rows.pass_turns(self._connection, self._queue_id, self._left):
            self.news.add(self._queue_id)

    async def _on(self, statement: str, ends: Sequence[_End]) -> list[Any]:
        own = [(one.seq, one.token, holds) for one, _, holds in ends]
        return await _on(self._connection, statement, self._queue_id, own)

    def _left_by(self, seq: int, place: int, group_id: str | None) -> None:
        self.done.add(seq)
        if place == Place.TURN and group_id is not None:
            self._left.add(group_id)
