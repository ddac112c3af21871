"""From Publish to whoever is subscribed: what arrives, and what is dead-lettered."""

from typing import Any

import orjson
import pytest

from tests.contracts.aws.sns.client import Sns, Topic, Webhook, follow, text_of
from tests.contracts.aws.sqs.client import Queue, refused, text
from tests.services.server import Server

TRACE = "Root=1-3152b799-8954dae64eda91bc9a23a7e8;Parent=7fa8c0f79203be72;Sampled=1"


@pytest.fixture
def sns(server: Server) -> Sns:
    return Sns(server)


def _notification(queue: Queue) -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads(queue.one()["Body"])
    return document


class TestQueues:
    def test_a_queue_gets_a_notification(self, sns: Sns) -> None:
        topic = sns.topic()
        queue = topic.queue()
        answer = topic.publish("hello", Subject="s", MessageAttributes={"n": text("99.12", "Number")})
        document = _notification(queue)
        assert list(document) == [
            "Type",
            "MessageId",
            "TopicArn",
            "Subject",
            "Message",
            "Timestamp",
            "SignatureVersion",
            "Signature",
            "SigningCertURL",
            "UnsubscribeURL",
            "MessageAttributes",
        ]
        shown = (document["Type"], document["MessageId"], document["Message"], document["Subject"])
        assert shown == ("Notification", answer["MessageId"], "hello", "s")
        assert document["MessageAttributes"] == {"n": {"Type": "Number", "Value": "99.12"}}

    def test_raw_delivery_is_the_message_alone(self, sns: Sns) -> None:
        topic = sns.topic()
        queue = topic.queue(RawMessageDelivery="true")
        attributes = {"b": {"DataType": "Binary", "BinaryValue": b"\x02\x03\x04"}}
        topic.publish("This is a test message", Subject="gone", MessageAttributes=attributes)
        message = queue.one()
        assert (message["Body"], message["MessageAttributes"]) == ("This is a test message", attributes)

    def test_filter_policies_select_messages(self, sns: Sns) -> None:
        topic = sns.topic()
        queue = topic.queue(FilterPolicy='{"price":[{"numeric":[">",0,"<=",100]}]}')
        for price in ("0", "1", "100", "101"):
            topic.publish(price, MessageAttributes={"price": text(price, "Number")})
        assert sorted(orjson.loads(body)["Message"] for body in queue.bodies()) == ["1", "100"]

    def test_each_protocol_has_its_own_text(self, sns: Sns) -> None:
        topic = sns.topic()
        queue = topic.queue()
        topic.publish('{"default":"d","sqs":"{\\"field\\": \\"value\\"}"}', MessageStructure="json")
        assert _notification(queue)["Message"] == '{"field": "value"}'

    def test_every_entry_of_a_batch_is_delivered(self, sns: Sns) -> None:
        topic = sns.topic()
        queue = topic.queue(RawMessageDelivery="true")
        answer = topic.call(
            "publish_batch",
            PublishBatchRequestEntries=[
                {"Id": "a", "Message": "one"},
                {"Id": "b", "Message": "two", "Subject": "not\nthis"},
                {"Id": "c", "Message": "three"},
            ],
        )
        assert [one["Id"] for one in answer["Successful"]] == ["a", "c"]
        assert answer["Failed"] == [
            {
                "Id": "b",
                "Code": "InvalidParameter",
                "Message": "Invalid parameter: Subject",
                "SenderFault": True,
            }
        ]
        assert sorted(queue.bodies()) == ["one", "three"]

    def test_an_ordered_topic_keeps_order_and_swallows_repetitions(self, sns: Sns) -> None:
        topic = sns.topic(fifo=True, ContentBasedDeduplication="true")
        queue = topic.queue(fifo=True)
        answers = [topic.publish(body, MessageGroupId="g") for body in ("one", "two", "one")]
        assert answers[0]["MessageId"] == answers[2]["MessageId"]
        assert answers[0]["SequenceNumber"] == answers[2]["SequenceNumber"] < answers[1]["SequenceNumber"]
        messages = queue.receive()
        documents = [orjson.loads(message["Body"]) for message in messages]
        assert [document["Message"] for document in documents] == ["one", "two"]
        assert [one["SequenceNumber"] for one in documents] == [one["SequenceNumber"] for one in answers[:2]]
        assert "Signature" not in documents[0]
        assert messages[0]["Attributes"]["MessageGroupId"] == "g"

    def test_dead_letters_are_what_the_endpoint_would_have_got(self, sns: Sns) -> None:
        topic = sns.topic()
        dead = sns.sqs.queue()
        policy = orjson.dumps({"deadLetterTargetArn": dead.arn}).decode()
        queue = topic.queue(RedrivePolicy=policy)
        queue.call("delete_queue")
        topic.publish("too late")
        letter = dead.one()
        assert orjson.loads(letter["Body"])["Message"] == "too late"
        assert letter["Attributes"]["ApproximateReceiveCount"] == "1"  # recorded

    @pytest.mark.parametrize("fifo", [False, True])
    def test_a_dead_letter_is_a_message_like_any_other_in_its_queue(
        self, sns: Sns, server: Server, fifo: bool
    ) -> None:
        """Sent when it was given up: after 23 days of retries it would be older than a queue keeps a message."""
        topic = sns.topic(fifo=fifo)
        keeps = {"MessageRetentionPeriod": "60"}
        dead = sns.sqs.fifo(**keeps) if fifo else sns.sqs.queue(**keeps)
        policy = orjson.dumps({"deadLetterTargetArn": dead.arn}).decode()
        queue = topic.queue(fifo=fifo, RedrivePolicy=policy)
        fault = {"endpoint": queue.arn, "status": 503}
        assert server.ask("POST", "/_redrive/faults", orjson.dumps(fault))[0] == 200
        topic.publish(**({"MessageGroupId": "g", "MessageDeduplicationId": "d"} if fifo else {}))
        server.advance(3600)
        assert dead.receive() == []
        server.ask("POST", "/_redrive/faults", orjson.dumps(fault | {"status": None}))
        queue.call("delete_queue")
        server.advance(20)
        shown = dead.one()["Attributes"]
        assert shown["ApproximateReceiveCount"] == "1"
        assert int(shown["SentTimestamp"]) >= (server.now() - 20) * 1000
        assert int(shown["ApproximateFirstReceiveTimestamp"]) == round(server.now() * 1000)
        if fifo:
            assert (shown["MessageGroupId"], shown["MessageDeduplicationId"]) == ("g", "d")  # recorded

    def test_a_closed_queue_gets_nothing(self, sns: Sns) -> None:
        topic = sns.topic()
        dead = sns.sqs.queue()
        policy = orjson.dumps({"deadLetterTargetArn": dead.arn}).decode()
        queue = topic.queue(RedrivePolicy=policy, RawMessageDelivery="true")
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": "sns.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": queue.arn,
            "Condition": {"ArnEquals": {"aws:SourceArn": f"{topic.arn}-other"}},
        }
        queue.set(Policy=orjson.dumps({"Statement": [statement]}).decode())
        topic.publish("refused")
        statement["Condition"] = {"ArnEquals": {"aws:SourceArn": topic.arn}}
        queue.set(Policy=orjson.dumps({"Statement": [statement]}).decode())
        topic.publish("taken")
        assert (queue.bodies(), dead.bodies()) == (["taken"], ["refused"])


