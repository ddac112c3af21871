"""From Publish to functions and streams on another server, whose calls are signed; and what the logs say of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.contracts.aws.clients import client
from tests.contracts.aws.sns.client import Sns, Topic
from tests.contracts.aws.sqs.client import ACCOUNT, REGION, Queue, refused, text
from tests.services.aws_server import REQUEST_ID, TAKES, AwsServer, Said, messages
from tests.services.postgres import DatabaseMaker
from tests.services.server import Server, serving

FUNCTION = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:bill"
STREAM = f"arn:aws:firehose:{REGION}:{ACCOUNT}:deliverystream/lake"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/sns"
SLOWER = Said(429, "TooManyRequestsException", "Rate Exceeded.")
TRACE = "Root=1-3152b799-8954dae64eda91bc9a23a7e8;Parent=7fa8c0f79203be72;Sampled=1"
HOUR = 3600


@pytest.fixture(scope="module")
def aws_server() -> Iterator[AwsServer]:
    with AwsServer().serving() as aws:
        yield aws


@pytest.fixture
def aws(aws_server: AwsServer) -> AwsServer:
    aws_server.answers.clear()
    aws_server.taken()
    return aws_server


@pytest.fixture(scope="module")
def flags(aws_server: AwsServer) -> tuple[str, ...]:
    named = f"lambda={aws_server.url} firehose={aws_server.url}"
    return ("--clock", "simulated", "--allow-reset", "--aws-endpoints", named)


@pytest.fixture(scope="module")
def on_sqlite(flags: tuple[str, ...]) -> Iterator[Server]:
    with serving("sqlite://:memory:", *flags) as server:
        yield server


@pytest.fixture(scope="module")
def on_postgres(flags: tuple[str, ...], database_maker: DatabaseMaker) -> Iterator[Server]:
    with database_maker.database() as url, serving(url, *flags) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def sns(request: pytest.FixtureRequest) -> Iterator[Sns]:
    server: Server = request.getfixturevalue(f"on_{request.param}")
    yield Sns(server)
    server.reset()


def subscribed(sns: Sns, protocol: str, **attributes: str) -> tuple[Topic, Queue]:
    """A topic that logs deliveries, with one subscriber; and its dead-letter queue."""
    name = protocol.capitalize()
    logged = {f"{name}SuccessFeedbackRoleArn": ROLE, f"{name}FailureFeedbackRoleArn": ROLE}
    topic = sns.topic(**logged, **{f"{name}SuccessFeedbackSampleRate": "100"})
    dead = sns.sqs.queue()
    attributes["RedrivePolicy"] = orjson.dumps({"deadLetterTargetArn": dead.arn}).decode()
    if protocol == "firehose":
        attributes["SubscriptionRoleArn"] = ROLE
    topic.subscribe(protocol, FUNCTION if protocol == "lambda" else STREAM, **attributes)
    return topic, dead


def logged(sns: Sns, topic: Topic, suffix: str = "") -> list[dict[str, Any]]:
    """The entries about a topic's deliveries, oldest first."""
    logs = client(sns.server.url, "logs", "json")
    group = f"sns/{REGION}/{ACCOUNT}/{topic.arn.rpartition(':')[2]}{suffix}"
    try:
        found = logs.filter_log_events(logGroupName=group)["events"]
    except logs.exceptions.ResourceNotFoundException:
        return []
    return [orjson.loads(event["message"]) for event in found]


