"""SNS's recorded answers."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson
import pytest

from tests.aws.stage import ACCOUNT, REGION, Refused, Stage, on_stage

QUEUE: Final = f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders"


def played(play: Callable[[Stage, str], Awaitable[None]], **attributes: str) -> None:
    """Play with a topic of these attributes."""

    async def prepared(stage: Stage) -> None:
        made = await stage.call(stage.root, "sns", "CreateTopic", Name="orders", Attributes=attributes)
        await play(stage, made["TopicArn"])

    on_stage(prepared, auth="off", functions="off")


async def attributes(stage: Stage, topic: str) -> Any:
    """The attributes of a topic."""
    return (await stage.call(stage.root, "sns", "GetTopicAttributes", TopicArn=topic))["Attributes"]


def test_a_topic_takes_messages_as_large_as_it_says() -> None:
    async def play(stage: Stage, topic: str) -> None:
        assert "MaximumMessageSize" not in await attributes(stage, topic)
        with pytest.raises(Refused, match="Message too long"):
            await stage.call(stage.root, "sns", "Publish", TopicArn=topic, Message="x" * 262_145)
        size = {"TopicArn": topic, "AttributeName": "MaximumMessageSize"}
        await stage.call(stage.root, "sns", "SetTopicAttributes", **size, AttributeValue="1048576")
        assert (await attributes(stage, topic))["MaximumMessageSize"] == "1048576"
        await stage.call(stage.root, "sns", "Publish", TopicArn=topic, Message="x" * 1_048_576)
        entries = [{"Id": str(number), "Message": "x" * 500_000} for number in range(2)]
        answer = await stage.call(
            stage.root, "sns", "PublishBatch", TopicArn=topic, PublishBatchRequestEntries=entries
        )
        assert len(answer["Successful"]) == 2
        await stage.call(stage.root, "sns", "SetTopicAttributes", **size, AttributeValue="1024")
        with pytest.raises(Refused, match="Message too long"):
            await stage.call(stage.root, "sns", "Publish", TopicArn=topic, Message="x" * 1025)
        for value in ("1023", "1048577", "large"):
            with pytest.raises(Refused, match="InvalidParameter"):
                await stage.call(stage.root, "sns", "SetTopicAttributes", **size, AttributeValue=value)

    played(play)


def test_only_services_subscribe_to_a_topic_of_large_messages() -> None:
    async def play(stage: Stage, topic: str) -> None:
        await stage.call(stage.root, "sns", "Subscribe", TopicArn=topic, Protocol="sqs", Endpoint=QUEUE)
        with pytest.raises(Refused, match="MaximumMessageSize"):
            await stage.call(
                stage.root, "sns", "Subscribe", TopicArn=topic, Protocol="sms", Endpoint="+4930123456"
            )

    played(play, MaximumMessageSize="300000")


def test_a_topic_with_a_telephone_takes_no_large_messages() -> None:
    async def play(stage: Stage, topic: str) -> None:
        await stage.call(
            stage.root, "sns", "Subscribe", TopicArn=topic, Protocol="sms", Endpoint="+4930123456"
        )
        size = {"TopicArn": topic, "AttributeName": "MaximumMessageSize"}
        with pytest.raises(Refused, match="MaximumMessageSize"):
            await stage.call(stage.root, "sns", "SetTopicAttributes", **size, AttributeValue="262145")
        await stage.call(stage.root, "sns", "SetTopicAttributes", **size, AttributeValue="262144")

    played(play)


@pytest.mark.parametrize(
    ("protocol", "endpoint", "setting"),
    [
        ("email", "ann@example.com", "--smtp-host"),
        ("sms", "+4930123456", "--sms-gateway"),
        ("lambda", f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:f", "--functions"),
    ],
)
def test_a_subscription_that_nobody_can_serve_is_told_at_once(
    caplog: pytest.LogCaptureFixture, protocol: str, endpoint: str, setting: str
) -> None:
    async def play(stage: Stage, topic: str) -> None:
        await stage.call(stage.root, "sns", "Subscribe", TopicArn=topic, Protocol=protocol, Endpoint=endpoint)

    played(play)
    (line,) = [record.getMessage() for record in caplog.records if "not_set_up" in record.getMessage()]
    assert f"this server is not set up for {protocol}; set {setting}" in line


def test_the_arn_of_an_application_is_looked_at_before_its_attributes() -> None:
    async def play(stage: Stage, _: str) -> None:
        refusal = await stage.refusal(
            stage.root,
            "sns",
            "SetPlatformApplicationAttributes",
            PlatformApplicationArn="orders",
            Attributes={},
        )
        text = "PlatformApplicationArn Reason: An ARN must have at least 6 elements, not 1"
        assert refusal == f"InvalidParameter: Invalid parameter: {text}"

    played(play)


def test_identifiers_of_data_may_have_a_region() -> None:
    async def play(stage: Stage, topic: str) -> None:
        operation = {"Audit": {"SampleRate": "99", "FindingsDestination": {}}}
        statement = {
            "Sid": "audit",
            "DataDirection": "Inbound",
            "Principal": ["*"],
            "DataIdentifier": ["arn:aws:dataprotection:us-east-1::data-identifier/EmailAddress"],
            "Operation": operation,
        }
        document = {"Name": "p", "Description": "d", "Version": "2021-06-01", "Statement": [statement]}
        text = orjson.dumps(document).decode()
        await stage.call(
            stage.root, "sns", "PutDataProtectionPolicy", ResourceArn=topic, DataProtectionPolicy=text
        )
        shown = await stage.call(stage.root, "sns", "GetDataProtectionPolicy", ResourceArn=topic)
        assert shown["DataProtectionPolicy"] == text
        assert "DataProtectionPolicy" not in await attributes(stage, topic)

    played(play)


def test_the_managed_policy_of_delivery_streams_is_there() -> None:
    async def play(stage: Stage, _: str) -> None:
        arn = "arn:aws:iam::aws:policy/AmazonKinesisFirehoseFullAccess"
        assert (await stage.call(stage.root, "iam", "GetPolicy", PolicyArn=arn))["Policy"]["Arn"] == arn

    played(play)
