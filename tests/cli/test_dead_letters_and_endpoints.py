"""`redrive dlq` and `redrive endpoints` against a running server whose endpoint fails as told."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator

import orjson
import pytest

from redrive.cli.main import main
from tests.contracts.protocols.sns import Sns, Topic, Webhook, follow
from tests.services.server import Server, serving

Command = Callable[..., str]
POLICY = {"healthyRetryPolicy": {"numRetries": 2, "minDelayTarget": 20, "maxDelayTarget": 20}}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("sqlite://:memory:", "--clock", "simulated", "--allow-reset") as server:
        yield server


@pytest.fixture
def sns(server: Server) -> Sns:
    server.reset()
    return Sns(server)


@pytest.fixture
def redrive(
    sns: Sns, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", sns.account)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")

    def run(*words: str, status: int = 0) -> str:
        assert main([*words, "--url", server.url, "--region", sns.region]) == status
        said = capsys.readouterr()
        return said.err if status else said.out

    return run


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with Webhook().serving() as webhook:
        yield webhook


def confirmed(topic: Topic, webhook: Webhook, **attributes: str) -> str:
    """A subscription of the webhook; its id."""
    arn = topic.subscribe("http", webhook.url, **attributes)
    follow(webhook.next().document["SubscribeURL"])
    return arn.rpartition(":")[2]


def fail(server: Server, endpoint: str, status: int | None) -> None:
    wish = orjson.dumps({"endpoint": endpoint, "status": status})
    assert server.ask("POST", "/_redrive/faults", wish)[0] == 200


def test_dead_letters_are_listed_shown_and_sent_back(
    sns: Sns, server: Server, redrive: Command, webhook: Webhook
) -> None:
    topic, dead = sns.topic(), sns.sqs.queue()
    confirmed(
        topic,
        webhook,
        RedrivePolicy=orjson.dumps({"deadLetterTargetArn": dead.arn}).decode(),
        DeliveryPolicy=orjson.dumps(POLICY).decode(),
    )
    fail(server, webhook.url, 503)
    for text in ("one", "two"):
        topic.publish(text)
    server.advance(60)
    name = dead.arn.rpartition(":")[2]
    assert re.match(rf"{name} +2 letters\n    from topic .* to {webhook.url}", redrive("dlq", "queues"))
    lines = {line.split()[-1]: line for line in redrive("dlq", "list", name).splitlines()}
    assert sorted(lines) == ["one", "two"]  # in the order of their last attempts, which jitter decides
    assert "3 attempts  server_error" in lines["one"]
    letter = lines["one"].split()[0]
    shown = redrive("dlq", "show", name, letter)
    assert shown.count("server_error      503") == 3
    assert shown.endswith("\none\n")
    oldest = redrive("dlq", "list", name).split()[0]
    assert redrive("dlq", "show", name).startswith(f"id        {oldest}\n")
    assert f"to {webhook.url}" in redrive("dlq", "redrive", name, "--dry-run")
    fail(server, webhook.url, None)
    assert redrive("dlq", "redrive", name, letter) == "1 of 1 moved\n"
    assert webhook.next().document["Message"] == "one"
    assert len(redrive("dlq", "list", name).splitlines()) == 1
    assert "there is no dead letter 999" in redrive("dlq", "redrive", name, "999", "--dry-run", status=1)
    assert redrive("dlq", "redrive", name, "999", status=1) == ""
    assert "there is no dead letter 999" in redrive("dlq", "show", name, "999", status=1)


def test_where_nothing_is_that_is_said_beside_the_list(
    sns: Sns, server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", sns.account)
    name = sns.sqs.queue().arn.rpartition(":")[2]
    there = ("--url", server.url, "--region", sns.region)
    for words, said in (
        (("queues",), "there are no dead-letter queues"),
        (("list", name), f"there is nothing in {name}"),
        (("list", name, "--after", "1"), f"there is nothing in {name} after that"),
        (("redrive", name, "--dry-run"), f"there is nothing in {name}"),
    ):
        assert main(["dlq", *words, *there]) == 0
        assert capsys.readouterr() == ("", f"redrive: {said}\n")
    assert main(["dlq", "show", name, *there]) == 1
    assert capsys.readouterr() == ("", f"redrive: there is nothing in {name}\n")


def test_whoever_reads_the_list_may_stop_reading(sns: Sns, server: Server) -> None:
    queue = sns.sqs.queue()
    for _ in range(30):
        queue.send("x" * 60)
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": sns.account, "AWS_SECRET_ACCESS_KEY": "secret"}
    listing = [sys.executable, "-m", "redrive.cli.main", "dlq", "list", queue.arn.rpartition(":")[2]]
    with subprocess.Popen(
        [*listing, "--url", server.url, "--region", sns.region],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        command.stdout.close()
        said = command.stderr.read()
    assert (command.returncode, said) == (141, b"")


def test_an_endpoint_that_rests_is_shown_and_served_again(
    sns: Sns, server: Server, redrive: Command, webhook: Webhook
) -> None:
    topic = sns.topic()
    name = topic.arn.rpartition(":")[2]
    subscription = confirmed(topic, webhook, DeliveryPolicy=orjson.dumps(POLICY).decode())
    assert redrive("endpoints", "list") == ""
    assert "served" in redrive("endpoints", "list", "--all")
    set_to = redrive("endpoints", "set", name, subscription, "--rests", "on")
    assert set_to == f"{name}  {subscription}  rests=on\n"
    fail(server, webhook.url, 404)  # not retried: a client error
    topic.publish("refused")
    server.advance(1)
    fail(server, webhook.url, None)
    topic.publish("held")
    server.advance(1)
    assert webhook.is_idle
    listed = redrive("endpoints", "list")
    assert f"{name}  {subscription}  http  {webhook.url}" in listed
    assert re.search(r"rests until \S+ \S+ \(client_error 404, 1 failure in a row\)  rests=on", listed)
    assert b"redrive_endpoints_on_probation 1" in server.ask("GET", "/_redrive/metrics")[1]
    assert redrive("endpoints", "lift", name, subscription) == "lifted: it is served again\n"
    assert webhook.next().document["Message"] == "held"
    assert redrive("endpoints", "lift", name, subscription) == "it was not on probation\n"


def test_nobody_is_shown_an_endpoints_password(
    sns: Sns, server: Server, redrive: Command, webhook: Webhook
) -> None:
    topic, dead = sns.topic(), sns.sqs.queue()
    policy = orjson.dumps({"deadLetterTargetArn": dead.arn}).decode()
    url = webhook.url.replace("//", "//user:secret@")
    subscription = topic.subscribe("http", url, RedrivePolicy=policy).rpartition(":")[2]
    follow(webhook.next().document["SubscribeURL"])
    redrive("endpoints", "set", topic.arn.rpartition(":")[2], subscription, "--rests", "on")
    fail(server, url, 404)
    topic.publish("refused")
    server.advance(1)
    name = dead.arn.rpartition(":")[2]
    for said in (redrive("dlq", "queues"), redrive("dlq", "list", name), redrive("endpoints", "list")):
        assert "user:****@127.0.0.1" in said
    signed = {
        "Authorization": f"AWS4-HMAC-SHA256 Credential={sns.account}/20260101/us-east-1/redrive/aws4_request"
    }
    for path in ("endpoints?all=true", "dead-letter-queues", f"dead-letters?queue={name}"):
        status, body = server.ask("GET", f"/_redrive/{path}", headers=signed)
        assert (status, b"secret" in body, b"****" in body) == (200, False, True)


def test_a_rest_ends_by_itself(sns: Sns, server: Server, redrive: Command, webhook: Webhook) -> None:
    topic = sns.topic()
    name = topic.arn.rpartition(":")[2]
    subscription = confirmed(topic, webhook, DeliveryPolicy=orjson.dumps(POLICY).decode())
    redrive("endpoints", "set", name, subscription, "--rests", "on")
    fail(server, webhook.url, 404)
    topic.publish("refused")
    server.advance(1)
    fail(server, webhook.url, None)
    topic.publish("held")
    server.advance(300)
    assert webhook.next().document["Message"] == "held"
    assert redrive("endpoints", "list") == ""


def test_a_client_error_may_count_as_delivered(
    sns: Sns, server: Server, redrive: Command, webhook: Webhook
) -> None:
    topic, dead = sns.topic(), sns.sqs.queue()
    name = topic.arn.rpartition(":")[2]
    policy = orjson.dumps({"deadLetterTargetArn": dead.arn}).decode()
    subscription = confirmed(topic, webhook, RedrivePolicy=policy)
    redrive("endpoints", "set", name, subscription, "--client-errors", "delivered")
    fail(server, webhook.url, 404)
    topic.publish("gone, and that is fine")
    server.advance(1)
    assert dead.bodies() == []
    redrive("endpoints", "set", name, subscription, "--client-errors", "refused")
    topic.publish("gone")
    server.advance(1)
    assert len(dead.bodies()) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("lift", "nothing", "1"), "there is no subscription 1 of nothing"),
        (("set", "nothing", "1", "--rests", "on"), "there is no subscription 1 of nothing"),
    ],
)
def test_what_is_not_there_is_said(redrive: Command, words: tuple[str, ...], said: str) -> None:
    assert said in redrive("endpoints", *words, status=1)
