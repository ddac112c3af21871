"""Logs: groups of streams of events."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from redrive.model.document import Document
from redrive.model.names import ResourceName
from redrive.model.queue import DAY_MS

LOG_GROUP = "log_group"  # kinds of documents
LOG_STREAM = "log_stream"
EVENT_BYTES = 26  # what an event takes beside its message (CloudWatch Logs quotas)
END_OF_TIME = 2**62


@dataclass(frozen=True, slots=True)
class LogGroup(Document):
    """A log group: the streams of one origin."""

    restored: ClassVar = {"name": ResourceName._make}

    id: int  # The store's number for it, never reused
    name: ResourceName  # Account, region and name; the name may hold slashes
    created_at: int  # ms
    retention_days: int | None = None  # How long events are kept; None for ever
    tags: Mapping[str, str] = field(default_factory=dict)  # Free labels

    def expired_before(self, now: int) -> int:
        """Events from before that moment (ms) are out of their retention period."""
        return 0 if self.retention_days is None else now - self.retention_days * DAY_MS


@dataclass(frozen=True, slots=True)
class LogStream(Document):
    """A log stream: the events of one source, in order."""

    id: int  # The store's number for it, never reused
    group_id: int  # Its group's number
    name: str  # Unique within the group
    created_at: int  # ms

    @property
    def key(self) -> str:
        """The group's number and the name: what the store keeps it under."""
        return stream_key(self.group_id, self.name)


def stream_key(group_id: int, name: str) -> str:
    """The key of a group's stream of that name; without a name, the beginning of all their keys."""
    return f"{group_id:020d}/{name}"


class LogEvent(NamedTuple):
    """One line of a log."""

    group_id: int
    stream_id: int
    at: int  # When it happened (ms), as the writer says
    ingested_at: int  # When it was written down (ms)
    message: str  # The line
    seq: int = 0  # Sequence number among events of the same millisecond; assigned by the store
    # On its way in, the number of runs of functions, each begun by events of the one before, that led to it.
    rounds: int = 0

    @property
    def position(self) -> tuple[int, int]:
        """The position in its group."""
        return self.at, self.seq


@dataclass(frozen=True, slots=True)
class LogQuery:
    """A query for events of one group."""

    group_id: int
    limit: int  # At most so many
    stream_ids: tuple[int, ...] | None = None  # Only these streams; None: all streams
    since: int = 0  # Not from before that moment (ms)
    until: int = END_OF_TIME  # From before that moment (ms)
    # Only what stands behind that place; read backwards, before it. None: from the end one starts at.
    after: tuple[int, int] | None = None
    backwards: bool = False  # Latest first
    # Only what was written down behind that `seq`, in the order in which it was; None: in order of time. With
    # it `after` says nothing.
    arrived_after: int | None = None


class LogSpan(NamedTuple):
    """The times (ms) of a stream's first and last events, and of the last one's ingestion."""

    first_at: int
    last_at: int
    ingested_at: int
