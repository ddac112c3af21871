from typing import Any

import pytest

from tests.aws.sns.stage import ACCOUNT, DAY_MS, OTHER, Stage, invalid, queue_arn, refused, topic_arn

HOOK = "http://example.com/hook"


async def _confirm(stage: Stage, topic: str, token: str, **params: Any) -> str:
    answer = await stage.call("ConfirmSubscription", TopicArn=topic, Token=token, **params)
    arn: str = answer["SubscriptionArn"]
    return arn


async def _asked(stage: Stage) -> tuple[str, str, str]:
    """A topic, its pending subscription, and the token that the endpoint got."""
    topic = await stage.topic()
    arn = await stage.subscribe(topic, "http", HOOK)
    return topic, arn, (await stage.asked("http"))["Token"]


class TestConfirm:
    async def test_the_endpoint_is_asked(self, stage: Stage) -> None:
        topic, arn, token = await _asked(stage)
        push_request = stage.endpoints["http"].push_requests[-1]
        asked = await stage.asked("http")
        assert (push_request.endpoint, push_request.content_type) == (HOOK, "text/plain; charset=UTF-8")
        assert push_request.headers["x-amz-sns-message-type"] == asked["Type"] == "SubscriptionConfirmation"
        assert asked["TopicArn"] == topic
        assert asked["SubscribeURL"].endswith(f"/?Action=ConfirmSubscription&TopicArn={topic}&Token={token}")
        assert len(token) == 288
        assert set(token) <= set("0123456789abcdef")
        assert arn.startswith(f"{topic}:")

    @pytest.mark.parametrize("account", [None, ACCOUNT, OTHER])
    async def test_a_token_confirms_again_and_again(self, stage: Stage, account: str | None) -> None:
        topic, arn, token = await _asked(stage)
        assert await _confirm(stage, topic, token, account=account) == arn
        assert await _confirm(stage, topic, token, account=account) == arn
        attributes = await stage.attributes(arn)
        assert attributes["PendingConfirmation"] == "false"
        assert attributes["ConfirmationWasAuthenticated"] == ("false" if account is None else "true")

    async def test_nothing_is_delivered_before_the_confirmation(self, stage: Stage) -> None:
        topic, _, token = await _asked(stage)
        await stage.publish(topic, "too early")
        await _confirm(stage, topic, token)
        await stage.publish(topic, "in time")
        assert (await stage.asked("http"))["Message"] == "in time"
        assert len(stage.endpoints["http"].push_requests) == 2

    async def test_each_subscribe_asks_again_with_a_token_of_its_own(self, stage: Stage) -> None:
        topic, arn, first = await _asked(stage)
        assert await stage.subscribe(topic, "http", HOOK) == arn
        second = (await stage.asked("http"))["Token"]
        assert first != second
        assert await _confirm(stage, topic, first) == arn
        assert await stage.subscribe(topic, "http", HOOK) == arn
        await stage.advance(0)
        assert len(stage.endpoints["http"].push_requests) == 2

    async def test_the_topics_name_does_not_matter(self, stage: Stage) -> None:
        _, arn, token = await _asked(stage)
        assert await _confirm(stage, topic_arn("another"), token) == arn

    @pytest.mark.parametrize("account", [None, ACCOUNT])
    @pytest.mark.parametrize(
        "arn", ["not-an-arn", "", queue_arn("q"), topic_arn("orders", region="eu-central-1")]
    )
    async def test_a_topic_must_be_one_of_the_region(
        self, stage: Stage, account: str | None, arn: str
    ) -> None:
        _, _, token = await _asked(stage)
        with invalid("Topic"):
            await _confirm(stage, arn, token, account=account)

    async def test_a_token_must_be_one(self, stage: Stage) -> None:
        topic, _, token = await _asked(stage)
        unknown = f"{token[:-1]}{'0' if token[-1] != '0' else '1'}"
        with refused("InvalidParameter", "Invalid token"):
            await _confirm(stage, topic, "abc123")
        with invalid("Token"):
            await _confirm(stage, topic, "abc123", account=None)
        with invalid("Token"):
            await _confirm(stage, topic, unknown)
        with invalid("Token"):
            await _confirm(stage, topic, unknown, account=None)

    async def test_a_token_is_good_for_two_days(self, stage: Stage) -> None:
        topic, arn, token = await _asked(stage)
        await stage.advance(2 * DAY_MS - 1)
        assert await _confirm(stage, topic, token) == arn
        await stage.advance(1)
        with invalid("Token"):
            await _confirm(stage, topic, token)

    async def test_a_subscription_waits_for_three_days(self, stage: Stage) -> None:
        topic, arn, _ = await _asked(stage)
        await stage.advance(3 * DAY_MS - 1)
        assert (await stage.attributes(arn))["PendingConfirmation"] == "true"
        await stage.advance(1)
        with refused("NotFound", "Subscription does not exist", 404):
            await stage.attributes(arn)
        assert (await stage.topic_attributes(topic))["SubscriptionsPending"] == "0"
        assert (await stage.call("ListSubscriptions"))["Subscriptions"] == []

    async def test_an_expired_question_is_forgotten_when_another_is_asked(self, stage: Stage) -> None:
        topic, arn, _ = await _asked(stage)
        await stage.advance(3 * DAY_MS)
        await stage.subscribe(topic, "email", "a@example.com")
        kept = await stage.engine.resources.subscriptions.all_after("", 10)
        assert [one.protocol for one in kept] == ["email"]
        as_new = await stage.subscribe(topic, "http", HOOK)
        assert as_new != arn
        assert (await stage.attributes(as_new))["PendingConfirmation"] == "true"

    async def test_a_confirmed_subscription_is_not_forgotten(self, stage: Stage) -> None:
        topic, arn, token = await _asked(stage)
        await _confirm(stage, topic, token)
        await stage.advance(3 * DAY_MS)
        await stage.subscribe(topic, "email", "a@example.com")
        assert (await stage.attributes(arn))["PendingConfirmation"] == "false"

    @pytest.mark.parametrize("account", [ACCOUNT, None])
    async def test_a_pending_subscription_cannot_be_unsubscribed(
        self, stage: Stage, account: str | None
    ) -> None:
        topic, arn, _ = await _asked(stage)
        with invalid(
            "SubscriptionArn Reason: Cannot unsubscribe a subscription that is pending confirmation"
        ):
            await stage.call("Unsubscribe", account=account, SubscriptionArn=arn)
        assert (await stage.topic_attributes(topic))["SubscriptionsPending"] == "1"
        assert (await stage.topic_attributes(topic))["SubscriptionsDeleted"] == "0"

    async def test_a_queue_of_another_account_is_asked_in_the_queue(self, stage: Stage) -> None:
        topic = await stage.topic()
        await stage.queue("q")
        await stage.call(
            "AddPermission", TopicArn=topic, Label="l", AWSAccountId=[OTHER], ActionName=["Subscribe"]
        )
        await stage.subscribe(topic, "sqs", queue_arn("q"), account=OTHER)
        await stage.advance(0)
        (delivery,) = await stage.in_queue("q")
        assert b"SubscriptionConfirmation" in (delivery.headers or b"")


