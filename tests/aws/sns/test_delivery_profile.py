"""Deliveries as SNS's attributes make them: where they go, how often, and at what pace."""

import random

import orjson
import pytest

from redrive.aws.sns.dialect import SnsDeliveryProfile, with_platforms
from redrive.aws.sns.notifications.notification import PublishedMessage
from redrive.aws.wire.service import Service
from redrive.model.attempt import Reason
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.retry_plans import CUSTOMER_ENDPOINT, HTTP_DEFAULT, MANAGED_ENDPOINT
from redrive.model.topic import Subscription, Topic
from redrive.testing import SimulatedClock
from tests.aws.sns.parts import sns_profile
from tests.aws.sns.stage import ACCOUNT, OTHER, REGION, Stage, queue_arn, topic_arn

NAME = ResourceName(ACCOUNT, REGION, "orders")
TOPIC = Topic(1, NAME, "sns")
ENVELOPE = PublishedMessage("id", topic_arn("orders"), 5).envelope()
TWICE_A_SECOND = '{"healthyRetryPolicy":{"numRetries":5},"throttlePolicy":{"maxReceivesPerSecond":2}}'


def subscription(protocol: str, endpoint: str = "e", **attributes: str) -> Subscription:
    return Subscription("s", NAME, 2, ACCOUNT, protocol, endpoint, attributes=attributes)


def queue(account: str = ACCOUNT, **attributes: str) -> Queue:
    return Queue(3, ResourceName(account, REGION, "q"), body_bytes_max=1024, attributes=attributes)


@pytest.fixture
def profile() -> SnsDeliveryProfile:
    return sns_profile(open_queues=False)


def test_every_operation_of_the_model_is_offered() -> None:
    offered = Stage().sns.operations
    assert set(offered) == Service.load("sns").operation_names
    assert len(offered) == 42


class TestPlan:
    @pytest.mark.parametrize("protocol", ["sqs", "lambda", "firehose"])
    def test_managed_endpoints_are_tried_for_23_days(
        self, profile: SnsDeliveryProfile, protocol: str
    ) -> None:
        plan = profile.context(TOPIC, subscription(protocol)).plan
        assert plan.schedule is MANAGED_ENDPOINT
        assert (plan.throttled_schedule is CUSTOMER_ENDPOINT) == (protocol == "firehose")

    @pytest.mark.parametrize("protocol", ["email", "email-json", "sms", "application"])
    def test_customers_endpoints_are_tried_for_6_hours(
        self, profile: SnsDeliveryProfile, protocol: str
    ) -> None:
        plan = profile.context(TOPIC, subscription(protocol)).plan
        assert plan.schedule is CUSTOMER_ENDPOINT
        assert plan.rate_max == (10 if protocol.startswith("email") else None)

    @pytest.mark.parametrize("protocol", ["http", "https"])
    def test_webhooks_are_tried_as_their_owners_say(self, profile: SnsDeliveryProfile, protocol: str) -> None:
        assert profile.context(TOPIC, subscription(protocol)).plan.schedule == HTTP_DEFAULT
        plan = profile.context(TOPIC, subscription(protocol, DeliveryPolicy=TWICE_A_SECOND)).plan
        waits = [plan.schedule.delay_ms(attempt, random.Random(1)) is None for attempt in range(1, 7)]
        assert (waits, plan.rate_max) == ([False] * 5 + [True], 2)

    async def test_a_changed_policy_counts_from_the_next_attempt(self, stage: Stage) -> None:
        topic = await stage.topic()
        arn = await stage.subscribe(topic, "http", "http://example.com")
        change = {"AttributeName": "DeliveryPolicy", "AttributeValue": TWICE_A_SECOND}
        await stage.call("SetSubscriptionAttributes", SubscriptionArn=arn, **change)
        (kept,) = await stage.engine.resources.subscriptions.all_after("", 10)
        stored = await stage.engine.resources.topics.get(kept.topic)
        assert stored is not None
        assert stage.engine.parts.contexts.of(stored, kept).plan.rate_max == 2
        no_overrides = '{"http":{"disableSubscriptionOverrides":true}}'
        change = {"AttributeName": "DeliveryPolicy", "AttributeValue": no_overrides}
        await stage.call("SetTopicAttributes", TopicArn=topic, **change)
        stored = await stage.engine.resources.topics.get(kept.topic)
        assert stored is not None
        assert stage.engine.parts.contexts.of(stored, kept).plan.rate_max is None


def policy(**statement: object) -> str:
    whole = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": "*",
        **statement,
    }
    return orjson.dumps({"Version": "2012-10-17", "Statement": [whole]}).decode()


def only(arn: str) -> dict[str, object]:
    return {"ArnEquals": {"aws:SourceArn": arn}}


