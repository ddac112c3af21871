"""Configuration by SNS is one commit a call, however many documents it writes."""

import pytest

from redrive.aws.sns.devices.platform import DEVICE
from tests.aws.sns.stage import Stage
from tests.engine.commits import Commits

TOPIC = "arn:aws:sns:us-east-1:123456789012:orders"
PLATFORM = {"PlatformCredential": "secret", "PlatformPrincipal": "sender"}


@pytest.fixture
async def commits(stage: Stage) -> Commits:
    await stage.call("CreateTopic", Name="another")  # the first call reserves a block of numbers besides
    return Commits(stage.store)


async def test_a_topic_and_its_subscriptions(stage: Stage, commits: Commits) -> None:
    await stage.call("CreateTopic", Name="orders")
    assert commits.taken() == 1
    queue = "arn:aws:sqs:us-east-1:123456789012:q"
    made = await stage.call("Subscribe", TopicArn=TOPIC, Protocol="sqs", Endpoint=queue)
    assert commits.taken() == 1
    await stage.call("Unsubscribe", SubscriptionArn=made["SubscriptionArn"])
    assert commits.taken() == 1
    await stage.call("Subscribe", TopicArn=TOPIC, Protocol="sqs", Endpoint=queue)
    await stage.call("Subscribe", TopicArn=TOPIC, Protocol="sqs", Endpoint=f"{queue}2")
    commits.taken()
    await stage.call("DeleteTopic", TopicArn=TOPIC)
    assert commits.taken() == 1


async def test_a_webhook_is_subscribed_with_its_confirmation(stage: Stage, commits: Commits) -> None:
    await stage.call("CreateTopic", Name="orders")
    commits.taken()
    await stage.call("Subscribe", TopicArn=TOPIC, Protocol="http", Endpoint="http://a")
    assert commits.taken() == 1
    await stage.advance(1)
    assert (await stage.asked("http"))["Type"] == "SubscriptionConfirmation"


async def test_creating_changing_and_deleting_a_device_is_one_commit_each(
    stage: Stage, commits: Commits
) -> None:
    made = await stage.call("CreatePlatformApplication", Platform="GCM", Name="app", Attributes=PLATFORM)
    commits.taken()
    device = await stage.call(
        "CreatePlatformEndpoint", PlatformApplicationArn=made["PlatformApplicationArn"], Token="t"
    )
    assert commits.taken() == 1
    arn = device["EndpointArn"]
    await stage.call("SetEndpointAttributes", EndpointArn=arn, Attributes={"Token": "new"})
    assert commits.taken() == 1
    await stage.call("DeleteEndpoint", EndpointArn=arn)
    assert commits.taken() == 1


async def test_an_application_goes_with_its_devices(stage: Stage, commits: Commits) -> None:
    made = await stage.call("CreatePlatformApplication", Platform="GCM", Name="app", Attributes=PLATFORM)
    application = made["PlatformApplicationArn"]
    for token in ("a", "b"):
        await stage.call("CreatePlatformEndpoint", PlatformApplicationArn=application, Token=token)
    commits.taken()
    await stage.call("DeletePlatformApplication", PlatformApplicationArn=application)
    assert commits.taken() == 1
    assert await stage.engine.resources.documents.find(DEVICE, "") == []


async def test_a_replay_begins_and_ends_with_its_policy(stage: Stage, commits: Commits) -> None:
    attributes = {"FifoTopic": "true", "ArchivePolicy": '{"MessageRetentionPeriod":"1"}'}
    await stage.call("CreateTopic", Name="orders.fifo", Attributes=attributes)
    policy = '{"PointType":"Timestamp","StartingPoint":"2020-01-01T00:00:00Z"}'
    endpoint = "arn:aws:sqs:us-east-1:123456789012:q"
    commits.taken()
    made = await stage.call(
        "Subscribe",
        TopicArn=f"{TOPIC}.fifo",
        Protocol="sqs",
        Endpoint=endpoint,
        Attributes={"ReplayPolicy": policy},
    )
    assert commits.taken() == 1
    changes = {"SubscriptionArn": made["SubscriptionArn"], "AttributeName": "ReplayPolicy"}
    for value in ("", policy):
        await stage.engine.until_quiet()
        commits.taken()
        await stage.call("SetSubscriptionAttributes", AttributeValue=value, **changes)
        assert commits.taken() == 1
