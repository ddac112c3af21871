"""Delivery streams filled as Firehose's API has it: record by record, or many together with an outcome each."""

import asyncio
from base64 import b64encode

import orjson
import pytest

from redrive.endpoints.aws.firehose import StreamEndpoint
from redrive.endpoints.http import HttpEndpoint
from redrive.engine.ports import PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason
from tests.contracts.endpoints.aws import (
    REGION,
    STREAM,
    call_of,
    client,
    json_refusal,
    put_taken,
    with_keys,
)
from tests.contracts.endpoints.kinds import NOW
from tests.contracts.endpoints.webhook import Received, Webhook, answer
from tests.services.aws_calls import AwsCall, put_answer

_TAKEN = Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, 200, "", 0, (("request_id", "3f1c"),))
_SLOWER = orjson.dumps({"ErrorCode": "ServiceUnavailableException", "ErrorMessage": "Slow down."}).decode()
MIB = 1024 * 1024


@pytest.fixture
async def streams(endpoint: HttpEndpoint, hook: Webhook) -> StreamEndpoint:
    """Streams at the webhook, by keys in its URL; all of them take everything."""
    _take(hook)
    return StreamEndpoint(lambda: NOW, client(endpoint, firehose=with_keys(hook.url(""))))


def _take(hook: Webhook, *failed: int) -> None:
    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(put_taken(call_of(request), *failed))

    hook.script = script


def _calls(hook: Webhook) -> list[AwsCall]:
    """Return the received calls; a test fails for a signature that does not hold."""
    calls = [call_of(request) for request in hook.received]
    for call in calls:
        signed = call.proved()
        assert (signed.region, signed.service) == (REGION, "firehose")
    return calls


def push_request(body: bytes = b"hello\n") -> PushRequest:
    return PushRequest(STREAM, body, "application/json", {}, 5_000)


def push_requests(*parts: bytes) -> PushRequest:
    return PushRequest(STREAM, b"", "application/json", {}, 5_000, parts=parts)


async def test_a_record_is_put(streams: StreamEndpoint, hook: Webhook) -> None:
    assert await streams.push(push_request()) == _TAKEN
    (call,) = _calls(hook)
    assert (call.target, call.operation) == ("/", "PutRecord")
    assert call.document == {
        "DeliveryStreamName": "lake",
        "Record": {"Data": b64encode(b"hello\n").decode()},
    }


async def test_one_part_alone_is_put_as_a_record(streams: StreamEndpoint, hook: Webhook) -> None:
    assert await streams.push(push_requests(b"one")) == _TAKEN
    assert [call.operation for call in _calls(hook)] == ["PutRecord"]


async def test_parts_are_put_together_in_their_order(streams: StreamEndpoint, hook: Webhook) -> None:
    texts = [f"{number}\n".encode() for number in range(500)]
    attempt = await streams.push(push_requests(*texts))
    assert attempt.parts == (_TAKEN,) * 500
    assert attempt.delivered
    (call,) = _calls(hook)
    assert (call.operation, call.records, call.document["DeliveryStreamName"]) == (
        "PutRecordBatch",
        texts,
        "lake",
    )


async def test_more_parts_than_a_call_takes_need_more_calls(streams: StreamEndpoint, hook: Webhook) -> None:
    texts = [f"{number}".encode() for number in range(1001)]
    assert len((await streams.push(push_requests(*texts))).parts) == 1001
    found = sorted((call.records for call in _calls(hook)), key=len)
    assert found == [texts[1000:], *sorted((texts[:500], texts[500:1000]), key=found[1:].index)]


async def test_heavier_parts_than_a_call_takes_need_more_calls(
    streams: StreamEndpoint, hook: Webhook
) -> None:
    texts = [bytes([65 + number]) * 900_000 for number in range(7)]
    assert (await streams.push(push_requests(*texts))).parts == (_TAKEN,) * 7
    calls = sorted(_calls(hook), key=lambda call: call.records[0])
    assert [len(call.records) for call in calls] == [3, 3, 1]
    assert all(len(call.body) <= 4 * MIB for call in calls)


async def test_a_record_too_large_for_the_stream_is_refused_alone(
    streams: StreamEndpoint, hook: Webhook
) -> None:
    large = b"x" * (MIB + 1)

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        call = call_of(request)
        no = json_refusal("400 Bad Request", "InvalidArgumentException", "too large")
        writer.write(no if large in call.records else put_taken(call))

    hook.script = script
    attempt = await streams.push(push_requests(b"a", b"b", large, b"c"))
    assert [part.result for part in attempt.parts] == [
        AttemptResult.DELIVERED,
        AttemptResult.DELIVERED,
        AttemptResult.REFUSED,
        AttemptResult.DELIVERED,
    ]
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.CLIENT_ERROR)
    assert sorted(call.operation for call in _calls(hook)) == ["PutRecord", "PutRecord", "PutRecordBatch"]


async def test_a_call_that_is_refused_for_one_of_its_records_is_halved_until_that_is_alone(
    streams: StreamEndpoint, hook: Webhook
) -> None:
    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        call = call_of(request)
        no = json_refusal("400 Bad Request", "InvalidArgumentException")
        writer.write(no if b"bad" in call.records else put_taken(call))

    hook.script = script
    attempt = await streams.push(push_requests(*[b"a"] * 123, b"bad", *[b"b"] * 376))
    outcomes = [part.result for part in attempt.parts]
    assert (
        outcomes
        == [AttemptResult.DELIVERED] * 123 + [AttemptResult.REFUSED] + [AttemptResult.DELIVERED] * 376
    )
    assert len(hook.received) <= 1 + 18


