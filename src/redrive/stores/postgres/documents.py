"""The small documents."""

from collections.abc import Sequence
from typing import Any, Final

import orjson
from asyncpg import Connection

from redrive.engine.ports import Change, Put, Remove, Require, RequireNone, Resource
from redrive.model.errors import Conflict
from redrive.stores.contents import KINDS
from redrive.stores.seal import Seal

_GET: Final = "SELECT kind, key, version, document FROM resources WHERE kind = $1 AND key = $2"
_FIND: Final = (
    "SELECT kind, key, version, document FROM resources"
    " WHERE kind = $1 AND key >= $2 AND key < $3 AND key > $4 ORDER BY key LIMIT $5"
)
# Row by row in the order given, so that writes of the same documents do not wait for each other in a circle.
_LOCK: Final = (
    "SELECT coalesce(mine.version, shared.version, 0) FROM unnest($1::text[], $2::text[], $3::boolean[])"
    " AS one (kind, key, changes)"
    " LEFT JOIN LATERAL (SELECT version FROM resources"
    " WHERE kind = one.kind AND key = one.key AND one.changes FOR UPDATE) AS mine ON true"
    " LEFT JOIN LATERAL (SELECT version FROM resources"
    " WHERE kind = one.kind AND key = one.key AND NOT one.changes FOR SHARE) AS shared ON true"
)
_GET_EACH: Final = (
    "SELECT r.kind, r.key, r.version, r.document FROM unnest($1::text[], $2::text[]) AS asked (kind, key)"
    " JOIN resources r ON r.kind = asked.kind AND r.key = asked.key"
)
_MAKE: Final = (
    "INSERT INTO resources (kind, key, version, document)"
    " SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::json[])"
    " ON CONFLICT (kind, key) DO NOTHING RETURNING kind, key"
)
_CHANGE: Final = (
    "UPDATE resources r SET version = r.version + 1, document = new.document"
    " FROM unnest($1::text[], $2::text[], $3::json[]) AS new (kind, key, document)"
    " WHERE r.kind = new.kind AND r.key = new.key"
)
_REMOVE: Final = (
    "DELETE FROM resources r USING unnest($1::text[], $2::text[]) AS gone (kind, key)"
    " WHERE r.kind = gone.kind AND r.key = gone.key"
)
_ANY: Final = "SELECT key FROM resources WHERE kind = $1 AND key >= $2 AND key < $3 ORDER BY key LIMIT 1"
_NOT_SEALED: Final = (
    "SELECT kind, key, version, document FROM resources WHERE left(document::text, $1) <> $2 LIMIT 500"
)
# Unless another node has changed it, or sealed it, since it was read.
_RESEAL: Final = (
    "UPDATE resources SET document = $1::json WHERE kind = $2 AND key = $3 AND document::text = $4"
)
_LAST: Final = "\U0010ffff"  # behind every key that begins with what stands before it

DocumentKey = tuple[str, str]  # kind and key
Versions = dict[DocumentKey, int]

_NUL: Final = "\0"  # PostgreSQL keeps no text with one, so nothing is there under such a key


async def get(connection: Connection, kind: str, key: str) -> Resource | None:
    """One document."""
    if _NUL in key:
        return None
    record = await connection.fetchrow(_GET, kind, key)
    return None if record is None else _resource_of(record)


async def get_each(connection: Connection, keys: Sequence[DocumentKey]) -> list[Resource]:
    """Several documents."""
    sought = [(kind, key) for kind, key in keys if _NUL not in key]
    records = await connection.fetch(_GET_EACH, [kind for kind, _ in sought], [key for _, key in sought])
    return [_resource_of(record) for record in records]


async def find(
    connection: Connection, kind: str, prefix: str, after: str, limit: int | None
) -> list[Resource]:
    """Documents whose keys begin with `prefix` and come behind `after`, in order of their keys."""
    if _NUL in prefix:
        return []
    after = after.partition(_NUL)[0]  # no key stands between the two
    records = await connection.fetch(_FIND, kind, prefix, prefix + _LAST, after, limit)
    return [_resource_of(record) for record in records]


