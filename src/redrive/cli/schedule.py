"""`redrive schedule`: when a delivery policy tries again, and what it makes of an outage."""

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from redrive.aws.sns.documents.delivery_policy_reader import DeliveryPolicyInvalid, read_plan
from redrive.aws.sns.documents.destinations import PROTOCOLS
from redrive.aws.wire.arn import parse_arn
from redrive.cli.client import add_url
from redrive.cli.picture import WIDE, DrawnOutage, draw, picture, table
from redrive.cli.terminal import CommandFailed
from redrive.model.durations import read_duration
from redrive.model.outage import forecast, outage
from redrive.model.retry import RetrySchedule
from redrive.model.retry_plans import PLANS, RetryPlan
from redrive.model.timetable import columns_of, runs_of, summary


def register(command: argparse.ArgumentParser) -> None:
    """Add its options."""
    command.description = (
        "Show every attempt of a retry schedule, and what becomes of a message in an outage."
        " A span of time is written 90s, 15m, 4h, 1h30m or 2d."
    )
    source = command.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--policy", type=Path, metavar="FILE", help="file with the DeliveryPolicy of a subscription or topic"
    )
    source.add_argument("--plan", choices=PLANS, help="a built-in schedule")
    source.add_argument(
        "--subscription", metavar="ARN", help="use the delivery policy of a subscription on a running server"
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
        help="show what happens to a message if the endpoint is down this long",
    )
    command.add_argument("--picture", type=_svg, metavar="FILE.svg", help="draw the waits to an SVG file")
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
    """Print the timetable, the chart and the answer about an outage; returns 2 for an invalid policy."""
    try:
        text = "\n\n".join(_paragraphs(_plan(parsed), parsed))
    except (OSError, UnicodeDecodeError, DeliveryPolicyInvalid) as error:
        print(f"redrive: {error}", file=sys.stderr)
        return 2
    print(text)
    return 0


def _plan(parsed: argparse.Namespace) -> RetryPlan:
    """The schedule that is meant: built in, of a file, or of a subscription on a server."""
    if parsed.plan:
        return PLANS[parsed.plan]
    if parsed.policy:
        return read_plan(parsed.policy.name, parsed.policy.read_text())
    retries = ask(parsed.url, parsed.subscription)
    if retries.delivery_policy is None:
        return replace(PLANS[PROTOCOLS[retries.protocol].schedule_name], title=retries.endpoint)
    return read_plan(retries.endpoint, retries.delivery_policy)


def _paragraphs(plan: RetryPlan, parsed: argparse.Namespace) -> Iterator[str]:
    """The timetable, the chart, the answer about an outage; the picture is drawn on the way."""
    runs = runs_of(plan.schedule, parsed.attempt)
    columns = columns_of(runs)
    yield f"{plan.title}: {summary(runs)}"
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
        parsed.picture.write_text(picture(columns, plan.title, summary(runs), _outage(plan.schedule, parsed)))
        yield f"The picture is in {parsed.picture}."


def _outage(schedule: RetrySchedule, parsed: argparse.Namespace) -> DrawnOutage | None:
    """The outage that a picture shows, by the published waits."""
    if parsed.outage is None:
        return None
    text = next(forecast(schedule, parsed.attempt, parsed.outage))
    return DrawnOutage(outage(schedule, parsed.attempt, parsed.outage), text)


def _room() -> int:
    """The characters of a line: as many as a terminal has, or else as many as a chart can use."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE


# The retry schedule of a subscription of a running server, asked through SNS.


@dataclass(frozen=True, slots=True)
class SubscriptionRetries:
    """The properties of a subscription that determine its retries."""

    protocol: str  # `https`, `sqs` …
    endpoint: str  # Endpoint of the deliveries
    # The effective one, in JSON; None for a protocol whose schedule nobody configures.
    delivery_policy: str | None


def ask(url: str, arn: str) -> SubscriptionRetries:
    """Ask a server for a subscription.

    Where the environment has no key, the call is signed for the subscription's account, which a server without
    authentication accepts.

    Raises:
        CommandFailed: Not an ARN, or the server refused, or did not answer as SNS does.
    """
    try:
        parsed_arn = parse_arn(arn)
        client: Any = botocore.session.get_session().create_client(
            "sns",
            region_name=parsed_arn.region,
            endpoint_url=url,
            config=Config(retries={"total_max_attempts": 1}),  # a person waits for the answer
            aws_access_key_id=os.environ.get("AWS_ACCESS_KEY_ID", parsed_arn.account),
            aws_secret_access_key=os.environ.get("AWS_SECRET_ACCESS_KEY", "none"),
        )
        attributes = client.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
    except ClientError as refusal:
        raise CommandFailed(_message(refusal, url)) from None
    except (ResponseParserError, KeyError):
        raise CommandFailed(f"{url} answers, but not as SNS does: is it another server?") from None
    except (BotoCoreError, ValueError) as error:
        raise CommandFailed(str(error).strip()) from None
    return SubscriptionRetries(
        attributes["Protocol"], attributes["Endpoint"], attributes.get("EffectiveDeliveryPolicy")
    )


def _message(refusal: ClientError, url: str) -> str:
    """The server's own message; the answer of a server that is not Redrive may have only a status."""
    error = refusal.response["Error"]
    return error.get("Message") or f"{error.get('Code')} from {url}: is it Redrive?"
