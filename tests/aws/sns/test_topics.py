from typing import Any

import orjson
import pytest

from tests.aws.sns.stage import ACCOUNT, OTHER, Stage, invalid, refused, topic_arn

DEFAULT_RETRY = {
    "minDelayTarget": 20,
    "maxDelayTarget": 20,
    "numRetries": 3,
    "numMaxDelayRetries": 0,
    "numNoDelayRetries": 0,
    "numMinDelayRetries": 0,
    "backoffFunction": "linear",
}
PLAIN = {"headerContentType": "text/plain; charset=UTF-8"}
ROLE = f"arn:aws:iam::{ACCOUNT}:role/feedback"


class TestCreate:
    async def test_a_topic_with_nothing_set_shows_the_defaults(self, stage: Stage) -> None:
        arn = await stage.topic("orders")
        attributes = await stage.topic_attributes(arn)
        policy = orjson.loads(attributes.pop("Policy"))
        delivery = orjson.loads(attributes.pop("EffectiveDeliveryPolicy"))
        assert arn == "arn:aws:sns:us-east-1:123456789012:orders"
        assert attributes == {
            "DisplayName": "",
            "Owner": ACCOUNT,
            "SubscriptionsConfirmed": "0",
            "SubscriptionsDeleted": "0",
            "SubscriptionsPending": "0",
            "TopicArn": arn,
        }
        assert delivery == {
            "http": {
                "defaultHealthyRetryPolicy": DEFAULT_RETRY,
                "disableSubscriptionOverrides": False,
                "defaultRequestPolicy": PLAIN,
            }
        }
        assert policy == {
            "Version": "2008-10-17",
            "Id": "__default_policy_ID",
            "Statement": [
                {
                    "Sid": "__default_statement_ID",
                    "Effect": "Allow",
                    "Principal": {"AWS": "*"},
                    "Action": [
                        "SNS:GetTopicAttributes",
                        "SNS:SetTopicAttributes",
                        "SNS:AddPermission",
                        "SNS:RemovePermission",
                        "SNS:DeleteTopic",
                        "SNS:Subscribe",
                        "SNS:ListSubscriptionsByTopic",
                        "SNS:Publish",
                    ],
                    "Resource": arn,
                    "Condition": {"StringEquals": {"AWS:SourceOwner": ACCOUNT}},
                }
            ],
        }

    async def test_a_fifo_topic_shows_what_it_is(self, stage: Stage) -> None:
        arn = await stage.topic("orders.fifo", SignatureVersion="2", DisplayName="TestTopic")
        attributes = await stage.topic_attributes(arn)
        assert attributes["FifoTopic"] == "true"
        assert attributes["ContentBasedDeduplication"] == "false"
        assert attributes["SignatureVersion"] == "2"
        assert attributes["DisplayName"] == "TestTopic"

    @pytest.mark.parametrize(
        "name", ["", "x" * 257, "a:b", "a;b", "a!b", "a@b", "a|b", "a^b", "a%b", "a b", "ä", "a.fifo", "a/b"]
    )
    async def test_a_name_must_be_one(self, stage: Stage, name: str) -> None:
        with invalid("Topic Name"):
            await stage.call("CreateTopic", Name=name)

    @pytest.mark.parametrize("name", ["a", "a.fif", ".fifo", f"{'x' * 252}.fifo"])
    async def test_a_fifo_name_must_be_one(self, stage: Stage, name: str) -> None:
        with invalid("Topic Name"):
            await stage.call("CreateTopic", Name=name, Attributes={"FifoTopic": "true"})

    async def test_the_longest_names_fit(self, stage: Stage) -> None:
        assert await stage.topic("x" * 256) == topic_arn("x" * 256)
        assert await stage.topic(f"{'x' * 251}.fifo") == topic_arn(f"{'x' * 251}.fifo")

    async def test_again_with_the_same_or_less_is_the_same_topic(self, stage: Stage) -> None:
        arn = await stage.topic("t", tags={"k1": "v1", "k2": "v2"}, DisplayName="d", SignatureVersion="1")
        assert await stage.topic("t") == arn
        assert await stage.topic("t", DisplayName="d") == arn
        assert await stage.topic("t", FifoTopic="false", SignatureVersion="1") == arn
        assert await stage.topic("t", tags={"k2": "v2", "k1": "v1"}) == arn

    async def test_again_with_other_attributes_is_refused(self, stage: Stage) -> None:
        await stage.topic("t", DisplayName="d")
        with invalid("Attributes Reason: Topic already exists with different attributes"):
            await stage.topic("t", DisplayName="e")
        with invalid("Attributes Reason: Topic already exists with different attributes"):
            await stage.topic("t", SignatureVersion="2")

    async def test_again_with_some_of_its_tags_it_is_the_same(self, stage: Stage) -> None:
        arn = await stage.topic("t", tags={"a": "1", "b": "2"})
        assert await stage.topic("t", tags={"a": "1"}) == arn
        assert await stage.topic("t", tags={}) == arn

    async def test_again_with_other_tags_is_refused(self, stage: Stage) -> None:
        await stage.topic("t", tags={"k1": "v1"})
        for tags in ({"k1": "v1", "k2": "v2"}, {"k1": "v2"}, {"k2": "v1"}):
            with invalid("Tags Reason: Topic already exists with different tags"):
                await stage.topic("t", tags=tags)

    async def test_a_topic_made_again_after_its_end_is_another(self, stage: Stage) -> None:
        arn = await stage.topic("t", tags={"k1": "v1"})
        await stage.subscribe(arn, "sms", "+49301234567")
        await stage.call("DeleteTopic", TopicArn=arn)
        await stage.topic("t", tags={"k2": "v2"})
        assert (await stage.topic_attributes(arn))["SubscriptionsConfirmed"] == "0"


