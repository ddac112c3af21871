"""Tracing: where the deliveries of a message stand, and what their attempts came to.

What is delivered leaves nothing behind, so a trace shows what is still owed and what is dead.
"""

import json
from dataclasses import dataclass, field
from typing import Final

from redrive.engine.configuration.queues import Queues
from redrive.engine.configuration.topics import Topics
from redrive.engine.ports import Clock, QueueStore
from redrive.engine.tasks.dead_letters import DeadLetter, DeadLetters
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.topic import Subscription

# A trace is a scan, and one caller's must not hold up the others: 10,000 deliveries take 40 ms, 10,000 empty queues 60.
PLACES_MAX: Final = 10_000
DELIVERIES_MAX: Final = 10_000
PLACES_AT_ONCE: Final = 500  # 3 ms where they are empty: others may look in between

_ID_DIGITS: Final = 32


@dataclass(frozen=True, slots=True)
class TracedDelivery:
    """One existing delivery of a message."""

    queue: Queue | None  # The queue it is in; None: a subscription's backlog
    subscription: Subscription | None  # The subscription whose backlog it is in; None: a queue
    letter: DeadLetter  # The delivery, where it came from if it is a dead letter, and its attempts


@dataclass(slots=True)
class Trace:
    """The deliveries of a message that were found."""

    # Its deliveries, by queue and then by topic.
    deliveries: list[TracedDelivery] = field(default_factory=list)
    partial: bool = False  # Whether some place was not looked into, or not to its end


class Tracer:
    """Searches for a message in the queues and backlogs of an account's region."""

    def __init__(
        self, store: QueueStore, clock: Clock, queues: Queues, topics: Topics, dead_letters: DeadLetters
    ) -> None:
        self._store = store
        self._clock = clock
        self._queues = queues
        self._topics = topics
        self._dead_letters = dead_letters

    async def trace(self, account: str, region: str, message_id: str) -> Trace:
        """Every delivery of a message that stands: its own id is this, or that of its publication."""
        digits = message_id.replace("-", "").lower()
        own_id = bytes.fromhex(digits) if _is_id(digits) else b""
        text = json.dumps(message_id).encode()
        trace = Trace()
        places = await self._places(account, region)
        trace.partial = len(places) > PLACES_MAX
        numbers = list(places)[:PLACES_MAX]
        for begin in range(0, len(numbers), PLACES_AT_ONCE):
            at_once = numbers[begin : begin + PLACES_AT_ONCE]
            deliveries, partial = await self._store.locate(at_once, own_id, text, DELIVERIES_MAX)
            trace.partial = trace.partial or partial
            for letter in await self._dead_letters.of(deliveries):
                trace.deliveries.append(TracedDelivery(*places[letter.delivery.queue_id], letter))
        return trace

    async def _places(self, account: str, region: str) -> dict[int, tuple[Queue | None, Subscription | None]]:
        """The queues and backlogs of an account's region, by number; one more than may be looked into, at least."""
        places: dict[int, tuple[Queue | None, Subscription | None]] = {}
        for queue in await self._queues.find(ResourceName(account, region), limit=PLACES_MAX + 1):
            places[queue.id] = (queue, None)
        for subscription in await self._topics.subscriptions.of_account(
            account, region, limit=PLACES_MAX + 1
        ):
            for queue_id in subscription.backlogs:
                places[queue_id] = (None, subscription)
        return places


def _is_id(digits: str) -> bool:
    return len(digits) == _ID_DIGITS and set(digits) <= set("0123456789abcdef")
