"""Two accounts of one server: neither sees, changes, reads or fills what is the other's, by any service."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import boto3  # type: ignore[import-untyped]  # boto3 ships no types
import orjson
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from redrive.aws.s3.buckets import BucketOperations
from redrive.model.errors import StoreUnavailable
from tests.attack.conftest import ACCOUNT, STRANGER
from tests.attack.forging import Key, send, signed
from tests.aws.stage import Stage, on_stage
from tests.services.server import Server

REGION = "us-east-1"
PRIVATE = "what nobody else may read"
START = "2020-01-01T00:00:00Z"
END = "2040-01-01T00:00:00Z"


class Tenant:
    """An account with a queue of messages, a dead-letter queue, a topic and a subscription, all of them named alike."""

    def __init__(self, server: Server, account: str, key: Key) -> None:
        self._server, self._key, self.account = server, key, account
        self.sqs, self.sns, self.logs, self.metrics = map(self._client, ("sqs", "sns", "logs", "cloudwatch"))
        self.letters = self.sqs.create_queue(QueueName="private-dead")["QueueUrl"]
        redrive = {"deadLetterTargetArn": self.arn("sqs", "private-dead"), "maxReceiveCount": "5"}
        made = self.sqs.create_queue(QueueName="private", Attributes={"RedrivePolicy": json.dumps(redrive)})
        self.queue = made["QueueUrl"]
        self.message_id = self.sqs.send_message(QueueUrl=self.queue, MessageBody=PRIVATE)["MessageId"]
        self.sqs.send_message(QueueUrl=self.letters, MessageBody=PRIVATE)
        self.topic = self.sns.create_topic(Name="private")["TopicArn"]
        endpoint = self.arn("sqs", "private")
        subscribed = self.sns.subscribe(TopicArn=self.topic, Protocol="sqs", Endpoint=endpoint)
        self.subscription = subscribed["SubscriptionArn"]

    def _client(self, service: str) -> Any:
        return boto3.client(
            service,
            region_name=REGION,
            endpoint_url=self._server.url,
            aws_access_key_id=self._key[0],
            aws_secret_access_key=self._key[1],
            config=Config(retries={"total_max_attempts": 1}),
        )

    def arn(self, service: str, name: str) -> str:
        return f"arn:aws:{service}:{REGION}:{self.account}:{name}"

    def ask(self, path: str, document: Any = None) -> tuple[int, Any]:
        """The status and the answer of a control route."""
        method, body = ("GET", b"") if document is None else ("POST", orjson.dumps(document))
        draft = signed(self._server, self._key, body, {}, method=method, target=path, service="redrive")
        status, answer = send(self._server, draft)
        return status, orjson.loads(answer)

    def state(self) -> Any:
        """Read everything that no other account may change."""
        queues = [
            self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
            for url in (self.queue, self.letters)
        ]
        topic = self.sns.get_topic_attributes(TopicArn=self.topic)["Attributes"]
        subscriptions = self.sns.list_subscriptions_by_topic(TopicArn=self.topic)["Subscriptions"]
        return queues, topic, subscriptions

    def close(self) -> None:
        self.sns.delete_topic(TopicArn=self.topic)
        for url in (self.queue, self.letters):
            self.sqs.delete_queue(QueueUrl=url)
        for client in (self.sqs, self.sns, self.logs, self.metrics):
            client.close()


@pytest.fixture(scope="module")
def ours(strict: Server, key: Key) -> Iterator[Tenant]:
    tenant = Tenant(strict, ACCOUNT, key)
    yield tenant
    tenant.close()


@pytest.fixture(scope="module")
def theirs(strict: Server, other_key: Key) -> Iterator[Tenant]:
    tenant = Tenant(strict, STRANGER, other_key)
    yield tenant
    tenant.close()


Try = Callable[[Tenant, Tenant], object]


def with_letters_to(tenant: Tenant) -> dict[str, str]:
    target = {"deadLetterTargetArn": tenant.arn("sqs", "private-dead")}
    return {"RedrivePolicy": json.dumps({**target, "maxReceiveCount": "1"})}


REFUSED: dict[str, Try] = {
    "send": lambda t, o: t.sqs.send_message(QueueUrl=o.queue, MessageBody="x"),
    "send a batch": lambda t, o: t.sqs.send_message_batch(
        QueueUrl=o.queue, Entries=[{"Id": "1", "MessageBody": "x"}]
    ),
    "receive": lambda t, o: t.sqs.receive_message(QueueUrl=o.queue),
    "delete": lambda t, o: t.sqs.delete_message(QueueUrl=o.queue, ReceiptHandle="x"),
    "purge": lambda t, o: t.sqs.purge_queue(QueueUrl=o.queue),
    "look at a queue": lambda t, o: t.sqs.get_queue_attributes(QueueUrl=o.queue, AttributeNames=["All"]),
    "find a queue": lambda t, o: t.sqs.get_queue_url(QueueName="private", QueueOwnerAWSAccountId=o.account),
    "change a queue": lambda t, o: t.sqs.set_queue_attributes(
        QueueUrl=o.queue, Attributes={"VisibilityTimeout": "1"}
    ),
    "delete a queue": lambda t, o: t.sqs.delete_queue(QueueUrl=o.queue),
    "permit oneself": lambda t, o: t.sqs.add_permission(
        QueueUrl=o.queue, Label="l", AWSAccountIds=[t.account], Actions=["*"]
    ),
    "tag a queue": lambda t, o: t.sqs.tag_queue(QueueUrl=o.queue, Tags={"a": "b"}),
    "list a queue's tags": lambda t, o: t.sqs.list_queue_tags(QueueUrl=o.queue),
    "list sources of letters": lambda t, o: t.sqs.list_dead_letter_source_queues(QueueUrl=o.letters),
    "a handle of one's own": lambda t, o: t.sqs.delete_message(
        QueueUrl=o.queue,
        ReceiptHandle=t.sqs.receive_message(QueueUrl=t.letters)["Messages"][0]["ReceiptHandle"],
    ),
    "redrive": lambda t, o: t.sqs.start_message_move_task(SourceArn=o.arn("sqs", "private-dead")),
    "redrive to another": lambda t, o: t.sqs.start_message_move_task(
        SourceArn=t.arn("sqs", "private-dead"), DestinationArn=o.arn("sqs", "private")
    ),
    "list redrives": lambda t, o: t.sqs.list_message_move_tasks(SourceArn=o.arn("sqs", "private-dead")),
    "letters to another": lambda t, o: t.sqs.set_queue_attributes(
        QueueUrl=t.queue, Attributes=with_letters_to(o)
    ),
    "publish": lambda t, o: t.sns.publish(TopicArn=o.topic, Message="x"),
    "publish a batch": lambda t, o: t.sns.publish_batch(
        TopicArn=o.topic, PublishBatchRequestEntries=[{"Id": "1", "Message": "x"}]
    ),
    "subscribe": lambda t, o: t.sns.subscribe(
        TopicArn=o.topic, Protocol="sqs", Endpoint=t.arn("sqs", "private")
    ),
    "unsubscribe": lambda t, o: t.sns.unsubscribe(SubscriptionArn=o.subscription),
    "look at a topic": lambda t, o: t.sns.get_topic_attributes(TopicArn=o.topic),
    "change a topic": lambda t, o: t.sns.set_topic_attributes(
        TopicArn=o.topic, AttributeName="DisplayName", AttributeValue="x"
    ),
    "delete a topic": lambda t, o: t.sns.delete_topic(TopicArn=o.topic),
    "list subscriptions": lambda t, o: t.sns.list_subscriptions_by_topic(TopicArn=o.topic),
    "look at a subscription": lambda t, o: t.sns.get_subscription_attributes(SubscriptionArn=o.subscription),
    "change a subscription": lambda t, o: t.sns.set_subscription_attributes(
        SubscriptionArn=o.subscription, AttributeName="RawMessageDelivery", AttributeValue="true"
    ),
    "permit oneself a topic": lambda t, o: t.sns.add_permission(
        TopicArn=o.topic, Label="l", AWSAccountId=[t.account], ActionName=["Publish"]
    ),
    "tag a topic": lambda t, o: t.sns.tag_resource(ResourceArn=o.topic, Tags=[{"Key": "a", "Value": "b"}]),
    "letters of a subscription": lambda t, o: t.sns.set_subscription_attributes(
        SubscriptionArn=t.subscription,
        AttributeName="RedrivePolicy",
        AttributeValue=json.dumps({"deadLetterTargetArn": o.arn("sqs", "private-dead")}),
    ),
}


@pytest.mark.parametrize("attempt", REFUSED.values(), ids=REFUSED)
def test_attempts_on_another_accounts_resources_are_refused(
    ours: Tenant, theirs: Tenant, attempt: Try
) -> None:
    before = ours.state()
    with pytest.raises(ClientError) as refused:
        attempt(theirs, ours)
    assert 400 <= refused.value.response["ResponseMetadata"]["HTTPStatusCode"] < 500
    assert PRIVATE not in str(refused.value)
    assert ours.state() == before


def test_a_topic_fills_no_queue_of_another_account(ours: Tenant, theirs: Tenant) -> None:
    """Anybody may subscribe a queue that others own; its policy says whose messages come in."""
    before = ours.state()
    topic = theirs.sns.create_topic(Name="filling")["TopicArn"]
    theirs.sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=ours.arn("sqs", "private"))
    theirs.sns.publish(TopicArn=topic, Message="x")
    theirs.sns.delete_topic(TopicArn=topic)
    assert ours.state() == before


def test_lists_have_ones_own_alone(ours: Tenant, theirs: Tenant) -> None:
    assert set(theirs.sqs.list_queues()["QueueUrls"]) == {theirs.queue, theirs.letters}
    assert [each["TopicArn"] for each in theirs.sns.list_topics()["Topics"]] == [theirs.topic]
    listed = theirs.sns.list_subscriptions()["Subscriptions"]
    assert [each["SubscriptionArn"] for each in listed] == [theirs.subscription]
    shown = json.dumps(
        [theirs.metrics.list_metrics()["Metrics"], theirs.logs.describe_log_groups()["logGroups"]]
    )
    assert ours.account not in shown


def test_control_routes_show_ones_own_alone(ours: Tenant, theirs: Tenant) -> None:
    for path in ("queues", "topics", "dead-letter-queues", "endpoints?all=true"):
        status, answer = theirs.ask(f"/_redrive/{path}")
        assert (status, ours.account in json.dumps(answer)) == (200, False)
    assert theirs.ask(f"/_redrive/trace?message={ours.message_id}")[1]["deliveries"] == []
    for named in (ours.letters, ours.arn("sqs", "private-dead")):
        status, answer = theirs.ask(f"/_redrive/dead-letters?queue={named}")
        assert (status, PRIVATE in json.dumps(answer)) == (400, False), answer
        status, answer = theirs.ask("/_redrive/dead-letters", {"queue": named})
        assert status in (400, 409), answer


def test_a_group_of_another_account_is_not_shown(ours: Tenant, theirs: Tenant) -> None:
    guid = f"00000000-0000-0000-0000-{ours.account}"
    status, answer = theirs.ask(f"/_redrive/endpoints?subscription={guid}&group=rg&all=true")
    assert (status, "does not belong to account" in answer["message"]) == (400, True)


def test_the_next_owner_of_a_bucket_s_name_finds_no_uploads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts of an upload are read by whoever completes it, and a crash may end the deletion of its bucket."""

    async def play(stage: Stage) -> None:
        await stage.call(stage.root, "s3", "CreateBucket", Bucket="files")
        await stage.call(stage.root, "s3", "CreateMultipartUpload", Bucket="files", Key="private")

        async def crash(*_: Any) -> None:
            raise StoreUnavailable("the node is gone")

        with monkeypatch.context() as patch:
            patch.setattr(BucketOperations, "_abort_uploads", crash)
            await stage.refusal(stage.root, "s3", "DeleteBucket", Bucket="files")
        taken = await stage.refusal(stage.stranger, "s3", "CreateBucket", Bucket="files")
        assert taken.startswith("BucketAlreadyExists")
        await stage.call(stage.root, "s3", "DeleteBucket", Bucket="files")
        await stage.call(stage.stranger, "s3", "CreateBucket", Bucket="files")
        listed = await stage.call(stage.stranger, "s3", "ListMultipartUploads", Bucket="files")
        assert "Uploads" not in listed

    on_stage(play)
