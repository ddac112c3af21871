"""Events of HTTP APIs and functions' answers, payload format 2.0."""

from typing import Any

import orjson

from redrive.aws.apigateway.control.exchange import Exchange
from redrive.aws.apigateway.requests import function_proxy as functions
from redrive.aws.apigateway.requests.answers import JSON, ApiAnswer
from redrive.aws.wire import http_events


def event_of(exchange: Exchange) -> bytes:
    """The event of a request, as JSON."""
    return orjson.dumps({**event_members(exchange), **http_events.body_of(exchange.request)})


def event_members(exchange: Exchange) -> dict[str, Any]:
    """The event of a request, without its body."""
    stage_place, domain = exchange.place, exchange.target.domain
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


def answer_of(payload: bytes) -> ApiAnswer:
    """The answer that a function means: a response, where it says a status, else a body.

    Raises:
        Refusal: The payload says that it is a response, and is malformed.
    """
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
    answer = functions.answer_from(members, coded=True)
    cookies = response.get("cookies") or ()
    if not isinstance(cookies, list | tuple):
        raise functions.malformed()
    answer.cookies = tuple(functions.text_of(cookie) for cookie in cookies)
    return answer