UNKNOWN_ATTRIBUTES = [  # or those of the other kind of topic
    ("Nonsense", "1"),
    ("FifoThroughputScope", "Topic"),
    ("ContentBasedDeduplication", "true"),
    ("ArchivePolicy", '{"MessageRetentionPeriod":"3"}'),
    ("BeginningArchiveTime", "x"),
    ("Owner", OTHER),
]
REFUSED_ATTRIBUTES = [
    (
        "SQSSuccessFeedbackSampleRate",
        "500",
        "SQSSuccessFeedbackSampleRate: 500 value provided is not an integer between 0-100",
    ),
    (
        "HTTPSuccessFeedbackSampleRate",
        "x",
        "HTTPSuccessFeedbackSampleRate: x value provided is not an integer between 0-100",
    ),
    (
        "LambdaFailureFeedbackRoleArn",
        "nobody",
        "LambdaFailureFeedbackRoleArn: nobody is not the ARN of a role",
    ),
    (
        "DeliveryPolicy",
        '{"http":{"defaultHealthyRetryPolicy":{"numRetries":300}}}',
        "DeliveryPolicy: http.defaultHealthyRetryPolicy.numRetries must be less than or equal to 100",
    ),
    ("Policy", "policy", "Policy Error: null"),
    ("Policy", '{"Version":"2012-10-17"}', "Policy Error: null"),
    (
        "Policy",
        '{"Statement":[{"Effect":"Allow","Principal":"*","Action":"SNS:Publishx","Resource":"*"}]}',
        "Policy statement action out of service scope!",
    ),
    (
        "Policy",
        '{"Statement":{"Effect":"Allow","Principal":"*","Action":["SNS:Publish","SQS:SendMessage"],"Resource":"*"}}',
        "Policy statement action out of service scope!",
    ),
    ("SignatureVersion", "3", "SignatureVersion: Invalid value [3]. Must be 1 or 2."),
    ("TracingConfig", "On", "TracingConfig: Invalid value [On]. Must be PassThrough or Active."),
    ("DisplayName", "x" * 101, "DisplayName: must be at most 100 characters"),
]


