"""Plans of redrives: the messages that a task would move, counted before anything is moved."""

from typing import Final, NamedTuple

from redrive.engine.ports import Cause, Clock, QueueStore
from redrive.engine.tasks.targets import RedriveTargets
from redrive.model.queue import Queue
from redrive.model.task import MoveChoice

COUNTED_MAX: Final = 10_000_000  # dead letters of a plan: 0.8 s, beside those who receive
CAUSES_MAX: Final = 1_000  # of a queue are looked through for origins that its configuration does not name


class RedrivePlan(NamedTuple):
    """The messages that a redrive would move.

    Attributes:
        number: So many, as far as their origins are still there.
        in_flight: So many others are being received, and stay.
        last_seq: What arrives from now on is behind this place, and stays.
        without_origin: So many of them stay unless a destination is named: their origin is unknown, or was deleted.
            Those in flight are counted too, up to all of `number`.
    """

    number: int
    in_flight: int
    last_seq: int
    without_origin: int = 0


class RedrivePlanner:
    """Counts what a redrive would move."""

    def __init__(self, store: QueueStore, clock: Clock, targets: RedriveTargets) -> None:
        """Count in this store."""
        self._store = store
        self._clock = clock
        self._targets = targets

    async def plan(self, source: Queue, choice: MoveChoice | None = None) -> RedrivePlan:
        """The messages that a task would move if it were started now, which does nothing."""
        plan = await self.count(source, choice)
        if choice is not None:
            return plan
        staying = plan.number + plan.in_flight - await self._number_with_origin(source)
        return plan._replace(without_origin=min(plan.number, max(0, staying)))

    async def count(self, source: Queue, choice: MoveChoice | None = None) -> RedrivePlan:
        """The same for a task that is started, without a look at where each came from."""
        last_seq = await self._store.last_seq()
        counts = await self._store.count(source.id, self._clock.now(), COUNTED_MAX)
        if choice is None:
            return RedrivePlan(counts.available, counts.claimed, last_seq)
        cause = Cause(choice.origin, choice.failure)
        of_cause = await self._store.causes(source.id, 1, COUNTED_MAX, COUNTED_MAX, cause)
        number = sum(count.number for count in of_cause)
        return RedrivePlan(max(0, number - len(choice.excepted)), counts.claimed, last_seq)

    async def _number_with_origin(self, source: Queue) -> int:
        """The dead letters of a queue, those in flight included, whose origin stands."""
        counts = await self._store.causes(source.id, CAUSES_MAX, COUNTED_MAX, COUNTED_MAX)
        standing = await self._targets.of_numbers({count.cause.origin for count in counts})
        return sum(count.number for count in counts if count.cause.origin in standing)
