"""Webhooks and their failures, in the words that tests of commands use."""

from collections.abc import Callable
from typing import Final

import orjson

from tests.contracts.aws.sns.client import Topic, Webhook, follow
from tests.services.server import Server

#: Runs `redrive` with these words at the test's server; what it printed, or for `status=1` what it complained of.
Command = Callable[..., str]

POLICY: Final = {"healthyRetryPolicy": {"numRetries": 2, "minDelayTarget": 20, "maxDelayTarget": 20}}


def confirmed(topic: Topic, webhook: Webhook, **attributes: str) -> str:
    """A subscription of the webhook; its id."""
    arn = topic.subscribe("http", webhook.url, **attributes)
    follow(webhook.next().document["SubscribeURL"])
    return arn.rpartition(":")[2]


def fail(server: Server, endpoint: str, status: int | None) -> None:
    """Let every attempt at the endpoint end like this."""
    wish = orjson.dumps({"endpoint": endpoint, "status": status})
    assert server.ask("POST", "/_redrive/faults", wish)[0] == 200
