"""Deliveries arrive: sent by callers, dead-lettered, or redriven from another queue."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from asyncpg import Connection

from redrive.engine.ports import ClaimRequest, Enqueued, MoveTarget, NewDelivery, OrderedPublication
from redrive.model.claiming import death_reason
from redrive.model.delivery import DeadLetterReason, Delivery, as_copy, as_dead_letter
from redrive.stores.postgres import inserting, notes, rows
from redrive.stores.postgres.access_paths import key_of

# The way of most messages: no group, no deduplication, no past. One statement, which commits for itself.
DELIVERIES_INTO: Final = (
    "INSERT INTO deliveries (queue_id, seq, available_at, attempts, enqueued_at, sent_at, message_id,"
    " deduplication_id, headers, body, sealed, place)"
)
_ROW: Final = "({0}, nextval('delivery_seq'), {1}, 0, {2}, {2}, {3}, {4}, {5}, {6}, {7}, 1)"
_SEQ: Final = "RETURNING seq"
_INSERT_NEW: Final = (
    f"{DELIVERIES_INTO} SELECT queue_id, nextval('delivery_seq'), available_at, 0, enqueued_at, enqueued_at, message_id,"
    " deduplication_id, headers, body, sealed, 1"
    " FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[], $5::text[], $6::bytea[], $7::text[],"
    " $8::bytea[]) AS new (queue_id, available_at, enqueued_at, message_id, deduplication_id, headers, body, sealed)"
    f" {_SEQ}"
)

_AFTER: Final = (
    "SELECT seq, group_id, attempts = 0 AND token IS NULL AS untouched FROM deliveries"
    " WHERE queue_id = $1 AND seq > $2 ORDER BY seq LIMIT $3"
)
_DELAY: Final = (
    "UPDATE deliveries d SET available_at = d.enqueued_at + $3 FROM unnest($2::bigint[]) AS own (seq)"
    f" WHERE {key_of('d')} AND d.attempts = 0 AND d.token IS NULL"
)

NewDeliveries = Sequence[NewDelivery]


def are_plain(new_deliveries: NewDeliveries) -> bool:
    """True if nothing has to be looked up before these can enter their queues."""
    return all(
        each.group_id is None and each.deduplication_key is None and each.origin is None and not each.attempts
        for each in new_deliveries
    )


async def enqueue_plain(
    connection: Connection, calls: Sequence[NewDeliveries], statement: str = _INSERT_NEW
) -> list[list[Enqueued]]:
    """Add the deliveries of several calls, all of them plain, by a statement that takes them as columns."""
    new = [new_delivery for new_deliveries in calls for new_delivery in new_deliveries]
    if not new:
        return [[] for _ in calls]
    inserted = await connection.fetch(
        statement,
        [each.queue_id for each in new],
        [each.available_at for each in new],
        [each.enqueued_at for each in new],
        [each.message_id for each in new],
        [each.deduplication_id for each in new],
        [each.headers for each in new],
        [each.body for each in new],
        [each.sealed for each in new],
    )
    return _as_answers(calls, inserted)


async def enqueue_plain_by_values(
    connection: Connection, calls: Sequence[NewDeliveries]
) -> list[list[Enqueued]]:
    """Add the deliveries of several calls, at most `inserting.QUICKER_MAX` of them, plain and of one queue on Citus."""
    values = [
        (
            each.queue_id,
            each.available_at,
            each.enqueued_at,
            each.message_id,
            each.deduplication_id,
            each.headers,
            each.body,
            each.sealed,
        )
        for call in calls
        for each in call
    ]
    inserted = await inserting.insert(connection, DELIVERIES_INTO, _ROW, values, _SEQ)
    return _as_answers(calls, inserted)


def _as_answers(calls: Sequence[NewDeliveries], inserted: Sequence[Any]) -> list[list[Enqueued]]:
    """The answers: rows are numbered in the order they were given, whatever order they are returned in."""
    seqs = iter(sorted(seq for (seq,) in inserted))
    return [[Enqueued(each.message_id, next(seqs), repeated=False) for each in call] for call in calls]


async def enqueue(
    connection: Connection, calls: Sequence[NewDeliveries], *, by_values: bool = False
) -> list[list[Enqueued]]:
    """Add the deliveries of several calls; a repetition within its deduplication period answers the original.

    `by_values`: all of them are of one queue on Citus (see `inserting`).
    """
    async with connection.transaction():
        all_of_them = [new_delivery for new_deliveries in calls for new_delivery in new_deliveries]
        await rows.lock_groups(connection, groups_of(all_of_them))
        answers = iter(await add_locked(connection, all_of_them, by_values=by_values))
    return [[next(answers) for _ in new_deliveries] for new_deliveries in calls]


async def publish(
    connection: Connection, calls: Sequence[Sequence[OrderedPublication]]
) -> list[list[Enqueued]]:
    """Let the publications of several calls through their gates; a repetition is answered with the original."""
    publications = [publication for call in calls for publication in call]
    async with connection.transaction():
        await rows.lock_groups(
            connection,
            groups_of([each for publication in publications for each in publication.new_deliveries]),
        )
        seqs = await rows.next_seqs(connection, len(publications))
        memories = [
            Memory(
                publication.topic_id,
                publication.key,
                publication.message_id,
                seq,
                publication.now,
                publication.until,
            )
            for publication, seq in zip(publications, seqs, strict=True)
        ]
        answers = await remember(connection, memories)
        new_deliveries = [
            new_delivery
            for publication, answer in zip(publications, answers, strict=True)
            if not answer.repeated
            for new_delivery in publication.deliveries_at(answer.seq)
        ]
        await add_locked(connection, new_deliveries)
    remaining_answers = iter(answers)
    return [[next(remaining_answers) for _ in call] for call in calls]


def groups_of(new_deliveries: NewDeliveries) -> rows.Groups:
    """The groups whose turn the arrivals may take."""
    return {
        (each.queue_id, each.group_id)
        for each in new_deliveries
        if each.group_id is not None and not _comes_alone(each)
    }


async def add_locked(
    connection: Connection, new_deliveries: NewDeliveries, *, by_values: bool = False
) -> list[Enqueued]:
    """Add deliveries within a transaction that holds the locks of `groups_of` them."""
    seqs = await rows.next_seqs(connection, len(new_deliveries))
    memories = [
        Memory(
            new_delivery.queue_id,
            new_delivery.deduplication_key,
            new_delivery.message_id,
            seq,
            new_delivery.enqueued_at,
            new_delivery.deduplicate_until,
        )
        for new_delivery, seq in zip(new_deliveries, seqs, strict=True)
    ]
    answers = await remember(connection, memories, by_values=by_values)
    fresh = [
        (new_delivery, answer.seq)
        for new_delivery, answer in zip(new_deliveries, answers, strict=True)
        if not answer.repeated
    ]
    places = await rows.free_places(
        connection,
        [
            (new_delivery.queue_id, new_delivery.group_id, _comes_alone(new_delivery))
            for new_delivery, _ in fresh
        ],
    )
    await rows.insert(
        connection, [new_delivery.row(seq) for new_delivery, seq in fresh], places, by_values=by_values
    )
    new_notes = [
        (new_delivery.origin, new_delivery.message_id, new_delivery.note)
        for new_delivery, _ in fresh
        if new_delivery.origin and new_delivery.note
    ]
    await notes.write(connection, new_notes)
    return answers


async def delay(
    connection: Connection, queue_id: int, delay_ms: int, after_seq: int, limit: int
) -> int | None:
    """Set the delay of unclaimed deliveries, counted from their arrival; see `Store.delay` for the number returned."""
    records = await connection.fetch(_AFTER, queue_id, after_seq, limit)
    untouched = [(seq, group_id) for seq, group_id, is_untouched in records if is_untouched]
    if untouched:
        async with connection.transaction():
            await rows.lock_groups(
                connection, {(queue_id, name) for _, name in untouched if name is not None}
            )
            await connection.execute(_DELAY, queue_id, [seq for seq, _ in untouched], delay_ms)
    return records[-1][0] if records else None


def _comes_alone(new_delivery: NewDelivery) -> bool:
    return not new_delivery.ordered and new_delivery.available_at > new_delivery.enqueued_at


async def admit(connection: Connection, deliveries: Sequence[Delivery]) -> None:
    """Let deliveries that come from another queue enter their new one; their groups there are locked."""
    newcomers = [(delivery.queue_id, delivery.group_id, False) for delivery in deliveries]
    places = await rows.free_places(connection, newcomers)
    await rows.insert(connection, [rows.values_of(delivery) for delivery in deliveries], places)


async def bury(
    connection: Connection, dead: Sequence[Delivery], request: ClaimRequest, target: MoveTarget, now: int
) -> None:
    """Let deliveries that left their queue enter the dead-letter queue; their groups there are locked."""
    if not dead:
        return
    ends = [(each, death_reason(each, request.limits, now)) for each in dead]
    seqs = await rows.next_seqs(connection, len(dead))
    buried = [
        as_dead_letter(delivery, target.queue_id, seq, now, ordered=target.ordered, failure=end)
        for (delivery, end), seq in zip(ends, seqs, strict=True)
    ]
    await admit(connection, buried)
    await copy(connection, ends, target, now)


async def copy(
    connection: Connection, dead: Sequence[tuple[Delivery, DeadLetterReason]], target: MoveTarget, now: int
) -> None:
    """Let the copies of dead letters enter the backlog for such, if there is one."""
    if target.copies is None or not dead:
        return
    copies = target.copies
    seqs = await rows.next_seqs(connection, len(dead))
    rows_of_copies = [
        as_copy(delivery, copies.queue_id, seq, now, copies.delay_ms, end)
        for (delivery, end), seq in zip(dead, seqs, strict=True)
    ]
    await admit(connection, rows_of_copies)


# Deduplication: a key is remembered with the message that brought it.


class Memory(NamedTuple):
    """A key, and the message to answer its repetitions with."""

    queue_id: int  # Queue or topic within which the key is unique
    key: str | None  # None: not deduplicated
    message_id: bytes  # The message's
    seq: int  # Its sequence number
    since: int  # When it was sent (ms)
    until: int  # How long (ms since the epoch) the key is remembered


# A key that is known and still holds is answered as it is, one whose time is over is taken over. Of two nodes that
# remember the same key at once, the second waits here until the first has committed. In order of the keys, so that
# they do not wait for each other in a circle.
_KEYS_INTO: Final = "INSERT INTO deduplication AS known (queue_id, key, message_id, seq, since, until)"
_KEY_ROW: Final = "({0}, {1}, {2}, {3}, {4}, {5})"
_OR_KNOWN: Final = """
    ON CONFLICT (queue_id, key) DO UPDATE SET
        message_id = CASE WHEN known.until > excluded.since THEN known.message_id ELSE excluded.message_id END,
        seq = CASE WHEN known.until > excluded.since THEN known.seq ELSE excluded.seq END,
        since = CASE WHEN known.until > excluded.since THEN known.since ELSE excluded.since END,
        until = CASE WHEN known.until > excluded.since THEN known.until ELSE excluded.until END
    RETURNING queue_id, key, message_id, seq
