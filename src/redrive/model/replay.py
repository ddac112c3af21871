"""A replay: one subscriber gets again what its topic's archive holds of some span of time."""

import enum
from dataclasses import dataclass
from typing import ClassVar, Final

from redrive.model.document import Document
from redrive.model.names import ResourceName

_REPLAYED: Final = b'{"replayed":true,'


class ReplayState(enum.StrEnum):
    """The state of a replay."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"

    @property
    def active(self) -> bool:
        """True if something may still be replayed."""
        return self in (ReplayState.PENDING, ReplayState.RUNNING)


@dataclass(frozen=True, slots=True)
class Replay(Document):
    """One subscription's replay; a subscription has one at a time.

    Attributes:
        id: Unique.
        topic: Whose archive.
        subscription_id: Who gets it.
        queue_id: The subscription's backlog: one that was made anew under the same id has another.
        starts_at: Published from then on (ms).
        ends_at: And until then (ms), after which the subscription rests; None: until it has caught up with what is
            being published, after which it goes on with that.
        begins_at: Nothing is replayed before (ms).
        state: See ReplayState.
        last_seq: As far as the archive has been read.
        lease_until: The node working at it holds it until then (ms); another may take it up after.
        node: Which node that is.
    """

    restored: ClassVar = {"topic": ResourceName._make, "state": ReplayState}

    id: str
    topic: ResourceName
    subscription_id: str
    queue_id: int
    starts_at: int
    ends_at: int | None
    begins_at: int = 0
    state: ReplayState = ReplayState.PENDING
    last_seq: int = 0
    lease_until: int = 0
    node: str = ""

    @property
    def key(self) -> str:
        """The key of its document: its subscription's key."""
        return f"{self.topic.key}/{self.subscription_id}"

    def covers(self, at: int) -> bool:
        """True if it is about what was published at that moment (ms)."""
        return self.starts_at <= at and (self.ends_at is None or at <= self.ends_at)


def replayed(headers: bytes) -> bytes:
    """The headers of a delivery, made those of a replayed one."""
    return _REPLAYED + headers[1:]


def is_replayed(headers: bytes | None) -> bool:
    """True if these are the headers of a replayed delivery."""
    return headers is not None and headers.startswith(_REPLAYED)
