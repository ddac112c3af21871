"""Streams that subscribe to topics of the same server."""

from typing import Any

import orjson

from tests.contracts.aws.clients import client
from tests.contracts.aws.firehose.landing import ACCOUNT, ARN, NAME, REGION, ROLE, Landing
from tests.contracts.aws.sns.client import Sns, Topic
from tests.services.server import Server

LOGGED = {
    "FirehoseSuccessFeedbackRoleArn": ROLE,
    "FirehoseFailureFeedbackRoleArn": ROLE,
    "FirehoseSuccessFeedbackSampleRate": "100",
}


def logged(server: Server, topic: Topic, suffix: str = "") -> list[dict[str, Any]]:
    group = f"sns/{REGION}/{ACCOUNT}/{topic.arn.rpartition(':')[2]}{suffix}"
    found = client(server.url, "logs", "json").filter_log_events(logGroupName=group)["events"]
    return [orjson.loads(event["message"]) for event in found]


def test_notifications_are_lines_and_raw_messages_are_as_they_are(landing: Landing) -> None:
    landing.stream()
    topic = Sns(landing.server).topic(**LOGGED)
    arn = topic.subscribe("firehose", ARN, SubscriptionRoleArn=ROLE)
    entries = [{"Id": str(number), "Message": f"m{number}"} for number in range(10)]
    topic.call("publish_batch", PublishBatchRequestEntries=entries)
    landing.server.advance(300)
    (content,) = landing.contents()
    lines = [orjson.loads(line) for line in content.splitlines()]
    assert sorted(line["Message"] for line in lines) == sorted(entry["Message"] for entry in entries)
    assert list(lines[0]) == ["Type", "MessageId", "TopicArn", "Message", "Timestamp", "UnsubscribeURL"]
    entries_logged = logged(landing.server, topic)
    assert [(each["status"], each["delivery"]["statusCode"]) for each in entries_logged] == [
        ("SUCCESS", 200)
    ] * 10
    attributes = {"AttributeName": "RawMessageDelivery", "AttributeValue": "true"}
    Sns(landing.server).client.set_subscription_attributes(SubscriptionArn=arn, **attributes)
    topic.publish("as it is")
    landing.server.advance(300)
    assert b"as it is" in landing.contents()


def test_a_stream_that_is_missing_is_a_client_error(landing: Landing) -> None:
    sns = Sns(landing.server)
    topic, dead = sns.topic(**LOGGED), sns.sqs.queue()
    redrive = orjson.dumps({"deadLetterTargetArn": dead.arn}).decode()
    topic.subscribe("firehose", ARN, SubscriptionRoleArn=ROLE, RedrivePolicy=redrive)
    topic.publish("nowhere to go")
    landing.server.advance(1)
    assert orjson.loads(dead.one()["Body"])["Message"] == "nowhere to go"
    (failure,) = logged(landing.server, topic, "/Failure")
    assert orjson.loads(failure["delivery"]["providerResponse"]) == {
        "ErrorCode": "ResourceNotFoundException",
        "ErrorMessage": f"Firehose {NAME} under account {ACCOUNT} not found.",
        "firehoseRequestId": "Unrecoverable",
    }
    assert failure["delivery"]["attempts"] == 1
