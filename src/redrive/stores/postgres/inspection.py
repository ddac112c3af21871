"""Looking without touching."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import asyncpg
from asyncpg import Connection

from redrive.engine.ports import (
    COUNTED_TOGETHER_MAX,
    NOTES_KEPT_MS,
    OLDEST_AMONG,
    Cause,
    CauseCount,
    Counts,
    LookRequest,
    Occupied,
    fair_share,
    merge_occupied,
)
from redrive.model.claiming import Pace
from redrive.model.delivery import Delivery
from redrive.model.errors import StoreUnavailable
from redrive.stores.postgres import rows
from redrive.stores.postgres.access_paths import COLUMNS, each, in_failures, of

_PEEK: Final = f"SELECT {COLUMNS} FROM deliveries WHERE queue_id = $1 AND seq > $2 ORDER BY seq LIMIT $3"
_PAGE: Final = (
    f"SELECT {COLUMNS} FROM deliveries WHERE queue_id = $1 AND seq > $2 AND seq < $3 ORDER BY seq LIMIT $4"
)
_PAGE_BACK: Final = _PAGE.replace("ORDER BY seq", "ORDER BY seq DESC")
_GROUP_PAGE: Final = (
    f"SELECT {COLUMNS} FROM deliveries WHERE queue_id = $1 AND {in_failures('$5', '$6')} AND seq > $2 AND seq < $3"
    " ORDER BY origin, failure, seq LIMIT $4"
)
_GROUP_PAGE_BACK: Final = (
    f"SELECT {COLUMNS} FROM deliveries WHERE queue_id = $1 AND {in_failures('$5', '$6')} AND seq > $2 AND seq < $3"
    " ORDER BY origin DESC, failure DESC, seq DESC LIMIT $4"
)
_AT_PLACES: Final = (
    f"SELECT {of('found')} FROM unnest($2::bigint[]) WITH ORDINALITY AS one (seq, number)"
    f" {each(COLUMNS)} ORDER BY one.number LIMIT $3"
)
_NEXT_CAUSE: Final = (
    "SELECT origin, failure FROM deliveries WHERE queue_id = $1 AND failure IS NOT NULL"
    " AND (origin, failure) > ($2, $3) ORDER BY origin, failure, seq LIMIT 1"
)
_IN_GROUP: Final = f"FROM deliveries WHERE queue_id = $1 AND {in_failures('$2', '$3')}"
_GROUP: Final = (
    f"SELECT (SELECT count(*) FROM (SELECT 1 {_IN_GROUP} ORDER BY origin, failure, seq LIMIT $4) AS counted) AS number,"
    f" (SELECT seq {_IN_GROUP} ORDER BY origin, failure, seq LIMIT 1) AS first,"
    f" (SELECT seq {_IN_GROUP} ORDER BY origin DESC, failure DESC, seq DESC LIMIT 1) AS last"
)
_HAS_ANY: Final = "SELECT seq FROM deliveries WHERE queue_id = $1 ORDER BY seq LIMIT 1"
_BEYOND: Final = "SELECT seq FROM deliveries WHERE queue_id = $1 ORDER BY seq LIMIT 1 OFFSET $2"
_LOCATE: Final = f"""
    SELECT {COLUMNS} FROM (
        SELECT {COLUMNS} FROM deliveries WHERE queue_id = $1 ORDER BY seq LIMIT $4
    ) AS first WHERE message_id = $2 OR position($3 IN headers) > 0
"""
_SEQ_MAX: Final = 2**63 - 1
# By the line's index, the claims' and the groups' alone, but for the claims that are behind a turn or back in the line,
# and for delayed messages behind others of their group.
_OF_QUEUE: Final = "FROM deliveries WHERE queue_id = $1"
_WAITING: Final = f"SELECT 1 {_OF_QUEUE} AND {rows.WAITING}"
_IN_LINE_ORDER: Final = "ORDER BY available_at, seq OFFSET 0"
_BEHIND: Final = f"SELECT 1 {_OF_QUEUE} AND group_id IS NOT NULL AND place = 0"
_IN_GROUP_ORDER: Final = "ORDER BY group_id, place, seq OFFSET 0"
_COUNT: Final = f"""
    SELECT (SELECT count(*) FROM ({_WAITING} AND available_at <= $2 {_IN_LINE_ORDER}) AS one) AS due,
        (SELECT count(*) FROM ({_WAITING} AND available_at > $2 {_IN_LINE_ORDER}) AS one) AS later,
        (SELECT count(*) FROM (SELECT 1 {_OF_QUEUE} AND {rows.CLAIMED}
            AND available_at <= $2 {_IN_LINE_ORDER}) AS one) AS back,
        (SELECT count(*) FROM ({_BEHIND} {_IN_GROUP_ORDER}) AS one) AS behind,
        claims.number AS claimed, claims.behind AS behind_claimed
    FROM (SELECT count(*) AS number, count(*) FILTER (WHERE place = 0) AS behind
        FROM (SELECT place {_OF_QUEUE} AND token IS NOT NULL AND place >= 0
            AND available_at > $2 {_IN_LINE_ORDER}) AS one) AS claims
