"""Functions invoked as Lambda's API has it, and as the servers do that only nearly speak it."""

import asyncio
import logging

import orjson
import pytest

from redrive.endpoints.aws.function import FunctionEndpoint
from redrive.endpoints.http import HttpEndpoint, HttpPolicy
from redrive.engine.ports import PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason
from tests.contracts.endpoints.aws import (
    FUNCTION,
    REGION,
    TAKEN,
    call_of,
    client,
    json_refusal,
    refusal,
    with_keys,
)
from tests.contracts.endpoints.kinds import NOW, http_endpoint
from tests.contracts.endpoints.webhook import Received, Webhook, answer
from tests.services.aws_calls import KEY_ID

_EVENT = b'{"Records":[]}'


def function_endpoint(http: HttpEndpoint, **endpoints: str) -> FunctionEndpoint:
    return FunctionEndpoint(lambda: NOW, client(http, **endpoints))


def push_request(arn: str = FUNCTION, timeout_ms: int = 5_000) -> PushRequest:
    return PushRequest(arn, _EVENT, "application/json", {"x-not": "sent"}, timeout_ms)


@pytest.fixture
async def functions(endpoint: HttpEndpoint, hook: Webhook) -> FunctionEndpoint:
    """Functions at the webhook, by keys in its URL."""
    hook.say(TAKEN)
    return function_endpoint(endpoint, lambda_=with_keys(hook.url("")))


async def test_a_function_is_invoked_as_by_an_event_and_signed(
    functions: FunctionEndpoint, hook: Webhook
) -> None:
    attempt = await functions.push(push_request())
    assert attempt == Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, 202, "", 0, (("request_id", "3f1c"),))
    (request,) = hook.received
    call = call_of(request)
    signed = call.proved()
    assert (signed.access_key_id, signed.region, signed.service) == (KEY_ID, REGION, "lambda")
    assert call.target == f"/2015-03-31/functions/{FUNCTION.replace(':', '%3A')}/invocations"
    assert (call.headers["x-amz-invocation-type"], call.headers["content-type"]) == (
        "Event",
        "application/json",
    )
    assert "x-not" not in call.headers
    assert call.body == _EVENT


@pytest.mark.parametrize("qualifier", ["live", "7", "$LATEST"])
async def test_a_version_or_an_alias_goes_with_the_name(
    functions: FunctionEndpoint, hook: Webhook, qualifier: str
) -> None:
    assert (await functions.push(push_request(f"{FUNCTION}:{qualifier}"))).delivered
    call = call_of(hook.received[0])
    call.proved()
    assert call.function == f"{FUNCTION}:{qualifier}"


@pytest.mark.parametrize(
    ("said", "result", "reason"),
    [
        (refusal("404 Not Found", "ResourceNotFoundException"), AttemptResult.REFUSED, Reason.MISSING),
        (refusal("403 Forbidden", "AccessDeniedException"), AttemptResult.REFUSED, Reason.DENIED),
        (
            refusal("400 Bad Request", "InvalidParameterValueException"),
            AttemptResult.REFUSED,
            Reason.CLIENT_ERROR,
        ),
        (
            refusal("400 Bad Request", "InvalidRequestContentException"),
            AttemptResult.REFUSED,
            Reason.CLIENT_ERROR,
        ),
        (refusal("413 Too Large", "RequestTooLargeException"), AttemptResult.REFUSED, Reason.TOO_LARGE),
        (
            refusal("415 Unsupported", "UnsupportedMediaTypeException"),
            AttemptResult.REFUSED,
            Reason.CLIENT_ERROR,
        ),
        (refusal("502 Bad Gateway", "KMSAccessDeniedException"), AttemptResult.REFUSED, Reason.DENIED),
        (refusal("502 Bad Gateway", "KMSDisabledException"), AttemptResult.REFUSED, Reason.DISABLED),
        (refusal("502 Bad Gateway", "KMSNotFoundException"), AttemptResult.REFUSED, Reason.MISSING),
        (refusal("429 Too Many", "TooManyRequestsException"), AttemptResult.FAILED, Reason.THROTTLED),
        (refusal("502 Bad Gateway", "EC2ThrottledException"), AttemptResult.FAILED, Reason.THROTTLED),
        (refusal("502 Bad Gateway", "ENILimitReachedException"), AttemptResult.FAILED, Reason.SERVER_ERROR),
        (refusal("500 Internal Server Error", "ServiceException"), AttemptResult.FAILED, Reason.SERVER_ERROR),
        (
            refusal("503 Unavailable", "ServiceUnavailableException"),
            AttemptResult.FAILED,
            Reason.SERVER_ERROR,
        ),
        (refusal("409 Conflict", "ResourceConflictException"), AttemptResult.FAILED, Reason.DISABLED),
        (refusal("403 Forbidden", "InvalidSignatureException"), AttemptResult.FAILED, Reason.DENIED),
        (refusal("403 Forbidden", "UnrecognizedClientException"), AttemptResult.FAILED, Reason.DENIED),
        (refusal("403 Forbidden", "ExpiredTokenException"), AttemptResult.FAILED, Reason.DENIED),
    ],
)
async def test_each_error_of_lambda_has_its_result_and_reason(
    functions: FunctionEndpoint, hook: Webhook, said: bytes, result: AttemptResult, reason: Reason
) -> None:
    hook.say(said)
    attempt = await functions.push(push_request())
    code = said.partition(b"ErrorType: ")[2].partition(b":")[0].decode()
    assert (attempt.result, attempt.reason, attempt.status) == (result, reason, int(said.split()[1]))
    assert orjson.loads(attempt.response) == {"ErrorCode": code, "ErrorMessage": "no"}


