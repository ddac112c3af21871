"""Chosen dead letters: moved at once and together, with another body where they were mended, or set aside and back."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from redrive.engine.node.counters import NodeCounters
from redrive.engine.ports import (
    LookRequest,
    MessageStore,
    Moved,
    MoveRequest,
    MoveTarget,
    QueueStore,
    Runtime,
)
from redrive.engine.receive.notifier import QueueNotifier
from redrive.engine.resources import Resources
from redrive.engine.tasks.redrive_plan import RedriveTargets
from redrive.model.errors import AlreadyExists
from redrive.model.names import ResourceName
from redrive.model.queue import DAY_MS, Queue

BATCH_MAX = 100  # a batch is one transaction: long enough to be quick, short enough to hold up nobody
SET_ASIDE = "redrive-set-aside"  # of each account and region, made when it is first needed
_SET_ASIDE_KEPT_MS = 14 * DAY_MS  # as long as a queue may keep messages


class ChosenMoves:
    """Moves selected dead letters, up to `BATCH_MAX` in one transaction."""

    def __init__(
        self,
        messages: MessageStore,
        store: QueueStore,
        runtime: Runtime,
        resources: Resources,
        notifier: QueueNotifier,
        counters: NodeCounters,
    ) -> None:
        self._messages = messages
        self._store = store
        self._runtime = runtime
        self._queues = resources.queues
        self._targets = RedriveTargets(resources)
        self._notifier = notifier
        self._measure = counters

    async def move(
        self,
        source: Queue,
        seqs: Sequence[int],
        destination: Queue | None,
        bodies: Mapping[int, str] | None = None,
    ) -> Moved:
        """Move dead letters at once, in one transaction; those that are in flight or not there stay.

        Args:
            source: Where they are.
            seqs: Which; at most `BATCH_MAX`.
            destination: Where to; None: each where it came from.
            bodies: Other bodies for some of them: the old ones are gone then.

        Raises:
            Refused: A message that would have another body is encrypted: nobody could open the new one.
        """
        request = await self._request(source, seqs)
        if destination is not None:
            request = replace(request, destination=MoveTarget(destination.id, destination.ordered))
        else:
            request = replace(request, origins=await self._homes(source, seqs))
        moved = await self._messages.move(replace(request, bodies=bodies or {}))
        self._measure.queue(source).messages_redriven += moved.total
        return self._announced(moved)

    async def set_aside(self, source: Queue, seqs: Sequence[int]) -> Moved:
        """Put dead letters into the place's queue for such, where they keep what they are for 14 days."""
        aside = await self.aside_of(source.name)
        request = replace(
            await self._request(source, seqs),
            destination=MoveTarget(aside.id, aside.ordered),
            keeps_origin=True,
        )
        return self._announced(await self._messages.move(request))

    async def bring_back(self, aside: Queue, seqs: Sequence[int]) -> Moved:
        """Put what was set aside into the dead-letter queues again that their origins have now."""
        letters = await self._store.look(LookRequest(aside.id, BATCH_MAX, seqs=seqs))
        origins = {letter.origin for letter in letters if letter.origin is not None}
        targets = {number: await self._targets.dead_letters_of(number) for number in origins}
        request = replace(
            await self._request(aside, seqs),
            origins={number: target for number, target in targets.items() if target is not None},
            keeps_origin=True,
        )
        return self._announced(await self._messages.move(request))

    async def aside_of(self, source: ResourceName) -> Queue:
        """The queue for what is set aside in an account's region, made if it is not there."""
        name = source._replace(name=SET_ASIDE)
        queue = await self._queues.get(name)
        if queue is not None:
            return queue
        try:
            return await self._queues.create(Queue(0, name, retention_ms=_SET_ASIDE_KEPT_MS))
        except AlreadyExists:  # created concurrently
            return await self.aside_of(source)

    async def _homes(self, source: Queue, seqs: Sequence[int]) -> dict[int, MoveTarget]:
        letters = await self._store.look(LookRequest(source.id, BATCH_MAX, seqs=seqs))
        return await self._targets.of_numbers(letter.origin for letter in letters)

    async def _request(self, source: Queue, seqs: Sequence[int]) -> MoveRequest:
        return MoveRequest(
            queue_id=source.id,
            ordered=source.ordered,
            limit=min(len(seqs), BATCH_MAX),
            now=self._runtime.clock.now(),
            seq_max=await self._store.last_seq(),
            message_ids=[self._runtime.message_id() for _ in seqs],
            seqs=seqs,
        )

    def _announced(self, moved: Moved) -> Moved:
        for queue_id, number in moved.per_queue.items():
            self._notifier.announce(queue_id, number)
        return moved