class TestWebhooks:
    def _confirmed(self, topic: Topic, webhook: Webhook, **attributes: str) -> str:
        arn = topic.subscribe("http", webhook.url, **attributes)
        status, answer = follow(webhook.next().document["SubscribeURL"])
        assert (status, text_of(answer, "SubscriptionArn")) == (200, arn)
        return arn

    def test_a_webhook_confirms_by_following_a_link(self, sns: Sns) -> None:
        topic = sns.topic()
        with Webhook().serving() as webhook:
            for _ in range(2):
                answer = topic.call("subscribe", Protocol="http", Endpoint=webhook.url)
                assert answer["SubscriptionArn"] == "pending confirmation"
            first, second = webhook.next(), webhook.next()
            assert first.headers["x-amz-sns-message-type"] == "SubscriptionConfirmation"
            assert first.document["Token"] != second.document["Token"]
            status, page = follow(first.document["SubscribeURL"])
            assert (status, page.tag.rpartition("}")[2]) == (200, "ConfirmSubscriptionResponse")
            arn = text_of(page, "SubscriptionArn")
            attributes = sns.client.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
            assert attributes["PendingConfirmation"] == "false"
            assert attributes["ConfirmationWasAuthenticated"] == "false"

    def test_links_that_lead_nowhere_say_so(self, sns: Sns) -> None:
        topic = sns.topic()
        with Webhook().serving() as webhook:
            topic.subscribe("http", webhook.url)
            url = webhook.next().document["SubscribeURL"]
            region = topic.arn.replace("us-east-1", "eu-central-1")
            for link, message in (
                (url.replace(topic.arn, "not-an-arn"), "Invalid parameter: Topic"),
                (url.replace(topic.arn, region), "Invalid parameter: Topic"),
                (f"{url.rpartition('=')[0]}=abc123", "Invalid parameter: Token"),
            ):
                status, answer = follow(link)
                assert (status, text_of(answer, "Code")) == (400, "InvalidParameter")
                assert text_of(answer, "Message") == message
            status, _ = follow(url.replace(topic.arn, f"{topic.arn}-other"))
            assert status == 200

    def test_a_webhook_gets_notifications(self, sns: Sns) -> None:
        topic = sns.topic()
        with Webhook().serving() as webhook:
            arn = self._confirmed(topic, webhook)
            answer = topic.publish("hello")
            hit = webhook.next()
            assert hit.document["Message"] == "hello"
            assert hit.headers["x-amz-sns-message-id"] == answer["MessageId"]
            assert hit.headers["x-amz-sns-subscription-arn"] == arn

    def test_a_content_type_of_raw_delivery_alone_falls_back_without_it(self, sns: Sns) -> None:
        policy = '{"requestPolicy":{"headerContentType":"text/csv"}}'
        topic = sns.topic()
        with Webhook().serving() as webhook:
            arn = self._confirmed(topic, webhook, RawMessageDelivery="true", DeliveryPolicy=policy)
            for raw, content_type in (
                ("true", "text/csv"),
                ("false", "text/plain; charset=UTF-8"),
                ("true", "text/csv"),
            ):
                sns.client.set_subscription_attributes(
                    SubscriptionArn=arn, AttributeName="RawMessageDelivery", AttributeValue=raw
                )
                shown = sns.client.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
                effective = orjson.loads(shown["EffectiveDeliveryPolicy"])["requestPolicy"]
                assert effective == {"headerContentType": content_type}
                assert orjson.loads(shown["DeliveryPolicy"])["requestPolicy"] == {
                    "headerContentType": "text/csv"
                }
                topic.publish("a,b")
                assert webhook.next().headers["content-type"] == content_type

    def test_an_unsubscribe_link_is_told_to_the_endpoint_which_may_object(self, sns: Sns) -> None:
        topic = sns.topic()
        with Webhook().serving() as webhook:
            arn = self._confirmed(topic, webhook)
            topic.publish()
            status, answer = follow(webhook.next().document["UnsubscribeURL"])
            assert (status, answer.tag.rpartition("}")[2]) == (200, "UnsubscribeResponse")
            told = webhook.next()
            assert told.document["Type"] == "UnsubscribeConfirmation"
            with refused("NotFound", "Subscription does not exist", 404):
                sns.client.get_subscription_attributes(SubscriptionArn=arn)
            assert follow(told.document["SubscribeURL"])[0] == 200
            topic.publish("back again")
            assert webhook.next().document["Message"] == "back again"

    def test_an_unconfirmed_subscription_is_deleted_after_three_days(self, sns: Sns, server: Server) -> None:
        topic = sns.topic()
        with Webhook().serving() as webhook:
            arn = topic.subscribe("http", webhook.url)
            token = webhook.next().document["Token"]
            server.advance(2 * 86_400)
            with refused("InvalidParameter", "Invalid parameter: Token"):
                topic.call("confirm_subscription", Token=token)
            assert topic.attributes()["SubscriptionsPending"] == "1"
            server.advance(86_400)
            assert topic.attributes()["SubscriptionsPending"] == "0"
            with refused("NotFound", "Subscription does not exist", 404):
                sns.client.get_subscription_attributes(SubscriptionArn=arn)


class TestApiGateway:
    def test_api_gateway_publishes_without_a_version_and_wants_json(self, sns: Sns, server: Server) -> None:
        topic = sns.topic()
        queue = topic.queue(RawMessageDelivery="true")
        body = f"Action=Publish&TopicArn={topic.arn}&Message=by+form".encode()
        status, answer = server.ask(
            "POST",
            "/",
            body,
            {
                "Content-Type": "application/x-www-form-urlencoded",
                "Accept": "application/json",
                "X-Amzn-Trace-Id": TRACE,
            },
        )
        document = orjson.loads(answer)["PublishResponse"]
        assert (status, set(document["PublishResult"])) == (200, {"MessageId", "SequenceNumber"})
        message = queue.one()
        assert (message["Body"], message["Attributes"]["AWSTraceHeader"]) == ("by form", TRACE)