@pytest.mark.parametrize(
    ("said", "result", "reason"),
    [
        (answer("401 Unauthorized", b"who?"), AttemptResult.FAILED, Reason.DENIED),
        (answer("403 Forbidden", b"<html>proxy</html>"), AttemptResult.REFUSED, Reason.DENIED),
        (answer("404 Not Found", b'["no function"]'), AttemptResult.REFUSED, Reason.MISSING),
        (answer("408 Request Timeout"), AttemptResult.FAILED, Reason.SERVER_ERROR),
        (answer("429 Too Many"), AttemptResult.FAILED, Reason.THROTTLED),
        (answer("301 Moved", b"", "Location: /"), AttemptResult.REFUSED, Reason.REDIRECTED),
        (answer("504 Gateway Timeout"), AttemptResult.FAILED, Reason.SERVER_ERROR),
    ],
)
async def test_errors_without_lambdas_codes_are_judged_by_status(
    functions: FunctionEndpoint, hook: Webhook, said: bytes, result: AttemptResult, reason: Reason
) -> None:
    hook.say(said)
    attempt = await functions.push(push_request())
    assert (attempt.result, attempt.reason) == (result, reason)


async def test_an_error_is_whole_json_however_long_it_is(functions: FunctionEndpoint, hook: Webhook) -> None:
    hook.say(json_refusal("400 Bad Request", "X" * 500, '"\\\n' * 300))
    attempt = await functions.push(push_request())
    said = orjson.loads(attempt.response)
    assert set(said) == {"ErrorCode", "ErrorMessage"}
    assert said["ErrorMessage"].startswith('"\\ "')


# ---- servers that wait for the function ----------------------------------------------------------------------------


async def test_functions_without_asynchronous_calls_are_invoked_synchronously(
    functions: FunctionEndpoint, hook: Webhook
) -> None:
    """`sam local start-lambda` before 2026."""

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        kind = request.headers["x-amz-invocation-type"]
        no = refusal("501 Not Implemented", "NotImplemented", f"invocation-type: {kind} is not supported.")
        writer.write(no if kind == "Event" else answer("200 OK", b'{"statusCode": 200}'))

    hook.script = script
    for _ in range(2):
        attempt = await functions.push(push_request())
        assert (attempt.result, attempt.status) == (AttemptResult.DELIVERED, 200)
    kinds = [request.headers["x-amz-invocation-type"] for request in hook.received]
    assert kinds == ["Event", "RequestResponse", "RequestResponse"]
    for request in hook.received:
        call_of(request).proved()


