import orjson
import pytest

from tests.contracts.aws.sns.client import OTHER, Sns, Webhook
from tests.contracts.aws.sqs.client import ACCOUNT, refused
from tests.services.server import Server


@pytest.fixture
def sns(server: Server) -> Sns:
    return Sns(server)


def test_a_topic_from_beginning_to_end(sns: Sns) -> None:
    topic = sns.topic(DisplayName="Orders & more <1>")
    assert topic.attributes()["DisplayName"] == "Orders & more <1>"
    topic.set("DisplayName", "")
    attributes = topic.attributes()
    effective = orjson.loads(attributes.pop("EffectiveDeliveryPolicy"))["http"]
    assert effective["defaultHealthyRetryPolicy"]["numRetries"] == 3
    assert orjson.loads(attributes.pop("Policy"))["Id"] == "__default_policy_ID"
    assert attributes == {
        "DisplayName": "",
        "Owner": ACCOUNT,
        "SubscriptionsConfirmed": "0",
        "SubscriptionsDeleted": "0",
        "SubscriptionsPending": "0",
        "TopicArn": topic.arn,
    }
    assert sns.client.list_topics()["Topics"] == [{"TopicArn": topic.arn}]
    assert sns.elsewhere(region="eu-west-1").client.list_topics()["Topics"] == []
    assert sns.elsewhere(account=OTHER).client.list_topics()["Topics"] == []
    topic.call("delete_topic")
    topic.call("delete_topic")
    with refused("NotFound", "Topic does not exist", 404):
        topic.attributes()


def test_refusals_have_their_codes(sns: Sns) -> None:
    topic = sns.topic(DisplayName="d")
    name = topic.arn.rpartition(":")[2]
    with refused("InvalidParameter", "Invalid parameter: Topic Name"):
        sns.client.create_topic(Name="a@b")
    with refused(
        "InvalidParameter",
        "Invalid parameter: Attributes Reason: Topic already exists with different attributes",
    ):
        sns.client.create_topic(Name=name, Attributes={"DisplayName": "e"})
    with refused("InvalidParameter", "Invalid parameter: AttributeName"):
        topic.set("FifoTopic", "true")
    with refused("InvalidParameter", "Invalid parameter: TopicArn"):
        topic.seen_by(sns.elsewhere(region="eu-west-1")).publish()
    with refused(
        "AuthorizationError",
        f"User: arn:aws:iam::{OTHER}:root is not authorized to perform: SNS:Publish on resource: {topic.arn}"
        " because no resource-based policy allows the SNS:Publish action",
        403,
    ):
        topic.seen_by(sns.elsewhere(account=OTHER)).publish()


def test_permissions_let_others_in(sns: Sns) -> None:
    topic = sns.topic()
    theirs = topic.seen_by(sns.elsewhere(account=OTHER))
    topic.call("add_permission", Label="l", AWSAccountId=[OTHER], ActionName=["Publish"])
    theirs.publish()
    topic.call("remove_permission", Label="l")
    with refused("AuthorizationError", status=403):
        theirs.publish()


def test_tags_come_and_go(sns: Sns) -> None:
    topic = sns.topic()
    sns.client.tag_resource(
        ResourceArn=topic.arn, Tags=[{"Key": "k1", "Value": "v1"}, {"Key": "k2", "Value": ""}]
    )
    sns.client.untag_resource(ResourceArn=topic.arn, TagKeys=["k1"])
    tags = sns.client.list_tags_for_resource(ResourceArn=topic.arn)["Tags"]
    assert tags == [{"Key": "k2", "Value": ""}]


def test_a_changed_policy_holds_for_the_next_delivery(sns: Sns) -> None:
    topic = sns.topic()
    with Webhook().serving() as webhook:
        topic.subscribe("http", webhook.url)
        topic.call("confirm_subscription", Token=webhook.next().document["Token"])
        topic.publish()
        assert webhook.next().headers["content-type"] == "text/plain; charset=UTF-8"
        topic.set(
            "DeliveryPolicy", '{"http":{"defaultRequestPolicy":{"headerContentType":"application/json"}}}'
        )
        topic.publish()
        assert webhook.next().headers["content-type"] == "application/json"
