"""Outcomes of a redrive: how fast it moved messages, and what became of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

from redrive.console.charts import Point, TimeChart, time_chart
from redrive.console.pages.messages import owed_first
from redrive.console.visit import Visit
from redrive.console.words import counted, moment
from redrive.engine.ports import Cause, LookRequest
from redrive.model.queue import Queue
from redrive.model.task import MoveTask, Progress, TaskState
from redrive.model.topic import Subscription

DEAD_AGAIN_MAX: Final = 100
WAITING_MAX: Final = 100_000
RECEIVERS_MAX: Final = 20
_PERIODS: Final = 30  # of a chart
_PERIOD_MS_MIN: Final = 1000
_CAUSES_MAX: Final = 5


Receiver: TypeAlias = Queue | Subscription


class DeadAgain(NamedTuple):
    """Dead letters of one cause that arrived since a redrive began."""

    failure: str
    number: int
    link: str  # To them alone


@dataclass(frozen=True, slots=True)
class RedriveOutcome:
    """The fate of what a redrive moved; messages that others sent meanwhile are counted with what waits and what died."""

    waiting: int | None  # Messages that wait at the receivers; None: these are not known any more
    delivered: int | None  # At least so many were taken; None: too many wait or died to be counted
    dead_again: int  # At most `DEAD_AGAIN_MAX`
    causes: tuple[DeadAgain, ...]  # Of those, the most frequent first
    link: str  # To all of them
    receiver: Subscription | None = None  # Where most wait; None: at queues, or nowhere
    # Of what waits there, the oldest that failed already and will be tried again, as `owed_first` has them.
    retrying: Sequence[Mapping[str, Any]] = ()

    @property
    def text(self) -> str:
        """The outcome in a sentence."""
        waiting = "" if self.waiting is None else f", {counted(self.waiting, WAITING_MAX)} still waiting"
        delivered = "" if self.delivered is None else f"{self.delivered:,} delivered, "
        return f"{delivered}{counted(self.dead_again, DEAD_AGAIN_MAX)} dead again{waiting}"


async def outcome_of(visit: Visit, queue: Queue, task: MoveTask) -> RedriveOutcome:
    """Counts the messages of a task that wait, were delivered, or died again: four reads."""
    dead_letters = visit.engine.operations.dead_letters
    letters = await dead_letters.peek(LookRequest(queue.id, DEAD_AGAIN_MAX, task.last_seq))
    since = f"since:{moment(task.started_at)[:19]}Z"

    def link(cause: str = "") -> str:
        return visit.link("dead-letters", queue.name.name, cause=cause, q=since)

    numbers = Counter(Cause(each.origin or 0, each.failure or "") for each in letters)
    causes = [
        DeadAgain(cause.failure, number, link(f"{cause.origin}:{cause.failure}" if cause.failure else ""))
        for cause, number in numbers.most_common(_CAUSES_MAX)
    ]
    counts = await _waiting(visit, await _receivers(visit, queue, task))
    waiting = sum(number for _, number in counts) if counts else None
    receiver, _ = max(counts, key=lambda count: count[1]) if waiting else (None, 0)
    subscription = receiver if isinstance(receiver, Subscription) else None
    return RedriveOutcome(
        waiting,
        _delivered(task, waiting, len(letters)),
        len(letters),
        tuple(causes),
        link(),
        subscription,
        [] if subscription is None else await _retrying(visit, subscription),
    )


def _delivered(task: MoveTask, waiting: int | None, dead_again: int) -> int | None:
    if waiting is None or waiting >= WAITING_MAX or dead_again >= DEAD_AGAIN_MAX:
        return None
    return max(0, task.moved - waiting - dead_again)


async def _waiting(visit: Visit, receivers: Sequence[Receiver]) -> list[tuple[Receiver, int]]:
    """The receivers of a task, with the messages that each has not taken yet."""
    messages = visit.engine.messages
    subscriptions = [each for each in receivers if isinstance(each, Subscription)]
    queues = [each for each in receivers if isinstance(each, Queue)]
    backlogs = await messages.count_backlogs(subscriptions, WAITING_MAX)
    counts = await messages.count_each(queues, WAITING_MAX)
    return [
        *((each, sum(backlogs[each.queue_id])) for each in subscriptions),
        *((each, sum(counts[each.id])) for each in queues),
    ]


async def _retrying(visit: Visit, subscription: Subscription) -> list[dict[str, Any]]:
    """Of the oldest messages that wait for a subscription, those that failed already."""
    rows = await owed_first(visit, subscription, await visit.engine.operations.circuit(subscription))
    return [row for row in rows if row["delivery"].attempts > (row["state"] == "in-flight")]


async def _receivers(visit: Visit, queue: Queue, task: MoveTask) -> list[Receiver]:
    """The queues and subscriptions that a task sends to, as far as they are known."""
    dead_letters, queues = visit.engine.operations.dead_letters, visit.engine.resources.queues
    if task.destination is None and (task.choice is None or not task.choice.failure):
        return (await dead_letters.sources(queue))[:RECEIVERS_MAX]
    name = task.destination
    if name is None and task.choice is not None:
        name, subscription = await dead_letters.origin(task.choice.origin)
        if subscription is not None:
            return [subscription]
    receiver = None if name is None else await queues.get(name)
    return [] if receiver is None else [receiver]


def progress_chart(task: MoveTask, now: int) -> TimeChart | None:
    """The messages that a task moved a second, and what its pace allowed; None: it has hardly begun."""
    if len(task.progress) < 2:  # noqa: PLR2004 - two moments make a line
        return None
    since = task.progress[0].at
    until = now if task.state is TaskState.RUNNING else task.progress[-1].at
    period = max(_PERIOD_MS_MIN, -(-(until - since) // _PERIODS))  # rounded up
    moments = range(since, until - period + 1, period)
    if len(moments) < 2:  # noqa: PLR2004 - the same
        return None
    moved: list[Point] = [
        (at, (_moved_at(task.progress, at + period) - _moved_at(task.progress, at)) * 1000 / period)
        for at in moments
    ]
    rates = [(at, _allowed(task, at)) for at in moments]
    lines = {"Moved": moved, "Allowed": [(at, rate) for at, rate in rates if rate]}
    drawn = {label: points for label, points in lines.items() if points}
    return time_chart(drawn, since, moments[-1] + 1, period, unit="/s")


def _moved_at(progress: Sequence[Progress], at: int) -> float:
    """The number that had moved at a moment, between two that are known in proportion."""
    for before, after in pairwise(progress):
        if before.at <= at < after.at:
            return before.moved + (after.moved - before.moved) * (at - before.at) / (after.at - before.at)
    return progress[-1].moved if at >= progress[-1].at else 0


def _allowed(task: MoveTask, at: int) -> float:
    """The pace of a task at a moment; 0: it has none, or it waits until its first messages are taken."""
    if task.careful is None:
        return task.rate_max or 0
    return task.careful.rate_after(at - task.taken_at) if task.taken_at and at >= task.taken_at else 0
