"""An entry in the books: one delivery, where it stands, and under which claim."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redrive.model.delivery import Delivery
from tests.simulation.trace import short

Snapshot = Mapping[int, Sequence[Delivery]]  # what stands in a queue, for the queues that were looked at


@dataclass(slots=True)
class Entry:
    """A delivery that stands in a queue.

    Attributes:
        claimed_at: When it was claimed last, by the claimer's clock (ms).
        retimed: A holder changed the time of its claim: it and the rest of its group may lapse apart.
        The others are those of Delivery.
    """

    queue_id: int
    seq: int
    message_id: bytes
    body: str
    group_id: str | None
    enqueued_at: int
    available_at: int
    attempts: int = 0
    token: int | None = None
    origin: int | None = None
    claimed_at: int = 0
    retimed: bool = False

    def __str__(self) -> str:
        return f"#{self.seq} {self.body!r} of queue {self.queue_id}, attempt {self.attempts}, {short(self.token)}"


def entered(delivery: Delivery) -> Entry:
    """The entry of a delivery that the store shows."""
    one = delivery
    return Entry(
        *(one.queue_id, one.seq, one.message_id, one.body, one.group_id, one.enqueued_at),
        *(one.available_at, one.attempts, one.token, one.origin),
    )