class TestAttributes:
    @pytest.mark.parametrize(("name", "value", "reason"), REFUSED_ATTRIBUTES)
    async def test_an_invalid_attribute_is_refused_alone(
        self, stage: Stage, name: str, value: str, reason: str
    ) -> None:
        arn = await stage.topic("t")
        before = await stage.topic_attributes(arn)
        with invalid(reason):
            await stage.call("SetTopicAttributes", TopicArn=arn, AttributeName=name, AttributeValue=value)
        assert await stage.topic_attributes(arn) == before

    @pytest.mark.parametrize(("name", "value", "reason"), REFUSED_ATTRIBUTES)
    async def test_an_invalid_attribute_is_refused_at_creation(
        self, stage: Stage, name: str, value: str, reason: str
    ) -> None:
        with invalid(f"Attributes Reason: {reason}"):
            await stage.topic("t", **_one(name, value))
        assert (await stage.call("ListTopics"))["Topics"] == []

    @pytest.mark.parametrize(("name", "value"), UNKNOWN_ATTRIBUTES)
    async def test_an_unknown_attribute_is_refused(self, stage: Stage, name: str, value: str) -> None:
        with invalid(f"Attributes Reason: Unknown attribute {name}"):
            await stage.topic("t", **_one(name, value))
        assert (await stage.call("ListTopics"))["Topics"] == []
        arn = await stage.topic("t")
        with invalid("AttributeName"):
            await stage.call("SetTopicAttributes", TopicArn=arn, AttributeName=name, AttributeValue=value)

    @pytest.mark.parametrize("name", ["FifoTopic", "AttributeName", "SubscriptionsDeleted", "TopicArn"])
    async def test_an_attribute_of_creation_cannot_be_set_later(self, stage: Stage, name: str) -> None:
        arn = await stage.topic("t")
        with invalid("AttributeName"):
            await stage.call("SetTopicAttributes", TopicArn=arn, AttributeName=name, AttributeValue="false")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("KmsMasterKeyId", "testxyz"),
            ("TracingConfig", "Active"),
            ("SignatureVersion", "2"),
            ("DisplayName", "Test4"),
            *(
                (f"{protocol}{rest}", value)
                for protocol in ("HTTP", "Firehose", "Lambda", "Application", "SQS")
                for rest, value in (
                    ("SuccessFeedbackRoleArn", ROLE),
                    ("FailureFeedbackRoleArn", ROLE),
                    ("SuccessFeedbackSampleRate", "5"),
                )
            ),
        ],
    )
    async def test_a_set_attribute_is_shown(self, stage: Stage, name: str, value: str) -> None:
        arn = await stage.topic("t")
        await stage.call("SetTopicAttributes", TopicArn=arn, AttributeName=name, AttributeValue=value)
        assert (await stage.topic_attributes(arn))[name] == value
        assert await stage.topic("t", **_one(name, value)) == arn

    async def test_delivery_policies_come_and_go(self, stage: Stage) -> None:
        arn = await stage.topic(
            "t.fifo",
            DeliveryPolicy='{"http":{"defaultRequestPolicy":{"headerContentType":"application/json"}}}',
        )

        async def policies() -> tuple[object, object]:
            attributes = await stage.topic_attributes(arn)
            own, effective = attributes.get("DeliveryPolicy"), attributes["EffectiveDeliveryPolicy"]
            return own and orjson.loads(own)["http"], orjson.loads(effective)["http"]

        async def put(value: str) -> None:
            await stage.call(
                "SetTopicAttributes", TopicArn=arn, AttributeName="DeliveryPolicy", AttributeValue=value
            )

        json_type = {"headerContentType": "application/json"}
        no_overrides = {"disableSubscriptionOverrides": False}
        assert await policies() == (
            {**no_overrides, "defaultRequestPolicy": json_type},
            {
                "defaultHealthyRetryPolicy": DEFAULT_RETRY,
                **no_overrides,
                "defaultRequestPolicy": json_type,
            },
        )
        given = {"minDelayTarget": 5, "maxDelayTarget": 6, "numRetries": 1}
        await put(orjson.dumps({"http": {"defaultHealthyRetryPolicy": given}}).decode())
        assert await policies() == (
            {"defaultHealthyRetryPolicy": given, **no_overrides},
            {
                "defaultHealthyRetryPolicy": {**DEFAULT_RETRY, **given},
                **no_overrides,
                "defaultRequestPolicy": PLAIN,
            },
        )
        await put('{"http":{"defaultHealthyRetryPolicy":null}}')
        assert (await policies())[0] == no_overrides
        await put("")
        assert (await policies())[0] is None

    async def test_an_archive_begins_when_it_is_asked_for(self, stage: Stage) -> None:
        arn = await stage.topic("t.fifo", ArchivePolicy='{"MessageRetentionPeriod":"30"}')
        attributes = await stage.topic_attributes(arn)
        assert attributes["ArchivePolicy"] == '{"MessageRetentionPeriod":"30"}'
        assert attributes["BeginningArchiveTime"] == "2026-01-01T00:00:00.000Z"
        with refused("InvalidState", "Cannot delete a topic with an active archive policy"):
            await stage.call("DeleteTopic", TopicArn=arn)
        await stage.call(
            "SetTopicAttributes", TopicArn=arn, AttributeName="ArchivePolicy", AttributeValue="{}"
        )
        assert "ArchivePolicy" not in await stage.topic_attributes(arn)
        await stage.call("DeleteTopic", TopicArn=arn)

    @pytest.mark.parametrize(
        "policy", ['{"MessageRetentionPeriod":"0"}', '{"MessageRetentionPeriod":366}', '{"Days":3}']
    )
    async def test_an_archive_is_kept_for_a_year_at_most(self, stage: Stage, policy: str) -> None:
        reason = "ArchivePolicy: MessageRetentionPeriod value is invalid"
        with invalid(f"Attributes Reason: {reason}"):
            await stage.topic("t.fifo", ArchivePolicy=policy)

    async def test_fifo_attributes_reach_the_engine(self, stage: Stage) -> None:
        arn = await stage.topic(
            "t.fifo", ContentBasedDeduplication="True", FifoThroughputScope="MessageGroup"
        )
        attributes = await stage.topic_attributes(arn)
        assert attributes["ContentBasedDeduplication"] == "true"
        assert attributes["FifoThroughputScope"] == "MessageGroup"
        await stage.call(
            "SetTopicAttributes",
            TopicArn=arn,
            AttributeName="ContentBasedDeduplication",
            AttributeValue="false",
        )
        assert (await stage.topic_attributes(arn))["ContentBasedDeduplication"] == "false"

    async def test_subscriptions_are_counted(self, stage: Stage) -> None:
        arn = await stage.topic("t")
        phone = await stage.subscribe(arn, "sms", "+49301234567")
        await stage.subscribe(arn, "email", "a@example.com")
        await stage.subscribe(arn, "http", "http://example.com/hook")
        await stage.call("Unsubscribe", SubscriptionArn=phone)
        attributes = await stage.topic_attributes(arn)
        counts = [attributes[f"Subscriptions{state}"] for state in ("Confirmed", "Pending", "Deleted")]
        assert counts == ["0", "2", "1"]


