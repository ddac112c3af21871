"""The deliveries' table: its columns, and how groups' turns stay right though several nodes change them at once.

A group's turn follows three rules, as in every store: a newcomer takes it when nobody of the group has it
(`free_places`), a claimed delivery of a fair queue hands it on, and whoever leaves with it passes it to the oldest
behind (both `pass_turns`). Between looking at a group and changing it another node could do the same, so:

    Whoever gives, takes or passes a turn, and whoever touches a delivery of an ordered queue that has a group,
    holds the group's lock until its transaction ends.

A transaction begins with its first locks, all at once and in ascending order (`lock_groups`); later ones it takes only if
they are free (`try_groups`). So nobody waits in a circle. Deliveries without a group pay nothing.

The groups to be locked are looked up before the transaction begins, since Citus numbers a transaction when it first
touches a distributed table. Its search for deadlocks takes all transactions without a number for a single one: if those
with a number waited for the same locks, it would see them wait for each other in a circle, and end some of them.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from operator import attrgetter
from types import TracebackType
from typing import Any, Final, Self

from asyncpg import Connection

from redrive.engine.ports import BACK_AMONG
from redrive.model.claiming import Placed, order_of_due
from redrive.model.delivery import Delivery, LinePosition
from redrive.stores.postgres import inserting
from redrive.stores.postgres.access_paths import COLUMNS, each, in_group, key_of, of

Group = tuple[int, str]  # queue, name
Groups = set[Group]

values_of: Final = attrgetter(*COLUMNS.split(", "))  # of a Delivery, in the order of the columns

_INTO: Final = f"INSERT INTO deliveries ({COLUMNS}, place)"
_ROW: Final = f"({', '.join(f'{{{number}}}' for number in range(17))})"
_INSERT: Final = (
    f"{_INTO} SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::integer[], $5::bigint[], $6::bigint[],"
    " $7::bigint[], $8::bigint[], $9::bytea[], $10::text[], $11::text[], $12::bigint[], $13::bytea[], $14::text[],"
    " $15::text[], $16::bytea[], $17::smallint[])"
)
_NEXT_SEQS: Final = "SELECT nextval('delivery_seq') FROM generate_series(1, $1)"
_TURNS_TAKEN: Final = (
    "SELECT g.id FROM unnest($2::text[]) AS g (id)"
    f" CROSS JOIN LATERAL ({in_group('1', LinePosition.HEAD, '1')}) AS turn"
)
_HAND_TURNS_ON: Final = (
    "WITH own AS MATERIALIZED (SELECT oldest.seq FROM unnest($2::text[]) AS g (id)"
    f" CROSS JOIN LATERAL ({in_group('seq', LinePosition.BEHIND, '1')}) AS oldest)"
    " UPDATE deliveries d SET place = 2, available_at = greatest(d.available_at, $3)"
    f" FROM own WHERE {key_of('d')}"
)
_GROUPS: Final = (
    f"SELECT DISTINCT found.group_id FROM unnest($2::bigint[]) AS one (seq) {each('group_id')}"
    " WHERE found.group_id IS NOT NULL"
)
_HOLD: Final = f"SELECT FROM unnest($2::bigint[]) AS one (seq) {each('1', 'FOR UPDATE')}"
_LOCKED: Final = (
    f"SELECT {of('found')}, found.place FROM unnest($2::bigint[]) AS one (seq)"
    f" {each(f'{COLUMNS}, place', 'FOR UPDATE SKIP LOCKED')}"
)

# The line is what a claim looks at: what waits for one, and what one had, whose claim ran out or was given back.
WAITING: Final = "place > 0 AND token IS NULL"
CLAIMED: Final = "token IS NOT NULL AND place > 0"
# `redrive.model.claiming.order_of_due` of what came back: by this, then by `seq`.
ORDER_OF_BACK: Final = "CASE WHEN group_id IS NULL THEN 0 ELSE available_at END"

_FIRST: Final = (
    "(SELECT available_at FROM deliveries WHERE queue_id = $1 AND {} ORDER BY available_at, seq LIMIT 1)"
)
NEXT_AT: Final = f"SELECT least({_FIRST.format(WAITING)}, {_FIRST.format(CLAIMED)})"
REMOVE: Final = f"DELETE FROM deliveries d USING unnest($2::bigint[]) AS own (seq) WHERE {key_of('d')}"

# Group by group, the oldest of each first: at most $3 of one, and $4 of all.
FOLLOWERS: Final = (
    f"SELECT {of('follower')} FROM unnest($2::text[]) AS g (id)"
    f" CROSS JOIN LATERAL ({in_group(COLUMNS, LinePosition.BEHIND, '$3')}) AS follower LIMIT $4"
)

# A database has room for about 6,400 locks (max_locks_per_transaction x max_connections) and a transaction may touch
# thousands of groups, so groups share locks. Sharing one with a stranger costs a wait, never a wrong answer.
_LOCK_CLASS: Final = 21_093  # any number that other programs on the same database are unlikely to use
_LOCKS: Final = 4096
_LOCK: Final = "SELECT pg_advisory_xact_lock($1, key) FROM unnest($2::integer[]) AS key"
_TRY_LOCK: Final = "SELECT pg_try_advisory_xact_lock($1, key) FROM unnest($2::integer[]) AS key"


def front(columns: str, condition: str, limit: str) -> str:
    """SELECT: the front of queue $1's line, as claims take it, of what fulfils a condition."""

    def part(state: str, order: str, among: str) -> str:
        return (
            f"(SELECT seq, {columns}, {order} AS moment FROM deliveries WHERE queue_id = $1 AND {state} AND {condition}"
            f" ORDER BY available_at, seq LIMIT {among})"
        )

    back = part(CLAIMED, ORDER_OF_BACK, f"greatest({limit}, {BACK_AMONG})")
    waiting = part(WAITING, "available_at", limit)
    return (
        f"SELECT seq, {columns} FROM ({back} UNION ALL {waiting}) AS due ORDER BY moment, seq LIMIT {limit}"
    )


