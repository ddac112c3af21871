"""Data-protection policies from boto3 to a server on each store, and what of them shows in logs and metrics."""

import json
from typing import Any

import orjson
import pytest

from tests.contracts.aws.clients import client
from tests.contracts.aws.cloudwatch.client import Watch
from tests.contracts.aws.sns.client import OTHER, Sns, Topic, Webhook
from tests.contracts.aws.sqs.client import ACCOUNT, REGION, refused
from tests.services.server import Server

_ARN = "arn:aws:dataprotection::aws:data-identifier/"
CARD = "4539894458086459"
TEXT = f"My credit card number is {CARD}"
MASKED = f"My credit card number is {'#' * 16}"
GROUP = "/aws/vendedlogs/findings"
MASK = {"Deidentify": {"MaskConfig": {"MaskWithCharacter": "#"}}}
REDACT = {"Deidentify": {"RedactConfig": {}}}
DENY: dict[str, Any] = {"Deny": {}}
AUDIT = {"Audit": {"SampleRate": "99", "FindingsDestination": {"CloudWatchLogs": {"LogGroup": GROUP}}}}


@pytest.fixture
def sns(server: Server) -> Sns:
    return Sns(server)


@pytest.fixture
def logs(server: Server) -> Any:
    return client(server.url, "logs", "json")


def policy(operation: dict[str, Any], direction: str = "Inbound", principal: str = "*") -> str:
    statement = {
        "DataDirection": direction,
        "Principal": [principal],
        "DataIdentifier": [f"{_ARN}CreditCardNumber", "EmployeeId"],
        "Operation": operation,
    }
    configuration = {"CustomDataIdentifier": [{"Name": "EmployeeId", "Regex": r"EID-\d{9}-US"}]}
    document = {
        "Name": "p",
        "Version": "2021-06-01",
        "Configuration": configuration,
        "Statement": [statement],
    }
    return json.dumps(document)


def protect(topic: Topic, text: str) -> None:
    topic.sns.client.put_data_protection_policy(ResourceArn=topic.arn, DataProtectionPolicy=text)


def lines(logs: Any, group: str) -> list[dict[str, Any]]:
    events = logs.filter_log_events(logGroupName=group)["events"]
    return [orjson.loads(event["message"]) for event in events]


def test_a_policy_is_kept_and_taken_away(sns: Sns) -> None:
    topic = sns.topic()
    protect(topic, policy(DENY))
    kept = sns.client.get_data_protection_policy(ResourceArn=topic.arn)
    assert kept["DataProtectionPolicy"] == policy(DENY)
    protect(topic, "")
    assert sns.client.get_data_protection_policy(ResourceArn=topic.arn).get("DataProtectionPolicy", "") == ""
    queue = topic.queue(RawMessageDelivery="true")
    topic.publish(TEXT)
    assert queue.bodies() == [TEXT]


@pytest.mark.parametrize(
    ("fifo", "text", "reason"),
    [
        (
            False,
            policy(DENY).replace("CreditCardNumber", "Name"),
            f"Statement DataIdentifier {_ARN}Name is not supported by this server, which finds patterns only",
        ),
        (False, policy(DENY, "Sideways"), "Statement DataDirection must be either Inbound or Outbound"),
        (True, policy(DENY), "FIFO topics cannot have one"),
    ],
)
def test_a_policy_that_cannot_be_carried_out_is_refused(sns: Sns, fifo: bool, text: str, reason: str) -> None:
    topic = sns.topic(fifo=fifo)
    with refused("InvalidParameter", f"Invalid parameter: DataProtectionPolicy Reason: {reason}"):
        protect(topic, text)
    assert sns.client.get_data_protection_policy(ResourceArn=topic.arn).get("DataProtectionPolicy", "") == ""


