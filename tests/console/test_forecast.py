"""Forecasts of deliveries: the attempts that are left, and when a message is given up."""

from dataclasses import replace

import pytest

from redrive.console.forecast import Forecast, forecast
from redrive.model.delivery import Delivery
from redrive.model.retry import Phase, RetrySchedule, Stage

NOW = 1_000_000
#: Attempts 2 and 3 follow at once and after 10 s; 4 and 5 after 20 s each.
SCHEDULE = RetrySchedule(
    (
        Stage(Phase.IMMEDIATE, 1, 0, 0),
        Stage(Phase.PRE_BACKOFF, 1, 10_000, 10_000),
        Stage(Phase.POST_BACKOFF, 2, 20_000, 20_000),
    )
)
WAITING = Delivery(1, 1, NOW, 0, None, NOW, NOW, None, bytes(16), None, None, None, None, "")


@pytest.mark.parametrize(
    ("attempts", "available_at", "in_flight", "held_until", "expected"),
    [
        (0, NOW, False, 0, (1, 5, NOW, NOW + 50_000)),
        (2, NOW + 3_000, False, 0, (3, 5, NOW + 3_000, NOW + 43_000)),
        (2, NOW + 3_000, True, 0, (2, 5, NOW, NOW + 50_000)),
        (2, NOW + 3_000, False, NOW + 60_000, (3, 5, NOW + 60_000, NOW + 100_000)),
        (4, NOW, False, 0, (5, 5, NOW, NOW)),
    ],
)
def test_the_attempts_that_are_left_end_then(
    attempts: int, available_at: int, in_flight: bool, held_until: int, expected: tuple[int, int, int, int]
) -> None:
    delivery = replace(WAITING, attempts=attempts, available_at=available_at)
    answer = forecast(SCHEDULE, delivery, NOW, in_flight=in_flight, held_until=held_until)
    assert answer == Forecast(*expected, expires=False)


def test_a_message_whose_time_ends_first_expires() -> None:
    schedule = replace(SCHEDULE, expires_after_ms=30_000)
    assert forecast(schedule, WAITING, NOW, in_flight=False) == Forecast(
        1, 5, NOW, NOW + 30_000, expires=True
    )
