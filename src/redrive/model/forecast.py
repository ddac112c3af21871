"""A forecast in words: the fate of a message that is published into an outage."""

from collections.abc import Iterator

from redrive.model.durations import show_duration
from redrive.model.outage import Jitter, OutageAnswer, OutageEnd, outage
from redrive.model.retry import RetrySchedule


def forecast(schedule: RetrySchedule, attempt_ms: int, outage_ms: int) -> Iterator[str]:
    """Say how it ends by the published waits; then how else it can end, where jitter decides that.

    Args:
        schedule: The schedule.
        attempt_ms: How long each attempt takes.
        outage_ms: How long the endpoint is down, from the publication on.
    """
    published = outage(schedule, attempt_ms, outage_ms)
    yield f"Down for {show_duration(outage_ms)}: {_sentence(published, schedule)}"
    fates = {(published.end, published.attempts)}
    for jitter, adjective in ((Jitter.SHORTEST, "short"), (Jitter.LONGEST, "long")):
        answer = outage(schedule, attempt_ms, outage_ms, jitter)
        if (answer.end, answer.attempts) not in fates:
            fates.add((answer.end, answer.attempts))
            yield f"  with every wait as {adjective} as jitter makes it: {_sentence(answer, schedule)}"


def _sentence(answer: OutageAnswer, schedule: RetrySchedule) -> str:
    when = f"{show_duration(answer.at_ms)} after publication"
    if answer.end is OutageEnd.DELIVERED:
        return f"delivered by attempt {answer.attempts:,}, {when}."
    if answer.end is OutageEnd.SPENT:
        return f"dead-lettered after attempt {answer.attempts:,}, {when}."
    lifetime = show_duration(schedule.expires_after_ms or 0)
    return f"dead-lettered {when}: attempt {answer.attempts + 1:,} falls due past the {lifetime} it may live."
