"""The effect of an outage on a retry schedule: the attempt that delivers, or the moment of giving up."""

import enum
from dataclasses import dataclass

from redrive.model.retry import RetrySchedule, Step


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


class Jitter(enum.StrEnum):
    """The waits that are reckoned with."""

    PUBLISHED = "published"
    SHORTEST = "shortest"
    LONGEST = "longest"

    def wait_ms(self, step: Step) -> int:
        """The wait of a retry."""
        if self is Jitter.PUBLISHED:
            return step.nominal_ms
        return step.earliest_ms if self is Jitter.SHORTEST else step.latest_ms


def outage(
    schedule: RetrySchedule, attempt_ms: int, outage_ms: int, jitter: Jitter = Jitter.PUBLISHED
) -> OutageAnswer:
    """Follow one message whose endpoint is down from the first attempt on.

    An attempt fails when it begins before the outage is over. The next wait runs from the failure, not from
    the attempt's beginning, so attempts that time out (15 s, say) stretch the schedule. Attempts after equal waits are
    reckoned together: a schedule of 100,016 costs no more than one of 20.

    Args:
        schedule: The schedule under which it is retried.
        attempt_ms: How long each attempt takes, failed or not.
        outage_ms: How long the endpoint is down.
        jitter: Which waits are reckoned with.
    """
    lifetime_ms = schedule.expires_after_ms
    end_ms = outage_ms if lifetime_ms is None else min(outage_ms, lifetime_ms)
    due_at, attempt = 0, 1
    for step, retries in schedule.alike():
        if due_at >= end_ms:
            break
        period_ms = attempt_ms + jitter.wait_ms(step)
        failed = min(retries, -(-(end_ms - due_at) // period_ms)) if period_ms else retries
        due_at, attempt = due_at + failed * period_ms, attempt + failed
    if schedule.expired(0, due_at):
        return OutageAnswer(OutageEnd.EXPIRED, attempt - 1, due_at)
    end = OutageEnd.DELIVERED if due_at >= outage_ms else OutageEnd.SPENT
    return OutageAnswer(end, attempt, due_at + attempt_ms)