def delivery_of(record: Sequence[Any]) -> Delivery:
    """The delivery of a record that begins with `COLUMNS`."""
    return Delivery(*record[:16])


def _lock_of(group: Group) -> int:
    """Equal on all nodes, of whatever version."""
    queue_id, name = group
    return zlib.crc32(b"%d/%b" % (queue_id, name.encode())) % _LOCKS


async def groups_of(connection: Connection, queue_id: int, seqs: Sequence[int]) -> list[str]:
    """The groups of these deliveries; a delivery's group never changes, so this needs no lock."""
    return [name for (name,) in await connection.fetch(_GROUPS, queue_id, seqs)]


async def lock_groups(connection: Connection, groups: Iterable[Group]) -> None:
    """Wait until no other transaction works on these groups, and keep others waiting until this one ends."""
    locks = sorted({_lock_of(group) for group in groups})
    if locks:
        await connection.fetch(_LOCK, _LOCK_CLASS, locks)


async def try_groups(connection: Connection, groups: Iterable[Group]) -> Groups:
    """Those of the groups that no other transaction works on, kept for this one; for one that has locks already."""
    by_lock: dict[int, Groups] = {}
    for group in groups:
        by_lock.setdefault(_lock_of(group), set()).add(group)
    locks = sorted(by_lock)
    lock_results = await connection.fetch(_TRY_LOCK, _LOCK_CLASS, locks) if locks else ()
    return {
        group for lock, (ours,) in zip(locks, lock_results, strict=True) if ours for group in by_lock[lock]
    }


class GroupLocks:
    """A transaction that passes along a line: it begins with its first locks, which it waits for; later ones if free."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._transaction = AsyncExitStack()
        self._has_begun = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Commit, or roll back where something went wrong, if anything was begun."""
        await self._transaction.__aexit__(kind, error, traceback)

    async def lock(self, needed: Mapping[int, Groups]) -> list[int]:
        """Lock what is needed for each of these places; those that may be touched now."""
        groups = {group for group_names in needed.values() for group in group_names}
        if self._has_begun:
            groups = await try_groups(self._connection, groups)
        else:
            await self._transaction.enter_async_context(self._connection.transaction())
            self._has_begun = True
            await lock_groups(self._connection, groups)
        return [seq for seq, group_names in needed.items() if group_names <= groups]


