"""Deliveries arrive: sent by callers, dead-lettered, or redriven from another queue."""

from collections.abc import Sequence
from typing import Any, Final

from asyncpg import Connection

from redrive.engine.ports import Arrival, ClaimOrder, Enqueued, Target
from redrive.model.delivery import Delivery, End, as_copy, as_dead_letter, end_of
from redrive.stores.postgres import deduplication, notes, rows

# The way of most messages: no group, no deduplication, no past. One statement, which commits for itself.
_INSERT_NEW: Final = (
    "INSERT INTO deliveries (queue_id, seq, available_at, attempts, enqueued_at, sent_at, message_id,"
    " deduplication_id, headers, body, place)"
    " SELECT queue_id, nextval('delivery_seq'), available_at, 0, enqueued_at, enqueued_at, message_id,"
    " deduplication_id, headers, body, 1"
    " FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[], $5::text[], $6::bytea[], $7::text[])"
    " AS new (queue_id, available_at, enqueued_at, message_id, deduplication_id, headers, body)"
    " RETURNING seq"
)

Arrivals = Sequence[Arrival]


def are_plain(arrivals: Arrivals) -> bool:
    """Whether nothing has to be looked up before these can enter their queues."""
    return all(
        one.group_id is None and one.deduplication_key is None and one.origin is None and not one.attempts
        for one in arrivals
    )


async def enqueue_plain(connection: Connection, calls: Sequence[Arrivals]) -> list[list[Enqueued]]:
    """Add the deliveries of several calls, all of them plain."""
    new = [arrival for arrivals in calls for arrival in arrivals]
    if not new:
        return [[] for _ in calls]
    inserted = await connection.fetch(
        _INSERT_NEW,
        [one.queue_id for one in new],
        [one.available_at for one in new],
        [one.enqueued_at for one in new],
        [one.message_id for one in new],
        [one.deduplication_id for one in new],
        [one.headers for one in new],
        [one.body for one in new],
    )
    # Rows are numbered in the order they were given, whatever order they are returned in.
    seqs = iter(sorted(seq for (seq,) in inserted))
    return [[Enqueued(one.message_id, next(seqs), False) for one in arrivals] for arrivals in calls]  # noqa: FBT003 - a tuple's field


async def enqueue(connection: Connection, calls: Sequence[Arrivals]) -> list[list[Enqueued]]:
    """Add the deliveries of several calls; a repetition within its deduplication period answers the original."""
    async with connection.transaction():
        answers = iter(await add(connection, [arrival for arrivals in calls for arrival in arrivals]))
    return [[next(answers) for _ in arrivals] for arrivals in calls]


async def add(connection: Connection, arrivals: Arrivals) -> list[Enqueued]:
    """The same within a transaction that holds no lock yet."""
    await rows.lock_groups(connection, groups_of(arrivals))
    return await add_locked(connection, arrivals)


def groups_of(arrivals: Arrivals) -> rows.Groups:
    """The groups whose turn the arrivals may take."""
    return {(one.queue_id, one.group_id) for one in arrivals if one.group_id is not None and not _alone(one)}


async def add_locked(connection: Connection, arrivals: Arrivals) -> list[Enqueued]:
    """The same within a transaction that holds the locks of `groups_of` the arrivals."""
    seqs = await rows.next_seqs(connection, len(arrivals))
    memories = [
        deduplication.Memory(
            one.queue_id,
            one.deduplication_key,
            one.message_id,
            seq,
            one.enqueued_at,
            one.deduplicate_until,
        )
        for one, seq in zip(arrivals, seqs, strict=True)
    ]
    answers = await deduplication.remember(connection, memories)
    fresh = [(one, answer.seq) for one, answer in zip(arrivals, answers, strict=True) if not answer.repeated]
    places = await rows.free_places(
        connection, [(one.queue_id, one.group_id, _alone(one)) for one, _ in fresh]
    )
    await rows.insert(connection, [_row_of(one, seq) for one, seq in fresh], places)
    written = [(one.origin, one.message_id, one.note) for one, _ in fresh if one.origin and one.note]
    await notes.write(connection, written)
    return answers


def _alone(arrival: Arrival) -> bool:
    return not arrival.ordered and arrival.available_at > arrival.enqueued_at


def _row_of(arrival: Arrival, seq: int) -> tuple[Any, ...]:
    return (
        arrival.queue_id,
        seq,
        arrival.available_at,
        arrival.attempts,
        None,
        arrival.enqueued_at,
        arrival.enqueued_at,
        None,
        arrival.message_id,
        arrival.group_id,
        arrival.deduplication_id,
        arrival.origin,
        arrival.headers,
        arrival.body,
    )


async def admit(connection: Connection, deliveries: Sequence[Delivery]) -> None:
    """Let deliveries that come from another queue enter their new one; their groups there are locked."""
    newcomers = [(one.queue_id, one.group_id, False) for one in deliveries]
    places = await rows.free_places(connection, newcomers)
    await rows.insert(connection, [rows.values_of(one) for one in deliveries], places)


async def bury(
    connection: Connection, dead: Sequence[Delivery], order: ClaimOrder, target: Target, now: int
) -> None:
    """Let deliveries that left their queue enter the dead-letter queue; their groups there are locked."""
    if not dead:
        return
    seqs = await rows.next_seqs(connection, len(dead))
    buried = [
        as_dead_letter(one, target.queue_id, seq, now, ordered=target.ordered)
        for one, seq in zip(dead, seqs, strict=True)
    ]
    await admit(connection, buried)
    await copy(connection, [(one, end_of(one, order.limits, now)) for one in dead], target, now)


async def copy(
    connection: Connection, dead: Sequence[tuple[Delivery, End]], target: Target, now: int
) -> None:
    """Let the copies of dead letters enter the backlog for such, if there is one."""
    if target.copies is None or not dead:
        return
    copies = target.copies
    seqs = await rows.next_seqs(connection, len(dead))
    made = [
        as_copy(one, copies.queue_id, seq, now, copies.delay_ms, end)
        for (one, end), seq in zip(dead, seqs, strict=True)
    ]
    await admit(connection, made)
