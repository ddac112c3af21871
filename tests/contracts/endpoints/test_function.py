"""Functions invoked as Lambda's API has it, and as the servers do that only nearly speak it."""

import asyncio
import logging

import orjson
import pytest

from redrive.endpoints.aws.function import FunctionEndpoint
from redrive.endpoints.http import HttpEndpoint, HttpPolicy
from redrive.engine.ports import Parcel
from redrive.model.attempt import Attempt, Reason
from redrive.model.delivery import Outcome
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


def parcel(arn: str = FUNCTION, timeout_ms: int = 5_000) -> Parcel:
    return Parcel(arn, _EVENT, "application/json", {"x-not": "sent"}, timeout_ms)


@pytest.fixture
async def functions(endpoint: HttpEndpoint, hook: Webhook) -> FunctionEndpoint:
    """Functions at the webhook, by keys in its URL."""
    hook.say(TAKEN)
    return function_endpoint(endpoint, lambda_=with_keys(hook.url("")))


async def test_a_function_is_invoked_as_by_an_event_and_signed(
    functions: FunctionEndpoint, hook: Webhook
) -> None:
    attempt = await functions.push(parcel())
    assert attempt == Attempt(Outcome.DELIVERED, Reason.ACCEPTED, 202, "", 0, (("request_id", "3f1c"),))
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
    assert (await functions.push(parcel(f"{FUNCTION}:{qualifier}"))).delivered
    call = call_of(hook.received[0])
    call.proved()
    assert call.function == f"{FUNCTION}:{qualifier}"


@pytest.mark.parametrize(
    ("said", "outcome", "reason"),
    [
        (refusal("404 Not Found", "ResourceNotFoundException"), Outcome.REFUSED, Reason.MISSING),
        (refusal("403 Forbidden", "AccessDeniedException"), Outcome.REFUSED, Reason.DENIED),
        (refusal("400 Bad Request", "InvalidParameterValueException"), Outcome.REFUSED, Reason.CLIENT_ERROR),
        (refusal("400 Bad Request", "InvalidRequestContentException"), Outcome.REFUSED, Reason.CLIENT_ERROR),
        (refusal("413 Too Large", "RequestTooLargeException"), Outcome.REFUSED, Reason.TOO_LARGE),
        (refusal("415 Unsupported", "UnsupportedMediaTypeException"), Outcome.REFUSED, Reason.CLIENT_ERROR),
        (refusal("502 Bad Gateway", "KMSAccessDeniedException"), Outcome.REFUSED, Reason.DENIED),
        (refusal("502 Bad Gateway", "KMSDisabledException"), Outcome.REFUSED, Reason.DISABLED),
        (refusal("502 Bad Gateway", "KMSNotFoundException"), Outcome.REFUSED, Reason.MISSING),
        (refusal("429 Too Many", "TooManyRequestsException"), Outcome.FAILED, Reason.THROTTLED),
        (refusal("502 Bad Gateway", "EC2ThrottledException"), Outcome.FAILED, Reason.THROTTLED),
        (refusal("502 Bad Gateway", "ENILimitReachedException"), Outcome.FAILED, Reason.SERVER_ERROR),
        (refusal("500 Internal Server Error", "ServiceException"), Outcome.FAILED, Reason.SERVER_ERROR),
        (refusal("503 Unavailable", "ServiceUnavailableException"), Outcome.FAILED, Reason.SERVER_ERROR),
        (refusal("409 Conflict", "ResourceConflictException"), Outcome.FAILED, Reason.DISABLED),
        (refusal("403 Forbidden", "InvalidSignatureException"), Outcome.FAILED, Reason.DENIED),
        (refusal("403 Forbidden", "UnrecognizedClientException"), Outcome.FAILED, Reason.DENIED),
        (refusal("403 Forbidden", "ExpiredTokenException"), Outcome.FAILED, Reason.DENIED),
    ],
)
async def test_what_lambda_says(
    functions: FunctionEndpoint, hook: Webhook, said: bytes, outcome: Outcome, reason: Reason
) -> None:
    hook.say(said)
    attempt = await functions.push(parcel())
    code = said.partition(b"ErrorType: ")[2].partition(b":")[0].decode()
    assert (attempt.outcome, attempt.reason, attempt.status) == (outcome, reason, int(said.split()[1]))
    assert orjson.loads(attempt.response) == {"ErrorCode": code, "ErrorMessage": "no"}


@pytest.mark.parametrize(
    ("said", "outcome", "reason"),
    [
        (answer("401 Unauthorized", b"who?"), Outcome.FAILED, Reason.DENIED),
        (answer("403 Forbidden", b"<html>proxy</html>"), Outcome.REFUSED, Reason.DENIED),
        (answer("404 Not Found", b'["no function"]'), Outcome.REFUSED, Reason.MISSING),
        (answer("408 Request Timeout"), Outcome.FAILED, Reason.SERVER_ERROR),
        (answer("429 Too Many"), Outcome.FAILED, Reason.THROTTLED),
        (answer("301 Moved", b"", "Location: /"), Outcome.REFUSED, Reason.REDIRECTED),
        (answer("504 Gateway Timeout"), Outcome.FAILED, Reason.SERVER_ERROR),
    ],
)
async def test_what_others_say_without_lambda_s_names(
    functions: FunctionEndpoint, hook: Webhook, said: bytes, outcome: Outcome, reason: Reason
) -> None:
    hook.say(said)
    attempt = await functions.push(parcel())
    assert (attempt.outcome, attempt.reason) == (outcome, reason)


