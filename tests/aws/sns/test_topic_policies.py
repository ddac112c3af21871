from dataclasses import replace
from typing import Any

import orjson
import pytest

from tests.aws.sns.stage import ACCOUNT, OTHER, Stage, invalid, refused, topic_arn


class TestTags:
    async def test_tags_come_and_go(self, stage: Stage) -> None:
        arn = await stage.topic("t", tags={"k1": "v1", "k2": "v2"})

        async def tags() -> dict[str, str]:
            listed = (await stage.call("ListTagsForResource", ResourceArn=arn))["Tags"]
            return {tag["Key"]: tag["Value"] for tag in listed}

        await stage.call("UntagResource", ResourceArn=arn, TagKeys=["k1", "unknown"])
        assert await tags() == {"k2": "v2"}
        await stage.call(
            "TagResource", ResourceArn=arn, Tags=[{"Key": "k2", "Value": "v2b"}, {"Key": "k3", "Value": ""}]
        )
        assert await tags() == {"k2": "v2b", "k3": ""}

    async def test_a_key_stands_once(self, stage: Stage) -> None:
        arn = await stage.topic("t")
        twice = [{"Key": "k", "Value": "1"}, {"Key": "k", "Value": "2"}]
        with invalid("Duplicated keys are not allowed."):
            await stage.call("TagResource", ResourceArn=arn, Tags=twice)
        with invalid("Duplicated keys are not allowed."):
            await stage.call("CreateTopic", Name="u", Tags=twice)

    @pytest.mark.parametrize("key", ["aws:cloudformation:stack-name", "AWS:x"])
    async def test_some_keys_are_aws_s_own(self, stage: Stage, key: str) -> None:
        arn = await stage.topic("t")
        for operation, params in (("TagResource", {"ResourceArn": arn}), ("CreateTopic", {"Name": "u"})):
            with invalid("Tags Reason: aws: prefixed tag key names are not allowed for external use."):
                await stage.call(operation, Tags=[{"Key": key, "Value": "v"}], **params)
        assert (await stage.call("ListTagsForResource", ResourceArn=arn))["Tags"] == []

    async def test_fifty_tags_are_enough(self, stage: Stage) -> None:
        arn = await stage.topic("t", tags={f"k{number}": "v" for number in range(50)})
        text = "Could not complete request: tag quota of per resource exceeded"
        with refused("TagLimitExceeded", text):
            await stage.call("TagResource", ResourceArn=arn, Tags=[{"Key": "more", "Value": "v"}])

    @pytest.mark.parametrize("operation", ["ListTagsForResource", "TagResource", "UntagResource"])
    async def test_a_resource_must_be_there(self, stage: Stage, operation: str) -> None:
        with refused("ResourceNotFound", "Resource does not exist", 404):
            await stage.call(operation, ResourceArn=topic_arn("t"), Tags=[], TagKeys=[])

    async def test_a_long_key_is_refused_by_the_model(self, stage: Stage) -> None:
        text = (
            f"1 validation error detected: Value '{'k' * 129}' at 'tags.1.member.key' failed to satisfy"
            " constraint: Member must have length less than or equal to 128"
        )
        with refused("ValidationError", text):
            await stage.call("CreateTopic", Name="t", Tags=[{"Key": "k" * 129, "Value": "v"}])


def denied(action: str, arn: str, account: str = OTHER, *, explicitly: bool = False) -> str:
    why = (
        "with an explicit deny in a resource-based policy"
        if explicitly
        else f"because no resource-based policy allows the SNS:{action} action"
    )
    return f"User: arn:aws:iam::{account}:root is not authorized to perform: SNS:{action} on resource: {arn} {why}"


