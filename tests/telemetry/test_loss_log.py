"""Lines of the server's log for deliveries that were not made, and how often they come."""

import json
import logging
from dataclasses import replace

import pytest

from redrive.cli.log_format import JsonFormatter, TextFormatter
from redrive.engine.ports.facts import Undelivered
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.delivery import DeadLetterReason, Outcome
from redrive.telemetry import loss_log
from redrive.telemetry.loss_log import LossLog
from redrive.testing import SimulatedClock
from tests.telemetry.facts import ACCEPTED, FAILED, attempted, queue

MINUTE_MS = 60_000
MISSING = Attempt(AttemptResult.REFUSED, Reason.MISSING, 400, "")


def undelivered(
    outcome: Outcome = Outcome.DROPPED,
    attempt: Attempt = FAILED,
    handover: Attempt | None = None,
    *,
    confirmation: bool = False,
    name: str = "m-1",
) -> Undelivered:
    last = replace(attempted(0, attempt, outcome), identify=lambda _: name)
    return Undelivered(last, handover, confirmation)


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
def log(clock: SimulatedClock) -> LossLog:
    return LossLog(clock)


async def pass_time(clock: SimulatedClock, milliseconds: int) -> None:
    async def quiet() -> None:
        pass

    await clock.advance(milliseconds, quiet)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The log as text, without time, level and logger."""
    return [TextFormatter().format(record).split(" ", 3)[3] for record in caplog.records]


ABOUT = "topic=000000000000/us-east-1/orders subscription=s message_id=m-1"


@pytest.mark.parametrize(
    ("fact", "line"),
    [
        (undelivered(), f"delivery.dropped {ABOUT} reason=server_error status=503 attempts=1 said=busy"),
        (
            replace(undelivered(), dead_letter=True),
            f"delivery.dead_lettered {ABOUT} reason=server_error status=503 attempts=1 said=busy",
        ),
        (
            undelivered(Outcome.DEAD_LETTERED, handover=ACCEPTED),
            (
                f"delivery.dead_lettered {ABOUT} reason=server_error status=503 attempts=1"
                " queue=000000000000/us-east-1/dead said=busy"
            ),
        ),
        (
            undelivered(handover=MISSING),
            (
                f"delivery.dropped {ABOUT} reason=server_error status=503 attempts=1"
                " queue=000000000000/us-east-1/dead queue_reason=missing said=busy"
            ),
        ),
        (
            undelivered(Outcome.EXPIRED, Attempt(AttemptResult.REFUSED, Reason.EXPIRED, 0, "")),
            f"delivery.expired {ABOUT} reason=expired status=0 attempts=1",
        ),
        (
            undelivered(confirmation=True),
            f"subscription.unconfirmed {ABOUT} reason=server_error status=503 attempts=1 said=busy",
        ),
    ],
)
async def test_each_end_has_a_line_of_its_own(
    log: LossLog, caplog: pytest.LogCaptureFixture, fact: Undelivered, line: str
) -> None:
    log.undelivered(fact)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert lines(caplog) == [line]


async def test_a_line_is_one_line_whatever_a_publisher_or_an_endpoint_says(
    log: LossLog, caplog: pytest.LogCaptureFixture
) -> None:
    said = Attempt(AttemptResult.REFUSED, Reason.CLIENT_ERROR, 400, "no\nWARNING all is lost" + 300 * "x", 1)
    log.undelivered(undelivered(attempt=said, name="a b\nc"))
    (message,) = lines(caplog)
    assert "\n" not in message
    assert r'message_id="a b\nc"' in message
    assert len(message) < 500
    (event,) = (json.loads(JsonFormatter().format(record)) for record in caplog.records)
    assert (event["message"], event["message_id"], event["status"]) == ("delivery.dropped", "a b\nc", 400)


async def test_a_subscription_has_one_warning_a_minute_and_a_count_of_the_others(
    log: LossLog, clock: SimulatedClock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(5):
        log.undelivered(undelivered())
    await pass_time(clock, MINUTE_MS - 1)
    assert len(caplog.messages) == 1
    await pass_time(clock, 1)
    about = "subscription=000000000000/us-east-1/orders/s"
    left_out = f"delivery.left_out {about} number=4"
    assert lines(caplog)[1:] == [left_out]
    log.undelivered(undelivered())
    await pass_time(clock, MINUTE_MS)
    assert lines(caplog)[2:] == [left_out.replace("=4", "=1")]
    await pass_time(clock, MINUTE_MS)
    assert len(caplog.messages) == 3  # nothing was left out
    log.undelivered(undelivered())
    assert caplog.messages[3].startswith("delivery.dropped")


async def test_a_queue_s_losses_are_told_apart_from_a_subscription_s(
    log: LossLog, caplog: pytest.LogCaptureFixture
) -> None:
    log.undelivered(undelivered())
    log.dropped(queue("work"), 3, DeadLetterReason.EXPIRED, 0)
    log.dropped(queue("work"), 0, DeadLetterReason.REJECTED, 0)
    assert lines(caplog)[1:] == ["queue.lost queue=000000000000/us-east-1/work messages=3 reason=expired"]


async def test_very_many_queues_share_a_warning(
    log: LossLog, clock: SimulatedClock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss_log, "KEYS_MAX", 3)
    for number in range(10):
        log.dropped(queue(f"q{number}"), 1, DeadLetterReason.EXPIRED, 0)
    assert len(caplog.messages) == 4
    await pass_time(clock, MINUTE_MS)
    assert lines(caplog)[4:] == ["delivery.left_out of=others number=6"]
