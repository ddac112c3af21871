"""Audit: who did what by the console and Redrive's own routes, as log events that only Redrive writes and removes.

Each account's region has its own log group, kept 400 days and out of reach of CloudWatch Logs. An entry carries the
digest of the one before it, so that a gap shows; it is on disk before whoever did it is answered. Two nodes that record
in the same moment may both follow the same entry, which is not a gap.
"""

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import orjson

from redrive.engine.ports import LogSink, NodeStore
from redrive.model.errors import StoreUnavailable
from redrive.model.log import LOG_GROUP, LogEvent, LogGroup, LogQuery
from redrive.model.names import ResourceName

logger = logging.getLogger(__name__)

GROUP: Final = "/redrive/audit"
KEPT_DAYS: Final = 400
WHAT_CHARS_MAX: Final = 1_000
_HIDDEN: Final = ":audit"  # behind a region: no caller of CloudWatch Logs names it


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A recorded change."""

    at: int  # When (ms)
    who: str  # Access key or principal; empty without authentication
    action: str  # Kind of change: `redrive`, `set-aside`
    on: str  # The queue, topic or other thing that was changed
    what: str  # The change in words, without any message's body
    by: str  # Interface that was used: `console` or `control`
    address: str  # Client address
    before: str = ""  # Value before the change, if short; empty: not recorded
    after: str = ""  # Value after the change
    undo: str = ""  # The path of the console's form that takes it back; empty: nothing does
    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)  # Fields of that form
    follows: str = ""  # The digest of the entry before this one; empty: this is the first


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """An entry as it was read."""

    entry: AuditEntry  # The recorded change
    position: tuple[int, int]  # Where a page of entries continues
    digest: str  # Digest of its text, which the next entry includes


class AuditTrail:
    """Writes entries, and reads them."""

    def __init__(
        self, store: NodeStore, sink: LogSink, stream: str, settle: Callable[[], Awaitable[None]]
    ) -> None:
        """Begin with nothing under way; `settle` lets what was written arrive in the store."""
        self._store = store
        self._sink = sink
        self._stream = stream
        self._settle = settle
        self._lock = asyncio.Lock()

    async def record(self, owner: ResourceName, entry: AuditEntry) -> None:
        """Write an entry behind the last one of its account and region; a store that is away gets it later."""
        async with self._lock:
            with contextlib.suppress(StoreUnavailable):
                newest = await self.entries(owner, 1)
                entry = replace(entry, follows=newest[0].digest if newest else "")
            entry = replace(entry, what=entry.what[:WHAT_CHARS_MAX])
            group = _group(owner)
            self._sink.write(group, self._stream, entry.at, orjson.dumps(asdict(entry)).decode())
            logger.info(
                "audit.did action=%s on=%r by=%s what=%r",
                entry.action,
                entry.on,
                entry.who or "anybody",
                entry.what,
            )
            with contextlib.suppress(StoreUnavailable):
                await self._settle()

    async def entries(
        self, owner: ResourceName, limit: int, before: tuple[int, int] | None = None
    ) -> list[KeptEntry]:
        """The entries of an account and region, latest first; at most `limit`, from before the position `before`."""
        resource = await self._store.get(LOG_GROUP, _group(owner).key)
        if resource is None:
            return []
        group = LogGroup.from_document(resource.document)
        events = await self._store.find_events(LogQuery(group.id, limit=limit, after=before, backwards=True))
        return [_entry_of(event) for event in events]


def gaps(entries: Sequence[KeptEntry]) -> Collection[tuple[int, int]]:
    """The positions of entries before which one is missing, among entries that follow each other, latest first.

    The oldest is not judged: what it follows was not read.
    """
    digests = {each.digest for each in entries}
    return {each.position for each in entries[:-1] if each.entry.follows not in digests}


def kept_days(group: ResourceName) -> int | None:
    """The days that a group of this trail keeps its events; None: it is no such group."""
    return KEPT_DAYS if group.name == GROUP and group.region.endswith(_HIDDEN) else None


def _group(owner: ResourceName) -> ResourceName:
    return ResourceName(owner.account, owner.region + _HIDDEN, GROUP)


def _entry_of(event: LogEvent) -> KeptEntry:
    document: dict[str, Any] = orjson.loads(event.message)
    digest = hashlib.sha256(event.message.encode()).hexdigest()
    return KeptEntry(AuditEntry(**document), event.position, digest)
