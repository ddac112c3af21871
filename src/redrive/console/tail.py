"""The live tail: recent events on this node, kept in memory while a page shows them.

Losses are always noted, which are rare and written down anyway. All else is heard only while a page asks for it: each
look renews a lease, and the first fact after its end takes the ring off the listeners, so that nobody pays for what
nobody reads. Bodies are not kept.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from typing_extensions import override

from redrive.engine.ports.facts import Accepted, Attempted, Listener, Undelivered
from redrive.model.delivery import DeadLetterReason, Outcome
from redrive.model.names import ResourceName, id_text
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic

LINES_MAX: Final = 2000
LEASE_MS: Final = 10_000

DELIVERED: Final = "delivered"
RETRY: Final = "retry"
DEAD_LETTERED: Final = "dead-lettered"
LOST: Final = "lost"
PUBLISHED: Final = "published"
SENT: Final = "sent"
RECEIVED: Final = "received"
DELETED: Final = "deleted"
OUTCOMES: Final = (DELIVERED, RETRY, DEAD_LETTERED, LOST, PUBLISHED, SENT, RECEIVED, DELETED)
FAILURES: Final = frozenset({RETRY, DEAD_LETTERED, LOST})
_ENDS: Final = {
    Outcome.DELIVERED: DELIVERED,
    Outcome.RETRY: RETRY,
    Outcome.DEAD_LETTERED: DEAD_LETTERED,
    Outcome.EXPIRED: LOST,
    Outcome.DROPPED: LOST,
}


class Line(NamedTuple):
    """Something that happened."""

    number: int  # Counts up from 1
    at: int  # When (ms)
    what: str  # One of `OUTCOMES`
    resource: ResourceName  # The topic or queue that it happened to
    subscription: Subscription | None = None  # Subscription of the delivery, if any
    message_id: str = ""  # Message id; empty if several messages are concerned
    messages: int = 1  # Number of messages
    attempt: int = 0  # Number of the attempt; 0: none
    reason: str = ""  # Why it ended so
    status: int = 0  # The endpoint's, or 0
    took_ms: int = 0  # How long the attempt took
    next_at: int = 0  # When the next attempt is due (ms), or 0


class Tail:
    """Keeps the last 2,000 lines of what happened on this node.

    Attributes:
        losses: Hears what is dead-lettered or lost, always.
    """

    def __init__(
        self, watch: Callable[[Listener], None], unwatch: Callable[[Listener], None], now: Callable[[], int]
    ) -> None:
        """Collect events while a page shows them; leases are measured by `now`, in real time (ms)."""
        self._watch, self._unwatch, self._now = watch, unwatch, now
        self._lines: deque[Line] = deque(maxlen=LINES_MAX)
        self._number = 0
        self._watching: Listener | None = None
        self._until = 0
        self.losses: Listener = _Losses(self)

    def lines(self) -> Iterator[Line]:
        """The lines, latest first; each request keeps the collection going for ten seconds."""
        self._until = self._now() + LEASE_MS
        if self._watching is None:
            self._watching = _Happenings(self)
            self._watch(self._watching)
        return reversed(self._lines)

    def note(self, line: Line) -> None:
        """Keep a line, under the next number."""
        self._number += 1
        self._lines.append(line._replace(number=self._number))

    def is_read(self) -> bool:
        """False ten seconds after the last look: then it stops listening."""
        if self._now() < self._until:
            return True
        if self._watching is not None:
            self._unwatch(self._watching)
            self._watching = None
        return False


class _Losses(Listener):
    def __init__(self, tail: Tail) -> None:
        self._tail = tail

    @override
    def undelivered(self, fact: Undelivered) -> None:
        if not fact.confirmation:
            self._tail.note(_attempted(fact.last, _ENDS[fact.outcome]))

    @override
    def buried(self, queue: Queue, messages: int, why: DeadLetterReason, now: int) -> None:
        if messages:
            self._tail.note(Line(0, now, DEAD_LETTERED, queue.name, messages=messages, reason=str(why)))

    @override
    def dropped(self, queue: Queue, messages: int, why: DeadLetterReason, now: int) -> None:
        if messages:
            self._tail.note(Line(0, now, LOST, queue.name, messages=messages, reason=str(why)))


class _Happenings(Listener):
    """Listens to all other events, while a page shows them."""

    def __init__(self, tail: Tail) -> None:
        self._tail = tail

    @override
    def attempted(self, fact: Attempted) -> None:
        what = _ENDS[fact.transition.outcome]
        if what in (DELIVERED, RETRY) and self._tail.is_read():  # the others are losses
            self._tail.note(_attempted(fact, what))

    @override
    def accepted(self, fact: Accepted) -> None:
        if self._tail.is_read():
            for attempt in fact.attempts():
                self._tail.note(_attempted(attempt, DELIVERED))

    @override
    def published(self, topic: Topic, messages: int, matched: int, body_bytes: int, now: int) -> None:
        self._happened(PUBLISHED, topic.name, messages, now)

    @override
    def sent(self, queue: Queue, messages: int, body_bytes: int, now: int) -> None:
        self._happened(SENT, queue.name, messages, now)

    @override
    def received(self, queue: Queue, messages: int, now: int) -> None:
        self._happened(RECEIVED, queue.name, messages, now)

    @override
    def deleted(self, queue: Queue, messages: int, now: int) -> None:
        self._happened(DELETED, queue.name, messages, now)

    def _happened(self, what: str, resource: ResourceName, messages: int, now: int) -> None:
        if messages and self._tail.is_read():
            self._tail.note(Line(0, now, what, resource, messages=messages))


def _attempted(fact: Attempted, what: str) -> Line:
    """The line of an attempt with this outcome; only a retry has a next one."""
    return Line(
        0,  # it gets its number when it is kept
        fact.at,
        what,
        fact.topic.name,
        fact.subscription,
        fact.message_id or id_text(fact.delivery.message_id),
        attempt=fact.delivery.attempts,
        reason=str(fact.attempt.reason),
        status=fact.attempt.status,
        took_ms=fact.attempt.duration_ms,
        next_at=fact.transition.available_at if what == RETRY else 0,
    )
