"""The canary of a careful redrive: how the messages fare that it moved last.

A redriven delivery runs through its whole schedule before it is a dead letter again: a minute by the default of SNS, a
day at Event Grid. So what comes back is too late a sign. A failed attempt leaves a note at once, and a delivery that was
taken is gone without one. Both are read by key, so it does not matter which node pushes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from redrive.engine.ports import Clock, LookRequest, MovedTo, QueueStore
from redrive.model.task import LOOK_AGAIN_MS, UNTRIED, Fares, Sampled

SAMPLE_MAX = 50
_ATTEMPTS_END_MS = 2_000  # at an endpoint that answers; a consumer takes as long as it likes


def sample_of(became: Mapping[int, MovedTo]) -> Sequence[Sampled]:
    """Those of the messages that were just moved that are looked at, spread over all of them."""
    moved = list(became.values())
    step = -(-len(moved) // SAMPLE_MAX) or 1
    return [Sampled(each.queue_id, each.seq, each.message_id.hex()) for each in moved[::step]]


class Canary:
    """Looks at how messages fare."""

    def __init__(self, store: QueueStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def fares(self, sample: Sequence[Sampled], now: int) -> Fares:
        """The fates of a sample: two reads for each queue that it went to."""
        if not sample:
            return UNTRIED
        ids = {each: bytes.fromhex(each.message_id) for each in sample}
        noted = await self._store.notes_of_each([(each.queue_id, ids[each]) for each in sample])
        still_there = await self._still_there(sample, now)
        failed = taken = 0
        for each in sample:
            came_back = still_there.get((each.queue_id, each.seq))
            if (each.queue_id, ids[each]) in noted or came_back:
                failed += 1
            elif came_back is None:
                taken += 1
        return Fares(len(sample), taken, failed)

    async def last_fares(self, sample: Sequence[Sampled], fares: Fares) -> Fares:
        """The fates of a sample once all of it was tried, or two seconds have passed.

        A few failures decide; the attempts made beside them end milliseconds later, and belong to what is told.

        Args:
            sample: The messages looked at.
            fares: Their fates by the last look.
        """
        until = self._clock.now() + _ATTEMPTS_END_MS
        while fares.waiting and self._clock.now() < until:
            await self._clock.sleep_until(self._clock.now() + LOOK_AGAIN_MS)
            fares = await self.fares(sample, self._clock.now())
        return fares

    async def failure_text(self, sample: Sequence[Sampled]) -> str:
        """The most common cause among a sample's failed attempts, `: server_error 503`; empty if nobody said any."""
        keys = [(each.queue_id, bytes.fromhex(each.message_id)) for each in sample]
        noted = await self._store.notes_of_each(keys)
        causes = Counter(notes[0].failure for notes in noted.values())
        return f": {causes.most_common(1)[0][0]}" if causes else ""

    async def _still_there(self, sample: Iterable[Sampled], now: int) -> dict[tuple[int, int], bool]:
        """Of those that still stand in their queue, whether a consumer received them and let them come back."""
        by_queue: dict[int, list[int]] = {}
        for each in sample:
            by_queue.setdefault(each.queue_id, []).append(each.seq)
        still_there: dict[tuple[int, int], bool] = {}
        for queue_id, seqs in by_queue.items():
            for row in await self._store.look(LookRequest(queue_id, len(seqs), seqs=seqs)):
                still_there[queue_id, row.seq] = row.attempts > 0 and row.available_at <= now
        return still_there
