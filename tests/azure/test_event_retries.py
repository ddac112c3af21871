"""Retries of an event, by the published schedule, status codes and probation; the clock is simulated."""

from itertools import pairwise

import pytest

from redrive.engine.push import late_pushes
from redrive.model.attempt import Attempt, AttemptResult, Reason
from tests.azure.stage import BROKEN, DAY_MS, EVENT, OK, Stage, answer

MINUTE_MS = 60_000
LADDER_SECONDS = [10, 30, 60, 300, 600, 1800, 3600, 10_800, 21_600, 43_200]
JITTER = 1.026  # a wait is up to 2.5 % longer, and begins when the attempt has ended


def is_wait(seconds: float, nominal: float) -> bool:
    return nominal <= seconds <= nominal * JITTER + 0.01


async def test_the_schedule_over_a_day(stage: Stage) -> None:
    """Each tenth failure in a row begins a rest besides, which the waits of the ladder outlast."""
    stage.web.otherwise = BROKEN
    topic = await stage.topic()
    await stage.subscribe(topic, dead_letters=True)
    began = stage.clock.now()
    await stage.publish(topic, EVENT)
    await stage.pass_time(2 * DAY_MS)
    at = stage.web.seconds(began)
    assert len(at) == 11
    assert all(
        is_wait(after - before, nominal)
        for (before, after), nominal in zip(pairwise(at), LADDER_SECONDS, strict=True)
    )
    assert [push_request.headers["aeg-delivery-count"] for _, push_request in stage.web.pushed] == [
        str(n) for n in range(11)
    ]
    (letter,) = stage.letters
    assert (letter["deadLetterReason"], letter["deliveryAttempts"]) == ("TimeToLiveExceeded", 11)


async def test_the_documented_example_makes_six_attempts_in_30_minutes(stage: Stage) -> None:
    """30 minutes to live and ten attempts: six are made, and the event ends when the seventh falls due."""
    stage.web.otherwise = BROKEN
    topic = await stage.topic()
    retry = {"maxDeliveryAttempts": 10, "eventTimeToLiveInMinutes": 30}
    await stage.subscribe(topic, retryPolicy=retry, dead_letters=True)
    began = stage.clock.now()
    await stage.publish(topic, EVENT)
    await stage.pass_time(31 * MINUTE_MS)
    assert len(stage.web.pushed) == 6
    assert not stage.memory.expirations  # it is over its time, and nobody looked yet
    await stage.pass_time(17 * MINUTE_MS)
    assert len(stage.web.pushed) == 6
    (expired,) = stage.memory.expirations
    assert 46 * MINUTE_MS < expired.at - began < 48 * MINUTE_MS
    await stage.pass_time(5 * MINUTE_MS)
    (letter,) = stage.letters
    assert letter["deadLetterReason"] == "TimeToLiveExceeded"
    assert letter["deliveryAttempts"] == 6
    assert letter["lastDeliveryOutcome"] == "Aborted"
    last = stage.web.pushed[-1][0]
    assert stage.timestamp_ms(letter["lastDeliveryAttemptTime"]) == last


async def test_the_attempts_may_end_it_first(stage: Stage) -> None:
    stage.web.otherwise = BROKEN
    topic = await stage.topic()
    retry = {"maxDeliveryAttempts": 5, "eventTimeToLiveInMinutes": 30}
    await stage.subscribe(topic, retryPolicy=retry, dead_letters=True)
    await stage.publish(topic, EVENT)
    await stage.pass_time(30 * MINUTE_MS)
    assert len(stage.web.pushed) == 5
    (letter,) = stage.letters
    assert letter["deadLetterReason"] == "MaxDeliveryAttemptsExceeded"


def http(status: int) -> Attempt:
    """An answer as the web endpoint judges its status alone; the profile is to have the last word."""
    match status // 100:
        case 2:
            return answer(status, AttemptResult.DELIVERED, Reason.ACCEPTED)
        case 3:
            return answer(status, AttemptResult.REFUSED, Reason.REDIRECTED)
        case 4 if status == 429:
            return answer(status, AttemptResult.FAILED, Reason.THROTTLED)
        case 4:
            return answer(status, AttemptResult.REFUSED, Reason.CLIENT_ERROR)
        case _:
            return answer(status)


