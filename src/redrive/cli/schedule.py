"""`redrive schedule`: when a delivery policy tries again, and what it makes of an outage."""

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import orjson

from redrive.cli.client import add_url
from redrive.cli.drawing import WIDE, columns_of, draw
from redrive.cli.durations import read_duration, show_duration
from redrive.cli.forecast import forecast
from redrive.cli.picture import DrawnOutage, picture
from redrive.cli.subscribed import ask
from redrive.cli.timetable import Run, runs_of, table
from redrive.model.outage import outage
from redrive.model.retry import RetrySchedule
from redrive.model.retry_plans import (
    CUSTOMER_ENDPOINT,
    EVENT_WEBHOOK,
    FUNCTION_ERROR,
    HTTP_DEFAULT,
    MANAGED_ENDPOINT,
)
from redrive.protocols.aws.sns.delivery_policy import RetryPolicy, effective_policy
from redrive.protocols.aws.sns.delivery_policy_reader import (
    DeliveryPolicyInvalid,
    read_subscription_policy,
    read_topic_policy,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """A schedule, and what it is the schedule of.

    Attributes:
        title: For people.
        schedule: When failed deliveries are tried again.
        receives_per_second_max: The policy's throttle; None for none.
    """

    title: str
    schedule: RetrySchedule
    receives_per_second_max: int | None = None


PLANS: Final = {
    "managed": Plan("Queues, functions and delivery streams", MANAGED_ENDPOINT),
    "customer": Plan("Mail, text messages and mobile push", CUSTOMER_ENDPOINT),
    "http": Plan("HTTP/S without a delivery policy", HTTP_DEFAULT),
    "event-grid": Plan("Event Grid without a retry policy", EVENT_WEBHOOK),
    "function": Plan("A function that fails, invoked asynchronously", FUNCTION_ERROR),
}

_PLAN_OF_PROTOCOL: Final = {
    **dict.fromkeys(("firehose", "lambda", "sqs"), "managed"),
    **dict.fromkeys(("application", "email", "email-json", "sms"), "customer"),
}


def register(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the command."""
    command = commands.add_parser(
        "schedule",
        help="show when a delivery policy tries again",
        description="Show every attempt of a retry schedule, and what becomes of a message in an outage."
        " A span of time is written 90s, 15m, 4h, 1h30m or 2d.",
    )
    source = command.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--policy", type=Path, metavar="FILE", help="a subscription's or topic's DeliveryPolicy"
    )
    source.add_argument("--plan", choices=PLANS, help="a schedule that nobody configures")
    source.add_argument(
        "--subscription", metavar="ARN", help="what holds for a subscription of a running server"
    )
    add_url(command)
    command.add_argument(
        "--attempt",
        type=_span,
        default=0,
        metavar="SPAN",
        help="how long a failed attempt takes (default: 0s)",
    )
    command.add_argument(
        "--outage",
        type=_span,
        metavar="SPAN",
        help="say what becomes of a message if the endpoint is down so long",
    )
    command.add_argument("--picture", type=_svg, metavar="FILE.svg", help="draw the waits into a file")
    command.set_defaults(run=run)


def _span(text: str) -> int:
    try:
        return read_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _svg(text: str) -> Path:
    if not text.lower().endswith(".svg"):
        raise argparse.ArgumentTypeError(f"{text!r} does not end in .svg, the only kind of picture there is")
    return Path(text)


def run(parsed: argparse.Namespace) -> int:
    """Print the timetable, the chart and the answer about an outage; 2 for a policy that is none."""
    try:
        text = "\n\n".join(_paragraphs(_plan(parsed), parsed))
    except (OSError, UnicodeDecodeError, DeliveryPolicyInvalid) as error:
        print(f"redrive: {error}", file=sys.stderr)
        return 2
    print(text)
    return 0


def _plan(parsed: argparse.Namespace) -> Plan:
    if parsed.plan:
        return PLANS[parsed.plan]
    if parsed.policy:
        return _read(parsed.policy.name, parsed.policy.read_text())
    subscribed = ask(parsed.url, parsed.subscription)
    if subscribed.delivery_policy is None:
        return replace(PLANS[_PLAN_OF_PROTOCOL[subscribed.protocol]], title=subscribed.endpoint)
    return _read(subscribed.endpoint, subscribed.delivery_policy)


def _paragraphs(plan: Plan, parsed: argparse.Namespace) -> Iterator[str]:
    runs = runs_of(plan.schedule, parsed.attempt)
    columns = columns_of(runs)
    yield f"{plan.title}: {_summary(runs)}"
    yield table(runs)
    if columns:
        yield f"wait before each attempt\n{draw(columns, _room())}"
    if plan.receives_per_second_max is not None:
        yield (
            f"At most {plan.receives_per_second_max:,} deliveries a second:"
            " behind a backlog an attempt comes later than this."
        )
    if parsed.outage is not None:
        yield "\n".join(forecast(plan.schedule, parsed.attempt, parsed.outage))
    if parsed.picture and columns:
        parsed.picture.write_text(
            picture(columns, plan.title, _summary(runs), _outage(plan.schedule, parsed))
        )
        yield f"The picture is in {parsed.picture}."


def _outage(schedule: RetrySchedule, parsed: argparse.Namespace) -> DrawnOutage | None:
    """The outage that a picture shows, by the published waits."""
    if parsed.outage is None:
        return None
    text = next(forecast(schedule, parsed.attempt, parsed.outage))
    return DrawnOutage(outage(schedule, parsed.attempt, parsed.outage), text)


def _room() -> int:
    """The width of the screen; what is not read on one is as wide as it likes."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE


def _summary(runs: Sequence[Run]) -> str:
    last = runs[-1].last
    if last.attempt == 1:
        return "one attempt, no retries"
    earliest, latest = show_duration(last.earliest_ms), show_duration(last.latest_ms)
    when = latest if earliest == latest else f"{earliest} to {latest}"
    return f"{last.attempt:,} attempts, the last {when} after publication"


# ---- delivery policies -------------------------------------------------------------------------------------------


def _read(title: str, text: str) -> Plan:
    """The plan that a delivery policy asks for; a topic's has the member `http`, a subscription's has not."""
    if _is_a_topics(text):
        policy = effective_policy(None, read_topic_policy(text))
    else:
        policy = effective_policy(read_subscription_policy(text, raw=True), None)
    retry = policy.retry or RetryPolicy()
    return Plan(title, retry.schedule(), policy.receives_per_second_max)


def _is_a_topics(text: str) -> bool:
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False  # the reader says what is wrong with it
    return isinstance(document, dict) and "http" in document
