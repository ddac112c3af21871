"""The effect of an outage on a retry schedule: the attempt that delivers, or the moment of giving up."""

import enum
import random
from dataclasses import dataclass

from redrive.model.retry import RetrySchedule


class OutageEnd(enum.StrEnum):
    """The end of a delivery that began in an outage."""

    DELIVERED = "delivered"
    SPENT = "spent"  # the last retry failed within the outage
    EXPIRED = "expired"  # the next attempt fell due after the message's time to live


@dataclass(frozen=True, slots=True)
class OutageAnswer:
    """The fate of the message.

    Attributes:
        end: How it ended.
        attempts: Attempts made; for a delivered message the last of them succeeded.
        at_ms: When that was known, counted from the first attempt: the end of the last attempt, or for an
            expired message the moment at which the attempt that was not made fell due.
    """

    end: OutageEnd
    attempts: int
    at_ms: int


def outage(
    schedule: RetrySchedule, attempt_ms: int, outage_ms: int, chance: random.Random | None = None
) -> OutageAnswer:
    """Follow one message whose endpoint is down from the first attempt on.

    An attempt fails when it begins before the outage is over. The next wait runs from the failure, not from
    the attempt's beginning, so attempts that time out (15 s, say) stretch the schedule.

    Args:
        schedule: The schedule under which it is retried.
        attempt_ms: How long each attempt takes, failed or not.
        outage_ms: How long the endpoint is down.
        chance: The jitter; None for the published waits.
    """
    due_at, attempt = 0, 1
    while True:
        if schedule.expired(0, due_at):
            return OutageAnswer(OutageEnd.EXPIRED, attempt - 1, due_at)
        ended_at = due_at + attempt_ms
        if due_at >= outage_ms:
            return OutageAnswer(OutageEnd.DELIVERED, attempt, ended_at)
        delay_ms = schedule.delay_ms(attempt, chance) if chance else schedule.nominal_ms(attempt)
        if delay_ms is None:
            return OutageAnswer(OutageEnd.SPENT, attempt, ended_at)
        due_at, attempt = ended_at + delay_ms, attempt + 1
