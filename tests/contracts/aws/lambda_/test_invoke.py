"""Invocations that are waited for."""

import base64
import threading
from pathlib import Path

import orjson
import pytest

from tests.contracts.aws.clients import client as telemetry
from tests.contracts.aws.lambda_.workshop import ECHO, Workshop, archive
from tests.contracts.aws.sqs.client import refused
from tests.functions.conftest import CODE


def test_a_handler_answers_and_its_log_comes_along(workshop: Workshop) -> None:
    name = workshop.function("def handler(event, context):\n    print('seen', event)\n    return event\n")
    answer = workshop.call(name, {"car": 1}, LogType="Tail")
    assert (answer.payload, answer.error) == ({"car": 1}, None)
    assert (answer.raw["StatusCode"], answer.raw["ExecutedVersion"]) == (200, "$LATEST")
    lines = base64.b64decode(answer.raw["LogResult"]).decode().splitlines()
    request_id = answer.raw["ResponseMetadata"]["RequestId"]
    assert lines[0] == f"START RequestId: {request_id} Version: $LATEST"
    assert lines[1] == "seen {'car': 1}"
    assert lines[2] == f"END RequestId: {request_id}"
    assert lines[3].startswith(f"REPORT RequestId: {request_id}\tDuration: ")


def test_an_exception_is_an_answer_with_a_mark(workshop: Workshop) -> None:
    answer = workshop.call(workshop.function(handler="index.fail"), "x")
    assert (answer.error, answer.raw["StatusCode"]) == ("Unhandled", 200)
    assert (answer.payload["errorMessage"], answer.payload["errorType"]) == ("boom x", "ValueError")


def test_a_handler_that_takes_too_long_is_ended(workshop: Workshop) -> None:
    name = workshop.function("def handler(event, context):\n    while True:\n        pass\n", Timeout=1)
    answer = workshop.call(name)
    assert answer.error == "Unhandled"
    assert answer.payload["errorType"] == "Sandbox.Timedout"
    assert answer.payload["errorMessage"].endswith("Error: Task timed out after 1.00 seconds")


def test_a_dry_run_runs_nothing(workshop: Workshop) -> None:
    name = workshop.function(handler="index.count")
    assert workshop.client.invoke(FunctionName=name, InvocationType="DryRun")["StatusCode"] == 204
    assert workshop.call(name).payload == 1


def test_a_function_is_told_where_it_is_and_calls_back(workshop: Workshop) -> None:
    source = (
        "import os, boto3\n"
        "def handler(event, context):\n"
        "    queue = boto3.client('sqs').create_queue(QueueName=event)['QueueUrl']\n"
        "    return {'queue': queue, 'version': context.function_version, 'arn': context.invoked_function_arn,\n"
        "            'home': os.environ.get('REDRIVE_STORE')}\n"
    )
    name = workshop.function(source, MemorySize=512)
    told = workshop.call(name, "from-inside").payload
    assert told["queue"] == f"{workshop.server.url}/{workshop.account}/from-inside"
    assert (told["version"], told["arn"], told["home"]) == ("$LATEST", workshop.arn(name), None)
    assert workshop.sqs.client.list_queues()["QueueUrls"] == [told["queue"]]


def test_an_event_is_json_of_a_size(workshop: Workshop) -> None:
    name = workshop.function()
    with refused("InvalidRequestContentException") as error:
        workshop.client.invoke(FunctionName=name, Payload=b"{no json")
    assert error["Message"].startswith(
        "Could not parse request body into json: Could not parse payload into json: "
    )
    assert workshop.client.invoke(FunctionName=name)["Payload"].read() == b"{}"
    size = 6 * 1024 * 1024
    assert len(workshop.call(name, "x" * (size - 2)).payload) == size - 2
    text = (
        f"{size + 1} byte payload is too large for the RequestResponse invocation type (limit {size} bytes)"
    )
    with refused("RequestTooLargeException", text, 413):
        workshop.call(name, "x" * (size - 1))


def test_a_client_context_goes_along(workshop: Workshop) -> None:
    name = workshop.function("def handler(event, context):\n    return context.client_context.custom\n")
    context = base64.b64encode(b'{"custom": {"a": "b"}}').decode()
    assert workshop.call(name, ClientContext=context).payload == {"a": "b"}


