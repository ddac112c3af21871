"""Entering: a delivery as it enters the queue that it goes to next."""

from dataclasses import replace
from typing import Any

from redrive.model.delivery import DeadLetterReason, Delivery, Outcome
from redrive.model.names import id_text


def enter(
    delivery: Delivery,
    outcome: Outcome,
    queue_id: int,
    seq: int,
    now: int,
    *,
    ordered: bool,
    as_new: bool = False,
    failure: str | None = None,
) -> Delivery:
    """The delivery as it enters the queue `queue_id`, having ended like this in its own.

    Args:
        delivery: As it left its queue.
        outcome: DEAD_LETTERED, or what it is that hands it over.
        queue_id: Where it goes.
        seq: Its place of arrival there.
        now: ms.
        ordered: Whether that queue keeps the order of groups.
        as_new: A dead letter is sent there like any message; else its age and its attempts go on.
        failure: Why a dead letter died.
    """
    if outcome is not Outcome.DEAD_LETTERED:
        return as_handed_over(delivery, queue_id, seq, now)
    if as_new:
        return as_sent_letter(delivery, queue_id, seq, now, failure)
    return as_dead_letter(delivery, queue_id, seq, now, ordered=ordered, failure=failure)


def as_dead_letter(
    delivery: Delivery, queue_id: int, seq: int, now: int, *, ordered: bool, failure: str | None = None
) -> Delivery:
    """The delivery as it enters the dead-letter queue `queue_id`.

    Id, body, send time and the count of attempts stay. The retention period goes on where it was, but begins
    anew in an ordered queue, where also the message id becomes the deduplication id, so that equal contents do
    not swallow each other (SQS developer guide, dead-letter queues).
    """
    return replace(
        delivery,
        queue_id=queue_id,
        seq=seq,
        available_at=now,
        token=None,
        enqueued_at=now if ordered else delivery.enqueued_at,
        deduplication_id=id_text(delivery.message_id) if ordered else delivery.deduplication_id,
        origin=delivery.queue_id,
        failure=failure,
    )


def as_handed_over(delivery: Delivery, queue_id: int, seq: int, now: int, **others: Any) -> Delivery:
    """The delivery as it enters the queue that it was pushed to: new there, and never received yet.

    Args:
        delivery: As it left its queue.
        queue_id: Where it goes.
        seq: Its place of arrival there.
        now: ms.
        others: What else changes.
    """
    new: dict[str, Any] = {
        "queue_id": queue_id,
        "seq": seq,
        "available_at": now,
        "attempts": 0,
        "token": None,
        "enqueued_at": now,
        "sent_at": now,
        "first_claimed_at": None,
        "failure": None,
    }
    return replace(delivery, **new | others)


def as_sent_letter(
    delivery: Delivery, queue_id: int, seq: int, now: int, failure: str | None = None
) -> Delivery:
    """The delivery as it enters the dead-letter queue `queue_id` where letters are sent like any message.

    It is new there, and never received yet; what it went through is in the notes of its attempts. So SNS does
    (recorded), and so it must be: a schedule of 23 days outlasts the 14 that a queue may keep a message for.
    """
    return as_handed_over(delivery, queue_id, seq, now, origin=delivery.queue_id, failure=failure)


def as_copy(
    delivery: Delivery, queue_id: int, seq: int, now: int, delay_ms: int, end: DeadLetterReason
) -> Delivery:
    """The copy of a dead letter that enters the backlog `queue_id`, to be pushed from there.

    Its headers, a JSON object, get a first member that says how it ended:
    `"ended":{"how":"exhausted","attempts":3,"at":1700000000000}`. `at` is when its consumer had it last, as far as
    that is known: at the first claim where there was one alone, else by the end of the last.
    """
    first, attempts = delivery.first_claimed_at, delivery.attempts
    at = delivery.sent_at if first is None else first if attempts == 1 else min(delivery.available_at, now)
    rest = (delivery.headers or b"{}")[1:]
    comma = b"" if rest == b"}" else b","
    ended = b'{"ended":{"how":"%b","attempts":%d,"at":%d}' % (end.encode(), attempts, at)
    return as_handed_over(
        delivery,
        queue_id,
        seq,
        now,
        available_at=now + delay_ms,
        group_id=None,
        deduplication_id=None,
        headers=ended + comma + rest,
    )


def as_redriven(
    delivery: Delivery, queue_id: int, seq: int, now: int, message_id: bytes, body: str | None = None
) -> Delivery:
    """The delivery as it enters `queue_id` by a redrive: a new message with the old content, or with another body."""
    text = delivery.body if body is None else body
    return as_handed_over(delivery, queue_id, seq, now, message_id=message_id, origin=None, body=text)


def as_set_aside(delivery: Delivery, queue_id: int, seq: int, now: int) -> Delivery:
    """The dead letter as it enters `queue_id` beside its dead-letter queue: what it is and why it died stays with it.

    Its retention begins anew: it was set aside so that it is not lost yet.
    """
    return replace(delivery, queue_id=queue_id, seq=seq, available_at=now, token=None, enqueued_at=now)