async def kinds(connection: Connection) -> set[str]:
    """The kinds that any document is of."""
    return {record["kind"] for record in await connection.fetch(KINDS)}


async def write(connection: Connection, changes: Sequence[Change]) -> list[int]:
    """Change documents in a transaction of the caller's, which has to be undone where this is refused.

    What must not be there is looked for last, when whoever could add it waits for this transaction or has committed.

    Raises:
        Conflict: Another version is stored of one of them.
    """
    stored = await _lock(connection, [change for change in changes if not isinstance(change, RequireNone)])
    for change in changes:
        if not isinstance(change, RequireNone) and change.version not in (None, stored[_key(change)]):
            raise _conflict(change.kind, change.key)
    puts = sorted((change for change in changes if isinstance(change, Put)), key=_key)
    await _make(connection, [put for put in puts if not put.version])
    await _run(connection, _CHANGE, [(*_key(put), _text(put)) for put in puts if put.version])
    removals = [_key(change) for change in changes if isinstance(change, Remove) and stored[_key(change)]]
    await _run(connection, _REMOVE, removals)
    for change in changes:
        if isinstance(change, RequireNone):
            await _refuse_any(connection, change)
    return [_answer(change, stored) for change in changes]


async def reseal(connection: Connection, seal: Seal) -> None:
    """Seal whatever is not sealed with the first key."""
    while records := await connection.fetch(_NOT_SEALED, len(seal.prefix), seal.prefix):
        for record in records:
            stored = seal.opened(_resource_of(record))
            document = orjson.dumps(seal.sealed(stored.kind, stored.key, stored.document)).decode()
            await connection.execute(_RESEAL, document, stored.kind, stored.key, record["document"])


def changed(changes: Sequence[Change], versions: Sequence[int]) -> list[tuple[str, str]]:
    """Kind and key of each document that such a write, with these answers, made, replaced or removed."""
    return [
        (change.kind, change.key)
        for change, version in zip(changes, versions, strict=True)
        if version and isinstance(change, Put | Remove)
    ]


async def _lock(connection: Connection, changes: Sequence[Put | Remove | Require]) -> Versions:
    """Versions of the documents, which stay as they are until the transaction ends."""
    exclusive = {_key(change): not isinstance(change, Require) for change in changes}
    storable = sorted((kind, key) for kind, key in exclusive if _NUL not in key)
    versions = dict.fromkeys(exclusive, 0)
    if storable:
        columns = [*_columns(storable), [exclusive[document_key] for document_key in storable]]
        records = await connection.fetch(_LOCK, *columns)
        versions |= {key: version for key, (version,) in zip(storable, records, strict=True)}
    return versions


async def _make(connection: Connection, puts: Sequence[Put]) -> None:
    """Create documents; a Conflict if another transaction has created one of them."""
    if not puts:
        return
    rows = [(*_key(put), put.first, _text(put)) for put in puts]
    created_keys = set(map(tuple, await connection.fetch(_MAKE, *_columns(rows))))
    for put in puts:
        if _key(put) not in created_keys:  # another transaction made it since we looked
            raise _conflict(put.kind, put.key)


async def _run(connection: Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
    if rows:
        await connection.execute(statement, *_columns(rows))


async def _refuse_any(connection: Connection, requirement: RequireNone) -> None:
    kind, prefix = requirement
    if await connection.fetchval(_ANY, kind, prefix, prefix + _LAST) is not None:
        raise Conflict(f"a {kind} that begins with {prefix} is there", kind, prefix)


def _answer(change: Change, stored: Versions) -> int:
    """The answer of `DocumentStore.write` for a change: the version written, removed or required, or 0."""
    match change:
        case RequireNone():
            return 0
        case Put():
            return change.version + 1 if change.version else change.first
        case Remove() | Require():
            return stored[_key(change)]


def _key(change: Put | Remove | Require) -> DocumentKey:
    return change.kind, change.key


def _text(put: Put) -> str:
    return orjson.dumps(put.document).decode()


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _conflict(kind: str, key: str) -> Conflict:
    return Conflict(f"{kind} {key} is not at the version that was read", kind, key)


def _resource_of(record: Any) -> Resource:
    kind, key, version, document = record
    return Resource(kind, key, version, orjson.loads(document))
