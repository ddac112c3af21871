"""The small documents: looked at on either connection, changed on the writing one."""

import logging
from collections.abc import Sequence
from typing import Any, Final

import apsw
import orjson

from redrive.engine.ports import Change, Put, Remove, Require, RequireNone, Resource
from redrive.model.errors import Conflict
from redrive.stores.contents import KINDS
from redrive.stores.seal import Seal
from redrive.stores.sqlite import rows

logger = logging.getLogger(__name__)

_GET: Final = "SELECT kind, key, version, document FROM resources WHERE kind = ? AND key = ?"
_FIND: Final = (
    "SELECT kind, key, version, document FROM resources"
    " WHERE kind = ? AND key >= ? AND key < ? AND key > ? ORDER BY key LIMIT ?"
)
_VERSION: Final = "SELECT version FROM resources WHERE kind = ? AND key = ?"
_KEYS: Final = "SELECT key FROM resources WHERE kind = ? AND key >= ? AND key < ? ORDER BY key LIMIT ?"
_PUT: Final = "INSERT OR REPLACE INTO resources (kind, key, version, document) VALUES (?, ?, ?, ?)"
_REMOVE: Final = "DELETE FROM resources WHERE kind = ? AND key = ?"
_NOT_SEALED: Final = (
    "SELECT kind, key, version, document FROM resources WHERE substr(document, 1, ?) <> ? LIMIT 500"
)
_RESEAL: Final = "UPDATE resources SET document = ? WHERE kind = ? AND key = ?"
_LAST: Final = "\U0010ffff"  # behind every key that begins with what stands before it


def get(kind: str, key: str, cursor: apsw.Cursor) -> Resource | None:
    """One document."""
    row = rows.one(cursor, _GET, (kind, key))
    return _resource_of(row) if row else None


def get_each(keys: Sequence[tuple[str, str]], cursor: apsw.Cursor) -> list[Resource]:
    """Several documents."""
    resources = [get(kind, key, cursor) for kind, key in keys]
    return [resource for resource in resources if resource is not None]


def find(kind: str, prefix: str, after: str, limit: int | None, cursor: apsw.Cursor) -> list[Resource]:
    """Documents by the beginning of their key."""
    records = cursor.execute(_FIND, (kind, prefix, prefix + _LAST, after, -1 if limit is None else limit))
    return [_resource_of(row) for row in records]


def kinds(cursor: apsw.Cursor) -> set[str]:
    """The kinds that any document is of."""
    return {kind for (kind,) in cursor.execute(KINDS)}


def write(cursor: apsw.Cursor, changes: Sequence[Change]) -> list[int]:
    """Change documents.

    All is looked at before anything is changed: other calls share the transaction, so a refused one must leave no trace.

    Raises:
        Conflict: Another version is stored of one of them.
    """
    stored = [_checked(cursor, change, changes) for change in changes]
    return [_apply(cursor, change, version) for change, version in zip(changes, stored, strict=True)]


def reseal(connection: apsw.Connection, seal: Seal) -> None:
    """Seal whatever is not sealed with the first key, and write the file anew: its free space has what stood there."""
    beginning = seal.prefix.encode()
    records = connection.execute(_NOT_SEALED, (len(beginning), beginning)).fetchall()
    if not records:
        return
    while records:
        with connection:
            for row in records:
                stored = seal.opened(_resource_of(row))
                document = seal.sealed(stored.kind, stored.key, stored.document)
                connection.execute(_RESEAL, (orjson.dumps(document), stored.kind, stored.key))
        records = connection.execute(_NOT_SEALED, (len(beginning), beginning)).fetchall()
    try:
        connection.execute("VACUUM")
    except apsw.FullError as error:
        logger.warning(
            "store.remnants error=%s: the text before encryption is still readable in free parts of the file",
            error,
        )
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def _checked(cursor: apsw.Cursor, change: Change, changes: Sequence[Change]) -> int:
    """The version that a change meets (0: none); Conflict where it requires another."""
    if isinstance(change, RequireNone):
        _refuse_others(cursor, change, changes)
        return 0
    row = rows.one(cursor, _VERSION, (change.kind, change.key))
    version: int = row[0] if row else 0
    if change.version not in (None, version):
        message = f"{change.kind} {change.key} is at version {version}, not {change.version}"
        raise Conflict(message, change.kind, change.key)
    return version


def _refuse_others(cursor: apsw.Cursor, requirement: RequireNone, changes: Sequence[Change]) -> None:
    """Nothing under the prefix is put or left standing by these changes."""
    kind, prefix = requirement
    removed = {each.key for each in changes if isinstance(each, Remove) and each.kind == kind}
    put = [each.key for each in changes if isinstance(each, Put) and each.kind == kind]
    records = cursor.execute(_KEYS, (kind, prefix, prefix + _LAST, len(removed) + 1)).fetchall()
    for key in [*(key for (key,) in records), *(key for key in put if key.startswith(prefix))]:
        if key not in removed:
            raise Conflict(f"{kind} {key} is there", kind, prefix)


def _apply(cursor: apsw.Cursor, change: Change, version: int) -> int:
    """Carry out a change; the version that it writes, removes or requires."""
    match change:
        case Put(kind, key, document, first=first):
            written = version + 1 if version else first
            cursor.execute(_PUT, (kind, key, written, orjson.dumps(document)))
            return written
        case Remove(kind, key) if version:
            cursor.execute(_REMOVE, (kind, key))
        case Remove() | Require() | RequireNone():
            pass
    return version


def _resource_of(row: tuple[Any, ...]) -> Resource:
    return Resource(row[0], row[1], row[2], orjson.loads(row[3]))
