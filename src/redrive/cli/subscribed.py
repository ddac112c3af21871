"""The retry schedule of a subscription of a running server, asked through SNS."""

import os
from dataclasses import dataclass
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from redrive.aws.wire.arn import parse_arn
from redrive.cli.terminal import CommandFailed


@dataclass(frozen=True, slots=True)
class Subscribed:
    """A subscription, as far as its retries go.

    Attributes:
        protocol: `https`, `sqs` …
        endpoint: Where deliveries go.
        delivery_policy: The effective one, in JSON; None for a protocol whose schedule nobody configures.
    """

    protocol: str
    endpoint: str
    delivery_policy: str | None


def ask(url: str, arn: str) -> Subscribed:
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
            config=Config(retries={"total_max_attempts": 1}),  # somebody sits and waits for the answer
            aws_access_key_id=os.environ.get("AWS_ACCESS_KEY_ID", parsed_arn.account),
            aws_secret_access_key=os.environ.get("AWS_SECRET_ACCESS_KEY", "none"),
        )
        attributes = client.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
    except ClientError as refusal:
        raise CommandFailed(_said(refusal, url)) from None
    except (ResponseParserError, KeyError):
        raise CommandFailed(f"{url} answers, but not as SNS does: is it another server?") from None
    except (BotoCoreError, ValueError) as error:
        raise CommandFailed(str(error).strip()) from None
    return Subscribed(
        attributes["Protocol"], attributes["Endpoint"], attributes.get("EffectiveDeliveryPolicy")
    )


def _said(refusal: ClientError, url: str) -> str:
    """The server's own words; a page of another server's has a status and no more."""
    error = refusal.response["Error"]
    return error.get("Message") or f"{error.get('Code')} from {url}: is it Redrive?"
