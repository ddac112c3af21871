"""The contents of a store: its tables as every kind of store keeps them, and digests by which two stores are compared.

The digest of a table is the sum of its rows' digests: it does not depend on their order, in which each kind of store has
its own ways, and it is made in one pass without sorting.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import orjson

from redrive.model.delivery import LinePosition

Row = Sequence[Any]

#: The kinds that any document is of, from one to the next in the index: a DISTINCT reads every document.
KINDS: Final = (
    "WITH RECURSIVE stored (kind) AS ("
    "SELECT min(kind) FROM resources"
    " UNION ALL SELECT (SELECT min(r.kind) FROM resources r WHERE r.kind > stored.kind)"
    " FROM stored WHERE stored.kind IS NOT NULL)"
    " SELECT kind FROM stored WHERE kind IS NOT NULL"
)
_DIGEST_BYTES: Final = 16
_SUM: Final = 1 << (8 * _DIGEST_BYTES)


class StoreTable(NamedTuple):
    """A table that every kind of store has."""

    name: str
    columns: tuple[str, ...]  # Their names, in the order that digests are made of

    @property
    def select(self) -> str:
        """The statement that reads all rows."""
        return f"SELECT {', '.join(self.columns)} FROM {self.name}"


def _table(name: str, columns: str) -> StoreTable:
    return StoreTable(name, tuple(columns.split(", ")))


DELIVERIES: Final = _table(
    "deliveries",
    "queue_id, seq, available_at, attempts, token, enqueued_at, sent_at, first_claimed_at, message_id, group_id,"
    " deduplication_id, origin, headers, body, failure, sealed, place",
)
RESOURCES: Final = _table("resources", "kind, key, version, document")
DEDUPLICATION: Final = _table("deduplication", "queue_id, key, message_id, seq, until")
CLAIM_ATTEMPTS: Final = _table("claim_attempts", "queue_id, attempt_id, token, available_at, seqs, until")
LOG_EVENTS: Final = _table("log_events", "group_id, at, seq, stream_id, ingested_at, message")

TABLES: Final = (
    RESOURCES,
    DELIVERIES,
    DEDUPLICATION,
    CLAIM_ATTEMPTS,
    _table("paces", "queue_id, next_us"),
    _table("attempts", "queue_id, message_id, number, at, duration_ms, reason, status, response"),
    _table("metric_series", "account, region, namespace, name, dimensions, id, active_at"),
    _table("metric_points", "series_id, at, unit, samples, total, least, greatest"),
    _table("metric_values", "series_id, at, unit, value, count"),
    LOG_EVENTS,
    _table("log_sizes", "group_id, bytes"),
)

_KIND: Final = RESOURCES.columns.index("kind")
_QUEUE, _GROUP, _TOKEN, _PLACE = map(DELIVERIES.columns.index, ("queue_id", "group_id", "token", "place"))


@dataclass(frozen=True, slots=True)
class TableDigest:
    """The rows of a table, in short."""

    name: str  # The table's
    rows: int  # Their number
    digest: str  # 32 hexadecimal digits; equal where the rows are, whatever their order and the kind of store


@dataclass(frozen=True, slots=True)
class StoreContents:
    """The rows of a store, in short."""

    tables: Sequence[TableDigest]  # In the order of `TABLES`
    documents: Mapping[str, int]  # The number of documents by kind: queues, topics, tasks, keys …
    claims: int  # Claimed deliveries, expired claims included
    queues: int  # Queues with deliveries
    groups: int  # Message groups with deliveries
    faults: Sequence[str]  # Inconsistencies, a sentence each; empty: the store is consistent


@dataclass(slots=True)
class ContentsTally:
    """Counts the rows of a store while they pass, table by table."""

    tables: list[TableDigest] = field(default_factory=list)
    _table: StoreTable = RESOURCES
    _rows: int = 0
    _sum: int = 0
    _documents: Counter[str] = field(default_factory=Counter)
    _claims: int = 0
    _queues: set[int] = field(default_factory=set)
    _heads: Counter[tuple[int, str]] = field(default_factory=Counter)
    _behind: set[tuple[int, str]] = field(default_factory=set)
    _groups: set[tuple[int, str]] = field(default_factory=set)

    def through(self, table: StoreTable, rows: Iterable[Row]) -> Iterator[Row]:
        """The same rows of a table, all of them counted when the last has passed."""
        self.begin(table)
        for row in rows:
            self.add(row)
            yield row
        self.end()

    def begin(self, table: StoreTable) -> None:
        """The rows that follow are of this table."""
        self._table, self._rows, self._sum = table, 0, 0

    def add(self, row: Row) -> None:
        """Count a row; a table's digest is the sum of its rows' digests, so their order does not matter."""
        content = blake2b(orjson.dumps(tuple(row), default=_plain), digest_size=_DIGEST_BYTES)
        self._sum = (self._sum + int.from_bytes(content.digest())) % _SUM
        self._rows += 1
        if self._table is DELIVERIES:
            self._count_delivery(row)
        elif self._table is RESOURCES:
            self._documents[row[_KIND]] += 1

    def end(self) -> TableDigest:
        """All rows of the table were counted; its digest."""
        digest = TableDigest(self._table.name, self._rows, f"{self._sum:0{2 * _DIGEST_BYTES}x}")
        self.tables.append(digest)
        return digest

    def _count_delivery(self, row: Row) -> None:
        """Count a delivery's claim, queue and group, and where in the group's line it stands."""
        queue_id, group_id = row[_QUEUE], row[_GROUP]
        self._claims += row[_TOKEN] is not None
        self._queues.add(queue_id)
        if group_id is None:
            return
        group = (queue_id, group_id)
        self._groups.add(group)
        if row[_PLACE] == LinePosition.HEAD:
            self._heads[group] += 1
        elif row[_PLACE] == LinePosition.BEHIND:
            self._behind.add(group)

    @property
    def contents(self) -> StoreContents:
        """The rows that have passed."""
        return StoreContents(
            self.tables,
            dict(sorted(self._documents.items())),
            self._claims,
            len(self._queues),
            len(self._groups),
            list(self._faults()),
        )

    def _faults(self) -> Iterator[str]:
        """Groups that would stand still, or be overtaken: see decision 0004."""
        if stuck := self._behind - self._heads.keys():
            yield f"{len(stuck)} message groups have nobody at their head, {min(stuck)} among them"
        if torn := [group for group, heads in self._heads.items() if heads > 1]:
            yield f"{len(torn)} message groups have several at their head, {min(torn)} among them"


def _plain(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(type(value).__name__)