class TestUnsubscribeByLink:
    async def _confirmed(self, stage: Stage, **params: Any) -> tuple[str, str]:
        topic, arn, token = await _asked(stage)
        await _confirm(stage, topic, token, **params)
        return topic, arn

    async def test_the_endpoint_is_told_and_may_object(self, stage: Stage) -> None:
        topic, arn = await self._confirmed(stage)
        await stage.call("Unsubscribe", account=None, SubscriptionArn=arn)
        told = await stage.asked("http")
        assert told["Type"] == "UnsubscribeConfirmation"
        assert told["Message"].startswith(f"You have chosen to deactivate subscription {arn}.")
        with refused("NotFound", "Subscription does not exist", 404):
            await stage.attributes(arn)
        assert await _confirm(stage, topic, told["Token"], account=None) == arn
        assert (await stage.attributes(arn))["PendingConfirmation"] == "false"

    async def test_a_subscription_that_may_come_back_is_listed_as_deleted(self, stage: Stage) -> None:
        topic, arn = await self._confirmed(stage)
        await stage.call("Unsubscribe", account=None, SubscriptionArn=arn)
        for operation in ("ListSubscriptions", "ListSubscriptionsByTopic"):
            (listed,) = (await stage.call(operation, TopicArn=topic))["Subscriptions"]
            assert (listed["SubscriptionArn"], listed["Endpoint"]) == ("Deleted", HOOK)
        shown = await stage.topic_attributes(topic)
        assert (shown["SubscriptionsPending"], shown["SubscriptionsDeleted"]) == ("0", "1")
        await stage.advance(3 * DAY_MS)
        assert (await stage.call("ListSubscriptions"))["Subscriptions"] == []

    async def test_nothing_is_delivered_after_the_unsubscribe(self, stage: Stage) -> None:
        topic, arn = await self._confirmed(stage)
        await stage.call("Unsubscribe", account=None, SubscriptionArn=arn)
        await stage.publish(topic)
        assert (await stage.asked("http"))["Type"] == "UnsubscribeConfirmation"

    async def test_an_endpoint_that_subscribes_again_is_asked_again(self, stage: Stage) -> None:
        topic, arn = await self._confirmed(stage)
        await stage.call("Unsubscribe", account=None, SubscriptionArn=arn)
        as_new = await stage.subscribe(topic, "http", HOOK)
        assert as_new != arn
        assert (await stage.attributes(as_new))["PendingConfirmation"] == "true"

    async def test_the_owner_is_not_asked(self, stage: Stage) -> None:
        _, arn = await self._confirmed(stage)
        await stage.call("Unsubscribe", SubscriptionArn=arn)
        assert (await stage.asked("http"))["Type"] == "SubscriptionConfirmation"

    async def test_a_locked_subscription_takes_a_signature(self, stage: Stage) -> None:
        _, arn = await self._confirmed(stage, AuthenticateOnUnsubscribe="true")
        text = (
            f"User: anonymous is not authorized to perform: SNS:Unsubscribe on resource: {arn}"
            " because no resource-based policy allows the SNS:Unsubscribe action"
        )
        with refused("AuthorizationError", text, 403):
            await stage.call("Unsubscribe", account=None, SubscriptionArn=arn)
        await stage.call("Unsubscribe", SubscriptionArn=arn)

    async def test_an_unsigned_confirmation_locks_nothing(self, stage: Stage) -> None:
        topic, arn = await self._confirmed(stage, account=None, AuthenticateOnUnsubscribe="true")
        await stage.call("Unsubscribe", account=None, SubscriptionArn=arn)
        assert (await stage.topic_attributes(topic))["SubscriptionsDeleted"] == "1"

    async def test_a_link_to_nothing_says_nothing(self, stage: Stage) -> None:
        arn = f"{topic_arn('t')}:45f03920-f890-4a2f-bd77-32f9689b8013"
        assert await stage.call("Unsubscribe", account=None, SubscriptionArn=arn) == {}

    async def test_a_confirmation_is_nobodys_dead_letter(self, stage: Stage) -> None:
        await stage.queue("dead")
        topic = await stage.topic()
        await stage.subscribe(
            topic,
            "sqs",
            queue_arn("gone", account=OTHER),
            RedrivePolicy=f'{{"deadLetterTargetArn":"{queue_arn("dead")}"}}',
        )
        await stage.advance(0)
        assert await stage.in_queue("dead") == []