class TestPermissions:
    async def test_a_permission_is_a_statement(self, stage: Stage) -> None:
        arn = await stage.topic("t")
        for label, accounts, actions in (
            ("one", [OTHER], ["Publish"]),
            ("two", [OTHER, ACCOUNT], ["Publish", "Subscribe"]),
        ):
            await stage.call(
                "AddPermission", TopicArn=arn, Label=label, AWSAccountId=accounts, ActionName=actions
            )
        statements = orjson.loads((await stage.topic_attributes(arn))["Policy"])["Statement"]
        assert [one["Sid"] for one in statements] == ["__default_statement_ID", "one", "two"]
        assert statements[1] == {
            "Sid": "one",
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{OTHER}:root"},
            "Action": "SNS:Publish",
            "Resource": arn,
        }
        assert statements[2]["Action"] == ["SNS:Publish", "SNS:Subscribe"]

    async def test_a_permission_holds_until_it_is_removed(self, stage: Stage) -> None:
        arn = await stage.topic("t")
        with refused("AuthorizationError", denied("Publish", arn), 403):
            await stage.publish(arn, account=OTHER)
        await stage.call(
            "AddPermission", TopicArn=arn, Label="l", AWSAccountId=[OTHER], ActionName=["Publish"]
        )
        await stage.publish(arn, account=OTHER)
        with refused("AuthorizationError", denied("GetTopicAttributes", arn), 403):
            await stage.call("GetTopicAttributes", TopicArn=arn, account=OTHER)
        await stage.call("RemovePermission", TopicArn=arn, Label="l")
        with refused("AuthorizationError", denied("Publish", arn), 403):
            await stage.publish(arn, account=OTHER)
        default = orjson.loads((await stage.topic_attributes(arn))["Policy"])
        assert default["Id"] == "__default_policy_ID"
        assert len(default["Statement"]) == 1

    async def test_a_label_names_one_statement(self, stage: Stage) -> None:
        arn = await stage.topic("t")
        permission: dict[str, Any] = {
            "TopicArn": arn,
            "Label": "l",
            "AWSAccountId": [OTHER],
            "ActionName": ["Publish"],
        }
        await stage.call("AddPermission", **permission)
        with invalid("Statement already exists"):
            await stage.call("AddPermission", **permission)

    async def test_removing_no_permission_is_no_mistake(self, stage: Stage) -> None:
        arn = await stage.topic("t")
        before = await stage.topic_attributes(arn)
        await stage.call("RemovePermission", TopicArn=arn, Label="unknown")
        assert await stage.topic_attributes(arn) == before

    @pytest.mark.parametrize(
        ("account", "action", "reason"),
        [
            ("InvalidAccountId", "Publish", "A provided account ID is not valid"),
            ("1234", "Publish", "A provided account ID is not valid"),
            (OTHER, "SendMessage", "Policy statement action out of service scope!"),
        ],
    )
    async def test_a_permission_for_an_unknown_account_or_action_is_refused(
        self, stage: Stage, account: str, action: str, reason: str
    ) -> None:
        arn = await stage.topic("t")
        with invalid(reason):
            await stage.call(
                "AddPermission", TopicArn=arn, Label="l", AWSAccountId=[account], ActionName=[action]
            )

    @pytest.mark.parametrize(
        ("effect", "condition", "protocol", "endpoint", "may"),
        [
            ("Deny", {"StringEquals": {"sns:Protocol": "http"}}, "http", "http://a.example", False),
            ("Deny", {"StringEquals": {"sns:Protocol": "http"}}, "https", "https://a.example", True),
            ("Deny", {"StringLike": {"sns:Endpoint": "*evil*"}}, "https", "https://evil.example", False),
            ("Allow", {"StringNotLike": {"sns:Endpoint": "*evil*"}}, "https", "https://evil.example", False),
            ("Allow", {"StringLike": {"SNS:Endpoint": "*@corp.example"}}, "email", "ann@corp.example", True),
            ("Allow", {"StringLike": {"sns:Endpoint": "*@corp.example"}}, "email", "ann@evil.example", False),
        ],
    )
    async def test_a_policy_says_who_subscribes_what(
        self, stage: Stage, effect: str, condition: object, protocol: str, endpoint: str, may: bool
    ) -> None:
        arn = await stage.topic("t")
        everything = {"Principal": "*", "Action": "SNS:Subscribe", "Resource": arn}
        stated = [{"Effect": effect, **everything, "Condition": condition}]
        if effect == "Deny":
            stated.append({"Effect": "Allow", **everything})
        policy = orjson.dumps({"Statement": stated}).decode()
        await stage.call("SetTopicAttributes", TopicArn=arn, AttributeName="Policy", AttributeValue=policy)
        wish = {"TopicArn": arn, "Protocol": protocol, "Endpoint": endpoint}
        if may:
            assert await stage.call("Subscribe", account=OTHER, **wish)
        else:
            with refused("AuthorizationError", denied("Subscribe", arn, explicitly=effect == "Deny"), 403):
                await stage.call("Subscribe", account=OTHER, **wish)

    async def test_a_policy_that_cannot_be_read_any_more_closes_the_topic_until_it_is_replaced(
        self, stage: Stage
    ) -> None:
        arn = await stage.topic("t")
        (topic,) = await stage.engine.resources.topics.of_account(ACCOUNT, "us-east-1", "", 2)
        open_to_all = {
            "Effect": "Allow",
            "Principal": "*",
            "Action": "SNS:*",
            "Resource": arn,
            "Sid": "x" * 31_000,
        }
        text = orjson.dumps({"Statement": open_to_all}).decode()
        await stage.engine.resources.topics.update(
            topic.name, lambda now: replace(now, attributes={"Policy": text})
        )
        for account in (OTHER, ACCOUNT):
            with refused("AuthorizationError", denied("Publish", arn, account, explicitly=True), 403):
                await stage.publish(arn, account=account)
        with refused("AuthorizationError", denied("GetTopicAttributes", arn), 403):
            await stage.call("GetTopicAttributes", TopicArn=arn, account=OTHER)
        assert (await stage.topic_attributes(arn))["Policy"] == text
        await stage.call("SetTopicAttributes", TopicArn=arn, AttributeName="Policy", AttributeValue="")
        await stage.publish(arn)

    async def test_a_policy_decides_and_goes(self, stage: Stage) -> None:
        arn = await stage.topic("t")
        statement = {"Effect": "Allow", "Principal": {"AWS": OTHER}, "Action": "SNS:*", "Resource": arn}
        policy = orjson.dumps({"Version": "2012-10-17", "Statement": [statement]}).decode()
        await stage.call("SetTopicAttributes", TopicArn=arn, AttributeName="Policy", AttributeValue=policy)
        assert (await stage.topic_attributes(arn))["Policy"] == policy
        await stage.publish(arn, account=OTHER)
        await stage.call("SetTopicAttributes", TopicArn=arn, AttributeName="Policy", AttributeValue="")
        with refused("AuthorizationError", denied("Publish", arn), 403):
            await stage.publish(arn, account=OTHER)

    async def test_a_policy_can_deny_the_owner(self, stage: Stage) -> None:
        arn = await stage.topic("t")
        statement = {"Effect": "Deny", "Principal": "*", "Action": "sns:Publish", "Resource": arn}
        await stage.call(
            "SetTopicAttributes",
            TopicArn=arn,
            AttributeName="Policy",
            AttributeValue=orjson.dumps({"Statement": statement}).decode(),
        )
        with refused("AuthorizationError", denied("Publish", arn, ACCOUNT, explicitly=True), 403):
            await stage.publish(arn)
