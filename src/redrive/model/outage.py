"""The effect of an outage on a retry schedule: the attempt that delivers, or the moment of giving up."""

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.circuit import CircuitPolicy, OpenCircuit, after_failure
from redrive.model.durations import show_duration
from redrive.model.retry import RetrySchedule, Step


class OutageEnd(enum.StrEnum):
    """The end of a delivery that began in an outage."""

    DELIVERED = "delivered"
    SPENT = "spent"  # the last retry failed within the outage
    EXPIRED = "expired"  # the next attempt fell due after the message's time to live


@dataclass(frozen=True, slots=True)
class OutageAnswer:
    """The fate of the message."""

    end: OutageEnd  # How it ended
    attempts: int  # Attempts made; for a delivered message the last of them succeeded
    # When that was known, counted from the first attempt: the end of the last attempt, or for an expired
    # message the moment at which the attempt that was not made fell due.
    at_ms: int


class Jitter(enum.StrEnum):
    """The waits that a forecast assumes: as published, or the shortest or longest that jitter makes."""

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
        jitter: Which waits it assumes.
    """
    lifetime_ms = schedule.expires_after_ms
    end_ms = outage_ms if lifetime_ms is None else min(outage_ms, lifetime_ms)
    due_at, attempt = 0, 1
    for step, retries in schedule.equal_waits():
        if due_at >= end_ms:
            break
        period_ms = attempt_ms + jitter.wait_ms(step)
        failures = retries
        if period_ms:
            periods_left = -(-(end_ms - due_at) // period_ms)  # rounded up
            failures = min(retries, periods_left)
        due_at, attempt = due_at + failures * period_ms, attempt + failures
    if schedule.expired(0, due_at):
        return OutageAnswer(OutageEnd.EXPIRED, attempt - 1, due_at)
    end = OutageEnd.DELIVERED if due_at >= outage_ms else OutageEnd.SPENT
    return OutageAnswer(end, attempt, due_at + attempt_ms)


# ---- with a circuit breaker ----------------------------------------------------------------------------------------

#: The ways of failing that an outage may have, by name. Those without a time of their own open the breaker after ten.
FAILURES: dict[str, Attempt] = {
    "503": Attempt(AttemptResult.FAILED, Reason.SERVER_ERROR, 503, ""),
    "500": Attempt(AttemptResult.FAILED, Reason.SERVER_ERROR, 500, ""),
    "timeout": Attempt(AttemptResult.FAILED, Reason.TIMED_OUT, 0, ""),
    "connection": Attempt(AttemptResult.FAILED, Reason.CONNECTION, 0, ""),
}


@dataclass(frozen=True, slots=True)
class BreakerOutage:
    """An outage as a circuit breaker sees it: few attempts fail, the others are made after the last probe."""

    failures: int  # Attempts that failed in all, however many messages waited
    # When the first delivery is taken, counted from the outage's beginning; the others follow it.
    served_at_ms: int
    # The most deliveries that can have been given up: each needs as many failures as it has attempts.
    given_up: int
    alone: OutageAnswer  # The fate of a message that waits alone, so that each attempt is one of its own


def outage_with_breaker(
    schedule: RetrySchedule, policy: CircuitPolicy, failure: Attempt, attempt_ms: int, outage_ms: int
) -> BreakerOutage:
    """Follow an endpoint that is down from the first attempt on, and whose circuit breaker is open meanwhile.

    It assumes one attempt at a time; those under way when the breaker first opens fail in addition.

    Args:
        schedule: The schedule under which its deliveries are retried.
        policy: The rules of its circuit breaker.
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
    return BreakerOutage(failures, at + attempt_ms, failures // (schedule.retries_max + 1), alone)


def _alone(
    schedule: RetrySchedule, policy: CircuitPolicy, failure: Attempt, attempt_ms: int, outage_ms: int
) -> OutageAnswer:
    """Follow a message that waits alone: an attempt that falls due while the breaker is open waits for its end."""
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


# A forecast in words: the fate of a message that is published into an outage.


def forecast(schedule: RetrySchedule, attempt_ms: int, outage_ms: int) -> Iterator[str]:
    """Say how an outage from the publication on ends by the published waits; then how else it can, by jitter."""
    nominal = outage(schedule, attempt_ms, outage_ms)
    yield f"Down for {show_duration(outage_ms)}: {_sentence(nominal, schedule)}"
    fates = {(nominal.end, nominal.attempts)}
    for jitter, adjective in ((Jitter.SHORTEST, "short"), (Jitter.LONGEST, "long")):
        answer = outage(schedule, attempt_ms, outage_ms, jitter)
        if (answer.end, answer.attempts) not in fates:
            fates.add((answer.end, answer.attempts))
            yield f"  with every wait as {adjective} as jitter makes it: {_sentence(answer, schedule)}"


def _sentence(answer: OutageAnswer, schedule: RetrySchedule) -> str:
    """The end of a delivery in words."""
    when = f"{show_duration(answer.at_ms)} after publication"
    if answer.end is OutageEnd.DELIVERED:
        return f"delivered by attempt {answer.attempts:,}, {when}."
    if answer.end is OutageEnd.SPENT:
        return f"dead-lettered after attempt {answer.attempts:,}, {when}."
    lifetime = show_duration(schedule.expires_after_ms or 0)
    return (
        f"dead-lettered {when}: attempt {answer.attempts + 1:,} is due after the time to live of {lifetime}."
    )
