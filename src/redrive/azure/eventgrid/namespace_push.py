"""Push delivery of events of a namespace's topic.

The published moments are counted from the first attempt: "0, 10s, 30s, 1m, 5m, 10m, 15m, 20m", so these are the waits
between them:

    attempt   1    2     3     4     5      6      7 to 10
    wait      -    10 s  20 s  30 s  4 min  5 min  5 min each
    at        0    10 s  30 s  1 min 5 min  10 min 15 min …

What is refused for good is 400, 401, 403, 404, 413 and 414. The page that has this list ("Message push delivery and
retry with namespace topics") counts time-outs and failing connections among it as well, and in its next table says that
408 is tried again; here they are tried again, since the event is lost otherwise.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Final

from redrive.azure.eventgrid import outcomes, push_requests
from redrive.azure.eventgrid.settings import DeliverySettings, topic_settings
from redrive.engine.ports import Batch, Plan
from redrive.model.attempt import AnswerProfile, statuses
from redrive.model.queue import DAY_MS
from redrive.model.retry import Phase, RetrySchedule, Stage
from redrive.model.retry_plans import MINUTE_MS, SECOND_MS
from redrive.model.topic import Topic

ATTEMPTS_MAX: Final = 10
_WAITS_MS: Final = (10 * SECOND_MS, 20 * SECOND_MS, 30 * SECOND_MS, 4 * MINUTE_MS)
_SCHEDULE: Final = RetrySchedule(
    (
        *(Stage(Phase.BACKOFF, 1, wait_ms, wait_ms) for wait_ms in _WAITS_MS),
        Stage(Phase.POST_BACKOFF, ATTEMPTS_MAX - 1 - len(_WAITS_MS), 5 * MINUTE_MS, 5 * MINUTE_MS),
    ),
    earlier_permille=0,
    later_permille=25,
)
_DELIVERED: Final = statuses(range(200, 205))
_REFUSED: Final = statuses(400, 401, 403, 404, 413, 414)
_ANSWERS: Final = AnswerProfile(
    _DELIVERED, _REFUSED, statuses(range(100, 600), besides=_DELIVERED | _REFUSED), {408: 2 * MINUTE_MS}
)
_PATIENCE_MS: Final = 30_000
_LEASE_MS: Final = 60_000


def plan(topic: Topic, settings: DeliverySettings) -> Plan:
    """The plan for pushing to a subscription; an event lives no longer than its topic keeps it."""
    kept_ms = (topic_settings(topic).retention_days or 1) * DAY_MS
    to_live_ms = min(settings.minutes_to_live * MINUTE_MS, kept_ms)
    return _plan(settings.destination_type, settings.attempts_max, to_live_ms, settings.batch)


@lru_cache(maxsize=1024)
def _plan(destination_type: str, attempts_max: int, to_live_ms: int, batch: Batch) -> Plan:
    return Plan(
        replace(_SCHEDULE, attempts_max=attempts_max, expires_after_ms=to_live_ms),
        lease_ms=_LEASE_MS,
        batch=batch,
        answers=_ANSWERS,
        patience_ms=_PATIENCE_MS,
        late_ms=push_requests.TIMEOUT_MS,
        circuit=outcomes.probation_of(destination_type),
    )