def test_reserved_concurrency_is_a_bound(workshop: Workshop) -> None:
    name = workshop.function()
    workshop.client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
    with refused("TooManyRequestsException", "Rate Exceeded.", 429):
        workshop.call(name)
    workshop.client.delete_function_concurrency(FunctionName=name)
    assert workshop.call(name, 1).payload == 1


@pytest.mark.parametrize(
    ("runtime", "file", "handler", "event", "answer"),
    [
        ("nodejs20.x", "index.js", "index.calledBack", 21, 42),
        ("provided.al2023", "bootstrap", "anything", 21, {"got": 21}),
    ],
)
def test_other_runtimes_answer_as_well(
    workshop: Workshop, runtime: str, file: str, handler: str, event: int, answer: object
) -> None:
    name = f"other-{runtime[:4]}"
    workshop.create(name, archive({file: (CODE / file).read_text()}), handler, Runtime=runtime)
    assert workshop.call(name, event).payload == answer


def test_logs_and_metrics_are_those_of_cloudwatch(workshop: Workshop) -> None:
    name = workshop.function(ECHO, "index.fail")
    for event in range(2):
        workshop.call(name, event)
    logs = telemetry(workshop.server.url, "logs", "json")
    events = logs.filter_log_events(logGroupName=f"/aws/lambda/{name}")["events"]
    said = [event["message"].split()[0] for event in events]
    assert (said.count("START"), said.count("END"), said.count("REPORT"), said[0]) == (2, 2, 2, "INIT_START")
    (stream,) = {event["logStreamName"] for event in events}
    assert "/[$LATEST]" in stream
    found = telemetry(workshop.server.url, "cloudwatch", "json")
    now = workshop.server.now()
    values = {}
    for metric in ("Invocations", "Errors", "Throttles", "ConcurrentExecutions", "Duration"):
        points = found.get_metric_statistics(
            Namespace="AWS/Lambda",
            MetricName=metric,
            Dimensions=[{"Name": "FunctionName", "Value": name}],
            StartTime=now - 3600,
            EndTime=now + 3600,
            Period=7200,
            Statistics=["Sum", "Maximum"],
        )["Datapoints"]
        values[metric] = sum(point["Sum"] for point in points)
    assert values.pop("Duration") > 0
    assert values == {"Invocations": 2, "Errors": 2, "Throttles": 0, "ConcurrentExecutions": 2}


def test_at_once_means_at_once(workshop: Workshop) -> None:
    source = (
        "import os, time\n"
        "def handler(event, context):\n"
        "    open(os.path.join(event, str(os.getpid())), 'w').close()\n"
        "    while len(os.listdir(event)) < 3:\n"
        "        time.sleep(0.01)\n"
        "    return True\n"
    )
    name = workshop.function(source)
    folder = workshop.server.log.parent / f"at-once-{name}"
    folder.mkdir()
    answers: list[object] = []
    threads = [
        threading.Thread(
            target=lambda: answers.append(Workshop(workshop.server).call(name, str(folder)).payload)
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert orjson.dumps(answers) == b"[true,true,true]"


def test_an_account_s_invocations_are_counted_without_dimensions(workshop: Workshop) -> None:
    account = "345678901234"  # no other test has it
    other = Workshop(workshop.server, account=account)
    reserved, unreserved = other.function(), other.function()
    other.client.put_function_concurrency(FunctionName=reserved, ReservedConcurrentExecutions=1)
    for name in (reserved, unreserved):
        other.call(name)
    assert (other.total("Invocations"), other.total("Errors")) == (2, 0)
    assert other.total("UnreservedConcurrentExecutions", "SampleCount") == 1
    assert other.total("UnreservedConcurrentExecutions", "Maximum") == 1


def test_the_old_operation_invokes_for_later(workshop: Workshop, tmp_path: Path) -> None:
    kept = tmp_path / "event.json"
    source = f"def handler(event, context):\n    open({str(kept)!r}, 'w').write(str(event))\n"
    name = workshop.function(source)
    answer = workshop.client.invoke_async(FunctionName=name, InvokeArgs=b'{"car": 1}')
    assert answer["Status"] == 202
    workshop.server.advance(0)
    assert kept.read_text() == "{'car': 1}"
    with refused("InvalidRequestContentException"):
        workshop.client.invoke_async(FunctionName=name, InvokeArgs=b"no json")
    with refused("ResourceNotFoundException", f"Function not found: {workshop.arn('nobody')}", 404):
        workshop.client.invoke_async(FunctionName="nobody", InvokeArgs=b"{}")
