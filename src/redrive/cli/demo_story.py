"""The rental-car story: orders published to a topic, and everything that can go wrong on their way.

The architecture is that of the AWS blog article on dead-letter queues for SNS, SQS and Lambda, with an HTTP service
in the place of the billing function:

    Rental-Orders ─┬─► Rental-Fulfilment (SQS) ─► Rental-Fulfilment-DLQ
                   │     └─ unreachable ────────► Rental-Fulfilment-Fanout-DLQ
                   └─► Rental-Billing (HTTP)
                         └─ unreachable ────────► Rental-Billing-Fanout-DLQ
"""

import json
from typing import Any

from redrive.cli.demo_billing import Billing, Visit
from redrive.cli.demo_server import DemoServer

ACCOUNT = "123456789012"
ARN = f"arn:aws:sqs:us-east-1:{ACCOUNT}:"
FULFILMENT = "Rental-Fulfilment"
FULFILMENT_DLQ = "Rental-Fulfilment-DLQ"
FULFILMENT_FANOUT_DLQ = "Rental-Fulfilment-Fanout-DLQ"
BILLING_FANOUT_DLQ = "Rental-Billing-Fanout-DLQ"
DLQS = (FULFILMENT_FANOUT_DLQ, BILLING_FANOUT_DLQ, FULFILMENT_DLQ)
POLICY = {
    "healthyRetryPolicy": {
        "numRetries": 8,
        "numNoDelayRetries": 1,
        "numMinDelayRetries": 2,
        "numMaxDelayRetries": 1,
        "minDelayTarget": 1,
        "maxDelayTarget": 60,
        "backoffFunction": "exponential",
    }
}
HOUR = 3600
RECREATE_AFTER = 61  # SQS keeps a deleted queue's name for a minute
ATTEMPTS = 9


class Story:
    """The story's places and what happens in them; each act returns what a test or a screen wants to see."""

    def __init__(self, server: DemoServer, billing: Billing) -> None:
        """Tell it on this server with this billing system."""
        self.server = server
        self.billing = billing
        self._sns = server.client("sns")
        self._sqs = server.client("sqs")
        self._topic = ""

    # ---- the architecture ---------------------------------------------------------------------------------

    def build(self) -> None:
        """Make the topic, the queues, and both subscriptions."""
        self._topic = self._sns.create_topic(Name="Rental-Orders")["TopicArn"]
        for name in DLQS:
            self._sqs.create_queue(QueueName=name, Attributes={"Policy": self._open_to_topic(name)})
        self.create_fulfilment()
        self._sns.subscribe(
            TopicArn=self._topic,
            Protocol="sqs",
            Endpoint=ARN + FULFILMENT,
            Attributes={
                "FilterPolicy": json.dumps({"order-status": ["confirmed", "canceled"]}),
                "RedrivePolicy": json.dumps({"deadLetterTargetArn": ARN + FULFILMENT_FANOUT_DLQ}),
            },
        )
        self._sns.subscribe(
            TopicArn=self._topic,
            Protocol="http",
            Endpoint=self.billing.url,
            Attributes={
                "DeliveryPolicy": json.dumps(POLICY),
                "RedrivePolicy": json.dumps({"deadLetterTargetArn": ARN + BILLING_FANOUT_DLQ}),
            },
        )
        self.server.pass_time(1)

    def create_fulfilment(self) -> None:
        """Make the fulfilment queue, whose own dead letters are those its consumer gave up three times."""
        redrive = json.dumps({"deadLetterTargetArn": ARN + FULFILMENT_DLQ, "maxReceiveCount": 3})
        self._sqs.create_queue(
            QueueName=FULFILMENT,
            Attributes={"Policy": self._open_to_topic(FULFILMENT), "RedrivePolicy": redrive},
        )

    def _open_to_topic(self, queue: str) -> str:
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": "sns.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": ARN + queue,
            "Condition": {"ArnEquals": {"aws:SourceArn": self._topic}},
        }
        return json.dumps({"Version": "2012-10-17", "Statement": [statement]})

    def confirmed(self) -> bool:
        """True if billing has confirmed its subscription."""
        subscriptions = self._sns.list_subscriptions_by_topic(TopicArn=self._topic)["Subscriptions"]
        return all(subscription["SubscriptionArn"].startswith("arn:") for subscription in subscriptions)

    # ---- the acts -----------------------------------------------------------------------------------------

    def order(self, text: str, status: str = "confirmed", seconds: float = 1) -> None:
        """Publish an order, and let time pass."""
        attributes = {"order-status": {"DataType": "String", "StringValue": status}}
        self._sns.publish(TopicArn=self._topic, Message=text, MessageAttributes=attributes)
        self.server.pass_time(seconds)

    def fulfil(self) -> list[str]:
        """The fulfilment system does its work: receive, and delete."""
        orders = []
        for message in self._receive():
            orders.append(json.loads(message["Body"])["Message"])
            self._sqs.delete_message(QueueUrl=self._url(FULFILMENT), ReceiptHandle=message["ReceiptHandle"])
        return orders

    def choke(self) -> int:
        """The fulfilment system receives what it cannot process, again and again; how often."""
        times = 0
        while self._receive():
            times += 1
            self.server.pass_time(31)  # the visibility timeout
        return times

    def lose_fulfilment(self) -> None:
        """Somebody deletes the fulfilment queue, and not the subscription."""
        self._sqs.delete_queue(QueueUrl=self._url(FULFILMENT))

    def dead_letters(self, queue: str) -> list[dict[str, Any]]:
        """The messages in a dead-letter queue, with the reasons."""
        letters: list[dict[str, Any]] = self.server.ask(f"/_redrive/dead-letters?queue={queue}")["letters"]
        return letters

    def redrive(self, queue: str) -> int:
        """Send everything in a dead-letter queue back where it came from; how many."""
        answer = self.server.ask("/_redrive/dead-letters", {"queue": queue})
        self.server.pass_time(5)
        return int(answer["to_move"])

    def attempts(self, order: str) -> list[Visit]:
        """The number of times that an order came to billing."""
        return self.billing.visits_of(order)

    def _receive(self) -> list[dict[str, Any]]:
        answer = self._sqs.receive_message(QueueUrl=self._url(FULFILMENT), MaxNumberOfMessages=10)
        messages: list[dict[str, Any]] = answer.get("Messages", [])
        return messages

    def _url(self, queue: str) -> str:
        return f"{self.server.url}/{ACCOUNT}/{queue}"
