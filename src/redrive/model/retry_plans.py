"""The published retry schedules that are not configurable, each with its ladder, and what each is the schedule of.

Where a plan's owner may change a limit, `dataclasses.replace` makes the changed plan:
`replace(EVENT_WEBHOOK, attempts_max=5, expires_after_ms=30 * MINUTE_MS)`.
"""

from dataclasses import dataclass
from typing import Final

from redrive.model.durations import HOUR_MS, MINUTE_MS, SECOND_MS
from redrive.model.retry import Phase, RetryCurve, RetrySchedule, Stage

# Queues, functions and delivery streams of the same operator. The published 100,015 attempts are the retries:
# 3 + 2 + 10 + 100,000. Nominal total 2,000,049.7 s, 23.15 days, published as 23.
#
#   phase         retries   wait          done after
#   immediate           3   0             0 s
#   pre-backoff         2   1 s           2 s
#   backoff            10   1 s → 20 s    49.7 s        1  1.04  1.11  1.26  1.56  2.15  3.34  5.72  10.5  20
#   post-backoff  100,000   20 s          23.15 d
MANAGED_ENDPOINT: Final = RetrySchedule(
    (
        Stage(Phase.IMMEDIATE, 3, 0, 0),
        Stage(Phase.PRE_BACKOFF, 2, 1 * SECOND_MS, 1 * SECOND_MS),
        Stage(Phase.BACKOFF, 10, 1 * SECOND_MS, 20 * SECOND_MS, RetryCurve.EXPONENTIAL),
        Stage(Phase.POST_BACKOFF, 100_000, 20 * SECOND_MS, 20 * SECOND_MS),
    )
)

# Mail, text messages, mobile push; also a delivery stream that throttles. Published as 50 attempts in 6 hours:
# 2 + 10 + 38 retries; the post-backoff alone is 6 h 20 min, so the 6 hours are rounded.
#
#   phase         retries   wait           done after
#   pre-backoff         2   10 s           20 s
#   backoff            10   10 s → 600 s   21 min 30 s  10  11.2  13.5  18.1  27.3  45.8  82.7  157  304  600
#   post-backoff       38   600 s          6 h 41 min 30 s
CUSTOMER_ENDPOINT: Final = RetrySchedule(
    (
        Stage(Phase.PRE_BACKOFF, 2, 10 * SECOND_MS, 10 * SECOND_MS),
        Stage(Phase.BACKOFF, 10, 10 * SECOND_MS, 600 * SECOND_MS, RetryCurve.EXPONENTIAL),
        Stage(Phase.POST_BACKOFF, 38, 600 * SECOND_MS, 600 * SECOND_MS),
    )
)

# A webhook whose owner asked for nothing else: 20 s, 20 s, 20 s. SNS completes partial policies from this stage.
HTTP_DEFAULT: Final = RetrySchedule((Stage(Phase.BACKOFF, 3, 20 * SECOND_MS, 20 * SECOND_MS),))

# Events pushed to a subscriber. The waits are delays between attempts, which is one of the two readings of the
# published table; its own check (30 minutes to live: at most 6 attempts) holds. At the default 24 hours to
# live the twelfth attempt falls due after the end, so eleven are made. Each wait is a minimum ("10 s or more"):
# jitter only lengthens.
#
#   attempt   1    2     3     4      5      6       7       8        9        10        11         12
#   wait      -    10 s  30 s  1 min  5 min  10 min  30 min  1 h      3 h      6 h       12 h       12 h …
#   at        0    10 s  40 s  1:40   6:40   16:40   46:40   1:46:40  4:46:40  10:46:40  22:46:40   34:46:40
_EVENT_LADDER_MS: Final = (
    10 * SECOND_MS,
    30 * SECOND_MS,
    1 * MINUTE_MS,
    5 * MINUTE_MS,
    10 * MINUTE_MS,
    30 * MINUTE_MS,
    1 * HOUR_MS,
    3 * HOUR_MS,
    6 * HOUR_MS,
)
_EVENT_ATTEMPTS_MAX: Final = 30
EVENT_WEBHOOK: Final = RetrySchedule(
    (
        *(Stage(Phase.BACKOFF, 1, wait_ms, wait_ms) for wait_ms in _EVENT_LADDER_MS),
        Stage(
            Phase.POST_BACKOFF, _EVENT_ATTEMPTS_MAX - 1 - len(_EVENT_LADDER_MS), 12 * HOUR_MS, 12 * HOUR_MS
        ),
    ),
    attempts_max=_EVENT_ATTEMPTS_MAX,
    expires_after_ms=24 * HOUR_MS,
    earlier_permille=0,
    later_permille=25,
)

# An asynchronous invocation whose code failed: after 1 min, after 2 min more; given up at the age of 6 hours.
FUNCTION_ERROR: Final = RetrySchedule(
    (
        Stage(Phase.BACKOFF, 1, 1 * MINUTE_MS, 1 * MINUTE_MS),
        Stage(Phase.BACKOFF, 1, 2 * MINUTE_MS, 2 * MINUTE_MS),
    ),
    attempts_max=3,
    expires_after_ms=6 * HOUR_MS,
    earlier_permille=0,
)

# An asynchronous invocation that was throttled, or that this server could not carry out: 1 s, 2 s, 4 s … up to 5 minutes,
# for as long as its age allows; these attempts do not count in the schedule above.
_BUSY_MS_MAX: Final = 5 * MINUTE_MS
_DOUBLED_MS: Final = tuple(2**power * SECOND_MS for power in range(9))  # 1 s to 256 s
FUNCTION_BUSY: Final = RetrySchedule(
    (
        *(Stage(Phase.BACKOFF, 1, wait_ms, wait_ms) for wait_ms in _DOUBLED_MS),
        Stage(Phase.POST_BACKOFF, 1_000, _BUSY_MS_MAX, _BUSY_MS_MAX),
    ),
    earlier_permille=0,
)


@dataclass(frozen=True, slots=True)
class RetryPlan:
    """A schedule, and what it is the schedule of."""

    title: str  # For people
    schedule: RetrySchedule  # When failed deliveries are tried again
    receives_per_second_max: int | None = None  # The throttle that goes with it; None for none


#: The schedules that are not configurable, by the names that `redrive schedule --plan` takes.
PLANS: Final = {
    "managed": RetryPlan("Queues, functions and delivery streams", MANAGED_ENDPOINT),
    "customer": RetryPlan("Mail, text messages and mobile push", CUSTOMER_ENDPOINT),
    "http": RetryPlan("HTTP/S without a delivery policy", HTTP_DEFAULT),
    "event-grid": RetryPlan("Event Grid without a retry policy", EVENT_WEBHOOK),
    "function": RetryPlan("A function that fails, invoked asynchronously", FUNCTION_ERROR),
}
