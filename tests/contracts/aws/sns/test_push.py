"""Mobile push from end to end: boto3, a whole server on each store, and push services that check who comes."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from tests.contracts.aws.clients import client
from tests.contracts.aws.cloudwatch.client import Watch
from tests.contracts.aws.sns.client import Sns
from tests.contracts.aws.sqs.client import refused
from tests.services.postgres import DatabaseMaker
from tests.services.push_services import (
    BUNDLE,
    KEY_ID,
    TEAM,
    Apple,
    Saying,
    Web,
    fcm_error,
    pem,
    service_account,
    signing_key,
)
from tests.services.server import Server, serving

ROLE: Final = "arn:aws:iam::000000000000:role/feedback"
LOGGED: Final = {
    "SuccessFeedbackRoleArn": ROLE,
    "FailureFeedbackRoleArn": ROLE,
    "SuccessFeedbackSampleRate": "100",
}
HOUR: Final = 3600


@pytest.fixture(scope="module")
def apple() -> Iterator[Apple]:
    with Apple().serving() as apple:
        yield apple


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with Web().serving() as web:
        yield web


def _flags(apple: Apple, web: Web) -> tuple[str, ...]:
    urls = {"apns": apple.url, "apns_sandbox": apple.url, **web.urls}
    pairs = " ".join(f"{name}={url}" for name, url in urls.items())
    return ("--clock", "simulated", "--allow-reset", "--push-endpoints", pairs)


@pytest.fixture(scope="module")
def push_server_on_sqlite(apple: Apple, web: Web) -> Iterator[Server]:
    directory = Path(tempfile.mkdtemp(prefix="push-", dir=os.environ["REDRIVE_TESTS_RUN_DIRECTORY"]))
    with serving(f"sqlite:///{directory}/redrive.db", *_flags(apple, web), directory=directory) as server:
        yield server


@pytest.fixture(scope="module")
def push_server_on_postgres(apple: Apple, web: Web, database_maker: DatabaseMaker) -> Iterator[Server]:
    with database_maker.database() as url, serving(url, *_flags(apple, web)) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest, apple: Apple, web: Web) -> Iterator[Server]:
    started: Server = request.getfixturevalue(f"push_server_on_{request.param}")
    yield started
    started.reset()
    for service in (apple, web):
        service.say(200)
        while not service.is_idle:
            service.next()
    log = started.log.read_text()
    assert " ERROR " not in log, log[-5000:]
    assert "PRIVATE KEY" not in log


@pytest.fixture
def sns(server: Server) -> Sns:
    return Sns(server)


def application(sns: Sns, platform: str, **attributes: str) -> str:
    credentials = {
        "GCM": {"PlatformCredential": service_account()},
        "ADM": {"PlatformPrincipal": "id", "PlatformCredential": "secret"},
    }
    apple = {
        "PlatformPrincipal": KEY_ID,
        "PlatformCredential": pem(signing_key()),
        "ApplePlatformTeamID": TEAM,
        "ApplePlatformBundleID": BUNDLE,
    }
    given = credentials.get(platform, apple) | attributes
    made = sns.client.create_platform_application(Name="app", Platform=platform, Attributes=given)
    arn: str = made["PlatformApplicationArn"]
    return arn


def device(sns: Sns, app: str, token: str = "token") -> str:
    made = sns.client.create_platform_endpoint(PlatformApplicationArn=app, Token=token)
    arn: str = made["EndpointArn"]
    return arn


def enabled(sns: Sns, arn: str) -> str:
    state: str = sns.client.get_endpoint_attributes(EndpointArn=arn)["Attributes"]["Enabled"]
    return state


def written(server: Server, group: str) -> list[Any]:
    """Return the entries of a log group."""
    logs = client(server.url, "logs", "json")
    events = logs.filter_log_events(logGroupName=group)["events"]
    return [orjson.loads(event["message"]) for event in events]


@pytest.mark.parametrize("platform", ["APNS", "APNS_SANDBOX", "APNS_VOIP", "MACOS", "GCM", "ADM"])
def test_a_message_to_a_device(sns: Sns, server: Server, apple: Apple, web: Web, platform: str) -> None:
    arn = device(sns, application(sns, platform))
    assert sns.client.publish(TargetArn=arn, Message="hello")["MessageId"]
    server.advance(1)
    service = web if platform in ("GCM", "ADM") else apple
    pushed = service.next()
    assert pushed.token == "token"
    wrapped = {"GCM": lambda document: document["message"]["data"], "ADM": lambda document: document["data"]}
    if platform in wrapped:
        assert wrapped[platform](pushed.document) == {"default": "hello"}
        return
    assert pushed.document == {"aps": {"alert": "hello"}}
    voip = platform == "APNS_VOIP"
    assert pushed.headers["apns-topic"] == (f"{BUNDLE}.voip" if voip else BUNDLE)
    assert pushed.headers["apns-push-type"] == ("voip" if voip else "alert")


def test_one_topic_pushes_to_devices_of_all_platforms(
    sns: Sns, server: Server, apple: Apple, web: Web
) -> None:
    topic = sns.topic()
    for platform in ("APNS", "GCM"):
        topic.subscribe("application", device(sns, application(sns, platform)))
    texts = {
        "default": "hello",
        "APNS": '{"aps":{"content-available":1}}',
        "GCM": '{"notification":{"title":"hello"}}',
    }
    ttl = {"DataType": "Number", "StringValue": "60"}
    topic.publish(
        orjson.dumps(texts).decode(),
        MessageStructure="json",
        MessageAttributes={"AWS.SNS.MOBILE.APNS.TTL": ttl, "AWS.SNS.MOBILE.FCM.TTL": ttl},
    )
    published_at = server.now()
    server.advance(1)
    apples, googles = apple.next(), web.next()
    assert apples.body == texts["APNS"]
    assert apples.headers["apns-push-type"] == "background"
    assert apples.headers["apns-expiration"] == str(int(published_at) + 60)
    message = googles.document["message"]
    assert message["notification"] == {"title": "hello"}
    assert message["android"]["ttl"] == "60s"


def test_an_endpoint_whose_device_is_gone_is_disabled(sns: Sns, server: Server, web: Web) -> None:
    topic = sns.topic()
    heard = topic.queue(RawMessageDelivery="true")
    names = ("EventEndpointUpdated", "EventDeliveryFailure")
    app = application(sns, "GCM", **dict.fromkeys(names, topic.arn), **LOGGED)
    arn = device(sns, app)
    web.say(404, fcm_error(404, "NOT_FOUND", "UNREGISTERED"))
    sent = sns.client.publish(TargetArn=arn, Message="hello")["MessageId"]
    server.advance(1)
    assert enabled(sns, arn) == "false"
    with refused("EndpointDisabled", "Endpoint is disabled"):
        sns.client.publish(TargetArn=arn, Message="hello")
    updated, failed = (orjson.loads(body) for body in heard.bodies())
    assert (updated["EventType"], updated["EndpointArn"]) == ("EndpointUpdated", arn)
    assert (failed["FailureType"], failed["MessageId"]) == ("InvalidPlatformToken", sent)
    (entry,) = written(server, "sns/us-east-1/000000000000/app/GCM/app/Failure")
    assert (entry["delivery"]["token"], entry["delivery"]["statusCode"]) == ("token", 404)
    assert "UNREGISTERED" in entry["delivery"]["providerResponse"]
    sns.client.set_endpoint_attributes(EndpointArn=arn, Attributes={"Enabled": "true", "Token": "new"})
    web.say(200)
    sns.client.publish(TargetArn=arn, Message="again")
    server.advance(1)
    while (pushed := web.next()).token != "new":
        pass
    assert pushed.document["message"]["data"] == {"default": "again"}


def test_trouble_ends_after_six_hours_in_the_dead_letters(sns: Sns, server: Server, apple: Apple) -> None:
    letters = sns.sqs.queue()
    topic = sns.topic()
    app = application(sns, "APNS", **LOGGED)
    policy = orjson.dumps({"deadLetterTargetArn": letters.arn}).decode()
    topic.subscribe("application", device(sns, app), RedrivePolicy=policy)
    apple.say(503, {"reason": "ServiceUnavailable"})
    topic.publish("hello")
    server.advance(5 * HOUR)
    assert letters.bodies() == []
    assert 10 < apple.pushed.qsize() < 51
    server.advance(4 * HOUR)
    assert apple.pushed.qsize() == 51
    assert orjson.loads(letters.one()["Body"])["Message"] == "hello"
    entries = written(server, "sns/us-east-1/000000000000/app/APNS/app/Failure")
    assert [entry["delivery"]["attempts"] for entry in entries] == list(range(1, 52))
    assert {entry["delivery"]["statusCode"] for entry in entries} == {503}


def test_an_outage_that_passes_loses_nothing(sns: Sns, server: Server, apple: Apple) -> None:
    answers = [Saying(500), Saying(429, {"reason": "TooManyRequests"}), Saying(0), Saying()]
    apple.script = lambda _: answers.pop(0)
    arn = device(sns, application(sns, "APNS", **LOGGED))
    sns.client.publish(TargetArn=arn, Message="hello")
    server.advance(10 * 60)
    assert answers == []
    (entry,) = written(server, "sns/us-east-1/000000000000/app/APNS/app")
    assert (entry["status"], entry["delivery"]["attempts"]) == (
        "SUCCESS",
        3,
    )  # a connection that closed is none
    assert entry["delivery"]["providerResponse"] == '{"apns-id":"A1"}'


def test_credentials_that_are_mended_in_time(sns: Sns, server: Server, web: Web) -> None:
    app = application(sns, "GCM", PlatformCredential="an API key of old")
    arn = device(sns, app)
    sns.client.publish(TargetArn=arn, Message="hello")
    server.advance(60)
    assert web.is_idle
    sns.client.set_platform_application_attributes(
        PlatformApplicationArn=app, Attributes={"PlatformCredential": service_account()}
    )
    server.advance(HOUR)
    assert web.next().document["message"]["data"] == {"default": "hello"}
    assert enabled(sns, arn) == "true"


def test_pushes_are_counted_by_application_and_platform(sns: Sns, server: Server, web: Web) -> None:
    arn = device(sns, application(sns, "GCM"))
    sns.client.publish(TargetArn=arn, Message="hello")
    server.advance(60)
    web.say(400, fcm_error(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"))
    sns.client.publish(TargetArn=arn, Message="hello")
    server.advance(60)
    assert enabled(sns, arn) == "true"
    watch = Watch(server)
    for dimensions in (
        {"Application": "app"},
        {"Platform": "GCM"},
        {"Application": "app", "Platform": "GCM"},
    ):
        assert sum(watch.sums("AWS/SNS", "NumberOfMessagesPublished", **dimensions)) == 2
        assert sum(watch.sums("AWS/SNS", "NumberOfNotificationsDelivered", **dimensions)) == 1
        assert sum(watch.sums("AWS/SNS", "NumberOfNotificationsFailed", **dimensions)) == 1
    listed = watch.listed(Namespace="AWS/SNS", MetricName="NumberOfNotificationsFailed")
    assert "AWS/SNS NumberOfNotificationsFailed Application=app Platform=GCM" in listed