class TestFunctions:
    def test_a_function_is_invoked_and_the_log_says_so_as_recorded(self, sns: Sns, aws: AwsServer) -> None:
        topic, _ = subscribed(sns, "lambda")
        published = topic.publish("hello", Subject="s", MessageAttributes={"n": text("1.5", "Number")})
        sns.server.advance(1)
        (call,) = aws.taken()
        assert (call.function, call.headers["x-amz-invocation-type"]) == (FUNCTION, "Event")
        (record,) = call.document["Records"]
        (arn,) = [
            one["SubscriptionArn"] for one in topic.call("list_subscriptions_by_topic")["Subscriptions"]
        ]
        assert record["EventSubscriptionArn"] == arn
        said = record["Sns"]
        assert (said["MessageId"], said["Message"], said["Subject"]) == (published["MessageId"], "hello", "s")
        assert said["MessageAttributes"] == {"n": {"Type": "String", "Value": "1.5"}}
        (entry,) = logged(sns, topic)
        delivery = entry["delivery"]
        assert entry["status"] == "SUCCESS"
        assert orjson.loads(delivery["providerResponse"]) == {"lambdaRequestId": REQUEST_ID}
        assert (delivery["destination"], delivery["statusCode"]) == (FUNCTION, 202)
        assert "attempts" not in delivery

    def test_a_trace_goes_along(self, sns: Sns, aws: AwsServer) -> None:
        topic, _ = subscribed(sns, "lambda")
        body = f"Action=Publish&TopicArn={topic.arn}&Message=traced".encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded", "X-Amzn-Trace-Id": TRACE}
        assert sns.server.ask("POST", "/", body, headers)[0] == 200
        topic.publish("untraced")
        sns.server.advance(1)
        traces = {messages([call])[0]: call.headers.get("x-amzn-trace-id") for call in aws.taken()}
        assert traces == {"traced": TRACE, "untraced": None}

    def test_a_missing_function_is_a_dead_letter_and_a_failure(self, sns: Sns, aws: AwsServer) -> None:
        topic, dead = subscribed(sns, "lambda")
        said = f"Function not found: {FUNCTION}:$LATEST"
        aws.answers.append(Said(404, "ResourceNotFoundException", said))
        topic.publish("nowhere to go")
        sns.server.advance(HOUR)
        assert len(aws.taken()) == 1
        letter = orjson.loads(dead.one()["Body"])
        assert (letter["Message"], "SigningCertURL" in letter, "UnsubscribeURL" in letter) == (
            "nowhere to go",
            True,
            True,
        )
        failure, *others = logged(sns, topic, "/Failure")
        assert (failure["delivery"]["statusCode"], failure["status"], others) == (404, "FAILURE", [])
        assert failure["delivery"]["providerResponse"] == (
            f'{{"ErrorCode":"ResourceNotFoundException", "ErrorMessage":"{said}","lambdaRequestId":"Unrecoverable"}}'
        )
        assert "redrivePolicy" in failure["delivery"]

    def test_a_throttled_function_is_invoked_hours_later(self, sns: Sns, aws: AwsServer) -> None:
        topic, dead = subscribed(sns, "lambda")
        aws.answers.extend([SLOWER] * 600)
        topic.publish("patience")
        sns.server.advance(3 * HOUR)
        assert aws.answers
        sns.server.advance(HOUR)
        assert messages(aws.taken()) == ["patience"] * 601
        assert dead.bodies() == []
        assert [entry["status"] for entry in logged(sns, topic)] == ["SUCCESS"]
        (first, *_) = logged(sns, topic, "/Failure")
        assert orjson.loads(first["delivery"]["providerResponse"]) == {
            "ErrorCode": "TooManyRequestsException",
            "ErrorMessage": "Rate Exceeded.",
            "lambdaRequestId": "Unrecoverable",
        }

    def test_successes_are_sampled_and_failures_all_there(self, sns: Sns, aws: AwsServer) -> None:
        topic, _ = subscribed(sns, "lambda")
        topic.set("LambdaSuccessFeedbackSampleRate", "0")
        aws.answers.append(SLOWER)
        for number in range(5):
            topic.publish(str(number))
        sns.server.advance(1)
        assert sorted(set(messages(aws.taken()))) == list("01234")
        assert (len(logged(sns, topic)), len(logged(sns, topic, "/Failure"))) == (0, 1)
        topic.set("LambdaFailureFeedbackRoleArn", "")
        aws.answers.append(SLOWER)
        topic.publish("untold")
        sns.server.advance(1)
        assert len(logged(sns, topic, "/Failure")) == 1

    def test_a_redriven_dead_letter_is_an_event_again(self, sns: Sns, aws: AwsServer) -> None:
        topic, dead = subscribed(sns, "lambda")
        aws.answers.append(Said(403, "AccessDeniedException", "not you"))
        topic.publish("later")
        sns.server.advance(1)
        aws.taken()
        redrive = orjson.dumps({"queue": dead.name})
        status, answer = sns.server.ask("POST", "/_redrive/dead-letters", redrive)
        assert status == 202, answer
        sns.server.advance(60)
        assert messages(aws.taken()) == ["later"]