# status, kind of destination, seconds until the next attempt (None: there is none), lastDeliveryOutcome. The wait is
# the longest of the schedule's first (10 s), the status's floor and the endpoint's rest.
STATUSES: list[tuple[int, str, float | None, str]] = [
    (400, "WebHook", None, "BadRequest"),
    (400, "AzureFunction", None, "BadRequest"),
    (401, "WebHook", None, "Unauthorized"),
    (401, "AzureFunction", 300, "Unauthorized"),
    (403, "WebHook", None, "Forbidden"),
    (403, "AzureFunction", None, "Forbidden"),
    (404, "WebHook", 300, "NotFound"),
    (404, "AzureFunction", 300, "NotFound"),
    (405, "AzureFunction", 600, "InvalidAzureFunctionDestination"),
    (405, "WebHook", 10, "Aborted"),
    (408, "WebHook", 120, "TimedOut"),
    (413, "WebHook", None, "PayloadTooLarge"),
    (413, "AzureFunction", None, "PayloadTooLarge"),
    (429, "WebHook", 10, "Busy"),
    (503, "WebHook", 30, "Busy"),
    (500, "WebHook", 10, "Aborted"),
    (504, "WebHook", 10, "TimedOut"),
    (205, "WebHook", 10, "Aborted"),
    (302, "WebHook", 10, "Aborted"),
    (410, "WebHook", 10, "Aborted"),
]


@pytest.mark.parametrize(("status", "kind", "seconds", "result"), STATUSES)
async def test_each_status_has_its_retry_and_outcome(
    stage: Stage, status: int, kind: str, seconds: float | None, result: str
) -> None:
    topic = await stage.topic()
    retry = {"maxDeliveryAttempts": 2}
    await stage.subscribe(topic, kind=kind, retryPolicy=retry, dead_letters=True)
    stage.web.otherwise = http(status)
    began = stage.clock.now()
    await stage.publish(topic, EVENT)
    await stage.pass_time(60 * MINUTE_MS)
    at = stage.web.seconds(began)
    assert len(at) == (1 if seconds is None else 2)
    assert seconds is None or is_wait(at[1], seconds)
    (letter,) = stage.letters
    assert letter["lastDeliveryOutcome"] == result
    assert letter["deliveryAttempts"] == len(at)
    assert letter["deadLetterReason"] == (
        "UndeliverableDueToClientError" if seconds is None else "MaxDeliveryAttemptsExceeded"
    )


@pytest.mark.parametrize("status", range(200, 205))
async def test_successful_statuses_count_as_delivered(stage: Stage, status: int) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic, dead_letters=True)
    stage.web.otherwise = http(status)
    await stage.publish(topic, EVENT)
    await stage.pass_time(60 * MINUTE_MS)
    assert len(stage.web.pushed) == 1
    assert not stage.letters


# Why there was no answer (or what a destination said of itself), how long the endpoint rests, lastDeliveryOutcome.
REASONS: list[tuple[Reason, float, str]] = [
    (Reason.TIMED_OUT, 10, "TimedOut"),
    (Reason.CONNECTION, 30, "SocketError"),
    (Reason.TLS, 30, "SocketError"),
    (Reason.NAME_NOT_RESOLVED, 300, "ResolutionError"),
    (Reason.DISABLED, 300, "Disabled"),
    (Reason.FULL, 300, "Full"),
    (Reason.MISSING, 300, "NotFound"),
    (Reason.DENIED, 300, "Unauthorized"),
    (Reason.THROTTLED, 10, "Busy"),
]


@pytest.mark.parametrize(("reason", "seconds", "result"), REASONS)
async def test_an_endpoint_on_probation_holds_new_events_with_the_others(
    stage: Stage, reason: Reason, seconds: float, result: str
) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic, retryPolicy={"maxDeliveryAttempts": 1}, dead_letters=True)
    stage.web.script.append(answer(0, AttemptResult.FAILED, reason))
    began = stage.clock.now()
    await stage.publish(topic, EVENT)
    await stage.pass_time(5)
    await stage.publish(topic, EVENT | {"id": "e-2"})
    await stage.pass_time(10 * MINUTE_MS)
    first, second = stage.web.seconds(began)
    assert first == 0
    assert seconds <= second <= seconds + 0.1
    (letter,) = stage.letters
    assert letter["lastDeliveryOutcome"] == result


async def test_a_session_that_is_missing_has_a_name_of_its_own(stage: Stage) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic, kind="ServiceBusQueue", dead_letters=True)
    said = "amqp:not-allowed: The SessionId was not set on a message, and it cannot be sent to the entity."
    stage.web.otherwise = Attempt(AttemptResult.REFUSED, Reason.CLIENT_ERROR, 400, said, 1)
    await stage.publish(topic, EVENT)
    await stage.pass_time(6 * MINUTE_MS)
    (letter,) = stage.letters
    assert letter["lastDeliveryOutcome"] == "SessionQueueNotSupported"


async def test_ten_failures_in_a_row_hold_new_events_too(stage: Stage) -> None:
    stage.web.otherwise = BROKEN
    topic = await stage.topic()
    await stage.subscribe(topic)
    await stage.publish(topic, *(EVENT | {"id": str(number)} for number in range(10)))
    await stage.pass_time(5)
    stage.web.otherwise = OK
    began = stage.clock.now()
    await stage.publish(topic, EVENT | {"id": "new"})
    await stage.pass_time(9 * MINUTE_MS)
    at = stage.web.seconds(began)[10:]
    assert len(at) == 11
    assert min(at) > 55  # all wait for the end of the rest, which is longer than the schedule's first wait


