from typing import Any

import orjson
import pytest

from tests.aws.sns.stage import ACCOUNT, OTHER, REGION, Stage, invalid, queue_arn, refused, topic_arn

QUEUE = queue_arn("orders")
ROLE = f"arn:aws:iam::{ACCOUNT}:role/stream"
FUNCTION = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:bill"
STREAM = f"arn:aws:firehose:{REGION}:{ACCOUNT}:deliverystream/lake"
DEVICE = f"arn:aws:sns:{REGION}:{ACCOUNT}:endpoint/GCM/app/e1097da7"
HOOK = "http://example.com/hook"
DEAD = orjson.dumps({"deadLetterTargetArn": queue_arn("dead")}).decode()


class TestEndpoints:
    @pytest.mark.parametrize(
        ("protocol", "endpoint"),
        [
            ("sqs", QUEUE),
            ("sqs", queue_arn("elsewhere", region="eu-central-1")),
            ("lambda", FUNCTION),
            ("application", DEVICE),
            ("sms", "+123123123"),
            ("sms", "15/55-123.4567"),
        ],
    )
    async def test_resources_of_the_account_and_telephones_are_not_asked(
        self, stage: Stage, protocol: str, endpoint: str
    ) -> None:
        arn = await stage.subscribe(await stage.topic(), protocol, endpoint)
        assert await stage.attributes(arn) == {
            "ConfirmationWasAuthenticated": "true",
            "Endpoint": endpoint,
            "Owner": ACCOUNT,
            "PendingConfirmation": "false",
            "Protocol": protocol,
            "RawMessageDelivery": "false",
            "SubscriptionArn": arn,
            "SubscriptionPrincipal": f"arn:aws:iam::{ACCOUNT}:root",
            "TopicArn": topic_arn("orders"),
        }

    async def test_a_stream_needs_a_role(self, stage: Stage) -> None:
        topic = await stage.topic()
        with invalid("Attributes Reason: SubscriptionRoleArn: required for the firehose protocol"):
            await stage.subscribe(topic, "firehose", STREAM)
        arn = await stage.subscribe(topic, "firehose", STREAM, SubscriptionRoleArn=ROLE)
        assert (await stage.attributes(arn))["SubscriptionRoleArn"] == ROLE

    @pytest.mark.parametrize(
        ("protocol", "endpoint"),
        [
            ("http", HOOK),
            ("https", "https://user:secret@example.com:8443/hook?x=1"),
            ("email", "somebody@example.com"),
            ("email-json", "somebody@example.com"),
            ("sqs", queue_arn("theirs", account=OTHER)),
            ("lambda", FUNCTION.replace(ACCOUNT, OTHER)),
        ],
    )
    async def test_other_endpoints_wait_for_their_confirmation(
        self, stage: Stage, protocol: str, endpoint: str
    ) -> None:
        topic = await stage.topic()
        wish = {"TopicArn": topic, "Protocol": protocol, "Endpoint": endpoint}
        assert await stage.call("Subscribe", **wish) == {"SubscriptionArn": "pending confirmation"}
        arn = await stage.subscribe(topic, protocol, endpoint)
        attributes = await stage.attributes(arn)
        assert (attributes["PendingConfirmation"], attributes["ConfirmationWasAuthenticated"]) == (
            "true",
            "false",
        )
        listed = (await stage.call("ListSubscriptionsByTopic", TopicArn=topic))["Subscriptions"]
        assert listed == [
            {
                "SubscriptionArn": "PendingConfirmation",
                "Owner": ACCOUNT,
                "Protocol": protocol,
                "Endpoint": endpoint.replace("secret", "****"),
                "TopicArn": topic,
            }
        ]

    @pytest.mark.parametrize(
        ("protocol", "endpoint", "reason"),
        [
            ("test-protocol", "x", "Amazon SNS does not support this protocol string: test-protocol"),
            ("sqs", "http://localhost:4566/000000000000/orders", "SQS endpoint ARN"),
            ("sqs", "randomstring", "SQS endpoint ARN"),
            ("sqs", FUNCTION, "SQS endpoint ARN"),
            ("lambda", QUEUE, "Lambda endpoint ARN"),
            ("lambda", "bill", "Lambda endpoint ARN"),
            ("firehose", QUEUE, "Firehose endpoint ARN"),
            ("application", topic_arn("t"), f"Application endpoint arn invalid:{topic_arn('t')}"),
            ("application", "x", "Application endpoint arn invalid:x"),
            ("email", "this is not an email", "Email address"),
            ("email", "", "Email address"),
            ("http", "https://example.com", "Endpoint must match the specified protocol"),
            ("https", HOOK, "Endpoint must match the specified protocol"),
            ("http", "http://", "Endpoint must match the specified protocol"),
            ("http", "http://a_b.example.com", "Endpoint must match the specified protocol"),
            ("http", "http://example.com:x", "Endpoint must match the specified protocol"),
            ("http", "http://example.com/a b", "Endpoint must match the specified protocol"),
            (
                "sqs",
                queue_arn("q.fifo"),
                "Invalid parameter: Endpoint Reason: FIFO SQS Queues can not be subscribed to standard SNS topics",
            ),
        ],
    )
    async def test_an_invalid_endpoint_cannot_be_subscribed(
        self, stage: Stage, protocol: str, endpoint: str, reason: str
    ) -> None:
        with invalid(reason):
            await stage.subscribe(await stage.topic(), protocol, endpoint)

    @pytest.mark.parametrize(
        "number", ["NAA+15551234567", "invalid-number", "/15/551", "15//551", "+", "", "+0123"]
    )
    async def test_a_telephone_number_must_be_one(self, stage: Stage, number: str) -> None:
        with refused("InvalidParameter", f"Invalid SMS endpoint: {number}"):
            await stage.subscribe(await stage.topic(), "sms", number)

    async def test_a_fifo_topic_delivers_to_queues_alone(self, stage: Stage) -> None:
        topic = await stage.topic("t.fifo")
        await stage.subscribe(topic, "sqs", queue_arn("q.fifo"))
        await stage.subscribe(topic, "sqs", QUEUE)
        with invalid("Invalid protocol type: http"):
            await stage.subscribe(topic, "http", HOOK)

    async def test_a_topic_must_be_there(self, stage: Stage) -> None:
        with refused("NotFound", "Topic does not exist", 404):
            await stage.subscribe(topic_arn("t"), "sqs", QUEUE)
        with invalid("TopicArn"):
            await stage.subscribe(topic_arn("t", region="eu-west-1"), "sqs", QUEUE)


