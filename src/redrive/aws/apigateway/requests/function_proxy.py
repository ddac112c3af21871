"""Proxy integrations of functions: a request becomes an event, the function's answer a response; formats 1.0 and 2.0.

https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from redrive.access.principals import Principal
from redrive.aws.apigateway.control.exchange import BAD_GATEWAY, Exchange, Refusal, last_values, lists_of
from redrive.aws.apigateway.requests.answers import JSON, ApiAnswer
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.kit.json_cursor import as_list, read_object
from redrive.aws.wire import http_events
from redrive.aws.wire.errors import AwsError

_FUNCTION: Final = re.compile(
    r"arn:aws[a-z-]*:apigateway:[a-z0-9-]+:lambda:path/2015-03-31/functions/(.+?)/invocations"
)
_ARN: Final = re.compile(r"arn:aws[a-z-]*:lambda:(?P<region>[a-z0-9-]+):\d{12}:function:.+")
_CONNECTION_HEADERS: Final = frozenset({"Connection", "Content-Length"})
_KEY_MEMBERS: Final = frozenset({"apiKey", "apiKeyId"})
_STATUS_MIN, _STATUS_MAX, _STATUS_CHARS_MAX = 101, 599, 4
_ANSWER_MEMBERS: Final = frozenset(
    {"statusCode", "headers", "multiValueHeaders", "body", "isBase64Encoded", "cookies"}
)


def function_arn(uri: str) -> str:
    """The ARN of the function that a URI invokes; the URI may be that ARN itself. Raises Refusal for any other text."""
    match = _FUNCTION.fullmatch(uri)
    arn = uri if match is None else match[1]
    if not _ARN.fullmatch(arn):
        raise Refusal("API_CONFIGURATION_ERROR", reason=f"{uri} is not the URI of a function")
    return arn


async def invoke(calls: InnerCalls, arn: str, payload: bytes, caller: Principal, exchange: Exchange) -> bytes:
    """Invoke a function, and return its answer; raises Refusal if it may not be invoked, is absent, or failed."""
    answer, failed = await invoke_function(calls, arn, payload, caller, exchange)
    if failed:
        exchange.integration["error"] = answer.decode("utf-8", "replace")[:1024]
        raise Refusal("DEFAULT_5XX", status=BAD_GATEWAY, reason="The function failed")
    return answer


async def invoke_function(
    calls: InnerCalls, arn: str, payload: bytes, caller: Principal, exchange: Exchange
) -> tuple[bytes, bool]:
    """Invoke a function, and return its answer, and whether it failed.

    Raises:
        Refusal: `API_CONFIGURATION_ERROR`: it may not be invoked, or is absent.
    """
    arn_match = _ARN.fullmatch(arn)
    region = exchange.stage_place.region if arn_match is None else arn_match["region"]
    trace = exchange.header("x-amzn-trace-id")
    headers = {} if trace is None else {"x-amzn-trace-id": trace}
    params = {"FunctionName": arn, "Payload": payload}
    try:
        result = await calls.call("lambda", "Invoke", params, caller, region, headers)
    except KeyError:
        raise Refusal("API_CONFIGURATION_ERROR", reason="This server does not run functions") from None
    except AwsError as error:
        exchange.integration["error"] = error.message
        if error.code == "TooManyRequestsException":
            raise Refusal("API_CONFIGURATION_ERROR", reason="Lambda throttles the function") from None
        raise Refusal("API_CONFIGURATION_ERROR", reason=f"{error.code}: {error.message}") from None
    return result.get("Payload") or b"", bool(result.get("FunctionError"))


def event_of(exchange: Exchange, *, is_base64: bool, version: str = "") -> bytes:
    """The event of a request, as JSON: payload format 1.0.

    - `is_base64`: the body is in base64, as of a binary media type.
    - `version`: the version in events of HTTP APIs; empty: for a REST API, whose events have none.
    """
    body = base64.b64encode(exchange.request.body).decode() if is_base64 else exchange.body_text
    has_body = bool(exchange.request.body)
    event = {
        **({"version": version} if version else {}),
        **event_members(exchange, is_rest=not version),
        "body": body if has_body else None,
        "isBase64Encoded": is_base64 and has_body,
    }
    return orjson.dumps(event)


def event_members(exchange: Exchange, *, is_rest: bool) -> dict[str, Any]:
    """The members of format 1.0, without the body; for REST APIs without the headers of the connection (recorded)."""
    context, headers, query = exchange.context(), exchange.headers, exchange.query
    if is_rest:
        headers = {name: value for name, value in headers.items() if name not in _CONNECTION_HEADERS}
    request_context = {
        name: context[name]
        for name in (
            *("accountId", "apiId", "deploymentId", "domainName", "domainPrefix", "extendedRequestId"),
            *("httpMethod", "identity", "path", "protocol", "requestId", "requestTime", "requestTimeEpoch"),
            *("resourceId", "resourcePath", "stage"),
        )
    }
    identity = context["identity"]
    # Unknown members are null, but those of API keys are left out.
    request_context["identity"] = {
        name: value for name, value in identity.items() if value is not None or name not in _KEY_MEMBERS
    }
    if exchange.authorizer:
        request_context["authorizer"] = dict(exchange.authorizer)
    return {
        "resource": exchange.route.rpartition(" ")[2],
        "path": exchange.path,
        "httpMethod": exchange.request.method,
        "headers": dict(headers),
        "multiValueHeaders": lists_of(headers),
        "queryStringParameters": last_values(query) or None,
        "multiValueQueryStringParameters": {name: list(values) for name, values in query.items()} or None,
        "pathParameters": dict(exchange.parameters) or None,
        "stageVariables": dict(exchange.stage_place.variables) or None,
        "requestContext": request_context,
    }


def answer_of(payload: bytes, *, allows_base64: bool) -> ApiAnswer:
    """The answer in a function's payload; `allows_base64`: its body may be in base64, as of a binary media type.

    Raises:
        Refusal: The payload is malformed.
    """
    answer = read_object(payload)
    if answer is None or not answer.keys() <= _ANSWER_MEMBERS:
        raise malformed()
    return answer_from(answer, allows_base64=allows_base64)


def answer_from(answer: Mapping[str, Any], *, allows_base64: bool) -> ApiAnswer:
    """The answer that the members of a function's answer describe; see `answer_of`."""
    headers = {name: text_of(value) for name, value in _object(answer.get("headers")).items()}
    for name, values in _object(answer.get("multiValueHeaders")).items():
        headers = {key: value for key, value in headers.items() if key.lower() != name.lower()}
        headers[name] = ",".join(text_of(value) for value in as_list(values))
    if not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = JSON
    body = body_of(answer, allows_base64=allows_base64)
    return ApiAnswer(status_of(answer.get("statusCode", 200)), body, headers)


