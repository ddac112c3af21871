"""Looking without touching, and the small documents."""

from typing import Any, Final

import orjson
from asyncpg import Connection

from redrive.engine.ports import Counts, Resource
from redrive.model.delivery import Delivery
from redrive.model.errors import Conflict
from redrive.stores.postgres import rows
from redrive.stores.postgres.reaching import COLUMNS

_PEEK: Final = f"SELECT {COLUMNS} FROM deliveries WHERE queue_id = $1 AND seq > $2 ORDER BY seq LIMIT $3"  # noqa: S608 - constants
# By the line's index and the groups' alone, but for delayed messages behind others of their group, and for what of
# the later ones is claimed.
_LINE: Final = "SELECT token FROM deliveries WHERE queue_id = $1 AND place > 0 AND available_at {} $2"
_IN_LINE_ORDER: Final = "ORDER BY available_at, seq OFFSET 0"
_BEHIND: Final = "SELECT 1 FROM deliveries WHERE queue_id = $1 AND group_id IS NOT NULL AND place = 0"
_IN_GROUP_ORDER: Final = "ORDER BY group_id, place, seq OFFSET 0"
_COUNT: Final = f"""
    SELECT (SELECT count(*) FROM ({_LINE.format("<=")} {_IN_LINE_ORDER}) AS one) AS due,
        (SELECT count(*) FROM ({_BEHIND} {_IN_GROUP_ORDER}) AS one) AS behind,
        (SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE queue_id = $1 AND place = 0 AND token IS NOT NULL
            AND available_at > $2 ORDER BY available_at OFFSET 0) AS one) AS behind_claimed,
        later.number AS later, later.claimed AS later_claimed
    FROM (SELECT count(*) AS number, count(one.token) AS claimed
        FROM ({_LINE.format(">")} {_IN_LINE_ORDER}) AS one) AS later
"""  # noqa: S608 - constants
_DELAYED_BEHIND: Final = (
    f"SELECT count(*) FROM ({_BEHIND} AND token IS NULL AND available_at > $2 {_IN_GROUP_ORDER}) AS one"  # noqa: S608 - constants
)
_GET: Final = "SELECT kind, key, version, document FROM resources WHERE kind = $1 AND key = $2"
_FIND: Final = (
    "SELECT kind, key, version, document FROM resources"
    " WHERE kind = $1 AND key >= $2 AND key < $3 AND key > $4 ORDER BY key LIMIT $5"
)
_MAKE: Final = (
    "INSERT INTO resources (kind, key, version, document) VALUES ($1, $2, 1, $3)"
    " ON CONFLICT (kind, key) DO NOTHING RETURNING version"
)
_CHANGE: Final = (
    "UPDATE resources SET version = version + 1, document = $3"
    " WHERE kind = $1 AND key = $2 AND version = $4 RETURNING version"
)
_REMOVE: Final = "DELETE FROM resources WHERE kind = $1 AND key = $2 RETURNING version"


async def peek(connection: Connection, queue_id: int, limit: int, after_seq: int) -> list[Delivery]:
    """Deliveries in order of arrival."""
    return [rows.delivery_of(record) for record in await connection.fetch(_PEEK, queue_id, after_seq, limit)]


async def count(connection: Connection, queue_id: int, now: int) -> Counts:
    """How many may be claimed now, are in flight, and wait for a later moment."""
    one = await connection.fetchrow(_COUNT, queue_id, now)
    behind, claimed = one["behind"], one["later_claimed"] + one["behind_claimed"]
    delayed_behind = await connection.fetchval(_DELAYED_BEHIND, queue_id, now) if behind else 0
    return Counts(
        available=one["due"] + behind - one["behind_claimed"] - delayed_behind,
        claimed=claimed,
        delayed=one["later"] - one["later_claimed"] + delayed_behind,
    )


async def get(connection: Connection, kind: str, key: str) -> Resource | None:
    """One document."""
    record = await connection.fetchrow(_GET, kind, key)
    return None if record is None else _resource_of(record)


async def find(
    connection: Connection, kind: str, prefix: str, after: str, limit: int | None
) -> list[Resource]:
    """Documents by the beginning of their key."""
    records = await connection.fetch(_FIND, kind, prefix, prefix + "\U0010ffff", after, limit)
    return [_resource_of(record) for record in records]


async def put(connection: Connection, resource: Resource) -> int:
    """Write a document over the version it was made from; the new version.

    Raises:
        Conflict: Another version is stored.
    """
    document = orjson.dumps(resource.document).decode()
    if resource.version == 0:
        version = await connection.fetchval(_MAKE, resource.kind, resource.key, document)
    else:
        version = await connection.fetchval(_CHANGE, resource.kind, resource.key, document, resource.version)
    if version is None:
        raise Conflict(f"{resource.kind} {resource.key} is not at version {resource.version}")
    return int(version)


async def remove(connection: Connection, kind: str, key: str) -> bool:
    """Forget a document; whether it was there."""
    return await connection.fetchval(_REMOVE, kind, key) is not None


def _resource_of(record: Any) -> Resource:
    kind, key, version, document = record
    return Resource(kind, key, version, orjson.loads(document))