class TestIdempotency:
    async def test_equal_fewer_and_default_attributes_find_what_stands(self, stage: Stage) -> None:
        topic = await stage.topic()
        arn = await stage.subscribe(topic, "sqs", QUEUE, RawMessageDelivery="True")
        given: list[dict[str, str]] = [
            {"RawMessageDelivery": "true"},
            {"RawMessageDelivery": "true", "FilterPolicyScope": "MessageAttributes"},
            {},
            {"FilterPolicyScope": "MessageAttributes"},
        ]
        assert {await stage.subscribe(topic, "sqs", QUEUE, **one) for one in given} == {arn}
        assert (await stage.attributes(arn))["RawMessageDelivery"] == "true"

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("RawMessageDelivery", "false"),
            ("FilterPolicy", '{"a":["b"]}'),
            ("FilterPolicyScope", "MessageBody"),
            ("RedrivePolicy", DEAD),
        ],
    )
    async def test_other_attributes_are_refused(self, stage: Stage, name: str, value: str) -> None:
        topic = await stage.topic()
        await stage.subscribe(topic, "sqs", QUEUE, RawMessageDelivery="true")
        with invalid("Attributes Reason: Subscription already exists with different attributes"):
            await stage.subscribe(topic, "sqs", QUEUE, **{name: value})

    async def test_another_topic_has_another_subscription(self, stage: Stage) -> None:
        arns = {await stage.subscribe(await stage.topic(name), "sqs", QUEUE) for name in ("a", "b")}
        assert len(arns) == 2