def _object(value: Any) -> Mapping[str, Any]:
    """An object as it is, null as an empty one; raises Refusal for other values."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise malformed()
    return value


def status_of(value: Any) -> int:
    """The status in a function's answer; raises Refusal if the value is no status of HTTP."""
    text = str(value)
    status = int(text) if text.isdecimal() and len(text) <= _STATUS_CHARS_MAX else 0
    if not _STATUS_MIN <= status <= _STATUS_MAX:
        raise malformed()
    return status


def text_of(value: Any) -> str:
    """The value of a header as text; raises Refusal if it is not a scalar."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return orjson.dumps(value).decode()
    raise malformed()


def body_of(answer: Mapping[str, Any], *, allows_base64: bool) -> bytes:
    """The body in a function's answer, see `answer_of`; raises Refusal if it is not a text."""
    body = answer.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        raise malformed()
    if not (allows_base64 and answer.get("isBase64Encoded")):
        return body.encode()
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        raise malformed() from None


def malformed() -> Refusal:
    """The refusal of a function's answer."""
    return Refusal("DEFAULT_5XX", status=BAD_GATEWAY, reason="Malformed Lambda proxy response")


def event_v2_of(exchange: Exchange) -> bytes:
    """The event of a request, as JSON: payload format 2.0."""
    return orjson.dumps({**event_v2_members(exchange), **http_events.body_of(exchange.request)})


def event_v2_members(exchange: Exchange) -> dict[str, Any]:
    """The event of a request, without its body."""
    stage_place, domain = exchange.stage_place, exchange.target.domain
    stage, prefix = stage_place.stage, domain.partition(".")[0]
    context = http_events.EventContext(
        stage_place.account, stage_place.api, domain, prefix, stage, exchange.id, exchange.now
    )
    path = exchange.path if stage == "$default" else f"/{stage}{exchange.path}"
    authorizer = None if exchange.caller is None else {"iam": http_events.signer_of(exchange.caller)}
    if exchange.authorizer_kind:
        authorizer = {exchange.authorizer_kind: dict(exchange.authorizer)}
    event = http_events.event_of(exchange.request, context, exchange.route, path, authorizer)
    if exchange.parameters:
        event["pathParameters"] = dict(exchange.parameters)
    if stage_place.variables:
        event["stageVariables"] = dict(stage_place.variables)
    return event


def answer_v2_of(payload: bytes) -> ApiAnswer:
    """The answer in a payload: a response if it has a status, else a body; raises Refusal if it is malformed."""
    try:
        response = http_events.response_in(payload)
    except orjson.JSONDecodeError:
        response = payload
    if isinstance(response, bytes):
        return ApiAnswer(200, response, {"content-type": JSON})
    members = {
        name: response[name]
        for name in ("statusCode", "headers", "body", "isBase64Encoded")
        if name in response
    }
    if members.get("body") is not None and not isinstance(members["body"], str):
        members["body"] = orjson.dumps(members["body"]).decode()
    answer = answer_from(members, allows_base64=True)
    cookies = response.get("cookies") or ()
    if not isinstance(cookies, list | tuple):
        raise malformed()
    answer.cookies = tuple(text_of(cookie) for cookie in cookies)
    return answer
