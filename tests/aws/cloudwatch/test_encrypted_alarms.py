"""Alarms whose topic has a key: the key's policy lets CloudWatch in, or the history says that it does not."""

from typing import Any

import orjson

from tests.aws.cloudwatch.stage import ACCOUNT, Stage

DENIED = "CloudWatch Alarms does not have authorization to access the SNS topic encryption key."


def statement(principal: dict[str, str], *actions: str) -> dict[str, Any]:
    return {"Effect": "Allow", "Principal": principal, "Action": list(actions), "Resource": "*"}


OWNER = statement({"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "kms:*")
ALARMS = statement({"Service": "cloudwatch.amazonaws.com"}, "kms:Decrypt", "kms:GenerateDataKey*")


def policy(*statements: dict[str, Any]) -> str:
    return orjson.dumps({"Version": "2012-10-17", "Statement": list(statements)}).decode()


async def test_the_policy_of_a_topics_key_lets_alarms_in_or_not(stage: Stage) -> None:
    key = (await stage.call("kms", "CreateKey", Policy=policy(OWNER)))["KeyMetadata"]["KeyId"]
    topic = await stage.topic(Attributes={"KmsMasterKeyId": key})
    told = await stage.told(topic)
    await stage.alarm(AlarmActions=[topic], OKActions=[topic])

    await stage.put(Value=1.0)
    await stage.advance(60)
    assert await stage.state() == "ALARM"
    assert await stage.received(told) == []
    (failed,) = await stage.history("a", "Action")
    assert failed["HistorySummary"] == f"Failed to execute action {topic}"
    assert failed["HistoryData"] == {
        "actionState": "Failed",
        "stateUpdateTimestamp": stage.now,
        "notificationResource": topic,
        "publishedMessage": None,
        "error": DENIED,
    }

    await stage.call("kms", "PutKeyPolicy", KeyId=key, PolicyName="default", Policy=policy(OWNER, ALARMS))
    await stage.put(Value=0.0)
    await stage.advance(60)
    assert await stage.state() == "OK"
    (message,) = await stage.received(told)
    assert orjson.loads(message)["NewStateValue"] == "OK"
    latest = (await stage.history("a", "Action"))[0]
    assert latest["HistorySummary"] == f"Successfully executed action {topic}"
