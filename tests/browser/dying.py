"""Orders that die, for stories that begin with dead letters."""

from typing import Final

import orjson

from tests.cli.telling import POLICY, confirmed, fail
from tests.contracts.protocols.sns import Sns, Webhook
from tests.services.server import Server

GOOD, BAD = 14, 2
#: The orders that an endpoint refused: a server error for the good ones, a client error for the bad.
CAUSES: Final = {400: BAD, 503: GOOD}


def dead_orders(sns: Sns, server: Server, webhook: Webhook) -> str:
    """Let orders die of two causes at an endpoint that is well afterwards; the name of their dead-letter queue."""
    topic, dead = sns.topic(), sns.sqs.queue()
    policy = orjson.dumps({"deadLetterTargetArn": dead.arn}).decode()
    confirmed(topic, webhook, RedrivePolicy=policy, DeliveryPolicy=orjson.dumps(POLICY).decode())
    for status, number in CAUSES.items():
        fail(server, webhook.url, status)
        for each in range(number):
            topic.publish(f'{{"order": "{status} {each}", "number": 12345678901234567890}}')
        server.advance(60)
    fail(server, webhook.url, None)
    return dead.arn.rpartition(":")[2]


def good_orders() -> list[str]:
    """The bodies of the orders that are worth sending back."""
    return sorted(f'{{"order": "503 {each}", "number": 12345678901234567890}}' for each in range(GOOD))
