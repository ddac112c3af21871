"""Dead letters: why an event became one, what is kept of it, and the blob that it is kept in.

A dead letter is written five minutes after the last attempt, so that fewer blobs hold more letters; a store that cannot
be reached for four hours does not get it any more. The members are those that the documentation prints, in its order:
behind an Event Grid event, before the `data` of a custom one, and in lower case within a CloudEvent.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from redrive.azure.eventgrid import outcomes
from redrive.azure.eventgrid.notation import read_text, timestamp, written_text
from redrive.azure.eventgrid.published import Letter, PublishedEvent, as_cloud_event, as_event_grid
from redrive.azure.eventgrid.settings import CLOUD_EVENT_SCHEMA, CUSTOM_INPUT_SCHEMA, DeliverySettings
from redrive.engine.ports import AttemptNote, Batch, Plan
from redrive.engine.ports.facts import Attempted
from redrive.model.attempt import AnswerProfile, AttemptResult, Reason, statuses
from redrive.model.delivery import Delivery
from redrive.model.durations import HOUR_MS, MINUTE_MS, SECOND_MS
from redrive.model.names import id_text
from redrive.model.retry import Phase, RetrySchedule, Stage

DELAY_MS: Final = 5 * MINUTE_MS
TOO_MANY_ATTEMPTS: Final = "MaxDeliveryAttemptsExceeded"
TOO_OLD: Final = "TimeToLiveExceeded"
REFUSED: Final = "UndeliverableDueToClientError"

_SCHEDULE: Final = RetrySchedule(
    (
        Stage(Phase.BACKOFF, 1, 10 * SECOND_MS, 10 * SECOND_MS),
        Stage(Phase.BACKOFF, 1, 30 * SECOND_MS, 30 * SECOND_MS),
        Stage(Phase.BACKOFF, 1, 1 * MINUTE_MS, 1 * MINUTE_MS),
        Stage(Phase.POST_BACKOFF, 48, 5 * MINUTE_MS, 5 * MINUTE_MS),
    ),
    expires_after_ms=4 * HOUR_MS,
)
#: A container that is not there will not be there soon; whatever else a store answers may be mended in four hours.
_ANSWERS: Final = AnswerProfile(refused=frozenset({404}), failed=statuses(range(300, 600), besides=(404,)))
PLAN: Final = Plan(
    _SCHEDULE,
    concurrency_max=4,
    lease_ms=60_000,
    batch=Batch(deliveries_max=1000, bytes_target=4 * 1024 * 1024),
    answers=_ANSWERS,
)


def letter_of(fact: Attempted, settings: DeliverySettings) -> Letter:
    """The reason that a delivery which was given up is a dead letter.

    One that is too old was not tried now, so what came of its last attempt is in the notes of its attempts; one that
    was never tried waited for an endpoint on probation all its life.
    """
    attempt, delivery = fact.attempt, fact.delivery
    result: str | None = outcomes.outcome_of(
        attempt.reason, attempt.status, attempt.response, settings.destination_type
    )
    attempted_at: int | None = fact.at
    reason = REFUSED if attempt.result is AttemptResult.REFUSED else TOO_MANY_ATTEMPTS
    if attempt.reason is Reason.EXPIRED:
        reason, attempted_at = TOO_OLD, None
        result = None if delivery.attempts else outcomes.PROBATION
    return Letter(
        reason=reason,
        attempts=delivery.attempts,
        schema=settings.schema,
        destination_type=settings.destination_type,
        result=result,
        attempted_at=attempted_at,
        backlog=delivery.queue_id,
        message_id=delivery.message_id.hex(),
    )


def reason_of(failure: str, attempts: int, settings: DeliverySettings) -> str:
    """The reason that a dead letter was given up for, from its number of attempts and its last failure.

    That is a reason and a status (`server_error 503`), or `expired`.
    """
    reason, _, status = failure.partition(" ")
    if reason == Reason.EXPIRED:
        return TOO_OLD
    refused_statuses = outcomes.answers_of(settings.destination_type).refused
    is_refused = attempts < settings.attempts_max or (status.isdecimal() and int(status) in refused_statuses)
    return REFUSED if is_refused else TOO_MANY_ATTEMPTS


def with_last_attempt(letter: Letter, notes: Sequence[AttemptNote]) -> Letter:
    """A dead letter with the outcome of its last attempt, if known."""
    if not notes:
        return replace(letter, result=outcomes.ABORTED)
    last = max(notes, key=lambda note: note.number)
    result = outcomes.outcome_of(Reason(last.reason), last.status, last.response, letter.destination_type)
    return replace(letter, result=result, attempted_at=last.at)


def text_of(body: str, published_event: PublishedEvent, letter: Letter) -> str:
    """The text that is kept of a dead letter: its event as it was published, and why it is one."""
    event = read_text(body.encode())
    members = _letter_members(published_event, letter)
    if letter.schema == CLOUD_EVENT_SCHEMA:
        del members["lastDeliveryAttemptTime"]  # the documentation's dead CloudEvent has none
        lower = {name.lower(): value for name, value in members.items()}
        return written_text(as_cloud_event(event, published_event) | lower)
    rendered_event = as_event_grid(event, published_event)
    if letter.schema != CUSTOM_INPUT_SCHEMA:
        return written_text(rendered_event | members)
    inner = rendered_event.pop("data")
    return written_text(rendered_event | members | {"data": inner})


def _letter_members(published_event: PublishedEvent, letter: Letter) -> dict[str, Any]:
    """The members that a dead letter's text has besides its event's."""
    attempted_at = published_event.published_at if letter.attempted_at is None else letter.attempted_at
    return {
        "deadLetterReason": letter.reason,
        "deliveryAttempts": letter.attempts,
        "lastDeliveryOutcome": letter.result,
        "publishTime": timestamp(published_event.published_at),
        "lastDeliveryAttemptTime": timestamp(attempted_at),
    }


def path_of(folder: str, first: Delivery) -> str:
    """The name of the blob that a batch of letters is kept in: `FOLDER/2026/1/2/3/….json`, nothing padded, UTC.

    It follows from the first letter alone, so that a batch which is written again replaces its blob.
    """
    due_at = datetime.fromtimestamp((first.sent_at + DELAY_MS) // 1000, UTC)
    return (
        f"{folder}/{due_at.year}/{due_at.month}/{due_at.day}/{due_at.hour}/{id_text(first.message_id)}.json"
    )
