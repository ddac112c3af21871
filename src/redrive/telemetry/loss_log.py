"""Warnings in the server's log of every delivery that ended otherwise than delivered: nothing is lost without a word.

    delivery.dropped topic=… subscription=… message=… reason=client_error status=404 attempts=1 said='Not Found'

for a delivery that is lost; `delivery.dead_lettered` for one that its dead-letter queue has, `delivery.expired` for one
whose time was over, `subscription.unconfirmed` for a confirmation that its endpoint did not take. A subscription has one
warning a minute; at the end of the minute another says how many more there were.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from redrive.engine.facts import Listener, Undelivered
from redrive.engine.ports import Clock
from redrive.model.delivery import DeadLetterReason, Outcome
from redrive.model.metric import MINUTE_MS
from redrive.model.queue import Queue

logger = logging.getLogger(__name__)

SAID_MAX: Final = 200  # characters of what an endpoint said
KEYS_MAX: Final = 10_000  # subscriptions and queues told apart; all others share one warning a minute
_EVENTS: Final = {
    Outcome.DEAD_LETTERED: "delivery.dead_lettered",
    Outcome.DROPPED: "delivery.dropped",
    Outcome.EXPIRED: "delivery.expired",
}
_OTHERS: Final = "others"


@dataclass(slots=True)
class _Minute:
    """One subscription's or queue's minute since a warning."""

    left_out: int = 0


class LossLog(Listener):
    """Warns of what was not delivered."""

    def __init__(self, clock: Clock) -> None:
        """Measure minutes on this clock."""
        self._clock = clock
        self._minutes: dict[str, _Minute] = {}

    @override
    def undelivered(self, fact: Undelivered) -> None:
        self._warn(f"subscription={fact.last.subscription.key}", 1, lambda: _line(fact))

    @override
    def dropped(self, queue: Queue, messages: int, why: DeadLetterReason, now: int) -> None:
        """See `Listener.dropped`: of queues that callers receive from."""
        key = f"queue={queue.name.key}"
        if messages:
            self._warn(key, messages, lambda: f"queue.lost {key} messages={messages} reason={why}")

    def _warn(self, key: str, number: int, line: Callable[[], str]) -> None:
        if key not in self._minutes and len(self._minutes) >= KEYS_MAX:
            key = _OTHERS
        minute = self._minutes.get(key)
        if minute is not None:
            minute.left_out += number
            return
        logger.warning("%s", line())
        self._begin(key)

    def _begin(self, key: str) -> None:
        self._minutes[key] = _Minute()
        self._clock.call_at(self._clock.now() + MINUTE_MS, lambda: self._end(key))

    def _end(self, key: str) -> None:
        left_out = self._minutes.pop(key).left_out
        if left_out:
            logger.warning(
                "delivery.left_out %s number=%d: more of the same in the last minute", key, left_out
            )
            self._begin(key)


def _line(fact: Undelivered) -> str:
    last, attempt = fact.last, fact.last.attempt
    event = "subscription.unconfirmed" if fact.confirmation else _EVENTS[fact.outcome]
    line = (
        f"{event} topic={last.topic.name.key} subscription={last.subscription.id}"
        f" message={_plain(fact.message_id)}"
        f" reason={attempt.reason} status={attempt.status} attempts={last.delivery.attempts}"
    )
    if last.subscription.dead_letter is not None and fact.handed is not None:
        line += f" queue={last.subscription.dead_letter.key}"
        if not fact.handed.delivered:
            line += f" queue_reason={fact.handed.reason}"
    return f"{line} said={attempt.response[:SAID_MAX]!r}" if attempt.response else line


def _plain(text: str) -> str:
    """An id that a publisher gave, which may hold anything, as one word of one line."""
    return text if text.isprintable() and " " not in text and len(text) <= SAID_MAX else repr(text[:SAID_MAX])