class TestStreams:
    def test_a_stream_gets_a_line_and_the_log_says_so(self, sns: Sns, aws: AwsServer) -> None:
        topic, _ = subscribed(sns, "firehose")
        topic.publish("hello", Subject="s")
        sns.server.advance(1)
        (call,) = aws.taken()
        assert (call.operation, call.document["DeliveryStreamName"]) == ("PutRecord", "lake")
        (record,) = call.records
        assert record.endswith(b"}\n")
        assert list(orjson.loads(record)) == [
            *("Type", "MessageId", "TopicArn", "Subject", "Message", "Timestamp", "UnsubscribeURL"),
        ]
        (entry,) = logged(sns, topic)
        delivery = entry["delivery"]
        assert orjson.loads(delivery["providerResponse"]) == {"firehoseRequestId": REQUEST_ID}
        assert (delivery["attempts"], delivery["statusCode"]) == (1, 200)

    def test_raw_delivery_is_the_message_alone(self, sns: Sns, aws: AwsServer) -> None:
        topic, _ = subscribed(sns, "firehose", RawMessageDelivery="true")
        topic.publish("as it is", MessageAttributes={"n": text("x")})
        sns.server.advance(1)
        assert aws.taken()[0].records == [b"as it is"]

    def test_a_role_is_required_and_shown(self, sns: Sns, aws: AwsServer) -> None:
        topic = sns.topic()
        reason = "Attributes Reason: SubscriptionRoleArn: required for the firehose protocol"
        with refused("InvalidParameter", f"Invalid parameter: {reason}"):
            topic.subscribe("firehose", STREAM)
        arn = topic.subscribe("firehose", STREAM, SubscriptionRoleArn=ROLE)
        shown = sns.client.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
        assert shown["SubscriptionRoleArn"] == ROLE

    def test_records_that_a_stream_refuses_of_a_batch_come_again(self, sns: Sns, aws: AwsServer) -> None:
        topic, dead = subscribed(sns, "firehose")
        slower = Said(500, "ServiceUnavailableException", "Slow down.")
        aws.answers.extend([slower] * 10)
        entries = [{"Id": str(number), "Message": str(number)} for number in range(10)]
        topic.call("publish_batch", PublishBatchRequestEntries=entries)
        sns.server.advance(1)
        while aws.answers and aws.answers[0] is slower:
            aws.answers.popleft()
        first = aws.taken()
        assert set(messages(first)) == {str(number) for number in range(10)}
        aws.answers.append(TAKES._replace(failed=(0, 2)))
        sns.server.advance(60)
        again = aws.taken()
        assert any(call.operation == "PutRecordBatch" for call in again)
        assert set(messages(again)) == {str(number) for number in range(10)}
        assert len(messages(again)) == 12
        assert sorted(entry["status"] for entry in logged(sns, topic)) == ["SUCCESS"] * 10
        assert dead.bodies() == []

    def test_a_throttled_stream_is_given_up_the_same_day(self, sns: Sns, aws: AwsServer) -> None:
        topic, dead = subscribed(sns, "firehose")
        aws.answers.extend([Said(503, "ServiceUnavailableException", "Slow down.")] * 60)
        topic.publish("too much")
        sns.server.advance(6 * HOUR)
        assert dead.bodies() == []
        sns.server.advance(HOUR)
        assert messages(aws.taken()) == ["too much"] * 51
        assert orjson.loads(dead.one()["Body"])["Message"] == "too much"
        failures = logged(sns, topic, "/Failure")
        assert [entry["delivery"]["attempts"] for entry in failures] == list(range(1, 52))
        assert orjson.loads(failures[0]["delivery"]["providerResponse"]) == {
            "ErrorCode": "ServiceUnavailableException",
            "ErrorMessage": "Slow down.",
            "firehoseRequestId": "Unrecoverable",
        }


def test_a_server_that_is_killed_goes_on_counting_where_it_was(
    aws: AwsServer, flags: tuple[str, ...], tmp_path: Path
) -> None:
    with serving(f"sqlite:///{tmp_path}/redrive.db", *flags, directory=tmp_path) as server:
        topic, dead = subscribed(Sns(server), "firehose")
        aws.answers.extend([Said(503, "ServiceUnavailableException", "Slow down.")] * 60)
        topic.publish("too much")
        server.advance(HOUR)
        before = len(aws.taken())
        assert 10 < before < 20
        server.kill()
        server.start()
        server.advance(5 * HOUR)
        assert dead.bodies() == []
        server.advance(HOUR)
        assert before + len(aws.taken()) == 51
        assert orjson.loads(dead.one()["Body"])["Message"] == "too much"


def test_without_a_server_named_for_it_a_delivery_is_a_client_error(server: Server) -> None:
    topic, dead = subscribed(Sns(server), "lambda")
    topic.publish("nobody there")
    server.advance(1)
    assert orjson.loads(dead.one()["Body"])["Message"] == "nobody there"
    (failure,) = logged(Sns(server), topic, "/Failure")
    refusal = orjson.loads(failure["delivery"]["providerResponse"])["ErrorMessage"]
    assert refusal.startswith(
        "Function not found: arn:aws:lambda:"
    )  # this server runs functions, and has none
