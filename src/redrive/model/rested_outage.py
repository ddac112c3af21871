"""The effect of an outage where the endpoint rests: few attempts fail, and the others are made after the last rest.

Reckoned with attempts made after one another. Those that are under way when the first rest begins fail besides.
"""

from dataclasses import dataclass

from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.circuit import CircuitPolicy, OpenCircuit, after_failure
from redrive.model.outage import OutageAnswer, OutageEnd
from redrive.model.retry import RetrySchedule

#: The ways of failing that an outage may have, by name. Those without a rest of their own rest after ten in a row.
FAILURES: dict[str, Attempt] = {
    "503": Attempt(AttemptResult.FAILED, Reason.SERVER_ERROR, 503, "", 0),
    "500": Attempt(AttemptResult.FAILED, Reason.SERVER_ERROR, 500, "", 0),
    "timeout": Attempt(AttemptResult.FAILED, Reason.TIMED_OUT, 0, "", 0),
    "connection": Attempt(AttemptResult.FAILED, Reason.CONNECTION, 0, "", 0),
}


@dataclass(frozen=True, slots=True)
class RestedOutage:
    """An outage as an endpoint's rests make it.

    Attributes:
        failures: Attempts that failed in all, however many messages waited.
        served_at_ms: When the first delivery is taken, counted from the outage's beginning; the others follow it.
        given_up: At most so many deliveries were given up: each has taken all its attempts from those that failed.
        alone: The fate of a message that waits alone, so that each attempt is one of its own.
    """

    failures: int
    served_at_ms: int
    given_up: int
    alone: OutageAnswer


def outage_with_rests(
    schedule: RetrySchedule, policy: CircuitPolicy, failure: Attempt, attempt_ms: int, outage_ms: int
) -> RestedOutage:
    """Follow an endpoint that is down from the first attempt on, and rests meanwhile.

    Args:
        schedule: The schedule under which its deliveries are retried.
        policy: The rules of its rests.
        failure: How each attempt fails.
        attempt_ms: How long each attempt takes, failed or not.
        outage_ms: How long the endpoint is down.
    """
    failures, at, circuit = 0, 0, None
    while at < outage_ms:
        failures += 1
        circuit = after_failure(policy, circuit, failures, failure, at + attempt_ms)
        at = _next_at(circuit, at + attempt_ms)
    alone = _alone(schedule, policy, failure, attempt_ms, outage_ms)
    return RestedOutage(failures, at + attempt_ms, failures // (schedule.retries_max + 1), alone)


def _alone(
    schedule: RetrySchedule, policy: CircuitPolicy, failure: Attempt, attempt_ms: int, outage_ms: int
) -> OutageAnswer:
    at, attempt, circuit = 0, 1, None
    while at < outage_ms:
        ended_at = at + attempt_ms
        wait_ms = schedule.nominal_ms(attempt)
        if wait_ms is None:
            return OutageAnswer(OutageEnd.SPENT, attempt, ended_at)
        circuit = after_failure(policy, circuit, attempt, failure, ended_at)
        at, attempt = _next_at(circuit, ended_at + wait_ms), attempt + 1
        if schedule.expired(0, at):
            return OutageAnswer(OutageEnd.EXPIRED, attempt - 1, at)
    return OutageAnswer(OutageEnd.DELIVERED, attempt, at + attempt_ms)


def _next_at(circuit: OpenCircuit | None, at: int) -> int:
    return at if circuit is None else max(at, circuit.until)
