"""What holds for a subscription of a running server, asked through SNS."""

import os
from dataclasses import dataclass
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from redrive.protocols.aws.wire.arn import parse_arn


class NotTold(Exception):  # noqa: N818 - an answer for whoever runs the command
    """The server did not say; the message says why."""


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
    authentication believes.

    Raises:
        NotTold: The ARN is none, or the server refused or did not answer.
    """
    try:
        place = parse_arn(arn)
        client: Any = botocore.session.get_session().create_client(
            "sns",
            region_name=place.region,
            endpoint_url=url,
            config=Config(retries={"total_max_attempts": 1}),  # somebody sits and waits for the answer
            aws_access_key_id=os.environ.get("AWS_ACCESS_KEY_ID", place.account),
            aws_secret_access_key=os.environ.get("AWS_SECRET_ACCESS_KEY", "none"),
        )
        attributes = client.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
    except ClientError as refusal:
        raise NotTold(refusal.response["Error"]["Message"]) from None
    except (BotoCoreError, ValueError) as error:
        raise NotTold(str(error)) from None
    return Subscribed(
        attributes["Protocol"], attributes["Endpoint"], attributes.get("EffectiveDeliveryPolicy")
    )