"""
_REMEMBER: Final = (
    f"{_KEYS_INTO} SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[])"
    f" {_OR_KNOWN}"
)

_Key = tuple[int, str]
_Original = tuple[bytes, int]  # message, place


async def remember(
    connection: Connection, memories: Sequence[Memory], *, by_values: bool = False
) -> list[Enqueued]:
    """Remember each of these keys; whether it was known, and if so the original's answer. Runs in a transaction.

    `by_values`: all of them are of one queue on Citus (see `inserting`).
    """
    first: dict[_Key, Memory] = {}
    for memory in memories:
        if memory.key is not None:
            first.setdefault((memory.queue_id, memory.key), memory)
    originals: dict[_Key, _Original] = {}
    if first:
        rows = [first[key] for key in sorted(first)]
        if by_values:
            inserted = await inserting.insert(connection, _KEYS_INTO, _KEY_ROW, rows, _OR_KNOWN)
        else:
            columns = [list(column) for column in zip(*rows, strict=True)]
            inserted = await connection.fetch(_REMEMBER, *columns)
        originals = {(queue_id, key): (message_id, seq) for queue_id, key, message_id, seq in inserted}
    return [_answer(memory, originals) for memory in memories]


def _answer(memory: Memory, originals: dict[_Key, _Original]) -> Enqueued:
    if memory.key is None:
        return Enqueued(memory.message_id, memory.seq, repeated=False)
    message_id, seq = originals[memory.queue_id, memory.key]
    return Enqueued(message_id, seq, repeated=seq != memory.seq)
