"""Forecasts: when the attempts at a waiting delivery end, if each of them fails."""

from typing import NamedTuple

from redrive.model.delivery import Delivery
from redrive.model.retry import RetrySchedule


class Forecast(NamedTuple):
    """The attempts that a delivery still has."""

    attempt: int  # Number of the next attempt, or of the one that is under way
    attempts: int  # Number of the last
    next_at: int  # When the next is due (ms)
    ends_at: int  # When it is given up at the earliest (ms): attempts take time too, and jitter changes waits a little
    expires: bool  # Whether it is given up because its time is over, and not for want of attempts


def forecast(
    schedule: RetrySchedule, delivery: Delivery, now: int, *, in_flight: bool, held_until: int = 0
) -> Forecast:
    """The attempts of a delivery that fails from now on.

    Args:
        schedule: The schedule that it is tried by.
        delivery: As it waits; an attempt that is under way is counted.
        now: The time (ms).
        in_flight: Whether an attempt is under way.
        held_until: When the circuit breaker lets its endpoint be tried again (ms); 0: it is closed.
    """
    attempt = max(1, delivery.attempts + (not in_flight))
    next_at = now if in_flight else max(now, delivery.available_at, held_until)
    last_at = next_at + schedule.remaining_ms(attempt)
    attempts = max(attempt, schedule.retries_max + 1)
    lives_ms = schedule.expires_after_ms
    if lives_ms is not None and delivery.sent_at + lives_ms < last_at:
        return Forecast(attempt, attempts, next_at, max(now, delivery.sent_at + lives_ms), expires=True)
    return Forecast(attempt, attempts, next_at, last_at, expires=False)