"""
_DELAYED_BEHIND: Final = (
    f"SELECT count(*) FROM ({_BEHIND} AND token IS NULL AND available_at > $2 {_IN_GROUP_ORDER}) AS one"
)
# Less than the driver's patience with a statement. 10,000,000 took longer on a busy machine; and where the driver gives a
# statement up, the node takes the database for lost and makes all of its connections anew.
COUNTING_MS: Final = 7_000
_COUNT_SOME: Final = _COUNT.replace("OFFSET 0", "LIMIT $3")
_DELAYED_BEHIND_SOME: Final = _DELAYED_BEHIND.replace("OFFSET 0", "LIMIT $3")


async def peek(connection: Connection, queue_id: int, limit: int, after_seq: int = 0) -> list[Delivery]:
    """Deliveries in order of arrival."""
    return [rows.delivery_of(record) for record in await connection.fetch(_PEEK, queue_id, after_seq, limit)]


async def look(connection: Connection, request: LookRequest) -> list[Delivery]:
    """A page of a queue or of one cause's dead letters, or the deliveries at some places; see `QueueStore.look`."""
    if request.seqs is not None:
        placed = await connection.fetch(_AT_PLACES, request.queue_id, sorted(request.seqs), request.limit)
        return [rows.delivery_of(record) for record in placed]
    before = _SEQ_MAX if request.before_seq is None else request.before_seq
    bounds = (request.queue_id, request.after_seq, before, request.limit)
    if request.cause is None:
        records = await connection.fetch(_PAGE_BACK if request.newest_first else _PAGE, *bounds)
    else:
        statement = _GROUP_PAGE_BACK if request.newest_first else _GROUP_PAGE
        records = await connection.fetch(statement, *bounds, *request.cause)
    return [rows.delivery_of(record) for record in records]


async def first_of_each(connection: Connection, queue_ids: Sequence[int]) -> dict[int, Delivery]:
    """See `Store.first_of_each`: queue by queue, by which Citus finds the shard."""
    records = [(queue_id, await connection.fetchrow(_PEEK, queue_id, 0, 1)) for queue_id in queue_ids]
    return {queue_id: rows.delivery_of(record) for queue_id, record in records if record is not None}


async def causes(
    connection: Connection,
    queue_id: int,
    limit: int,
    count_max: int,
    together_max: int = COUNTED_TOGETHER_MAX,
    cause: Cause | None = None,
) -> list[CauseCount]:
    """The causes of a queue's dead letters, each with its number up to its fair share; see `QueueStore.causes`."""
    keys = [cause] if cause is not None else await _all_causes(connection, queue_id, limit)
    counts: list[CauseCount] = []
    remaining = together_max
    for index, key in enumerate(keys):
        number_max = fair_share(remaining, len(keys) - index, count_max)
        number, first, last = await connection.fetchrow(_GROUP, queue_id, *key, number_max + 1)
        if number:  # else they went meanwhile
            counts.append(CauseCount(key, min(number, number_max), number > number_max, first, last))
        remaining -= min(number, number_max)
    return counts


async def _all_causes(connection: Connection, queue_id: int, limit: int) -> list[Cause]:
    """The first causes in order, by a look into the index for each."""
    causes: list[Cause] = []
    key = Cause(-1, "")
    while len(causes) < limit:
        cause = await connection.fetchrow(_NEXT_CAUSE, queue_id, *key)
        if cause is None:
            break
        key = Cause(*cause)
        causes.append(key)
    return causes


async def locate(
    connection: Connection, queue_ids: Sequence[int], message_id: bytes, text: bytes, limit: int
) -> tuple[list[Delivery], bool]:
    """The deliveries of a message, and whether some may be missing; queue by queue, by which Citus finds the shard."""
    deliveries: list[Delivery] = []
    partial = False
    for queue_id in queue_ids:
        if await connection.fetchval(_HAS_ANY, queue_id) is None:
            continue
        records = await connection.fetch(_LOCATE, queue_id, message_id, text, limit)
        deliveries += [rows.delivery_of(record) for record in records]
        partial = partial or await connection.fetchval(_BEYOND, queue_id, limit) is not None
    return deliveries, partial


