"""A move task: dead letters on their way back, in the background, at a bounded rate."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from redrive.model.careful import UNTRIED, CarefulPace, Fares, Sampled
from redrive.model.document import Document
from redrive.model.names import ResourceName

TELL_EVERY_MS = 10_000  # recorded: two seconds after its start, a task that moved two messages says none


class TaskState(enum.StrEnum):
    """The state of a move task."""

    WAITING = "waiting"  # it begins in a moment: until then to cancel it undoes all
    RUNNING = "running"
    PAUSED = "paused"  # by somebody, or by itself, because too much of what it moved failed
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"
    COMPLETED = "completed"
    FAILED = "failed"

    @property
    def active(self) -> bool:
        """True if the task may still move something."""
        return self in (TaskState.WAITING, TaskState.RUNNING, TaskState.PAUSED, TaskState.CANCELLING)

    @property
    def at_work(self) -> bool:
        """True if a node works at the task, or should."""
        return self.active and self is not TaskState.PAUSED


@dataclass(frozen=True, slots=True)
class MoveChoice(Document):
    """The dead letters with one cause, or those that a search finds, with some exceptions."""

    origin: int  # The number of the queue they failed in; 0: of any cause
    failure: str  # Why: see `Delivery.failure`; empty: of any cause
    excepted: Sequence[int] = ()  # The places of those that stay, of a choice without a search
    query: str = ""  # Only those that this search finds (`model.search`); empty: all
    asked_at: int = 0  # The moment that the search counts from (ms)
    first_seq: int = 0  # None that arrived earlier: a search that was stopped had come so far

    @property
    def text(self) -> str:
        """The choice for a person: `server_error 503, body.currency:EUR`."""
        return ", ".join(part for part in (self.failure, self.query) if part) or "all"


@dataclass(frozen=True, slots=True)
class MoveTask(Document):
    """Messages of one queue going to another, or each back to the queue that dead-lettered it."""

    restored: ClassVar = {
        "source": ResourceName._make,
        "destination": ResourceName._make,
        "state": TaskState,
        "choice": MoveChoice.from_document,
        "careful": CarefulPace.from_document,
        "sample": lambda sampled: tuple(Sampled(*each) for each in sampled),
        "fares": lambda fares: Fares(*fares),
    }

    id: str  # Unique
    source: ResourceName  # The queue being emptied
    destination: ResourceName | None  # Where everything goes; None: each delivery to its own origin
    rate_max: int | None  # Messages a second; None: as fast as the store takes them
    to_move: int  # Number of deliveries waiting when the task began
    started_at: int  # ms
    # Deliveries that arrived after the task began (a larger seq) are left alone, so that a message which
    # fails again at once does not travel in circles.
    last_seq: int
    moved: int = 0  # Number of deliveries moved
    state: TaskState = TaskState.RUNNING  # See TaskState
    failure: str | None = None  # Why it failed, in the engine's words
    lease_until: int = 0  # The node working at it holds it until then (ms); another may take it up after
    node: str = ""  # Id of that node
    # How many of them callers are told of while the task runs: as Amazon's, the number lags behind.
    told: int = 0
    told_at: int = 0  # When that was brought up to date (ms); 0: not yet
    choice: MoveChoice | None = None  # The cause that its messages have in common; None: all causes
    keeps_origin: bool = False  # They are set aside, and stay dead letters
    careful: CarefulPace | None = None  # Its careful pace; None: `rate_max`
    starts_at: int = 0  # The task starts then (ms)
    resumed_at: int = 0  # Time of the last resume after a pause (ms); 0: never
    moved_before: int = 0  # Number of deliveries moved before it was resumed
    taken_at: int = 0  # Time when the first deliveries of a careful task were found consumed (ms); 0: not yet
    sample: Sequence[Sampled] = ()  # The messages it moved last whose fate is looked at
    fares: Fares = UNTRIED  # Outcomes of the deliveries moved so far
    stopped_why: str = ""  # Reason why it paused itself; empty if a caller paused it
    by: str = ""  # The caller that started it
    looked_to: int = 0  # For a choice by search: sequence number of the last delivery examined

    def resumed(self, now: int) -> "MoveTask":
        """The task when it goes on after a pause: a careful one begins with a few again."""
        return replace(
            self,
            state=TaskState.RUNNING,
            resumed_at=now,
            moved_before=self.moved,
            taken_at=0,
            sample=(),
            fares=UNTRIED,
            stopped_why="",
        )

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


# A replay: one subscriber gets again what its topic's archive holds of some span of time.

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
    """One subscription's replay; a subscription has one at a time."""

    restored: ClassVar = {"topic": ResourceName._make, "state": ReplayState}

    id: str  # Unique
    topic: ResourceName  # Topic whose archive is replayed
    subscription_id: str  # Subscription that receives the replay
    queue_id: int  # The subscription's backlog: one that was made anew under the same id has another
    starts_at: int  # Start of the replayed period (ms)
    # End of the replayed period (ms), after which the subscription rests; None: it catches up with what is being
    # published, and then receives that.
    ends_at: int | None
    begins_at: int = 0  # Nothing is replayed before (ms)
    state: ReplayState = ReplayState.PENDING  # See ReplayState
    last_seq: int = 0  # The archive has been read up to this row
    # The last seq given when it was stopped at rest: what arrived later goes to the subscriber.
    missed_to: int = 0
    lease_until: int = 0  # The node working at it holds it until then (ms); another may take it up after
    node: str = ""  # Id of that node

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