class TestNames:
    @pytest.mark.parametrize(
        "operation", ["GetTopicAttributes", "DeleteTopic", "ListSubscriptionsByTopic", "Publish"]
    )
    @pytest.mark.parametrize(
        ("arn", "reason"),
        [
            ("", "TopicArn Reason: An ARN must have at least 6 elements, not 1"),
            ("randomstring", "TopicArn Reason: An ARN must have at least 6 elements, not 1"),
            ("random:topic", "TopicArn Reason: An ARN must have at least 6 elements, not 2"),
            (topic_arn("t", region="eu-central-1"), "TopicArn"),
            ("arn:aws:sqs:us-east-1:123456789012:t", "TopicArn"),
            (f"{topic_arn('t')}:0", "TopicArn"),
            (topic_arn("a/b"), "TopicArn"),
        ],
    )
    async def test_an_arn_must_be_one(self, stage: Stage, operation: str, arn: str, reason: str) -> None:
        await stage.topic("t")
        with invalid(reason):
            await stage.call(operation, TopicArn=arn, Message="m")

    @pytest.mark.parametrize(
        "operation", ["GetTopicAttributes", "ListSubscriptionsByTopic", "Publish", "RemovePermission"]
    )
    async def test_a_topic_must_be_there(self, stage: Stage, operation: str) -> None:
        with refused("NotFound", "Topic does not exist", 404):
            await stage.call(operation, TopicArn=topic_arn("t"), Message="m", Label="l")

    async def test_deleting_what_is_not_there_is_no_mistake(self, stage: Stage) -> None:
        arn = await stage.topic("t")
        await stage.call("DeleteTopic", TopicArn=arn)
        await stage.call("DeleteTopic", TopicArn=arn)
        with refused("NotFound", "Topic does not exist", 404):
            await stage.topic_attributes(arn)

    async def test_a_list_has_pages_of_a_hundred(self, stage: Stage) -> None:
        made = {await stage.topic(f"t{number:03d}") for number in range(100)}
        assert "NextToken" not in await stage.call("ListTopics")
        made.add(await stage.topic("t100"))
        await stage.call("CreateTopic", Name="elsewhere", region="eu-west-1")
        await stage.call("CreateTopic", Name="somebodys", account=OTHER)
        first = await stage.call("ListTopics")
        second = await stage.call("ListTopics", NextToken=first["NextToken"])
        listed = [one["TopicArn"] for page in (first, second) for one in page["Topics"]]
        assert (len(first["Topics"]), len(listed), set(listed)) == (100, 101, made)
        assert "NextToken" not in second

    async def test_a_token_of_another_list_is_refused(self, stage: Stage) -> None:
        with invalid("NextToken Reason: §§ is not a token of this list"):
            await stage.call("ListTopics", NextToken="§§")


def _one(name: str, value: str) -> dict[str, Any]:
    return {name: value}