class TestNames:
    @pytest.mark.parametrize(
        "operation", ["Unsubscribe", "GetSubscriptionAttributes", "SetSubscriptionAttributes"]
    )
    @pytest.mark.parametrize(
        ("arn", "reason"),
        [
            ("randomstring", "SubscriptionArn Reason: An ARN must have at least 6 elements, not 1"),
            (
                "arn:aws:sns:us-east-1:random",
                "SubscriptionArn Reason: An ARN must have at least 6 elements, not 5",
            ),
            (topic_arn("t"), "SubscriptionId"),
            (f"{topic_arn('t')}:not-a-uuid", "SubscriptionId"),
            (QUEUE, "SubscriptionArn"),
        ],
    )
    async def test_an_arn_must_be_one(self, stage: Stage, operation: str, arn: str, reason: str) -> None:
        with invalid(reason):
            await stage.call(operation, SubscriptionArn=arn, AttributeName="RawMessageDelivery")

    async def test_passwords_of_endpoints_are_masked(self, stage: Stage) -> None:
        topic = await stage.topic()
        arn = await stage.subscribe(topic, "https", "https://user:secret@example.com/hook")
        assert arn == await stage.subscribe(topic, "https", "https://user:secret@example.com/hook")
        hidden = "https://user:****@example.com/hook"  # recorded
        assert (await stage.attributes(arn))["Endpoint"] == hidden
        for operation in ("ListSubscriptions", "ListSubscriptionsByTopic"):
            (listed,) = (await stage.call(operation, TopicArn=topic))["Subscriptions"]
            assert listed["Endpoint"] == hidden

    async def test_unsubscribe_wants_an_arn(self, stage: Stage) -> None:
        with invalid("SubscriptionArn Reason: no value for required parameter"):
            await stage.call("Unsubscribe")
        with invalid("SubscriptionArn Reason: An ARN must have at least 6 elements, not 1"):
            await stage.call("Unsubscribe", SubscriptionArn="")

    async def test_a_subscription_must_be_there(self, stage: Stage) -> None:
        arn = await stage.subscribe(await stage.topic(), "sqs", QUEUE)
        await stage.call("Unsubscribe", SubscriptionArn=arn)
        await stage.call("Unsubscribe", SubscriptionArn=arn)
        with refused("NotFound", "Subscription does not exist", 404):
            await stage.attributes(arn)
        with refused("NotFound", "Subscription does not exist", 404):
            await stage.set(arn, "RawMessageDelivery", "true")
        assert (await stage.call("ListSubscriptions"))["Subscriptions"] == []

    async def test_subscriptions_end_with_their_topic(self, stage: Stage) -> None:
        topic = await stage.topic()
        arn = await stage.subscribe(topic, "sqs", QUEUE)
        await stage.call("DeleteTopic", TopicArn=topic)
        with refused("NotFound", "Subscription does not exist", 404):
            await stage.attributes(arn)
        await stage.call("Unsubscribe", SubscriptionArn=arn)


class TestAcrossAccounts:
    async def _opened(self, stage: Stage) -> str:
        topic = await stage.topic()
        await stage.call(
            "AddPermission", TopicArn=topic, Label="l", AWSAccountId=[OTHER], ActionName=["Subscribe"]
        )
        return topic

    async def test_an_account_that_subscribes_its_own_queue_is_not_asked(self, stage: Stage) -> None:
        topic = await self._opened(stage)
        arn = await stage.subscribe(topic, "sqs", queue_arn("q", account=OTHER), account=OTHER)
        attributes = await stage.attributes(arn)
        assert (attributes["Owner"], attributes["PendingConfirmation"]) == (OTHER, "false")
        of_topic = await stage.call("ListSubscriptionsByTopic", TopicArn=topic)
        assert [one["Owner"] for one in of_topic["Subscriptions"]] == [OTHER]
        assert (await stage.call("ListSubscriptions"))["Subscriptions"] == []

    async def test_subscribing_takes_a_permission(self, stage: Stage) -> None:
        topic = await stage.topic()
        text = (
            f"User: arn:aws:iam::{OTHER}:root is not authorized to perform: SNS:Subscribe on resource: {topic}"
            " because no resource-based policy allows the SNS:Subscribe action"
        )
        with refused("AuthorizationError", text, 403):
            await stage.subscribe(topic, "sqs", queue_arn("q", account=OTHER), account=OTHER)

    @pytest.mark.parametrize(
        ("operation", "params"),
        [
            ("GetSubscriptionAttributes", {}),
            ("SetSubscriptionAttributes", {"AttributeName": "RawMessageDelivery", "AttributeValue": "true"}),
            ("Unsubscribe", {}),
        ],
    )
    async def test_a_stranger_may_not(self, stage: Stage, operation: str, params: dict[str, Any]) -> None:
        arn = await stage.subscribe(await stage.topic(), "sqs", QUEUE)
        text = (
            f"User: arn:aws:iam::{OTHER}:root is not authorized to perform: SNS:{operation} on resource: {arn}"
            f" because no resource-based policy allows the SNS:{operation} action"
        )
        with refused("AuthorizationError", text, 403):
            await stage.call(operation, account=OTHER, SubscriptionArn=arn, **params)

    async def test_nor_learn_whether_a_subscription_is_there(self, stage: Stage) -> None:
        arn = f"{topic_arn('t')}:45f03920-f890-4a2f-bd77-32f9689b8013"
        text = (
            f"User: arn:aws:iam::{OTHER}:root is not authorized to perform: SNS:Unsubscribe on resource: {arn}"
            " because no resource-based policy allows the SNS:Unsubscribe action"
        )
        with refused("AuthorizationError", text, 403):
            await stage.call("Unsubscribe", account=OTHER, SubscriptionArn=arn)
