"""A move task: dead letters on their way back, in the background, at a bounded rate or carefully.

A careful redrive moves a few messages first, and more only while those that went are taken.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from redrive.model.document import Document
from redrive.model.durations import SECOND_MS
from redrive.model.names import ResourceName

_PERMILLE = 1000


class Sampled(NamedTuple):
    """A message that a careful redrive moved and whose outcome is checked."""

    queue_id: int  # Id of the queue it went to
    seq: int  # Its sequence number there
    message_id: str  # Its id there, in hexadecimal digits


class SampleOutcomes(NamedTuple):
    """The outcomes in a sample of messages: how many were looked at, were taken by their consumers, and failed."""

    looked_at: int = 0
    taken: int = 0
    failed: int = 0

    @property
    def waiting(self) -> int:
        """The number that are neither taken nor failed yet."""
        return self.looked_at - self.taken - self.failed


UNTRIED = SampleOutcomes()


class Progress(NamedTuple):
    """The number of messages that a task had moved at a moment."""

    at: int  # ms
    moved: int


PROGRESS_MAX = 60  # moments of a task that are kept: a chart's worth, in 1.3 KB


def with_moment(progress: Sequence[Progress], now: int, moved: int) -> Sequence[Progress]:
    """The progress with one more moment; with too many of them, every second one is dropped, but never the last."""
    step = (now - progress[0].at) * 2 // PROGRESS_MAX if progress else 0
    before = progress[:-1] if len(progress) > 1 and now - progress[-2].at < step else progress
    thinned = before[::2] if len(before) == PROGRESS_MAX else before
    return (*thinned, Progress(now, moved))


@dataclass(frozen=True, slots=True)
class CarefulPace(Document):
    """A pace that starts with a few messages and doubles while they are delivered."""

    first: int = 10  # So many go first, and their fates are waited for
    rate: int = 5  # Then so many a second
    doubles_each_ms: int = 10_000  # Twice as many each time this has passed
    rate_max: int = 500  # Up to so many a second
    # Of a thousand that were looked at, more failures than these end it. Two failures at least.
    fails_permille_max: int = 50

    def rate_after(self, passed_ms: int) -> int:
        """The number of messages a second, so long after the first were taken."""
        doublings = min(passed_ms // self.doubles_each_ms, 16)
        return int(min(self.rate << doublings, self.rate_max))

    def duration_ms(self, number: int) -> int:
        """The time (ms) that so many messages take from when the first were consumed, if none fails."""
        remaining, passed = max(0, number - self.first), 0
        rate = self.rate_after(0)
        while rate < self.rate_max and remaining * 1000 > rate * self.doubles_each_ms:
            remaining -= rate * self.doubles_each_ms // 1000
            passed += self.doubles_each_ms
            rate = self.rate_after(passed)
        return passed + remaining * 1000 // rate


class CarefulStep(NamedTuple):
    """The next step of a careful task."""

    move: int = 0  # So many messages now
    wait_ms: int = 0  # Then wait so long, or look again after it
    stop: bool = False  # Stop: too many fail


LOOK_AGAIN_MS = 200


def careful_step(
    pace: CarefulPace, moved: int, outcomes: SampleOutcomes, passed_ms: int | None, batch_max: int
) -> CarefulStep:
    """Decide how a careful task goes on.

    It stops once two messages (or all, if fewer were looked at) failed, and more of those tried than its pace allows.

    Args:
        pace: Its pace.
        moved: How many it has moved since it began, or went on.
        outcomes: What has become of the last that it moved.
        passed_ms: How long ago the first were found consumed; None: not yet.
        batch_max: The most that move at once.
    """
    if moved < pace.first:
        return CarefulStep(move=min(pace.first - moved, batch_max))
    attempted = outcomes.taken + outcomes.failed
    failures_min = min(2, outcomes.looked_at)
    too_many_fail = outcomes.failed * _PERMILLE > attempted * pace.fails_permille_max
    if outcomes.failed >= failures_min > 0 and too_many_fail:
        return CarefulStep(stop=True)
    enough = outcomes.looked_at if passed_ms is None else outcomes.looked_at // 2
    if attempted < enough:
        return CarefulStep(wait_ms=LOOK_AGAIN_MS)
    rate = pace.rate_after(passed_ms or 0)
    move = min(batch_max, max(1, rate // 4))
    return CarefulStep(move=move, wait_ms=move * SECOND_MS // rate)


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
        "fares": lambda fares: SampleOutcomes(*fares),
        "progress": lambda progress: tuple(Progress(*each) for each in progress),
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
    fares: SampleOutcomes = UNTRIED  # Outcomes of that sample; the name is that of the stored field
    stopped_why: str = ""  # Reason why it paused itself; empty if a caller paused it
    by: str = ""  # The caller that started it
    looked_to: int = 0  # For a choice by search: sequence number of the last delivery examined
    progress: Sequence[Progress] = ()  # How it went on, at most `PROGRESS_MAX` moments

    def as_resumed(self, now: int) -> "MoveTask":
        """The task as it goes on after a pause: a careful one begins with a few again."""
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

    def with_moved(self, moved: int, now: int) -> "MoveTask":
        """The task after so many more deliveries were moved; `told`, which callers see, follows every ten seconds."""
        total = self.moved + moved
        updated = replace(self, moved=total, progress=with_moment(self._progress_from_start, now, total))
        if now < (self.told_at or self.started_at) + TELL_EVERY_MS:
            return updated
        return replace(updated, told=updated.moved, told_at=now)

    @property
    def _progress_from_start(self) -> Sequence[Progress]:
        return self.progress or (Progress(max(self.started_at, self.starts_at), 0),)

    @property
    def moved_shown(self) -> int:
        """The number of moved messages as callers see it: exact once the task is over."""
        return self.told if self.state.active else self.moved

    @property
    def key(self) -> str:
        """The key of its document: tasks of one source are in the order of their starts."""
        return f"{self.source.key}/{self.started_at:015d}-{self.id}"


# A replay: one subscriber gets again what its topic's archive holds of some span of time.


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
