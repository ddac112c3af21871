"""Delivery streams whose records a function transforms."""

from base64 import b64decode
from typing import Any

import orjson
import pytest

from tests.contracts.aws.cloudwatch.client import Watch
from tests.contracts.aws.firehose.landing import ARN, BUCKET, NAME, Landing, processors
from tests.contracts.aws.lambda_.workshop import Workshop

_TRANSFORMING = """
import base64

def handler(event, context):
    assert set(event) == {"invocationId", "deliveryStreamArn", "region", "records"}
    return {"records": [judge(record) for record in event["records"]]}

def judge(record):
    text = base64.b64decode(record["data"]).decode()
    if text == "drop":
        return {"recordId": record["recordId"], "result": "Dropped"}
    if text == "fail":
        return {"recordId": record["recordId"], "result": "ProcessingFailed", "data": record["data"]}
    changed = base64.b64encode(text.upper().encode()).decode()
    return {"recordId": record["recordId"], "result": "Ok", "data": changed}

def lose(event, context):
    return {"records": []}

def boom(event, context):
    raise ValueError("boom")
"""
_LOGGED = {"Enabled": True, "LogGroupName": "/firehose", "LogStreamName": "errors"}


@pytest.fixture
def landing(workshop: Workshop) -> Landing:
    made = Landing(workshop.server)
    made.s3.create_bucket(Bucket=BUCKET)
    return made


def transformed_by(workshop: Workshop, name: str, **parameters: str) -> dict[str, Any]:
    """The processing of records by a function, a line each."""
    named = {"LambdaArn": workshop.arn(name), **parameters}
    listed = [{"ParameterName": key, "ParameterValue": value} for key, value in named.items()]
    return processors({"Type": "Lambda", "Parameters": listed}, {"Type": "AppendDelimiterToRecord"})


def test_a_function_changes_drops_and_fails_records(workshop: Workshop, landing: Landing) -> None:
    name = workshop.function(_TRANSFORMING)
    landing.stream(ProcessingConfiguration=transformed_by(workshop, name), CloudWatchLoggingOptions=_LOGGED)
    landing.put(b"one", b"drop", b"fail", b"two")
    landing.server.advance(300)
    first, errors = landing.keys()
    assert landing.content(first) == b"ONE\nTWO\n"
    assert errors.startswith("processing-failed/")
    (line,) = [orjson.loads(line) for line in landing.content(errors).splitlines()]
    assert b64decode(line["rawData"]) == b"fail"
    assert (line["attemptsMade"], line["lambdaArn"]) == (1, workshop.arn(name))
    assert set(line) == {
        *("attemptsMade", "arrivalTimestamp", "errorCode", "errorMessage"),
        *("attemptEndingTimestamp", "rawData", "lambdaArn"),
    }
    (sums,) = [
        Watch(landing.server).sums("AWS/Firehose", "SucceedProcessing.Records", DeliveryStreamName=NAME)
    ]
    assert sum(sums) == 2


@pytest.mark.parametrize(
    ("handler", "code"),
    [("index.boom", "Lambda.FunctionError"), ("index.lose", "Lambda.MissingRecordId")],
)
def test_failures_of_the_function_are_kept_and_logged(
    workshop: Workshop, landing: Landing, handler: str, code: str
) -> None:
    name = workshop.function(_TRANSFORMING, handler)
    processing = transformed_by(workshop, name, NumberOfRetries="1")
    bad = "bad/!{firehose:error-output-type}/"
    landing.stream(
        ProcessingConfiguration=processing, CloudWatchLoggingOptions=_LOGGED, ErrorOutputPrefix=bad
    )
    landing.put(b"one", b"two")
    landing.server.advance(301)
    (key,) = landing.keys()
    assert key.startswith("bad/processing-failed/")
    lines = [orjson.loads(line) for line in landing.content(key).splitlines()]
    assert [b64decode(line["rawData"]) for line in lines] == [b"one", b"two"]
    assert {(line["attemptsMade"], line["errorCode"]) for line in lines} == {(2, code)}
    (entry,) = landing.errors("/firehose", "errors")
    assert (entry["errorCode"], entry["processor"]) == (code, workshop.arn(name))
    assert entry["deliveryStreamARN"] == ARN


def test_a_function_that_is_missing_fails_all(workshop: Workshop, landing: Landing) -> None:
    landing.stream(ProcessingConfiguration=transformed_by(workshop, "nobody"))
    landing.put(b"one")
    landing.server.advance(300)
    (line,) = [orjson.loads(line) for content in landing.contents() for line in content.splitlines()]
    assert line["errorCode"] == "Lambda.ResourceNotFound"
