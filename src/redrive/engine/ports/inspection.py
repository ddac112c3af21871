"""Values for looking into queues without receiving: pages of deliveries, and why dead letters died."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from redrive.engine.ports.requests import Cause

COUNTED_AT_ONCE: Final = 10_000  # of each kind: 0.8 ms
COUNTED_TOGETHER_MAX: Final = 300_000  # dead letters that one look counts: 30 ms
COUNTED_MIN: Final = 1_000  # of each of what is counted together, however many there are


def fair_share(left: int, among: int, count_max: int) -> int:
    """The number as far as the next of several is counted, so that all of them take no longer than a look may."""
    return min(count_max, max(COUNTED_MIN, left // max(1, among)))


class CauseCount(NamedTuple):
    """The dead letters of a queue that have one cause.

    Attributes:
        cause: Their cause.
        number: How many there are, as far as was counted.
        capped: Whether there are more than were counted.
        first_seq: The place of the one that arrived first.
        last_seq: The place of the one that arrived last.
    """

    cause: Cause
    number: int
    capped: bool
    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class LookRequest:
    """A page of deliveries of one queue, waiting and claimed, by arrival.

    Attributes:
        queue_id: Of which queue.
        limit: At most so many.
        after_seq: Only what arrived later than this.
        before_seq: Only what arrived earlier than this; None: no bound.
        newest_first: The page begins with what arrived last.
        cause: Only dead letters of this cause; None: everything.
        seqs: Only these places, by arrival; None: any. Not with `cause`.
    """

    queue_id: int
    limit: int
    after_seq: int = 0
    before_seq: int | None = None
    newest_first: bool = False
    cause: Cause | None = None
    seqs: Sequence[int] | None = None
