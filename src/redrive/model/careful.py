"""Careful redrive: a few messages first, and more only while those that went are taken."""

from dataclasses import dataclass
from typing import NamedTuple

from redrive.model.document import Document

_PERMILLE = 1000
_SECOND_MS = 1000


class Sampled(NamedTuple):
    """A message that a careful redrive moved and whose outcome is checked."""

    queue_id: int  # Id of the queue it went to
    seq: int  # Its sequence number there
    message_id: str  # Its id there, in hexadecimal digits


class Fares(NamedTuple):
    """The fate of a sample of messages: how many of it were looked at, and how they fare."""

    looked_at: int = 0
    taken: int = 0
    failed: int = 0

    @property
    def waiting(self) -> int:
        """The number that were neither attempted nor received so far."""
        return self.looked_at - self.taken - self.failed


UNTRIED = Fares()


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


class CarefulStep(NamedTuple):
    """The next step of a careful task."""

    move: int = 0  # So many messages now
    wait_ms: int = 0  # Then wait so long, or look again after it
    stop: bool = False  # Stop: too many fail


LOOK_AGAIN_MS = 200


def careful_step(
    pace: CarefulPace, moved: int, fares: Fares, passed_ms: int | None, batch_max: int
) -> CarefulStep:
    """Decide how a careful task goes on.

    Args:
        pace: Its pace.
        moved: How many it has moved since it began, or went on.
        fares: How the last that it moved fare.
        passed_ms: How long ago the first were found to be taken; None: not yet.
        batch_max: The most that move at once.
    """
    if moved < pace.first:
        return CarefulStep(move=min(pace.first - moved, batch_max))
    tried = fares.taken + fares.failed
    least = min(2, fares.looked_at)
    if fares.failed >= least > 0 and fares.failed * _PERMILLE > tried * pace.fails_permille_max:
        return CarefulStep(stop=True)
    enough = fares.looked_at if passed_ms is None else fares.looked_at // 2
    if tried < enough:
        return CarefulStep(wait_ms=LOOK_AGAIN_MS)
    rate = pace.rate_after(passed_ms or 0)
    move = min(batch_max, max(1, rate // 4))
    return CarefulStep(move=move, wait_ms=move * _SECOND_MS // rate)
