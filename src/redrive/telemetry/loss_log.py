"""Warnings in the server's log of every delivery that ended otherwise than delivered: nothing is lost without a word.

    delivery.dropped topic=… subscription=… message_id=… reason=client_error status=404 attempts=1 said="Not Found"

for a delivery that is lost; `delivery.dead_lettered` for one that its dead-letter queue has, `delivery.expired` for one
whose time was over, `subscription.unconfirmed` for a confirmation that its endpoint did not take. A subscription has one
warning a minute; at the end of the minute another says how many more there were.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from typing_extensions import override

from redrive.engine.ports import Clock
from redrive.engine.ports.facts import Listener, Undelivered
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
_Key: TypeAlias = tuple[str, str]  # what of, and its key
_OTHERS: Final[_Key] = ("of", "others")


@dataclass(slots=True)
class _Minute:
    """One subscription's or queue's minute since a warning."""

    left_out: int = 0


class LossLog(Listener):
    """Warns of what was not delivered."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._minutes: dict[_Key, _Minute] = {}

    @override
    def undelivered(self, fact: Undelivered) -> None:
        event = "subscription.unconfirmed" if fact.confirmation else _EVENTS[fact.outcome]
        self._warn(("subscription", fact.last.subscription.key), 1, event, lambda: _fields(fact))

    @override
    def dropped(self, queue: Queue, messages: int, why: DeadLetterReason, now: int) -> None:
        """See `Listener.dropped`: of queues that callers receive from."""
        key = ("queue", queue.name.key)
        if messages:
            fields = {"queue": queue.name.key, "messages": messages, "reason": why.value}
            self._warn(key, messages, "queue.lost", lambda: fields)

    def _warn(self, key: _Key, number: int, event: str, fields: Callable[[], Mapping[str, Any]]) -> None:
        """Log a loss; further ones of its key in the next minute are only counted, and logged as one number."""
        if key not in self._minutes and len(self._minutes) >= KEYS_MAX:
            key = _OTHERS
        minute = self._minutes.get(key)
        if minute is not None:
            minute.left_out += number
            return
        logger.warning(event, extra={"fields": fields()})
        self._begin(key)

    def _begin(self, key: _Key) -> None:
        self._minutes[key] = _Minute()
        self._clock.call_at(self._clock.now() + MINUTE_MS, lambda: self._end(key))

    def _end(self, key: _Key) -> None:
        """End a minute; if more was lost in it, log the number and begin another."""
        left_out = self._minutes.pop(key).left_out
        if left_out:
            kind, name = key
            logger.warning("delivery.left_out", extra={"fields": {kind: name, "number": left_out}})
            self._begin(key)


def _fields(fact: Undelivered) -> Mapping[str, Any]:
    """The fields of the log event about a delivery that was lost."""
    last, attempt = fact.last, fact.last.attempt
    fields = {
        "topic": last.topic.name.key,
        "subscription": last.subscription.id,
        "message_id": fact.message_id[:SAID_MAX],  # as its publisher gave it: it may hold anything
        "reason": attempt.reason.value,
        "status": attempt.status,
        "attempts": last.delivery.attempts,
    }
    if last.subscription.dead_letter is not None and fact.handover is not None:
        fields["queue"] = last.subscription.dead_letter.key
        if not fact.handover.delivered:
            fields["queue_reason"] = fact.handover.reason.value
    return {**fields, "said": attempt.response[:SAID_MAX]} if attempt.response else fields