async def next_seqs(connection: Connection, number: int) -> list[int]:
    """Places of arrival. For a group, taken under its lock: so the order of places is the order of commits."""
    return [seq for (seq,) in await connection.fetch(_NEXT_SEQS, number)]


async def free_places(connection: Connection, newcomers: Sequence[tuple[int, str | None, bool]]) -> list[int]:
    """The positions of new deliveries `(queue_id, group_id, alone)`; their groups are locked.

    `alone`: a delayed one of a fair queue comes by its own time, and the others of its group need not wait for that.
    """
    groups_by_queue: dict[int, set[str]] = {}
    for queue_id, group_id, alone in newcomers:
        if group_id is not None and not alone:
            groups_by_queue.setdefault(queue_id, set()).add(group_id)
    groups_with_turn: Groups = set()
    for queue_id, names in groups_by_queue.items():
        records = await connection.fetch(_TURNS_TAKEN, queue_id, list(names))
        groups_with_turn.update((queue_id, name) for (name,) in records)
    return [
        LinePosition.READY
        if group_id is None or alone
        else _turn_or_behind((queue_id, group_id), groups_with_turn)
        for queue_id, group_id, alone in newcomers
    ]


def _turn_or_behind(group: Group, groups_with_turn: Groups) -> LinePosition:
    if group in groups_with_turn:
        return LinePosition.BEHIND
    groups_with_turn.add(group)
    return LinePosition.HEAD


async def hold(connection: Connection, queue_id: int, seqs: Sequence[int]) -> None:
    """Wait until nobody else works on these deliveries, and keep others waiting until this transaction ends."""
    await connection.execute(_HOLD, queue_id, seqs)


async def due(connection: Connection, queue_id: int, seqs: Sequence[int], now: int) -> list[Placed]:
    """Those of these deliveries that still stand in the line and are due, locked and in order.

    One that another node has locked is left out: it is being claimed, or removed.
    """
    placed = await waiting(connection, queue_id, seqs, now)
    line = [(delivery, turn) for delivery, turn in placed if turn != LinePosition.BEHIND]
    return sorted(line, key=lambda placed: order_of_due(placed[0]))


async def waiting(connection: Connection, queue_id: int, seqs: Sequence[int], now: int) -> list[Placed]:
    """Those of these deliveries that are still there and due, also behind others of their group, locked."""
    records = await connection.fetch(_LOCKED, queue_id, seqs)
    placed = [(delivery_of(record), record["place"]) for record in records]
    return [(delivery, turn) for delivery, turn in placed if delivery.available_at <= now]


async def insert(
    connection: Connection, rows: Sequence[tuple[Any, ...]], places: Sequence[int], *, by_values: bool = False
) -> None:
    """Put deliveries, as `values_of` them, at these places; `by_values`: see `inserting`."""
    if by_values:
        placed = [(*row, turn) for row, turn in zip(rows, places, strict=True)]
        await inserting.insert(connection, _INTO, _ROW, placed)
    elif rows:
        await connection.execute(_INSERT, *(list(column) for column in zip(*rows, strict=True)), list(places))


async def pass_turns(connection: Connection, queue_id: int, names: Iterable[str], now: int = 0) -> bool:
    """Give the turn of each of these groups, which nobody has now, to its oldest delivery behind; True if any had one.

    Args:
        connection: In a transaction that holds the groups' locks.
        queue_id: Of the groups.
        names: Of the groups.
        now: In a fair queue: a delivery that gets a turn is due from now on, behind those that wait already.
    """
    groups = sorted(set(names))
    if not groups:
        return False
    status: str = await connection.execute(_HAND_TURNS_ON, queue_id, groups, now)
    return status != "UPDATE 0"