async def test_an_error_is_whole_json_however_long_it_is(functions: FunctionEndpoint, hook: Webhook) -> None:
    hook.say(json_refusal("400 Bad Request", "X" * 500, '"\\\n' * 300))
    attempt = await functions.push(parcel())
    said = orjson.loads(attempt.response)
    assert set(said) == {"ErrorCode", "ErrorMessage"}
    assert said["ErrorMessage"].startswith('"\\ "')


# ---- servers that wait for the function ----------------------------------------------------------------------------


async def test_who_knows_no_events_is_waited_for_from_then_on(
    functions: FunctionEndpoint, hook: Webhook
) -> None:
    """`sam local start-lambda` before 2026."""

    async def script(request: Received, writer: asyncio.StreamWriter) -> None:
        kind = request.headers["x-amz-invocation-type"]
        no = refusal("501 Not Implemented", "NotImplemented", f"invocation-type: {kind} is not supported.")
        writer.write(no if kind == "Event" else answer("200 OK", b'{"statusCode": 200}'))

    hook.script = script
    for _ in range(2):
        attempt = await functions.push(parcel())
        assert (attempt.outcome, attempt.status) == (Outcome.DELIVERED, 200)
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
    attempts = await asyncio.gather(*(functions.push(parcel()) for _ in range(3)))
    assert [attempt.outcome for attempt in attempts] == [Outcome.DELIVERED] * 3


async def test_who_implements_nothing_is_asked_twice_and_not_for_ever(
    functions: FunctionEndpoint, hook: Webhook
) -> None:
    hook.say(answer("501 Not Implemented", b"never heard of it"))
    attempt = await functions.push(parcel())
    assert (attempt.outcome, attempt.status, len(hook.received)) == (Outcome.FAILED, 501, 2)


async def test_a_function_that_fails_while_it_is_waited_for_has_been_delivered_to_and_is_told_of(
    functions: FunctionEndpoint, hook: Webhook, caplog: pytest.LogCaptureFixture
) -> None:
    hook.say(answer("200 OK", b'{"errorMessage":"oh"}', "X-Amz-Function-Error: Unhandled"))
    with caplog.at_level(logging.WARNING):
        assert (await functions.push(parcel())).delivered
    assert caplog.messages == [f'function.failed function={FUNCTION}: {{"errorMessage":"oh"}}']


async def test_the_emulator_of_the_runtime_interface_has_one_path_and_is_busy_at_times(
    endpoint: HttpEndpoint, hook: Webhook
) -> None:
    path = "/2015-03-31/functions/function/invocations"
    emulated = function_endpoint(endpoint, **{FUNCTION: hook.url(path)})
    hook.say(answer("400 Bad Request"), answer("200 OK", b'"done"'))
    busy, done = [await emulated.push(parcel(f"{FUNCTION}:live")) for _ in range(2)]
    assert (busy.outcome, busy.reason, busy.status) == (Outcome.FAILED, Reason.THROTTLED, 400)
    assert (done.outcome, done.status) == (Outcome.DELIVERED, 200)
    assert [request.line.split()[1] for request in hook.received] == [path, path]
    elsewhere = await emulated.push(parcel(f"{FUNCTION}er"))
    assert (elsewhere.outcome, elsewhere.reason) == (Outcome.REFUSED, Reason.MISSING)
    assert elsewhere.response == f"The settings name no server that has {FUNCTION}er"


async def test_a_url_can_have_the_region_and_the_name_in_it(endpoint: HttpEndpoint, hook: Webhook) -> None:
    named = function_endpoint(endpoint, lambda_=hook.url("/{region}/functions/{name}/invocations"))
    assert (await named.push(parcel(f"{FUNCTION}:live"))).delivered
    assert hook.received[0].line.split()[1] == f"/{REGION}/functions/bill%3Alive/invocations"


# ---- who may be called ---------------------------------------------------------------------------------------------


async def test_private_addresses_are_private_for_functions_too(hook: Webhook) -> None:
    http = http_endpoint(HttpPolicy(forbids_private=True))
    attempt = await function_endpoint(http, lambda_=with_keys(hook.url(""))).push(parcel())
    await http.close()
    assert (attempt.outcome, attempt.reason) == (Outcome.REFUSED, Reason.FORBIDDEN_ADDRESS)
    assert hook.connections == 0


@pytest.mark.parametrize("region", ["", "example.org/", "x@example.org/", "us-east-1#", "US"])
@pytest.mark.parametrize("value", ["aws", "https://{region}.functions.test"])
async def test_a_region_that_would_lead_to_another_host_is_refused(
    endpoint: HttpEndpoint, region: str, value: str
) -> None:
    functions = function_endpoint(endpoint, lambda_=value)
    attempt = await functions.push(parcel(FUNCTION.replace(REGION, region)))
    assert (attempt.outcome, attempt.reason) == (Outcome.REFUSED, Reason.CLIENT_ERROR)
    assert attempt.response.endswith("names no region")


async def test_what_is_no_arn_is_refused(endpoint: HttpEndpoint) -> None:
    attempt = await function_endpoint(endpoint, **{"lambda": "aws"}).push(parcel("a:b:lambda"))
    assert (attempt.outcome, attempt.reason) == (Outcome.REFUSED, Reason.CLIENT_ERROR)