class TestRefusals:
    def test_a_queue_must_be_there(self, profile: SnsDeliveryProfile) -> None:
        attempt = profile.refusal(profile.context(TOPIC, subscription("sqs")), None, "m")
        assert attempt is not None
        assert (attempt.reason, attempt.status) == (Reason.MISSING, 400)
        assert orjson.loads(attempt.response)["ErrorCode"] == "AWS.SimpleQueueService.NonExistentQueue"

    @pytest.mark.parametrize(
        ("text", "takes"),
        [
            (policy(), True),
            (policy(Condition=only(topic_arn("orders"))), True),
            (policy(Condition=only(topic_arn("others"))), False),
            (policy(Condition={"StringEquals": {"aws:SourceAccount": ACCOUNT}}), True),
            (policy(Condition={"StringEquals": {"aws:SourceAccount": OTHER}}), False),
            (policy(Principal="*", Condition={"ArnLike": {"aws:SourceArn": topic_arn("ord*")}}), True),
            (policy(Principal={"AWS": ACCOUNT}), False),
            (policy(Action="sqs:ReceiveMessage"), False),
            (policy(Effect="Deny"), False),
            (policy(Resource=queue_arn("q")), True),
            (policy(Resource=queue_arn("another")), False),
        ],
    )
    @pytest.mark.parametrize("open_queues", [True, False])
    def test_a_queues_policy_decides(self, text: str, open_queues: bool, takes: bool) -> None:
        profile = sns_profile(open_queues=open_queues)
        attempt = profile.refusal(profile.context(TOPIC, subscription("sqs")), queue(Policy=text), "m")
        assert (attempt is None) == takes
        assert takes or (attempt and attempt.reason is Reason.DENIED)

    @pytest.mark.parametrize(
        ("condition", "takes"),
        [
            ({"Bool": {"aws:SecureTransport": "true"}}, True),
            ({"StringEquals": {"aws:RequestedRegion": REGION, "aws:ResourceAccount": ACCOUNT}}, True),
            ({"StringEquals": {"aws:ResourceAccount": OTHER}}, False),
            ({"Null": {"aws:UserAgent": "true", "aws:SourceIp": "true"}}, True),
            ({"StringNotEquals": {"aws:NobodyKnows": "x"}}, False),
        ],
    )
    def test_a_queues_policy_is_told_what_is_known_of_a_delivery(
        self, profile: SnsDeliveryProfile, condition: object, takes: bool
    ) -> None:
        context = profile.context(TOPIC, subscription("sqs"))
        assert (profile.refusal(context, queue(Policy=policy(Condition=condition)), "m") is None) == takes

    def test_a_queues_policy_may_end(self) -> None:
        clock = SimulatedClock(0)
        profile = sns_profile(open_queues=False, clock=clock)
        text = policy(Condition={"DateLessThan": {"aws:CurrentTime": "1970-01-01T00:00:10Z"}})
        context = profile.context(TOPIC, subscription("sqs"))
        assert profile.refusal(context, queue(Policy=text), "m") is None
        clock.take_up(10_000)
        assert profile.refusal(context, queue(Policy=text), "m") is not None

    def test_a_queue_whose_policy_cannot_be_read_any_more_is_closed(
        self, profile: SnsDeliveryProfile
    ) -> None:
        text = policy(Sid="x" * 31_000)
        attempt = profile.refusal(profile.context(TOPIC, subscription("sqs")), queue(Policy=text), "m")
        assert attempt is not None
        assert attempt.reason is Reason.DENIED

    def test_without_a_policy_a_queue_is_closed_unless_all_are_open(
        self, profile: SnsDeliveryProfile
    ) -> None:
        opened = sns_profile(open_queues=True)
        context = profile.context(TOPIC, subscription("sqs"))
        assert profile.refusal(context, queue(), "m") is not None
        assert opened.refusal(context, queue(), "m") is None
        assert opened.refusal(context, queue(OTHER), "m") is not None

    @pytest.mark.parametrize(("text", "fits"), [("x" * 1024, True), ("x" * 1025, False), ("ä" * 513, False)])
    def test_a_queue_takes_so_much(self, text: str, fits: bool) -> None:
        profile = sns_profile(open_queues=True)
        attempt = profile.refusal(profile.context(TOPIC, subscription("sqs")), queue(), text)
        assert (attempt is None) == fits
        assert fits or (attempt and attempt.reason is Reason.TOO_LARGE)


class TestHeaders:
    def test_headers_are_the_envelope_addressed(self, profile: SnsDeliveryProfile) -> None:
        published = PublishedMessage.unpack(profile.context(TOPIC, subscription("sqs")).headers(ENVELOPE))
        assert (published.subscription, published.raw, published.sent_at) == (
            f"{topic_arn('orders')}:s",
            False,
            5,
        )

    def test_platforms_texts_are_their_applications_alone(self, profile: SnsDeliveryProfile) -> None:
        envelope = with_platforms(ENVELOPE, {"GCM": "g", "APNS": "a", "sqs": "s"})
        device = subscription("application", f"arn:aws:sns:{REGION}:{ACCOUNT}:endpoint/GCM/app/1")
        assert orjson.loads(profile.context(TOPIC, device).headers(envelope))["text"] == "g"
        plain = profile.context(TOPIC, subscription("sqs")).headers(ENVELOPE)
        assert profile.context(TOPIC, subscription("sqs")).headers(envelope) == plain

    def test_an_envelope_without_them_stays_as_it_is(self) -> None:
        assert with_platforms(ENVELOPE, {"sqs": "s"}) is ENVELOPE

    @pytest.mark.parametrize("protocol", ["http", "lambda"])
    def test_only_queues_are_queues(self, profile: SnsDeliveryProfile, protocol: str) -> None:
        assert profile.context(TOPIC, subscription(protocol, queue_arn("q"))).queue is None
        assert profile.context(TOPIC, subscription("sqs", queue_arn("q"))).queue == NAME._replace(name="q")
