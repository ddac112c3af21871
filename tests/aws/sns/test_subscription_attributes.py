import orjson
import pytest

from tests.aws.sns.stage import ACCOUNT, OTHER, REGION, Stage, invalid, queue_arn, topic_arn

QUEUE = queue_arn("orders")
FUNCTION = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:bill"
DEVICE = f"arn:aws:sns:{REGION}:{ACCOUNT}:endpoint/GCM/app/e1097da7"
HOOK = "http://example.com/hook"
SOURCE = "[Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 1, column: "
UNQUOTED_NAME = (
    "failed to parse JSON. Unexpected character ('i' (code 105)): was expecting double-quote to start field name"
    f"\n at {SOURCE}2]"
)
STRANGE_WORD = (
    "failed to parse JSON. Unrecognized token 'invalid': was expecting (JSON String, Number, Array, Object or token"
    f" 'null', 'true' or 'false')\n at {SOURCE}8]"
)
NESTED = '{"a":{"b":["c"]}}'
DEAD = orjson.dumps({"deadLetterTargetArn": queue_arn("dead")}).decode()
DEAD_FIFO = orjson.dumps({"deadLetterTargetArn": queue_arn("dead.fifo")}).decode()


# Attribute, value and reason, for a subscription of a queue to a standard topic.
REFUSED_ATTRIBUTES = [
    ("fake", "x", "AttributeName"),
    ("Endpoint", QUEUE, "AttributeName"),
    (
        "RawMessageDelivery",
        "test-ValUe",
        "RawMessageDelivery: Invalid value [test-ValUe]. Must be true or false.",
    ),
    ("RawMessageDelivery", "", "RawMessageDelivery: Invalid value []. Must be true or false."),
    (
        "FilterPolicyScope",
        "Both",
        "FilterPolicyScope: Invalid value [Both]. Please use either MessageBody or MessageAttributes",
    ),
    (
        "RedrivePolicy",
        '{"deadLetterTargetArn":"fake-arn"}',
        "RedrivePolicy: deadLetterTargetArn is an invalid arn",
    ),
    (
        "RedrivePolicy",
        f'{{"deadLetterTargetArn":"{topic_arn("t")}"}}',
        "RedrivePolicy: deadLetterTargetArn is an invalid arn",
    ),
    ("RedrivePolicy", '{"deadLetterTargetArn":1}', "RedrivePolicy: deadLetterTargetArn is an invalid arn"),
    (
        "RedrivePolicy",
        '{"deadLetterTargetArn":"x","maxReceiveCount":5}',
        "RedrivePolicy: invalid JSON. Attribute maxReceiveCount is unknown.",
    ),
    (
        "RedrivePolicy",
        "{invalidjson}",
        f"RedrivePolicy: {UNQUOTED_NAME}",
    ),
    *(
        (
            "RedrivePolicy",
            f'{{"deadLetterTargetArn":"{arn}"}}',
            "RedrivePolicy: deadLetterTargetArn must be in the account and region of the subscription",
        )
        for arn in (queue_arn("dead", account=OTHER), queue_arn("dead", region="eu-west-1"))
    ),
    (
        "RedrivePolicy",
        DEAD_FIFO,
        "RedrivePolicy: must use a standard queue as DLQ for a standard Subscription.",
    ),
    (
        "FilterPolicy",
        "{invalidjson}",
        f"FilterPolicy: {UNQUOTED_NAME}",
    ),
    ("DeliveryPolicy", "{invalidjson}", f"DeliveryPolicy: {UNQUOTED_NAME}"),
    (
        "FilterPolicy",
        "invalid filter policy",
        f"FilterPolicy: {STRANGE_WORD}",
    ),
    ("FilterPolicy", NESTED, "Filter policy scope MessageAttributes does not support nested filter policy"),
    (
        "FilterPolicy",
        '{"a":["b"],"c":["d"],"e":["f"],"g":["h"],"i":["j"],"k":["l"]}',
        "FilterPolicy: Filter policy can not have more than 5 keys",
    ),
    ("SubscriptionRoleArn", "x", "SubscriptionRoleArn: x is not the ARN of a role"),
    ("ReplayPolicy", '{"PointType":"Timestamp"}', "ReplayPolicy: the topic has no archive policy"),
    (
        "DeliveryPolicy",
        '{"healthyRetryPolicy":{"minDelayTarget":0}}',
        "DeliveryPolicy: healthyRetryPolicy.minDelayTarget must be greater than or equal to 1",
    ),
]