async def test_those_who_find_out_together_are_all_delivered(
    functions: FunctionEndpoint, hook: Webhook
) -> None:
    together = asyncio.Barrier(3)

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        if request.headers["x-amz-invocation-type"] == "Event":
            await together.wait()
            writer.write(answer("501 Not Implemented"))
        else:
            writer.write(answer("200 OK"))

    hook.script = script
    attempts = await asyncio.gather(*(functions.push(push_request()) for _ in range(3)))
    assert [attempt.result for attempt in attempts] == [AttemptResult.DELIVERED] * 3


async def test_a_server_that_implements_neither_call_is_asked_twice(
    functions: FunctionEndpoint, hook: Webhook
) -> None:
    hook.say(answer("501 Not Implemented", b"never heard of it"))
    attempt = await functions.push(push_request())
    assert (attempt.result, attempt.status, len(hook.received)) == (AttemptResult.FAILED, 501, 2)


async def test_a_function_that_fails_while_it_is_waited_for_has_been_delivered_to_and_is_told_of(
    functions: FunctionEndpoint, hook: Webhook, caplog: pytest.LogCaptureFixture
) -> None:
    hook.say(answer("200 OK", b'{"errorMessage":"oh"}', "X-Amz-Function-Error: Unhandled"))
    with caplog.at_level(logging.WARNING):
        assert (await functions.push(push_request())).delivered
    assert caplog.messages == [f'function.failed function={FUNCTION}: {{"errorMessage":"oh"}}']


async def test_the_emulator_of_the_runtime_interface_has_one_path_and_is_busy_at_times(
    endpoint: HttpEndpoint, hook: Webhook
) -> None:
    path = "/2015-03-31/functions/function/invocations"
    emulated = function_endpoint(endpoint, **{FUNCTION: hook.url(path)})
    hook.say(answer("400 Bad Request"), answer("200 OK", b'"done"'))
    busy, done = [await emulated.push(push_request(f"{FUNCTION}:live")) for _ in range(2)]
    assert (busy.result, busy.reason, busy.status) == (AttemptResult.FAILED, Reason.THROTTLED, 400)
    assert (done.result, done.status) == (AttemptResult.DELIVERED, 200)
    assert [request.line.split()[1] for request in hook.received] == [path, path]
    elsewhere = await emulated.push(push_request(f"{FUNCTION}er"))
    assert (elsewhere.result, elsewhere.reason) == (AttemptResult.REFUSED, Reason.MISSING)
    assert elsewhere.response == f"The settings name no server that has {FUNCTION}er"


async def test_a_url_can_have_the_region_and_the_name_in_it(endpoint: HttpEndpoint, hook: Webhook) -> None:
    named = function_endpoint(endpoint, lambda_=hook.url("/{region}/functions/{name}/invocations"))
    assert (await named.push(push_request(f"{FUNCTION}:live"))).delivered
    assert hook.received[0].line.split()[1] == f"/{REGION}/functions/bill%3Alive/invocations"


# ---- who may be called ---------------------------------------------------------------------------------------------


async def test_private_addresses_are_private_for_functions_too(hook: Webhook) -> None:
    http = http_endpoint(HttpPolicy(forbids_private=True))
    attempt = await function_endpoint(http, lambda_=with_keys(hook.url(""))).push(push_request())
    await http.close()
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.FORBIDDEN_ADDRESS)
    assert hook.connections == 0


@pytest.mark.parametrize("region", ["", "example.org/", "x@example.org/", "us-east-1#", "US"])
@pytest.mark.parametrize("value", ["aws", "https://{region}.functions.test"])
async def test_a_region_that_would_lead_to_another_host_is_refused(
    endpoint: HttpEndpoint, region: str, value: str
) -> None:
    functions = function_endpoint(endpoint, lambda_=value)
    attempt = await functions.push(push_request(FUNCTION.replace(REGION, region)))
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.CLIENT_ERROR)
    assert attempt.response.endswith("names no region")


async def test_a_malformed_function_arn_is_refused(endpoint: HttpEndpoint) -> None:
    attempt = await function_endpoint(endpoint, **{"lambda": "aws"}).push(push_request("a:b:lambda"))
    assert (attempt.result, attempt.reason) == (AttemptResult.REFUSED, Reason.CLIENT_ERROR)