class TestInbound:
    def test_a_denied_publication_is_refused(self, sns: Sns) -> None:
        topic = sns.topic()
        queue = topic.queue(RawMessageDelivery="true")
        protect(topic, policy(DENY))
        said = "The topic's data protection policy prohibits this message from being published to"
        with refused("AuthorizationError", f"{said} {topic.arn}", 403):
            topic.publish(TEXT)
        entries = [{"Id": "a", "Message": "EID-123456789-US"}, {"Id": "b", "Message": "EID-12345678-US"}]
        answer = topic.call("publish_batch", PublishBatchRequestEntries=entries)
        assert [one["Id"] for one in answer["Successful"]] == ["b"]
        assert [(one["Id"], one["Code"]) for one in answer["Failed"]] == [("a", "AuthorizationError")]
        assert queue.bodies() == ["EID-12345678-US"]

    @pytest.mark.parametrize(("operation", "kept"), [(MASK, MASKED), (REDACT, "My credit card number is ")])
    def test_sensitive_data_is_masked_or_redacted_for_every_subscriber(
        self, sns: Sns, operation: dict[str, Any], kept: str
    ) -> None:
        topic = sns.topic()
        queue = topic.queue(RawMessageDelivery="true")
        protect(topic, policy(operation))
        with Webhook().serving() as webhook:
            topic.subscribe("http", webhook.url)
            topic.call("confirm_subscription", Token=webhook.next().document["Token"])
            topic.publish(TEXT)
            assert webhook.next().document["Message"] == kept
        assert queue.bodies() == [kept]

    def test_audited_findings_are_logged(self, sns: Sns, logs: Any) -> None:
        topic = sns.topic()
        queue = topic.queue(RawMessageDelivery="true")
        protect(topic, policy(AUDIT))
        ids = [topic.publish(TEXT)["MessageId"] for _ in range(20)]
        topic.publish("nothing")
        found = lines(logs, GROUP)
        assert len(found) > 10
        place = TEXT.index(CARD)
        for line in found:
            assert line.pop("messageId") in ids
            assert line.pop("auditTimestamp").endswith("Z")
            assert line == {
                "callerPrincipal": f"arn:aws:iam::{ACCOUNT}:root",
                "resourceArn": topic.arn,
                "dataIdentifiers": [
                    {
                        "name": "CreditCardNumber",
                        "count": 1,
                        "detections": [{"start": place, "end": place + len(CARD)}],
                    }
                ],
            }
        assert len(queue.bodies()) == 10
        name = topic.arn.rpartition(":")[2]
        counted = Watch(sns.server).sums("AWS/SNS", "MessagesWithFindings", TopicName=name)
        assert sum(counted) == len(found)


class TestOutbound:
    def test_a_denied_delivery_is_dropped_and_logged(self, sns: Sns, logs: Any) -> None:
        topic = sns.topic(SQSFailureFeedbackRoleArn=f"arn:aws:iam::{ACCOUNT}:role/r")
        dead, queue = sns.sqs.queue(), sns.sqs.queue()
        letters = json.dumps({"deadLetterTargetArn": dead.arn})
        arn = topic.subscribe("sqs", queue.arn, RedrivePolicy=letters)
        protect(topic, policy(DENY, "Outbound"))
        published = topic.publish(TEXT)
        assert queue.receive() == []
        assert dead.receive() == []
        name = topic.arn.rpartition(":")[2]
        line = next(
            one
            for one in lines(logs, f"sns/{REGION}/{ACCOUNT}/{name}/Failure")
            if one["delivery"]["destination"] == queue.arn
        )
        assert line["status"] == "FAILURE"
        assert line["notification"]["messageId"] == published["MessageId"]
        assert (line["delivery"]["statusCode"], line["delivery"]["attempts"]) == (403, 1)
        assert line["delivery"]["providerResponse"] == (
            f"The topic's data protection policy prohibits this message from being delivered to {arn}"
        )
        failed = Watch(sns.server).sums("AWS/SNS", "NumberOfNotificationsFailed", TopicName=name)
        assert sum(failed) == 1

    def test_deidentify_for_some(self, sns: Sns) -> None:
        topic = sns.topic()
        mine = topic.queue(RawMessageDelivery="true")
        topic.call("add_permission", Label="l", AWSAccountId=[OTHER], ActionName=["Subscribe", "Receive"])
        protect(topic, policy(MASK, "Outbound", OTHER))
        with Webhook().serving() as webhook:
            topic.seen_by(sns.elsewhere(account=OTHER)).subscribe("http", webhook.url)
            topic.call("confirm_subscription", Token=webhook.next().document["Token"])
            topic.publish(TEXT)
            assert webhook.next().document["Message"] == MASKED
        assert mine.bodies() == [TEXT]
