"""Requests of function URLs as events, and functions' answers as responses: payload format 2.0.

https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from redrive.access.principals import Principal
from redrive.aws.kit.json_cursor import read_object
from redrive.aws.lambda_.documents.records import UrlTarget
from redrive.aws.wire import http_events
from redrive.aws.wire.http_events import JSON, EventContext, body_of, response_in, signer_of
from redrive.model.http import TOKEN, Request, Response

_DEFAULT: Final = "$default"  # the only route, and the only stage
#: Headers that the server writes itself.
_OURS: Final = frozenset(
    {"connection", "content-length", "content-type", "date", "server", "transfer-encoding"}
)
_STATUS_MIN, _STATUS_MAX = 200, 599
#: Stands between the head of a streamed answer, in JSON, and its body.
PRELUDE_END: Final = bytes(8)


class AnswerMalformed(ValueError):  # noqa: N818 - a refusal
    """A function's answer is no HTTP response, although it says that it is one."""


def event_of(
    request: Request, target: UrlTarget, caller: Principal | None, now: int, request_id: str
) -> bytes:
    """The event of a request, as JSON; nobody had to sign it where there is no caller."""
    account = "anonymous" if caller is None else caller.account
    context = EventContext(account, target.id, target.domain, target.id, _DEFAULT, request_id, now)
    authorizer = None if caller is None else {"iam": signer_of(caller)}
    return orjson.dumps(
        {**http_events.event_of(request, context, _DEFAULT, target.path, authorizer), **body_of(request)}
    )


# ---- answers ------------------------------------------------------------------------------------------------


def response_of(payload: bytes) -> Response:
    """The response that a function's answer means.

    Raises:
        AnswerMalformed: It says that it is a response, and is none.
    """
    try:
        answer = response_in(payload)
    except orjson.JSONDecodeError:
        head, separator, body = payload.partition(PRELUDE_END)
        return head_of(head, body) if separator else Response(200, payload, "application/octet-stream")
    if isinstance(answer, bytes):
        return Response(200, answer, JSON)
    return _response(answer, _content(answer))


def head_of(prelude: bytes, body: bytes = b"") -> Response:
    """The response whose head a streaming function wrote in JSON before its body.

    Raises:
        AnswerMalformed: The head is malformed.
    """
    head = read_object(prelude)
    if head is None:
        raise AnswerMalformed
    return _response({"statusCode": 200, **head}, body)


def _response(answer: Mapping[str, Any], body: bytes) -> Response:
    """The response that a function's answer describes; raises AnswerMalformed."""
    headers = _read_headers(answer.get("headers") or {})
    types = [value for name, value in headers.items() if name.lower() == "content-type"]
    remaining = {name: value for name, value in headers.items() if name.lower() not in _OURS}
    return Response(
        _status(answer["statusCode"]), body, types[0] if types else JSON, remaining, cookies=_cookies(answer)
    )


def _status(status: object) -> int:
    text = str(status)
    if isinstance(status, bool) or not text.isdecimal() or not _STATUS_MIN <= int(text) <= _STATUS_MAX:
        raise AnswerMalformed
    return int(text)


def _read_headers(members: object) -> dict[str, str]:
    if not isinstance(members, dict):
        raise AnswerMalformed
    headers = {name: _text(value) for name, value in members.items()}
    if not all(TOKEN.fullmatch(name) for name in headers):
        raise AnswerMalformed
    return headers


def _cookies(answer: Mapping[str, Any]) -> Sequence[str]:
    cookies = answer.get("cookies") or ()
    if not isinstance(cookies, list | tuple):
        raise AnswerMalformed
    return tuple(_text(cookie) for cookie in cookies)


def _text(value: object) -> str:
    """The value of a header, which must not begin another."""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    if any(mark in text for mark in "\r\n\0") or not text.isascii():
        raise AnswerMalformed
    return text


def _content(answer: Mapping[str, Any]) -> bytes:
    """The body of a function's answer; raises AnswerMalformed."""
    body = answer.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        return orjson.dumps(body)
    if not answer.get("isBase64Encoded"):
        return body.encode()
    try:
        return base64.b64decode(body, validate=True)
    except ValueError:  # binascii.Error, or text that is not ASCII
        raise AnswerMalformed from None
