"""The way in for AWS services, where a service fails for a reason of its own."""

import logging
import random
from collections.abc import Mapping
from typing import Any

import pytest

from redrive.aws.gateway.authentication import TrustAll
from redrive.aws.gateway.gateway import Gateway
from redrive.aws.kit.call import Call, Verb
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import Runtime
from redrive.model.errors import RedriveError
from redrive.model.http import Request
from redrive.testing import SimulatedClock

JSON = {"content-type": "application/x-amz-json-1.0"}


class Broken:
    """A service whose operations fail, for no reason that it knows."""

    kinds: tuple[Any, ...] = ()

    def __init__(self, operation: str) -> None:
        self.operations: Mapping[str, Verb] = {operation: self._fail}

    async def _fail(self, call: Call, params: Structure) -> Structure:
        raise KeyError(f"{call.now} {params}")

    def action(self, call: Call, operation: str) -> str:
        return f"sqs:{operation}"

    def translated(self, refusal: RedriveError) -> AwsError:
        raise refusal


@pytest.mark.parametrize(
    ("service", "operation", "query", "headers", "content_type", "said"),
    [
        ("sns", "ListTopics", "Action=ListTopics", {}, "text/xml", b"<Code>InternalFailure</Code>"),
        (
            "sqs",
            "ListQueues",
            "",
            {**JSON, "x-amz-target": "AmazonSQS.ListQueues"},
            "application/x-amz-json-1.0",
            b'"__type":"com.amazon.coral.service#InternalFailure"',
        ),
    ],
)
async def test_a_fault_of_ours_is_told_in_the_caller_s_protocol_and_logged(
    service: str,
    operation: str,
    query: str,
    headers: dict[str, str],
    content_type: str,
    said: bytes,
    caplog: pytest.LogCaptureFixture,
) -> None:
    runtime = Runtime(SimulatedClock(0), random.Random(7), "a")
    gateway = Gateway(runtime, TrustAll("us-east-1"), {service: Broken(operation)}, None)
    method = "GET" if query else "POST"
    with caplog.at_level(logging.ERROR):
        answer = await gateway.answer(
            Request(method, "/", query, {"host": "localhost", **headers}, b"" if query else b"{}")
        )
    assert (answer.status, answer.content_type) == (500, content_type)
    assert said in answer.body
    (record,) = caplog.records
    assert f"{service} {operation} failed, request id {answer.headers['x-amzn-RequestId']}" in record.message
    assert record.exc_info
