"""A move task: dead letters on their way back, in the background, at a bounded rate."""

import enum
from dataclasses import dataclass, replace
from typing import ClassVar

from redrive.model.document import Document
from redrive.model.names import ResourceName

TELL_EVERY_MS = 10_000  # recorded: two seconds after its start, a task that moved two messages says none


class TaskState(enum.StrEnum):
    """The state of a move task."""

    RUNNING = "running"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"
    COMPLETED = "completed"
    FAILED = "failed"

    @property
    def active(self) -> bool:
        """True if the task may still move something."""
        return self in (TaskState.RUNNING, TaskState.CANCELLING)


@dataclass(frozen=True, slots=True)
class MoveTask(Document):
    """Messages of one queue going to another, or each back to the queue it was dead-lettered from.

    Attributes:
        id: Unique.
        source: The queue being emptied.
        destination: Where everything goes; None: each delivery to its own origin.
        rate_max: Messages a second; None: as fast as the store takes them.
        to_move: How many were waiting when the task began.
        moved: How many have gone.
        told: How many of them callers are told of while the task runs: as Amazon's, the number lags behind.
        told_at: When that was brought up to date (ms); 0: not yet.
        state: See TaskState.
        failure: Why it failed, in the engine's words.
        started_at: ms.
        last_seq: Deliveries that arrived after the task began (a larger seq) are left alone, so that a message
            which fails again at once does not travel in circles.
        lease_until: The node working at it holds it until then (ms); another may take it up after.
        node: Which node that is.
    """

    restored: ClassVar = {"source": ResourceName._make, "destination": ResourceName._make, "state": TaskState}

    id: str
    source: ResourceName
    destination: ResourceName | None
    rate_max: int | None
    to_move: int
    started_at: int
    last_seq: int
    moved: int = 0
    state: TaskState = TaskState.RUNNING
    failure: str | None = None
    lease_until: int = 0
    node: str = ""
    told: int = 0
    told_at: int = 0

    def counting(self, moved: int, now: int) -> "MoveTask":
        """The task when so many more have gone."""
        counted = replace(self, moved=self.moved + moved)
        if now < (self.told_at or self.started_at) + TELL_EVERY_MS:
            return counted
        return replace(counted, told=counted.moved, told_at=now)

    @property
    def moved_shown(self) -> int:
        """The number of moved messages as callers see it: exact once the task is over."""
        return self.told if self.state.active else self.moved

    @property
    def key(self) -> str:
        """The key of its document: tasks of one source are in the order of their starts."""
        return f"{self.source.key}/{self.started_at:015d}-{self.id}"