async def count(connection: Connection, queue_id: int, now: int, at_most: int | None = None) -> Counts:
    """The numbers of deliveries that may be claimed now, are in flight, and wait for a later moment.

    Raises:
        StoreUnavailable: They are so many, or the database is so busy, that counting takes too long.
    """
    if at_most is not None:
        return await _count_some(connection, queue_id, now, at_most)
    try:
        async with connection.transaction():
            await connection.execute(f"SET LOCAL statement_timeout = {COUNTING_MS}")
            return await _count_all(connection, queue_id, now)
    except asyncpg.QueryCanceledError as error:
        raise StoreUnavailable("there are too many messages to count them now") from error


async def _count_all(connection: Connection, queue_id: int, now: int) -> Counts:
    """Count all deliveries of a queue; of those behind a group's head, the claimed and the delayed are subtracted."""
    counts = await connection.fetchrow(_COUNT, queue_id, now)
    behind = counts["behind"]
    delayed_behind = await connection.fetchval(_DELAYED_BEHIND, queue_id, now) if behind else 0
    return Counts(
        available=counts["due"] + counts["back"] + behind - counts["behind_claimed"] - delayed_behind,
        claimed=counts["claimed"],
        delayed=counts["later"] + delayed_behind,
    )


async def count_each(
    connection: Connection, queue_ids: Sequence[int], now: int, at_most: int
) -> dict[int, Counts]:
    """See `Store.count_each`: queue by queue, by which Citus finds the shard."""
    return {queue_id: await _count_some(connection, queue_id, now, at_most) for queue_id in queue_ids}


async def _count_some(connection: Connection, queue_id: int, now: int, at_most: int) -> Counts:
    """As `_count_all`, each kind up to `at_most`: what is due may be counted behind others that are not."""
    counts = await connection.fetchrow(_COUNT_SOME, queue_id, now, at_most)
    delayed_behind = (
        await connection.fetchval(_DELAYED_BEHIND_SOME, queue_id, now, at_most) if counts["behind"] else 0
    )
    available = counts["due"] + counts["back"] + counts["behind"] - counts["behind_claimed"] - delayed_behind
    return Counts(
        available=min(max(available, 0), at_most),
        claimed=counts["claimed"],
        delayed=min(counts["later"] + delayed_behind, at_most),
    )


# Numbers of queues under which anything is kept, found in each table by leaps along its index from number to number.
#
# Citus recurses over no distributed table: there each shard groups its own rows by their number.

_BY_LEAPS: Final = """
    WITH RECURSIVE held (id) AS (
        (SELECT queue_id FROM {table} WHERE queue_id > $1 ORDER BY queue_id LIMIT 1)
        UNION ALL
        SELECT (SELECT queue_id FROM {table} WHERE queue_id > held.id ORDER BY queue_id LIMIT 1)
        FROM held WHERE held.id IS NOT NULL
    ), numbers AS (SELECT id FROM held WHERE id IS NOT NULL LIMIT $2)
    SELECT id, (SELECT min(moment) FROM (
        SELECT {moment} AS moment FROM {table} WHERE queue_id = numbers.id ORDER BY {order} LIMIT {among}
    ) AS first) AS moment FROM numbers
"""
_BY_GROUPS: Final = """
    SELECT queue_id AS id, min({moment}) AS moment FROM {table}
    WHERE queue_id > $1 GROUP BY queue_id ORDER BY queue_id LIMIT $2
"""


class _LeapStatements(NamedTuple):
    """The statements that look through a table, on one database and over the shards of Citus."""

    by_leaps: str
    by_groups: str


def _look(table: str, moment: str, order: str = "", among: int = 1) -> _LeapStatements:
    """Numbers in `table`, with the least `moment` among the first so many rows of each by `order`, or by the moment."""
    parts = {"table": table, "moment": moment, "order": order or moment, "among": among}
    return _LeapStatements(_BY_LEAPS.format(**parts), _BY_GROUPS.format(**parts))


_DELIVERIES: Final = _look("deliveries", "enqueued_at", "seq", OLDEST_AMONG)
_MEMORIES: Final[Sequence[tuple[_LeapStatements, Callable[[int], int]]]] = (
    (_look("deduplication", "until"), lambda until: until),
    (_look("claim_attempts", "until"), lambda until: until),
    (_look("attempts", "at"), lambda at: at + NOTES_KEPT_MS),
    (_look("paces", "next_us"), Pace.ends_at),
)


async def occupied(connection: Connection, after: int, limit: int, *, distributed: bool) -> list[Occupied]:
    """The numbers that have deliveries or memories, behind `after`; `distributed` over the shards of Citus."""

    async def first_of(look: _LeapStatements) -> list[tuple[int, int]]:
        statement = look.by_groups if distributed else look.by_leaps
        return [(row["id"], row["moment"]) for row in await connection.fetch(statement, after, limit)]

    memories = [[(number, ends(at)) for number, at in await first_of(look)] for look, ends in _MEMORIES]
    return merge_occupied(await first_of(_DELIVERIES), memories, limit)
