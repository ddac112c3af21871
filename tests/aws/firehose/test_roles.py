"""Roles of streams where policies count: who may write, who may fill, and who may name a role at all."""

import json
from typing import Any

import pytest

from redrive.app import assembled
from redrive.aws.wire.errors import AwsError
from redrive.settings import Settings
from tests.aws.cloudformation.stage import ACCOUNT, Stage

STREAM = f"arn:aws:firehose:us-east-1:{ACCOUNT}:deliverystream/orders"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/writer"
LOGGED = {"Enabled": True, "LogGroupName": "/firehose", "LogStreamName": "errors"}


def trust(*services: str) -> str:
    principals = [f"{service}.amazonaws.com" for service in services]
    statement = {"Effect": "Allow", "Principal": {"Service": principals}, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def allows(action: str) -> str:
    statement = {"Effect": "Allow", "Action": action, "Resource": "*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


async def _stream(at: Stage) -> None:
    settings = {"RoleARN": ROLE, "BucketARN": "arn:aws:s3:::landing", "CloudWatchLoggingOptions": LOGGED}
    await at.ask(
        "firehose",
        "CreateDeliveryStream",
        DeliveryStreamName="orders",
        ExtendedS3DestinationConfiguration=settings,
    )


async def _keys(at: Stage) -> list[str]:
    listed = await at.ask("s3", "ListObjectsV2", Bucket="landing")
    return [each["Key"] for each in listed.get("Contents") or ()]


async def _allow(at: Stage, action: str) -> None:
    name = action.partition(":")[0]
    await at.ask("iam", "PutRolePolicy", RoleName="writer", PolicyName=name, PolicyDocument=allows(action))


async def _trust(at: Stage, *services: str) -> None:
    await at.ask("iam", "UpdateAssumeRolePolicy", RoleName="writer", PolicyDocument=trust(*services))


async def _publish(at: Stage, topic: str, **attributes: Any) -> None:
    await at.ask("sns", "Publish", TopicArn=topic, Message="m", **attributes)
    await at.advance(1)


async def test_a_role_has_to_trust_and_to_be_allowed() -> None:
    settings = Settings(store="sqlite://:memory:", clock="simulated", auth="required", functions="on")
    async with assembled(settings, "http://localhost") as server:
        await server.open()
        await server.parts.open_all()
        at = Stage(server)
        await at.ask("s3", "CreateBucket", Bucket="landing")
        await at.ask("iam", "CreateRole", RoleName="writer", AssumeRolePolicyDocument=trust("lambda"))
        with pytest.raises(AwsError, match="unable to assume role"):
            await _stream(at)
        await _trust(at, "firehose")
        await _stream(at)
        await at.ask("firehose", "PutRecord", DeliveryStreamName="orders", Record={"Data": b"1"})
        await at.advance(301)
        assert await _keys(at) == []
        (first, *_) = (await at.ask("logs", "FilterLogEvents", logGroupName="/firehose"))["events"]
        assert json.loads(first["message"])["errorCode"] == "S3.AccessDenied"
        await _allow(at, "s3:PutObject")
        await at.advance(300)
        assert len(await _keys(at)) == 1

        topic = (await at.ask("sns", "CreateTopic", Name="t"))["TopicArn"]
        role = {"SubscriptionRoleArn": ROLE, "RawMessageDelivery": "true"}
        subscribed = {"TopicArn": topic, "Protocol": "firehose", "Endpoint": STREAM, "Attributes": role}
        with pytest.raises(AwsError, match="SNS is unable to assume role"):
            await at.ask("sns", "Subscribe", **subscribed)
        await _trust(at, "firehose", "sns")
        await at.ask("sns", "Subscribe", **subscribed)
        await _trust(at, "firehose")
        await _publish(at, topic)
        await _trust(at, "firehose", "sns")
        await _publish(at, topic)
        await at.advance(300)
        assert (
            len(await _keys(at)) == 1
        )  # SNS could not assume the role at first, and may not put records since
        await _allow(at, "firehose:PutRecordBatch")
        await _publish(at, topic)
        await at.advance(300)
        assert len(await _keys(at)) == 2
