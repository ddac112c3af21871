"""Values for looking into queues without receiving: pages of deliveries, and why dead letters died."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from redrive.engine.ports.requests import FailureKey


class FailureGroup(NamedTuple):
    """The dead letters of a queue that have one cause.

    Attributes:
        key: Their cause.
        number: How many there are, as far as was counted.
        capped: Whether there are more than were counted.
        first_seq: The place of the one that arrived first.
        last_seq: The place of the one that arrived last.
    """

    key: FailureKey
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
        group: Only dead letters of this cause; None: everything.
        seqs: Only these places, by arrival; None: any. Not with `group`.
    """

    queue_id: int
    limit: int
    after_seq: int = 0
    before_seq: int | None = None
    newest_first: bool = False
    group: FailureKey | None = None
    seqs: Sequence[int] | None = None
