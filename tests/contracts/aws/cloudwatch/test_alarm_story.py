"""An alarm on a dead-letter queue wakes somebody: over the wire, on a simulated clock, by mail and by webhook."""

import re
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from aiosmtpd.controller import Controller

from tests.contracts.aws.clients import client
from tests.contracts.aws.sns.client import Webhook, follow
from tests.contracts.endpoints.relay import MailServer
from tests.services.programs import free_port
from tests.services.server import Server, serving

ACCOUNT = "000000000000"
REGION = "us-east-1"
DLQ = "Rental-Billing-Fanout-DLQ"


class Story:
    """The rental cars' topic and its dead-letter queue, and a topic for alarms with mail and a webhook behind it."""

    def __init__(self, server: Server, mail: MailServer, webhook: Webhook) -> None:
        self.server = server
        self.mail = mail
        self.webhook = webhook
        self.watch, self.sns, self.sqs = (
            client(server.url, service, "query" if service == "sns" else "json")
            for service in ("cloudwatch", "sns", "sqs")
        )
        self.orders = self.sns.create_topic(Name="Rental-Orders")["TopicArn"]
        self.alarms = self.sns.create_topic(Name="Rental-Alarms")["TopicArn"]
        self.dlq = self.sqs.create_queue(QueueName=DLQ)["QueueUrl"]

    def subscribe_people(self) -> None:
        self.sns.subscribe(TopicArn=self.alarms, Protocol="http", Endpoint=self.webhook.url)
        follow(self.webhook.next().document["SubscribeURL"])
        self.sns.subscribe(TopicArn=self.alarms, Protocol="email", Endpoint="on-call@example.org")
        self.server.advance(0)
        (asked,) = self.mails()
        link = re.search(r"https?://\S*Token=\S+", asked)
        assert link is not None
        follow(link[0])

    def subscribe_billing(self, dead_letters: str) -> None:
        """Subscribe a queue that is not there, whose dead letters go to one by that name."""
        policy = orjson.dumps(
            {"deadLetterTargetArn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{dead_letters}"}
        ).decode()
        self.sns.subscribe(
            TopicArn=self.orders,
            Protocol="sqs",
            Endpoint=f"arn:aws:sqs:{REGION}:{ACCOUNT}:to-{dead_letters}",
            Attributes={"RedrivePolicy": policy},
        )

    def alarm(self, name: str, **params: Any) -> None:
        actions = {"AlarmActions": [self.alarms], "OKActions": [self.alarms]}
        self.watch.put_metric_alarm(
            AlarmName=name,
            Period=60,
            EvaluationPeriods=1,
            Threshold=0,
            ComparisonOperator="GreaterThanThreshold",
            TreatMissingData="notBreaching",
            **params,
            **actions,
        )

    def state(self, name: str) -> str:
        (alarm,) = self.watch.describe_alarms(AlarmNames=[name])["MetricAlarms"]
        return str(alarm["StateValue"])

    def told(self) -> list[dict[str, Any]]:
        """The notifications that the webhook got since the last look."""
        found = []
        while not self.webhook.is_idle:
            found.append(orjson.loads(self.webhook.next().document["Message"]))
        return found

    def mails(self) -> list[str]:
        """The texts that came since the last look."""
        mails, self.mail.mails = self.mail.mails, []
        return [mail.get_content() for mail in mails]


@pytest.fixture
def story() -> Iterator[Story]:
    mail, port = MailServer(), free_port()
    controller = Controller(mail, hostname="127.0.0.1", port=port)
    controller.start()
    flags = ("--clock", "simulated", "--smtp-host", "127.0.0.1", "--smtp-port", str(port))
    try:
        with Webhook().serving() as webhook, serving("sqlite://:memory:", *flags) as server:
            made = Story(server, mail, webhook)
            made.subscribe_people()
            yield made
    finally:
        controller.stop()


def test_dead_letters_wake_somebody(story: Story) -> None:
    queue = [{"Name": "QueueName", "Value": DLQ}]
    visible = "ApproximateNumberOfMessagesVisible"
    story.alarm(DLQ, Namespace="AWS/SQS", MetricName=visible, Dimensions=queue, Statistic="Maximum")
    story.subscribe_billing(DLQ)
    story.server.advance(60)
    assert (story.state(DLQ), [told["NewStateValue"] for told in story.told()]) == ("OK", ["OK"])
    assert len(story.mails()) == 1

    story.sns.publish(TopicArn=story.orders, Message="order 1")
    story.server.advance(120)
    (told,) = story.told()
    reason = "Threshold Crossed: 1 datapoint [1.0 (01/01/26 00:02:00)] was greater than the threshold (0.0)."
    assert (story.state(DLQ), told["NewStateReason"]) == ("ALARM", reason)
    assert told["Trigger"]["Dimensions"] == [{"value": DLQ, "name": "QueueName"}]
    assert (told["OldStateValue"], told["NewStateValue"], told["Region"]) == (
        "OK",
        "ALARM",
        "US East (N. Virginia)",
    )
    (mail,) = story.mails()
    assert mail.startswith(f'The alarm "{DLQ}" in the US East (N. Virginia) region is ALARM since Thursday')
    assert reason in mail

    (letter,) = story.sqs.receive_message(QueueUrl=story.dlq)["Messages"]
    story.sqs.delete_message(QueueUrl=story.dlq, ReceiptHandle=letter["ReceiptHandle"])
    story.server.advance(120)
    assert (story.state(DLQ), [told["NewStateValue"] for told in story.told()]) == ("OK", ["OK"])
    (mail,) = story.mails()
    assert "- State Change:               ALARM -> OK" in mail


def test_dead_letters_that_no_queue_took_wake_somebody(story: Story) -> None:
    story.alarm(
        "lost",
        Namespace="AWS/SNS",
        MetricName="NumberOfNotificationsFailedToRedriveToDlq",
        Dimensions=[{"Name": "TopicName", "Value": "Rental-Orders"}],
        Statistic="Sum",
    )
    story.subscribe_billing("a-queue-that-is-not-there")
    story.server.advance(60)
    story.sns.publish(TopicArn=story.orders, Message="order 2")
    story.server.advance(60)
    assert story.state("lost") == "ALARM"
    story.server.advance(180)
    assert story.state("lost") == "OK"
    assert [told["NewStateValue"] for told in story.told()] == ["OK", "ALARM", "OK"]
    assert len(story.mails()) == 3