async def test_a_call_that_a_proxy_finds_too_large_is_halved(streams: StreamEndpoint, hook: Webhook) -> None:

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        call = call_of(request)
        if len(call.records) > 1:
            writer.write(answer("413 Content Too Large", b"<html>"))
        elif call.records == [b"bad"]:
            writer.write(json_refusal("400 Bad Request", "InvalidArgumentException"))
        else:
            writer.write(put_taken(call))

    hook.script = script
    attempt = await streams.push(push_requests(b"a", b"bad", b"b"))
    outcomes = [part.result for part in attempt.parts]
    assert outcomes == [AttemptResult.DELIVERED, AttemptResult.REFUSED, AttemptResult.DELIVERED]
    assert sorted(len(call.records) for call in _calls(hook)) == [1, 1, 1, 2, 3]


async def test_each_part_has_its_own_outcome(streams: StreamEndpoint, hook: Webhook) -> None:
    _take(hook, 1, 3)
    attempt = await streams.push(push_requests(*(bytes([number]) for number in range(5))))
    slower = Attempt(AttemptResult.FAILED, Reason.THROTTLED, 503, _SLOWER)
    assert attempt.parts == (_TAKEN, slower, _TAKEN, slower, _TAKEN)
    assert (attempt.result, attempt.reason) == (AttemptResult.FAILED, Reason.THROTTLED)


async def test_a_part_that_failed_inside_the_service_is_not_throttled(
    streams: StreamEndpoint, hook: Webhook
) -> None:
    hook.say(answer("200 OK", put_answer(2, 0, code="InternalFailure")))
    parts = (await streams.push(push_requests(b"a", b"b"))).parts
    assert [(part.result, part.reason) for part in parts] == [
        (AttemptResult.FAILED, Reason.SERVER_ERROR),
        (AttemptResult.DELIVERED, Reason.ACCEPTED),
    ]


@pytest.mark.parametrize(
    "said", [b"", b"[]", b'{"RequestResponses": [{"RecordId": "r"}]}', b'{"RequestResponses": [1, 2]}']
)
async def test_parts_of_which_nothing_is_said_are_put_again(
    streams: StreamEndpoint, hook: Webhook, said: bytes
) -> None:
    hook.say(answer("200 OK", said))
    parts = (await streams.push(push_requests(b"a", b"b"))).parts
    assert [(part.result, part.reason) for part in parts] == [(AttemptResult.FAILED, Reason.SERVER_ERROR)] * 2


@pytest.mark.parametrize(
    ("status", "code", "result", "reason"),
    [
        ("400 Bad Request", "ResourceNotFoundException", AttemptResult.REFUSED, Reason.MISSING),
        ("400 Bad Request", "InvalidArgumentException", AttemptResult.REFUSED, Reason.CLIENT_ERROR),
        ("400 Bad Request", "InvalidKMSResourceException", AttemptResult.REFUSED, Reason.DENIED),
        ("400 Bad Request", "InvalidSourceException", AttemptResult.REFUSED, Reason.CLIENT_ERROR),
        ("400 Bad Request", "AccessDeniedException", AttemptResult.REFUSED, Reason.DENIED),
        ("400 Bad Request", "UnrecognizedClientException", AttemptResult.FAILED, Reason.DENIED),
        ("400 Bad Request", "ThrottlingException", AttemptResult.FAILED, Reason.THROTTLED),
        ("500 Internal Server Error", "ServiceUnavailableException", AttemptResult.FAILED, Reason.THROTTLED),
        ("503 Service Unavailable", "ServiceUnavailableException", AttemptResult.FAILED, Reason.THROTTLED),
        ("500 Internal Server Error", "InternalFailure", AttemptResult.FAILED, Reason.SERVER_ERROR),
    ],
)
@pytest.mark.parametrize("number", [1, 3])
async def test_an_error_of_firehose_holds_for_every_record_of_the_call(
    streams: StreamEndpoint,
    hook: Webhook,
    status: str,
    code: str,
    result: AttemptResult,
    reason: Reason,
    number: int,
) -> None:
    hook.say(json_refusal(status, code, "Firehose says so"))
    attempt = await streams.push(push_requests(*[b"a"] * number))
    for one in attempt.parts or (attempt,):
        assert (one.result, one.reason, one.status) == (result, reason, int(status[:3]))
        assert orjson.loads(one.response) == {"ErrorCode": code, "ErrorMessage": "Firehose says so"}


async def test_no_answer_is_none_for_any_part(streams: StreamEndpoint, hook: Webhook) -> None:
    async def script(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.close()

    hook.script = script
    parts = (await streams.push(push_requests(b"a", b"b"))).parts
    assert [(part.result, part.reason) for part in parts] == [(AttemptResult.FAILED, Reason.CONNECTION)] * 2


async def test_a_stream_that_the_settings_do_not_name_is_refused(endpoint: HttpEndpoint) -> None:
    streams = StreamEndpoint(lambda: NOW, client(endpoint, lambda_="http://127.0.0.1:1"))
    parts = (await streams.push(push_requests(b"a", b"b"))).parts
    assert [(part.result, part.reason) for part in parts] == [(AttemptResult.REFUSED, Reason.MISSING)] * 2
