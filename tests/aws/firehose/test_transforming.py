"""Failures of functions: their texts stand with each record, and so they are kept short."""

import random
from typing import Any

import orjson

from redrive.aws.firehose import configuration
from redrive.aws.firehose.records import DeliveryStream, WaitingRecord
from redrive.aws.firehose.transforming import Transformation
from redrive.engine.ports import Runtime
from redrive.runtime.simulated import SimulatedClock

FUNCTION = "arn:aws:lambda:us-east-1:000000000000:function:f"
DESTINATION = {
    "RoleARN": "arn:aws:iam::000000000000:role/r",
    "BucketARN": "arn:aws:s3:::landing",
    "ProcessingConfiguration": {
        "Enabled": True,
        "Processors": [
            {
                "Type": "Lambda",
                "Parameters": [
                    {"ParameterName": "LambdaArn", "ParameterValue": FUNCTION},
                    {"ParameterName": "NumberOfRetries", "ParameterValue": "0"},
                ],
            }
        ],
    },
}


class Talkative:
    """Stands for all that a transformation asks: a function that fails with a megabyte of reasons."""

    logged = ""

    async def call(self, *_: Any) -> dict[str, Any]:
        return {"FunctionError": "Unhandled", "Payload": b'{"errorMessage": "' + b"x" * 1_000_000 + b'"}'}

    async def role_principal(self, *_: Any) -> None:
        return None

    def add(self, *_: Any) -> None:
        return None

    def write(self, _stream: Any, _code: str, message: str, *_: Any) -> None:
        self.logged = message


async def test_a_long_error_of_a_function_is_cut() -> None:
    stream = DeliveryStream("0" * 12, "us-east-1", "orders", "id", 0, configuration.complete(DESTINATION))
    talkative: Any = Talkative()
    runtime = Runtime(SimulatedClock(), random.Random(7), "node")
    transformation = Transformation(talkative, talkative, runtime, talkative, talkative)
    records = [WaitingRecord(str(number), 0, b"order") for number in range(3)]
    transformed = await transformation.apply(stream, records)
    lines = [orjson.loads(line) for line in transformed.failed]
    assert [line["errorCode"] for line in lines] == ["Lambda.FunctionError"] * 3
    assert {len(line["errorMessage"]) for line in lines} == {1024}
    assert len(talkative.logged) == 1024
