"""Dead letters of namespaces' topics: what is kept of an event beside the event, and where.

    [{"deadLetterProperties": {"deadletterreason": "Maximum delivery attempts was exceeded.",
                               "deliveryattempts": 1,
                               "deliveryresult": "Event was not acknowledged nor rejected.",
                               "publishutc": "2023-11-01T20:33:51.4520000Z",
                               "deliveryattemptutc": "2023-11-01T20:33:52.3690000Z"},
      "event": {…}}]

The texts of the first reason and result, and the members, are those of "Message push delivery and retry with namespace
topics"; the other texts are Redrive's own, in their manner.
"""

from dataclasses import replace
from typing import Any, Final

import orjson

from redrive.azure.eventgrid import dead_letters
from redrive.azure.eventgrid.notation import timestamp
from redrive.azure.eventgrid.published import Letter, PublishedEvent
from redrive.azure.eventgrid.settings import ID
from redrive.azure.wire.arm_id import ArmId
from redrive.engine.ports import Plan
from redrive.model.delivery import DeadLetterReason, Delivery
from redrive.model.durations import HOUR_MS, MINUTE_MS, SECOND_MS
from redrive.model.retry import Phase, RetrySchedule, Stage
from redrive.model.topic import Subscription

_DAYS_KEPT_MS: Final = 48 * HOUR_MS
_SCHEDULE: Final = RetrySchedule(
    (
        Stage(Phase.BACKOFF, 1, 10 * SECOND_MS, 10 * SECOND_MS),
        Stage(Phase.BACKOFF, 1, 1 * MINUTE_MS, 1 * MINUTE_MS),
        Stage(Phase.POST_BACKOFF, _DAYS_KEPT_MS // (5 * MINUTE_MS), 5 * MINUTE_MS, 5 * MINUTE_MS),
    ),
    expires_after_ms=_DAYS_KEPT_MS,
)
PLAN: Final[Plan] = replace(dead_letters.PLAN, schedule=_SCHEDULE)

_TOO_MANY: Final = "Maximum delivery attempts was exceeded."
_TOO_OLD: Final = "Time to live was exceeded."
_REJECTED: Final = "Event was rejected."
_LEFT: Final = "Event was not acknowledged nor rejected."
_REASONS: Final = {
    DeadLetterReason.EXHAUSTED: _TOO_MANY,
    DeadLetterReason.EXPIRED: _TOO_OLD,
    DeadLetterReason.REJECTED: _REJECTED,
    dead_letters.TOO_MANY_ATTEMPTS: _TOO_MANY,
    dead_letters.TOO_OLD: _TOO_OLD,
    dead_letters.REFUSED: "Event was refused by its destination.",
}


#: What metrics call the ends of events that are pulled.
REASONS: Final = {
    DeadLetterReason.EXHAUSTED: dead_letters.TOO_MANY_ATTEMPTS,
    DeadLetterReason.EXPIRED: dead_letters.TOO_OLD,
    DeadLetterReason.REJECTED: "EventRejected",
}


def reason_of(delivery: Delivery) -> str:
    """The reason of a dead letter in one word, pushed or pulled alike."""
    letter = PublishedEvent.unpack(delivery.headers).letter
    if letter is not None:
        return letter.reason
    return REASONS[DeadLetterReason(orjson.loads(delivery.headers or b"{}")["ended"]["how"])]


def folder_of(store: Subscription) -> str:
    """The beginning of its blobs' names: namespace, topic and event subscription, as they were spelt."""
    resource = ArmId.parse(store.attributes[ID])
    if resource is None:
        raise ValueError(f"no resource id: {store.attributes[ID]}")
    return "/".join(resource.names)


def text_of(delivery: Delivery, letter: Letter | None) -> str:
    """The text of a dead letter as it waits for its store; without `letter` its headers say how it ended in its queue."""
    headers = orjson.loads(delivery.headers or b"{}")
    published_at = PublishedEvent.unpack(delivery.headers).published_at
    record = _record_of_queue(headers["ended"]) if letter is None else _record_of_push(letter, published_at)
    reason, attempts, result, at = record
    properties = {
        "deadletterreason": reason,
        "deliveryattempts": attempts,
        "deliveryresult": result,
        "publishutc": timestamp(published_at),
        "deliveryattemptutc": timestamp(at),
    }
    return f'{{"deadLetterProperties":{orjson.dumps(properties).decode()},"event":{delivery.body}}}'


def _record_of_queue(ended: dict[str, Any]) -> tuple[str, int, str, int]:
    """The reason, the number of attempts, the result and the moment (ms) that an event ended in its queue with."""
    reason = DeadLetterReason(ended["how"])
    return (
        _REASONS[reason],
        ended["attempts"],
        _REJECTED if reason is DeadLetterReason.REJECTED else _LEFT,
        ended["at"],
    )


def _record_of_push(letter: Letter, published_at: int) -> tuple[str, int, str, int]:
    at = published_at if letter.attempted_at is None else letter.attempted_at
    return _REASONS.get(letter.reason, letter.reason), letter.attempts, letter.result or "", at