class TestAttributes:
    @pytest.mark.parametrize(("name", "value", "reason"), REFUSED_ATTRIBUTES)
    async def test_an_invalid_attribute_is_refused_alone(
        self, stage: Stage, name: str, value: str, reason: str
    ) -> None:
        arn = await stage.subscribe(await stage.topic(), "sqs", QUEUE)
        before = await stage.attributes(arn)
        with invalid(reason):
            await stage.set(arn, name, value)
        assert await stage.attributes(arn) == before

    @pytest.mark.parametrize(("name", "value", "reason"), REFUSED_ATTRIBUTES)
    async def test_an_invalid_attribute_is_refused_at_subscription(
        self, stage: Stage, name: str, value: str, reason: str
    ) -> None:
        topic = await stage.topic()
        with invalid(f"Attributes Reason: {reason}"):
            await stage.subscribe(topic, "sqs", QUEUE, **{name: value})
        assert (await stage.call("ListSubscriptions"))["Subscriptions"] == []

    @pytest.mark.parametrize(
        ("protocol", "endpoint"),
        [("email", "a@example.com"), ("sms", "+123123123"), ("lambda", FUNCTION), ("application", DEVICE)],
    )
    async def test_some_protocols_have_no_raw_delivery(
        self, stage: Stage, protocol: str, endpoint: str
    ) -> None:
        topic = await stage.topic()
        reason = f"Delivery protocol [{protocol}] does not support raw message delivery."
        with invalid(f"Attributes Reason: {reason}"):
            await stage.subscribe(topic, protocol, endpoint, RawMessageDelivery="true")
        arn = await stage.subscribe(topic, protocol, endpoint, RawMessageDelivery="false")
        with invalid(reason):
            await stage.set(arn, "RawMessageDelivery", "true")

    async def test_a_scope_is_hidden_until_there_is_a_filter(self, stage: Stage) -> None:
        arn = await stage.subscribe(await stage.topic(), "sqs", QUEUE)
        await stage.set(arn, "FilterPolicyScope", "MessageBody")
        assert "FilterPolicyScope" not in await stage.attributes(arn)
        await stage.set(arn, "FilterPolicy", NESTED)
        attributes = await stage.attributes(arn)
        assert (attributes["FilterPolicy"], attributes["FilterPolicyScope"]) == (NESTED, "MessageBody")
        with invalid("Filter policy scope MessageAttributes does not support nested filter policy"):
            await stage.set(arn, "FilterPolicyScope", "MessageAttributes")
        await stage.set(arn, "FilterPolicy", "")
        assert "FilterPolicy" not in await stage.attributes(arn)

    async def test_a_scope_given_after_its_filter_counts(self, stage: Stage) -> None:
        arn = await stage.subscribe(
            await stage.topic(), "sqs", QUEUE, FilterPolicy=NESTED, FilterPolicyScope="MessageBody"
        )
        assert (await stage.attributes(arn))["FilterPolicy"] == NESTED

    async def test_a_dead_letter_queue_comes_and_goes(self, stage: Stage) -> None:
        arn = await stage.subscribe(await stage.topic(), "sqs", QUEUE, RedrivePolicy=DEAD)
        assert (await stage.attributes(arn))["RedrivePolicy"] == DEAD
        await stage.set(arn, "RedrivePolicy", "")
        assert "RedrivePolicy" not in await stage.attributes(arn)

    async def test_order_needs_an_ordered_dead_letter_queue(self, stage: Stage) -> None:
        topic = await stage.topic("t.fifo")
        ordered = await stage.subscribe(topic, "sqs", queue_arn("q.fifo"), RedrivePolicy=DEAD_FIFO)
        text = "RedrivePolicy: must use a FIFO queue as DLQ for a FIFO Subscription to a FIFO Topic."
        with invalid(text):
            await stage.set(ordered, "RedrivePolicy", DEAD)
        await stage.subscribe(topic, "sqs", QUEUE, RedrivePolicy=DEAD)

    async def test_delivery_policies_are_shown_whole(self, stage: Stage) -> None:
        topic = await stage.topic(
            DeliveryPolicy='{"http":{"defaultRequestPolicy":{"headerContentType":"application/json"}}}'
        )
        given = {"minDelayTarget": 1, "maxDelayTarget": 1, "numRetries": 0}
        policy = {"healthyRetryPolicy": given, "throttlePolicy": {"maxReceivesPerSecond": 1000}}
        arn = await stage.subscribe(topic, "http", HOOK, DeliveryPolicy=orjson.dumps(policy).decode())
        attributes = await stage.attributes(arn)
        whole = {
            "healthyRetryPolicy": {
                **given,
                "numMaxDelayRetries": 0,
                "numNoDelayRetries": 0,
                "numMinDelayRetries": 0,
                "backoffFunction": "linear",
            },
            "sicklyRetryPolicy": None,
            "throttlePolicy": {"maxReceivesPerSecond": 1000},
            "requestPolicy": None,
            "guaranteed": False,
        }
        assert orjson.loads(attributes["DeliveryPolicy"]) == whole
        effective = orjson.loads(attributes["EffectiveDeliveryPolicy"])
        assert effective == {**whole, "requestPolicy": {"headerContentType": "application/json"}}

    async def test_raw_delivery_has_more_content_types(self, stage: Stage) -> None:
        csv = '{"requestPolicy":{"headerContentType":"text/csv"}}'
        topic = await stage.topic()
        arn = await stage.subscribe(topic, "http", HOOK, DeliveryPolicy=csv, RawMessageDelivery="true")
        effective = orjson.loads((await stage.attributes(arn))["EffectiveDeliveryPolicy"])
        assert effective["requestPolicy"] == {"headerContentType": "text/csv"}
        await stage.set(arn, "RawMessageDelivery", "false")
        await stage.attributes(arn)

    @pytest.mark.parametrize(
        ("policy", "reason"),
        [
            ('{"PointType":"Offset"}', "PointType must be Timestamp"),
            ('{"PointType":"Timestamp"}', "StartingPoint must be a UTC timestamp"),
            (
                '{"PointType":"Timestamp","StartingPoint":"2026-01-01T00:00:00"}',
                "StartingPoint must be a UTC timestamp",
            ),
            (
                '{"PointType":"Timestamp","StartingPoint":"2026-01-02T00:00:00Z","EndingPoint":"2026-01-01T00:00:00Z"}',
                "EndingPoint must be after StartingPoint",
            ),
            ('{"Point":1}', "invalid JSON. Attribute Point is unknown."),
        ],
    )
    async def test_a_replay_policy_must_be_one(self, stage: Stage, policy: str, reason: str) -> None:
        topic = await stage.topic("t.fifo", ArchivePolicy='{"MessageRetentionPeriod":"3"}')
        arn = await stage.subscribe(topic, "sqs", queue_arn("q.fifo"))
        with invalid(f"ReplayPolicy: {reason}"):
            await stage.set(arn, "ReplayPolicy", policy)

    async def test_a_replay_is_pending(self, stage: Stage) -> None:
        policy = '{"PointType":"Timestamp","StartingPoint":"2026-01-01T00:00:00.000Z"}'
        topic = await stage.topic("t.fifo", ArchivePolicy='{"MessageRetentionPeriod":"3"}')
        arn = await stage.subscribe(topic, "sqs", queue_arn("q.fifo"), ReplayPolicy=policy)
        attributes = await stage.attributes(arn)
        assert (attributes["ReplayPolicy"], attributes["ReplayStatus"]) == (policy, "Pending")
