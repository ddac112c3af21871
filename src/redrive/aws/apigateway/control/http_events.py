"""Events of HTTP APIs and functions' answers, payload format 2.0.

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
"""

import base64
import re
from typing import Any, Final

import orjson

from redrive.aws.apigateway.control import function_proxy as functions
from redrive.aws.apigateway.control.answers import JSON, ApiAnswer
from redrive.aws.apigateway.control.exchange import Exchange
from redrive.model.http import Request

_TEXT: Final = re.compile(r"text/.*|application/((.+\+)?(json|xml)|javascript|x-www-form-urlencoded)")


def event_of(exchange: Exchange) -> bytes:
    """The event of a request, as JSON."""
    request, event = exchange.request, event_members(exchange)
    coded = is_coded(request)
    if request.body:
        event["body"] = base64.b64encode(request.body).decode() if coded else request.body.decode()
    event["isBase64Encoded"] = coded
    return orjson.dumps(event)


def event_members(exchange: Exchange) -> dict[str, Any]:
    """The event of a request, without its body."""
    request, context = exchange.request, exchange.context()
    headers = {name.lower(): value for name, value in exchange.headers.items()}
    cookies = headers.pop("cookie", "")
    stage = exchange.place.stage
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": exchange.route,
        "rawPath": exchange.path if stage == "$default" else f"/{stage}{exchange.path}",
        "rawQueryString": request.query,
    }
    if cookies:
        event["cookies"] = [cookie.strip() for cookie in cookies.split(";")]
    event["headers"] = headers
    if exchange.query:
        event["queryStringParameters"] = {name: ",".join(values) for name, values in exchange.query.items()}
    event["requestContext"] = {
        **{
            name: context[name]
            for name in ("accountId", "apiId", "domainName", "domainPrefix", "requestId", "stage")
        },
        "http": {
            "method": request.method,
            "path": event["rawPath"],
            "protocol": "HTTP/1.1",
            "sourceIp": request.client_host,
            "userAgent": request.headers.get("user-agent", ""),
        },
        "routeKey": exchange.route,
        "time": context["requestTime"],
        "timeEpoch": exchange.now,
    }
    if exchange.caller is not None:
        event["requestContext"]["authorizer"] = {"iam": exchange.identity()}
    if exchange.authorizer_kind:
        event["requestContext"]["authorizer"] = {exchange.authorizer_kind: dict(exchange.authorizer)}
    if exchange.parameters:
        event["pathParameters"] = dict(exchange.parameters)
    if exchange.place.variables:
        event["stageVariables"] = dict(exchange.place.variables)
    return event


def is_coded(request: Request) -> bool:
    """True if a request's body goes into events as base64: what is not text, whatever its type says."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.body and kind and not _TEXT.fullmatch(kind):
        return True
    try:
        request.body.decode()
    except UnicodeDecodeError:
        return True
    return False


def answer_of(payload: bytes) -> ApiAnswer:
    """The answer that a function means: a response, where it says a status, else a body.

    Raises:
        Refusal: The payload says that it is a response, and is malformed.
    """
    try:
        result = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return ApiAnswer(200, payload, {"content-type": JSON})
    if isinstance(result, str):
        return ApiAnswer(200, result.encode(), {"content-type": JSON})
    if not isinstance(result, dict) or "statusCode" not in result:
        return ApiAnswer(200, payload, {"content-type": JSON})
    known = {
        name: result[name] for name in ("statusCode", "headers", "body", "isBase64Encoded") if name in result
    }
    if known.get("body") is not None and not isinstance(known["body"], str):
        known["body"] = orjson.dumps(known["body"]).decode()
    answer = functions.answer_of(orjson.dumps(known), coded=True)
    cookies = result.get("cookies") or ()
    if not isinstance(cookies, list | tuple):
        raise functions.malformed()
    answer.cookies = tuple(functions.text_of(cookie) for cookie in cookies)
    return answer