async def test_an_event_that_only_ever_waited_says_so(stage: Stage) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic, retryPolicy={"eventTimeToLiveInMinutes": 1}, dead_letters=True)
    stage.web.script.append(http(404))
    await stage.publish(topic, EVENT)
    await stage.pass_time(5)
    await stage.publish(topic, EVENT | {"id": "e-2"})
    await stage.pass_time(20 * MINUTE_MS)
    letters = {letter["id"]: letter for letter in stage.letters}
    assert letters["e-2"]["lastDeliveryOutcome"] == "Probation"
    assert letters["e-2"]["deliveryAttempts"] == 0
    assert letters["e-1"]["lastDeliveryOutcome"] == "NotFound"
    assert letters["e-1"]["deliveryAttempts"] == 1


async def test_an_attempt_times_out_after_thirty_seconds(stage: Stage) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic)
    stage.web.takes_ms = 300_000
    began = stage.clock.now()
    await stage.publish(topic, EVENT)
    await stage.pass_time(60_000)
    first, second = stage.web.seconds(began)
    assert first == 0
    assert is_wait(second - 30, 10)


async def test_a_late_success_takes_the_retry_back(stage: Stage) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic)
    stage.web.takes_ms = 35_000
    await stage.publish(topic, EVENT)
    await stage.pass_time(10 * MINUTE_MS)
    assert len(stage.web.pushed) == 1


async def test_a_success_after_minutes_takes_back_a_retry_that_is_further_away(stage: Stage) -> None:
    """The fifth attempt would follow the fourth after five minutes."""
    topic = await stage.topic()
    await stage.subscribe(topic)
    stage.web.script.extend([BROKEN] * 3)
    await stage.publish(topic, EVENT)
    await stage.pass_time(90_000)
    assert len(stage.web.pushed) == 3
    stage.web.takes_ms = 170_000
    await stage.pass_time(60 * MINUTE_MS)
    assert len(stage.web.pushed) == 4
    assert stage.web.pushed[-1][1].timeout_ms == 180_000


async def test_a_batch_succeeds_or_fails_together(stage: Stage) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic, destination={"maxEventsPerBatch": 3})
    stage.web.script.append(BROKEN)
    await stage.publish(topic, *(EVENT | {"id": str(number)} for number in range(3)))
    await stage.pass_time(5 * MINUTE_MS)
    ids = sorted(event["id"] for body in stage.web.bodies for event in body)
    assert ids == sorted("012012")


async def test_a_success_within_three_minutes_counts_though_further_attempts_have_begun(stage: Stage) -> None:
    """The first attempt is answered when the second has begun, whose endpoint hangs for longer than it may."""
    topic = await stage.topic()
    await stage.subscribe(topic)
    stage.web.takes_ms = 100_000
    await stage.publish(topic, EVENT)
    await stage.pass_time(60_000)
    assert len(stage.web.pushed) == 2
    stage.web.takes_ms = 400_000
    await stage.pass_time(30 * MINUTE_MS)
    assert len(stage.web.pushed) == 2
    assert [fact.attempt.delivered for fact in stage.memory.attempts] == [False, True]
    assert stage.engine.parts.dispatcher.parts.late_pushes.pushes == 0


async def test_a_success_after_three_minutes_counts_no_more(stage: Stage) -> None:
    topic = await stage.topic()
    await stage.subscribe(topic, retryPolicy={"maxDeliveryAttempts": 3})
    stage.web.takes_ms = 181_000
    await stage.publish(topic, EVENT)
    await stage.pass_time(30 * MINUTE_MS)
    assert len(stage.web.pushed) == 3
    assert not any(fact.attempt.delivered for fact in stage.memory.attempts)


async def test_no_more_connections_are_held_for_late_answers_than_their_limit(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_pushes, "PUSHES_MAX", 2)
    topic = await stage.topic()
    await stage.subscribe(topic)
    stage.web.takes_ms = 170_000
    await stage.publish(topic, *(EVENT | {"id": str(number)} for number in range(5)))
    await stage.pass_time(45_000)
    assert stage.engine.parts.dispatcher.parts.late_pushes.pushes == 2
    await stage.pass_time(10 * MINUTE_MS)
    assert stage.engine.parts.dispatcher.parts.late_pushes.pushes == 0


async def test_a_late_success_is_met_by_the_next_attempt_which_pushes_nothing(stage: Stage) -> None:
    """The second attempt fails while the first one's push is under way; the third would be half a minute later."""
    topic = await stage.topic()
    await stage.subscribe(topic)
    stage.web.takes_ms = 55_000
    await stage.publish(topic, EVENT)
    await stage.pass_time(35_000)
    stage.web.takes_ms = 0
    stage.web.script.append(BROKEN)
    await stage.pass_time(30 * MINUTE_MS)
    assert len(stage.web.pushed) == 2
    assert [fact.attempt.delivered for fact in stage.memory.attempts] == [False, False, True]
