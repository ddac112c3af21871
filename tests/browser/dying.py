"""Orders that die, for stories that begin with dead letters."""

from typing import Final

import orjson

from tests.cli.telling import POLICY, confirmed, fail
from tests.contracts.aws.sns.client import Sns, Topic, Webhook
from tests.contracts.aws.sqs.client import ACCOUNT, Queue
from tests.services.server import Server

GOOD, BAD = 14, 2
#: The orders that an endpoint refused: a server error for the good ones, a client error for the bad.
CAUSES: Final = {400: BAD, 503: GOOD}
SIGNED: Final = {
    "Authorization": f"AWS4-HMAC-SHA256 Credential={ACCOUNT}/20260101/us-east-1/redrive/aws4_request"
}


def dead_orders(sns: Sns, server: Server, webhook: Webhook) -> Queue:
    """Let orders die of two causes at an endpoint that is well afterwards; their dead-letter queue."""
    topic, dead = sns.topic(), sns.sqs.queue()
    policy = orjson.dumps({"deadLetterTargetArn": dead.arn}).decode()
    confirmed(topic, webhook, RedrivePolicy=policy, DeliveryPolicy=orjson.dumps(POLICY).decode())
    for status, number in CAUSES.items():
        fail(server, webhook.url, status)
        for each in range(number):
            topic.publish(order(status, each))
        server.advance(60)
    fail(server, webhook.url, None)
    return dead


#: The link on Overview to the dead letters that `dead_orders` leaves.
ALL_DEAD: Final = f"{GOOD + BAD} dead letters"


def order(status: int, number: int) -> str:
    """The body of an order that is to die of this status; a number in it is larger than scripts can count."""
    return f'{{"order": {status}{number:03}, "currency": "EURO", "paid": 12345678901234567890}}'


def good_orders() -> list[str]:
    """The bodies of the orders that are worth sending back."""
    return sorted(order(503, each) for each in range(GOOD))


def came(webhook: Webhook, number: int) -> list[str]:
    """The bodies of so many notifications, in order; nothing else came."""
    found = sorted(webhook.next().document["Message"] for _ in range(number))
    assert webhook.is_idle
    return found


def waiting(server: Server, queue: Queue) -> list[str]:
    """The bodies that stand in a dead-letter queue, in order of arrival; nothing is received."""
    _, body = server.ask("GET", f"/_redrive/dead-letters?queue={queue.name}", headers=SIGNED)
    return [letter["body"] for letter in orjson.loads(body)["letters"]]


def rest_when_failing(server: Server, topic: Topic, subscription: str) -> None:
    """Let a subscription's endpoint rest when it fails."""
    wish = {"topic": topic.arn.rpartition(":")[2], "id": subscription, "rests": True}
    assert server.ask("POST", "/_redrive/endpoints", orjson.dumps(wish), SIGNED)[0] == 200
