"""One handler in four languages, called in every way, and Amazon's SDK for Java as a client."""

import io
import os
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import orjson
import pytest

from tests.contracts.aws.lambda_.workshop import Workshop, archive
from tests.services.companions import CompanionMissingError
from tests.services.server import Server, serving

_JAVA: Final = Path(__file__).parents[4] / ".java"

# Keeps each event as a line of a file, and answers {"got": event}; fails where it is told to.
_PYTHON: Final = """
import json, os

def handler(event, context):
    if "fail" in event:
        raise ValueError("told to")
    with open(os.environ["FILE"], "a") as file:
        file.write(json.dumps(event) + "\\n")
    return {"got": event}
"""
_NODE: Final = """
const fs = require('node:fs');
exports.handler = async (event) => {
  if ('fail' in event) throw new Error('told to');
  fs.appendFileSync(process.env.FILE, JSON.stringify(event) + '\\n');
  return { got: event };
};
"""
_SHELL: Final = """#!/bin/sh
base=http://$AWS_LAMBDA_RUNTIME_API/2018-06-01/runtime/invocation
while true; do
  event=$(curl -s -D "$TMPDIR/head" "$base/next")
  id=$(tr -d '\\r' < "$TMPDIR/head" | sed -n 's/^[Ll]ambda-[Rr]untime-[Aa]ws-[Rr]equest-[Ii]d: //p')
  case $event in
    *'"fail"'*) curl -s -d '{"errorMessage":"told to","errorType":"Told"}' "$base/$id/error" > "$TMPDIR/answer" ;;
    *) echo "$event" >> "$FILE"; curl -s -d "{\\"got\\":$event}" "$base/$id/response" > "$TMPDIR/answer" ;;
  esac
done
"""


def _java() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as opened:
        opened.write(_JAVA / "classes/Orders.class", "Orders.class")
    return packed.getvalue()


_CODE: Final = {
    "python3.11": (lambda: archive({"index.py": _PYTHON}), "index.handler"),
    "nodejs20.x": (lambda: archive({"index.js": _NODE}), "index.handler"),
    "provided.al2023": (lambda: archive({"bootstrap": _SHELL}), "any"),
    "java17": (_java, "Orders::handleRequest"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if not (_JAVA / "stamp").exists():
        raise CompanionMissingError("the jars for Java are not there: `make java` fetches them")
    flags = ("--clock", "simulated", "--functions", "on", "--functions-java-client", str(_JAVA / "client"))
    with serving("sqlite://:memory:", *flags) as started:
        yield started


@pytest.mark.parametrize("runtime", _CODE)
def test_a_handler_of_any_language_is_called_in_every_way(
    server: Server, tmp_path: Path, runtime: str
) -> None:
    workshop, file = Workshop(server), tmp_path / "events"
    code, handler = _CODE[runtime]
    name, dead = f"orders-{runtime.replace('.', '-')}", workshop.sqs.queue()
    variables = {"Variables": {"FILE": str(file)}}
    more = {"MemorySize": 512, "Environment": variables, "DeadLetterConfig": {"TargetArn": dead.arn}}
    workshop.create(name, code(), handler, Runtime=runtime, **more)

    assert workshop.call(name, {"car": "waited for"}).payload == {"got": {"car": "waited for"}}
    workshop.send(name, {"car": "for later"})
    topic, queue = workshop.sns.topic(), workshop.sqs.queue(VisibilityTimeout="30")
    topic.subscribe("lambda", workshop.arn(name))
    topic.publish("from a topic")
    server.advance(1)
    workshop.client.create_event_source_mapping(EventSourceArn=queue.arn, FunctionName=name)
    queue.send("from a queue")
    server.advance(1)
    waited_for, *others = [orjson.loads(line) for line in file.read_text().splitlines()]
    assert waited_for == {"car": "waited for"}
    assert {"car": "for later"} in others
    records = [event["Records"][0] for event in others if "Records" in event]
    told = {record["Sns"]["Message"] if "Sns" in record else record["body"] for record in records}
    assert (told, len(others)) == ({"from a topic", "from a queue"}, 3)

    answer = workshop.call(name, {"fail": True})
    assert (answer.error, answer.payload["errorMessage"]) == ("Unhandled", "told to")
    workshop.send(name, {"fail": True})
    server.advance(180)
    assert (
        dead.one(MessageAttributeNames=["All"])["MessageAttributes"]["ErrorMessage"]["StringValue"]
        == "told to"
    )


def test_amazon_s_sdk_for_java_is_a_client_like_any_other(server: Server) -> None:
    name = Workshop(server).function()
    java = ("java", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8")
    done = subprocess.run(
        [*java, "-cp", f"{_JAVA}/classes:{_JAVA}/sdk/*", "Client", server.url, name],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.splitlines() == [
        "received 한국어 日本語 7",
        "sent 2",
        "refused 400",
        "notified published",
        'invoked 200 {"car": 1}',
        "taken 202",
        "refused 404",
    ], done.stderr


def test_the_program_of_amazon_s_article_sets_a_redrive_policy(server: Server) -> None:
    workshop = Workshop(server)
    topic, queue, dead = workshop.sns.topic(), workshop.sqs.queue(), workshop.sqs.queue()
    subscription = topic.subscribe("sqs", queue.arn)
    java = ("java", "-XX:TieredStopAtLevel=1", "-cp", f"{_JAVA}/classes:{_JAVA}/sdk1/*")
    done = subprocess.run(
        [*java, "RedrivePolicy", server.url, subscription, dead.arn],
        env={"PATH": os.environ["PATH"], "AWS_ACCESS_KEY_ID": workshop.account, "AWS_SECRET_KEY": "secret"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert orjson.loads(done.stdout) == {"deadLetterTargetArn": dead.arn}
    queue.call("delete_queue")
    topic.publish("an order")
    server.advance(1)
    assert orjson.loads(dead.one()["Body"])["Message"] == "an order"
