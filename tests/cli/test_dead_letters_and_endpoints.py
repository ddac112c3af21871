"""`redrive dlq` and `redrive endpoints` against a running server whose endpoint fails as told."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from redrive.cli import redriving
from redrive.cli.main import main
from tests.cli.telling import POLICY, Command, confirmed, fail
from tests.contracts.aws.sns.client import Sns, Webhook, follow
from tests.services.server import Server


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
    assert re.match(rf"{name} +2 dead letters\n    from topic .* to {webhook.url}", redrive("dlq", "queues"))
    assert redrive("dlq", "queues", name) == redrive("dlq", "queues")
    assert not json.loads(redrive("dlq", "queues", f"{name}-other", "--json"))["queues"]
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


def test_a_list_of_dead_letters_tells_a_terminal_nothing(sns: Sns, redrive: Command) -> None:
    _, dead = sns.sqs.with_dead_letters(1)
    dead.send("a\x9b2J\x7fb\u202ec")
    assert redrive("dlq", "list", dead.arn.rpartition(":")[2]).endswith("  a 2J b c\n")
    assert redrive("dlq", "show", dead.arn.rpartition(":")[2]).endswith("\n\na 2J b c\n")


def test_one_cause_is_planned_redriven_carefully_paused_and_resumed(
    sns: Sns, server: Server, redrive: Command, webhook: Webhook
) -> None:
    topic, dead = sns.topic(), sns.sqs.queue()
    policy = orjson.dumps({"deadLetterTargetArn": dead.arn}).decode()
    confirmed(topic, webhook, RedrivePolicy=policy, DeliveryPolicy=orjson.dumps(POLICY).decode())
    fail(server, webhook.url, 503)
    for number in range(14):
        topic.publish(f"order {number}")
    server.advance(60)
    name = dead.arn.rpartition(":")[2]
    causes = redrive("dlq", "causes", name)
    assert re.match(rf" +14  server_error 503 +.* to {webhook.url}  sent .*", causes)
    cause = re.search(r"--cause '(.+)'", causes)[1]  # type: ignore[index]  # else the test fails here
    assert redrive("dlq", "plan", name, "--cause", cause).startswith("14 dead letters would move")
    assert redrive("dlq", "redrive", name, "--cause", cause, "--pace", "careful").startswith("task ")
    server.advance(5)
    tasks = redrive("dlq", "tasks", name)
    assert "paused" in tasks
    assert "10 of 10 failed their first attempt: server_error 503" in tasks
    fail(server, webhook.url, None)
    assert "goes on; 10 of 14 moved" in redrive("dlq", "resume", name, "--pace", "fast")
    server.advance(60)
    assert sorted(webhook.next().document["Message"] for _ in range(14)) == sorted(
        f"order {number}" for number in range(14)
    )
    assert redrive("dlq", "causes", name) == ""


def test_a_letter_is_mended_and_another_set_aside_and_brought_back(
    sns: Sns, server: Server, redrive: Command, webhook: Webhook, tmp_path: Path
) -> None:
    topic, dead = sns.topic(), sns.sqs.queue()
    policy = orjson.dumps({"deadLetterTargetArn": dead.arn}).decode()
    confirmed(topic, webhook, RedrivePolicy=policy, DeliveryPolicy=orjson.dumps(POLICY).decode())
    fail(server, webhook.url, 400)
    topic.publish("wrong")
    topic.publish("hopeless")
    server.advance(60)
    name = dead.arn.rpartition(":")[2]
    places = {line.split()[-1]: line.split()[0] for line in redrive("dlq", "list", name).splitlines()}
    aside = redrive("dlq", "set-aside", name, places["hopeless"])
    assert aside == "1 of 1 put into redrive-set-aside, where they are kept for 14 days\n"
    (beside,) = redrive("dlq", "list", "redrive-set-aside").splitlines()
    assert "client_error" in beside
    fail(server, webhook.url, None)
    mended = tmp_path / "body.txt"
    mended.write_text("right")
    assert "sent with the new body" in redrive(
        "dlq", "edit", name, places["wrong"], "--body-file", str(mended)
    )
    assert webhook.next().document["Message"] == "right"
    assert redrive("dlq", "bring-back", beside.split()[0]) == "1 of 1 brought back\n"
    assert redrive("dlq", "list", name).endswith("hopeless\n")
    assert "was not sent" in redrive("dlq", "edit", name, "999", "--body-file", str(mended), status=1)


def test_an_empty_list_is_explained_on_standard_error(
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


def test_a_list_ends_quietly_when_its_reader_closes_the_pipe(sns: Sns, server: Server) -> None:
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


def test_an_open_circuit_is_shown_and_can_be_closed(
    sns: Sns, server: Server, redrive: Command, webhook: Webhook
) -> None:
    topic = sns.topic()
    name = topic.arn.rpartition(":")[2]
    subscription = confirmed(topic, webhook, DeliveryPolicy=orjson.dumps(POLICY).decode())
    assert redrive("endpoints", "list") == ""
    assert "served" in redrive("endpoints", "list", "--all")
    set_to = redrive("endpoints", "set", name, subscription, "--circuit-breaker", "on")
    assert set_to == f"{name}  {subscription}  circuit-breaker=on\n"
    fail(server, webhook.url, 404)  # not retried: a client error
    topic.publish("refused")
    server.advance(1)
    fail(server, webhook.url, None)
    topic.publish("held")
    server.advance(1)
    assert webhook.is_idle
    listed = redrive("endpoints", "list")
    assert f"{name}  {subscription}  http  {webhook.url}" in listed
    assert re.search(
        r"circuit breaker open until \S+ \S+ \(client_error 404, 1 failure in a row\)  circuit-breaker=on",
        listed,
    )
    assert b"redrive_circuit_breakers_open 1" in server.ask("GET", "/_redrive/metrics")[1]
    assert redrive("endpoints", "close", name, subscription) == "closed: it is served again\n"
    assert webhook.next().document["Message"] == "held"
    assert redrive("endpoints", "close", name, subscription) == "it was not open\n"


def test_passwords_of_endpoints_are_masked(
    sns: Sns, server: Server, redrive: Command, webhook: Webhook
) -> None:
    topic, dead = sns.topic(), sns.sqs.queue()
    policy = orjson.dumps({"deadLetterTargetArn": dead.arn}).decode()
    url = webhook.url.replace("//", "//user:secret@")
    subscription = topic.subscribe("http", url, RedrivePolicy=policy).rpartition(":")[2]
    follow(webhook.next().document["SubscribeURL"])
    redrive("endpoints", "set", topic.arn.rpartition(":")[2], subscription, "--circuit-breaker", "on")
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


def test_an_open_circuit_closes_by_itself(
    sns: Sns, server: Server, redrive: Command, webhook: Webhook
) -> None:
    topic = sns.topic()
    name = topic.arn.rpartition(":")[2]
    subscription = confirmed(topic, webhook, DeliveryPolicy=orjson.dumps(POLICY).decode())
    redrive("endpoints", "set", name, subscription, "--circuit-breaker", "on")
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
        (("close", "nothing", "1"), "there is no subscription 1 of nothing"),
        (("set", "nothing", "1", "--circuit-breaker", "on"), "there is no subscription 1 of nothing"),
    ],
)
def test_an_unknown_subscription_is_named_in_the_error(
    redrive: Command, words: tuple[str, ...], said: str
) -> None:
    assert said in redrive("endpoints", *words, status=1)


# ---- how queues, topics and subscriptions are named --------------------------------------------------------------


def test_a_queue_may_be_named_by_its_name_its_arn_and_its_url(sns: Sns, redrive: Command) -> None:
    queue = sns.sqs.queue()
    queue.send("one")
    shown = {redrive("dlq", "list", name) for name in (queue.name, queue.arn, queue.url)}
    assert len(shown) == 1
    assert shown.pop().endswith("  one\n")


def test_an_arn_says_its_region(sns: Sns, redrive: Command) -> None:
    queue = sns.elsewhere(region="eu-west-1").sqs.queue()
    queue.send("one")
    assert redrive("dlq", "list", queue.arn).endswith("  one\n")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (
            "arn:aws:sqs:us-east-1:210987654321:orders",
            "belongs to account 210987654321, and the request is made as account",
        ),
        (
            "http://localhost:4566/210987654321/orders",
            "belongs to account 210987654321, and the request is made as account",
        ),
        ("arn:aws:sns:us-east-1:000000000000:orders", "is of sns, not of sqs"),
        ("arn:aws:sqs", "An ARN must have at least 6 elements"),
        ("http://localhost:4566/orders", "is not the URL of a queue"),
        ("", '"queue" must be a string that is not empty'),
    ],
)
def test_a_name_of_no_queue_of_the_callers(redrive: Command, name: str, why: str) -> None:
    assert why in redrive("dlq", "list", name, status=1)


def test_a_subscription_may_be_named_by_its_arn(sns: Sns, redrive: Command, webhook: Webhook) -> None:
    topic = sns.topic()
    subscription = confirmed(topic, webhook)
    name = topic.arn.rpartition(":")[2]
    told = f"{name}  {subscription}  circuit-breaker=on\n"
    assert redrive("endpoints", "set", f"{topic.arn}:{subscription}", "--circuit-breaker", "on") == told
    assert redrive("endpoints", "set", topic.arn, subscription, "--circuit-breaker", "on") == told
    assert redrive("endpoints", "close", name, f"{topic.arn}:{subscription}") == "it was not open\n"
    assert '"subscription" must be a string' in redrive("endpoints", "close", topic.arn, status=1)


# ---- listings ----------------------------------------------------------------------------------------------------


def test_dead_letters_are_listed_page_by_page(
    sns: Sns, server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redrive.cli.client.PAGE_MAX", 2)  # so that one listing takes several of the server's
    queue = sns.sqs.queue()
    for number in range(5):
        queue.send(f"m{number}")
    words = ["dlq", "list", queue.name, "--url", server.url]
    assert main([*words, "--limit", "3"]) == 0
    said = capsys.readouterr()
    assert re.findall(r"m\d", said.out) == ["m0", "m1", "m2"]
    assert said.err.startswith("redrive: there are more: --after ")
    last = said.err.split()[-1]
    assert main([*words, "--limit", "3", "--after", last]) == 0
    said = capsys.readouterr()
    assert (re.findall(r"m\d", said.out), said.err) == (["m3", "m4"], "")


def test_endpoints_are_listed_page_by_page(
    sns: Sns, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = sns.topic()
    for _ in range(3):
        topic.queue()
    words = ["endpoints", "list", "--all", "--url", server.url]
    assert main([*words, "--limit", "2"]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 4
    after = said.err.split()[-1]
    assert main([*words, "--after", after]) == 0
    said = capsys.readouterr()
    assert (len(said.out.splitlines()), said.err) == (2, "")


def test_listings_are_json_for_programs(sns: Sns, redrive: Command, webhook: Webhook) -> None:
    source, dead = sns.sqs.with_dead_letters(1)
    dead.send("one")
    topic = sns.topic()
    subscription = confirmed(topic, webhook)
    (queue,) = json.loads(redrive("dlq", "queues", "--json"))["queues"]
    assert (queue["queue"], queue["dead_letters"], queue["from_queues"]) == (dead.name, 1, [source.name])
    page = json.loads(redrive("dlq", "list", dead.name, "--json"))
    assert ([letter["body"] for letter in page["dead_letters"]], page["more"]) == (["one"], False)
    assert json.loads(redrive("dlq", "show", dead.name, "--json")) == page["dead_letters"][0]
    assert json.loads(redrive("endpoints", "list", "--json"))["endpoints"] == []
    (endpoint,) = json.loads(redrive("endpoints", "list", "--all", "--json"))["endpoints"]
    assert endpoint["id"] == subscription


# ---- tasks -------------------------------------------------------------------------------------------------------


def test_a_redrive_may_be_waited_for(sns: Sns, redrive: Command) -> None:
    _, dead = sns.sqs.with_dead_letters(1)
    other = sns.sqs.queue()
    for number in range(3):
        dead.send(f"m{number}")
    said = redrive("dlq", "redrive", dead.name, "--to", other.arn, "--wait").splitlines()
    assert said[1] == "completed: 3 of 3 moved"
    assert len(other.bodies()) == 3
    assert re.search(rf"completed +3 of 3 moved  to queue {other.name}$", redrive("dlq", "tasks", dead.name))
    (task,) = json.loads(redrive("dlq", "tasks", dead.name, "--json"))["tasks"]
    assert (task["state"], task["moved"], task["to"]) == ("completed", 3, other.name)


def test_letters_of_no_known_origin_are_named_in_the_plan_and_counted_as_left(
    sns: Sns, redrive: Command
) -> None:
    _, dead = sns.sqs.with_dead_letters(1)
    dead.send("sent here by hand")
    told = "{} of them {} unless --to names a queue: {} origin is unknown, or was deleted"
    assert told.format(1, "stays", "its") in redrive("dlq", "plan", dead.name)
    said = redrive("dlq", "redrive", dead.name, "--wait").splitlines()
    assert said[1] == "completed: 0 of 1 moved, 1 left"
    assert "0 of 1 moved, 1 left  back" in redrive("dlq", "tasks", dead.name)
    dead.send("so was this")
    assert told.format(2, "stay", "their") in redrive("dlq", "plan", dead.name)
    assert dead.bodies(1) == ["sent here by hand"]
    assert "1 of the queue stays: it is in flight" in redrive("dlq", "plan", dead.name).splitlines()
    assert dead.bodies(1) == ["so was this"]
    assert "2 of the queue stay: they are in flight" in redrive("dlq", "plan", dead.name).splitlines()


def test_a_task_that_is_cancelled_moves_no_more(sns: Sns, redrive: Command, server: Server) -> None:
    _, dead = sns.sqs.with_dead_letters(1)
    other = sns.sqs.queue()
    for number in range(5):  # one moves at once, and each further one a second of the stopped clock later
        dead.send(f"m{number}")
    redrive("dlq", "redrive", dead.name, "--to", other.name, "--rate", "1")
    assert "task " in redrive("dlq", "cancel", dead.name)
    server.advance(10)
    (task,) = json.loads(redrive("dlq", "tasks", dead.name, "--json"))["tasks"]
    assert task["state"] == "cancelled"
    assert task["moved"] == len(other.bodies()) < 5
    assert "has no active redrive task" in redrive("dlq", "cancel", dead.name, status=1)
    assert "is cancelled" in redrive("dlq", "cancel", dead.name, task["task"], status=1)
    assert "there is no task 1 of" in redrive("dlq", "cancel", dead.name, "1", status=1)


class _Client:
    """Answers as a server whose task goes on each time it is asked about."""

    def __init__(self, *tasks: dict[str, object]) -> None:
        self._tasks = list(tasks)

    def get(self, *_: object, **__: object) -> dict[str, object]:
        return {"tasks": [self._tasks.pop(0)]}


class _NoTime:
    """A clock on which waits are over at once."""

    def now(self) -> int:
        return 0

    async def sleep_until(self, at: int) -> None:
        assert at == redriving._LOOK_AGAIN_MS


async def test_a_task_is_watched_to_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    task = {"task": "1", "to_move": 9, "failure": None}
    client = _Client(
        task | {"state": "running", "moved": 0},
        task | {"state": "cancelling", "moved": 4},
        task | {"state": "failed", "moved": 5, "failure": "the queue is gone"},
    )
    assert await redriving._watch(client, _NoTime(), "dead", "1") == 1  # type: ignore[arg-type]  # as much of both as it takes
    assert capsys.readouterr().out == "failed: 5 of 9 moved: the queue is gone\n"
