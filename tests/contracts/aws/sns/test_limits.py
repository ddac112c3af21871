"""Counts and limits: of subscriptions and of filter policies."""

import pytest

from tests.contracts.aws.sns.client import OTHER, Sns, Topic, Webhook
from tests.contracts.aws.sqs.client import ACCOUNT, refused
from tests.services.server import Server, serving

FILTER = '{"a":["b"]}'


@pytest.fixture
def sns(server: Server) -> Sns:
    return Sns(server)


def _numbers(topic: Topic) -> tuple[str, str, str]:
    shown = topic.attributes()
    return (
        shown["SubscriptionsConfirmed"],
        shown["SubscriptionsPending"],
        shown["SubscriptionsDeleted"],
    )


def _arn(number: int) -> str:
    return f"arn:aws:sqs:us-east-1:{ACCOUNT}:q{number}"


def test_a_topic_knows_the_numbers_of_its_subscriptions(sns: Sns) -> None:
    topic = sns.topic()
    assert _numbers(topic) == ("0", "0", "0")
    with Webhook().serving() as webhook:
        topic.subscribe("http", webhook.url)
        arns = [topic.subscribe("sqs", _arn(number)) for number in range(3)]
        assert _numbers(topic) == ("3", "1", "0")
        topic.call("confirm_subscription", Token=webhook.next().document["Token"])
    sns.client.unsubscribe(SubscriptionArn=arns[0])
    assert _numbers(topic) == ("3", "0", "1")


def test_a_pending_subscription_is_counted_for_three_days(sns: Sns) -> None:
    topic = sns.topic()
    topic.subscribe("email", "a@example.com")
    assert _numbers(topic) == ("0", "1", "0")
    sns.server.advance(3 * 86_400)
    assert _numbers(topic) == ("0", "0", "0")


def test_a_topic_has_200_filter_policies(sns: Sns) -> None:
    topic = sns.topic()
    arns = [topic.subscribe("sqs", _arn(number), FilterPolicy=FILTER) for number in range(200)]
    with refused("FilterPolicyLimitExceeded", status=403):
        topic.subscribe("sqs", _arn(200), FilterPolicy=FILTER)
    unfiltered = topic.subscribe("sqs", _arn(200))
    policy = {"AttributeName": "FilterPolicy", "AttributeValue": FILTER}
    with refused("FilterPolicyLimitExceeded", status=403):
        sns.client.set_subscription_attributes(SubscriptionArn=unfiltered, **policy)
    sns.client.set_subscription_attributes(SubscriptionArn=arns[0], **policy)  # it has one already
    sns.client.unsubscribe(SubscriptionArn=arns[0])
    sns.client.set_subscription_attributes(SubscriptionArn=unfiltered, **policy)


def test_or_as_many_as_the_operator_says() -> None:
    with serving("sqlite://:memory:", "--filter-policies-max", "201") as server:
        topic = Sns(server).topic()
        for number in range(201):
            topic.subscribe("sqs", _arn(number), FilterPolicy=FILTER)
        with refused("FilterPolicyLimitExceeded", status=403):
            topic.subscribe("sqs", _arn(201), FilterPolicy=FILTER)


def test_a_fifo_topic_has_100_subscriptions(sns: Sns) -> None:
    topic = sns.topic(fifo=True)
    for number in range(100):
        topic.subscribe("sqs", _arn(number))
    with refused("SubscriptionLimitExceeded", status=403):
        topic.subscribe("sqs", _arn(100))
    topic.subscribe("sqs", _arn(99))  # it is there already


def test_an_account_finds_its_subscriptions_to_topics_of_others(sns: Sns) -> None:
    theirs = sns.elsewhere(account=OTHER)
    topics = [theirs.topic() for _ in range(3)]
    for topic in topics:
        topic.call("add_permission", Label="l", AWSAccountId=[ACCOUNT], ActionName=["Subscribe"])
    mine = [topic.seen_by(sns).subscribe("sqs", _arn(0)) for topic in topics]
    own = sns.topic()
    mine += [own.subscribe("sqs", _arn(number)) for number in range(99)]
    pages = list(sns.client.get_paginator("list_subscriptions").paginate())
    assert [len(page["Subscriptions"]) for page in pages] == [100, 2]
    listed = [one for page in pages for one in page["Subscriptions"]]
    assert {one["TopicArn"] for one in listed} == {own.arn, *(topic.arn for topic in topics)}
    assert {one["Endpoint"] for one in listed} == {_arn(number) for number in range(99)}
    assert theirs.client.list_subscriptions()["Subscriptions"] == []
    sns.client.unsubscribe(SubscriptionArn=mine[0])
    pages = list(sns.client.get_paginator("list_subscriptions").paginate())
    assert sum(len(page["Subscriptions"]) for page in pages) == 101


@pytest.mark.parametrize("text", ["x" * 1_048_576, "ä" * 524_288], ids=["plain", "escaped"])
def test_a_mebibyte_of_text_goes_to_a_topic_that_takes_it(server_on_sqlite: Server, text: str) -> None:
    topic = Sns(server_on_sqlite).topic(MaximumMessageSize="1048576")
    assert topic.publish(text)
    entries = [{"Id": "a", "Message": text[: len(text) // 2]}, {"Id": "b", "Message": text[len(text) // 2 :]}]
    assert len(topic.call("publish_batch", PublishBatchRequestEntries=entries)["Successful"]) == 2
