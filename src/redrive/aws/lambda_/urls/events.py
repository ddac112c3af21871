"""Requests of function URLs as events, and functions' answers as responses: payload format 2.0.

https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html
"""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qs

import orjson

from redrive.access.principals import Principal
from redrive.aws.lambda_.documents.url_records import UrlTarget
from redrive.model.http import Request, Response

_QUERY_FIELDS_MAX: Final = 1000
_TEXT: Final = re.compile(r"text/.*|application/((.+\+)?(json|xml)|javascript|ecmascript)")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: Headers that the server writes itself.
_OURS: Final = frozenset(
    {"connection", "content-length", "content-type", "date", "server", "transfer-encoding"}
)
_STATUS_MIN, _STATUS_MAX = 200, 599
_JSON: Final = "application/json"
#: Stands between the head of a streamed answer, in JSON, and its body.
PRELUDE_END: Final = bytes(8)


class AnswerMalformed(ValueError):  # noqa: N818 - a refusal
    """A function's answer is no HTTP response, although it says that it is one."""


def event_of(
    request: Request, target: UrlTarget, caller: Principal | None, now: int, request_id: str
) -> bytes:
    """The event of a request, as JSON.

    Args:
        request: As it came.
        target: Where it leads.
        caller: Who signed it; None: nobody had to.
        now: ms.
        request_id: Of the invocation.
    """
    headers = _headers_of(request)
    cookies = headers.pop("cookie", "")
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": target.path,
        "rawQueryString": request.query,
    }
    if cookies:
        event["cookies"] = [cookie.strip() for cookie in cookies.split(";")]
    event["headers"] = headers
    if request.query:
        event["queryStringParameters"] = _query_of(request.query)
    event["requestContext"] = _context_of(request, target, caller, now, request_id)
    if request.body:
        event |= _body_of(request)
    else:
        event["isBase64Encoded"] = False
    return orjson.dumps(event)


def _headers_of(request: Request) -> dict[str, str]:
    port = request.host.rpartition(":")[2]
    return {
        **request.headers,
        "x-forwarded-for": request.client_host,
        "x-forwarded-port": port if port.isdigit() else "443" if request.scheme == "https" else "80",
        "x-forwarded-proto": request.scheme,
    }


def _query_of(query: str) -> dict[str, str]:
    fields = parse_qs(query, keep_blank_values=True, max_num_fields=_QUERY_FIELDS_MAX)
    return {name: ",".join(values) for name, values in fields.items()}


def _body_of(request: Request) -> dict[str, Any]:
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if _TEXT.fullmatch(content_type):
        try:
            return {"body": request.body.decode(), "isBase64Encoded": False}
        except UnicodeDecodeError:
            pass
    return {"body": base64.b64encode(request.body).decode(), "isBase64Encoded": True}


def _context_of(
    request: Request, target: UrlTarget, caller: Principal | None, now: int, request_id: str
) -> dict[str, Any]:
    moment = datetime.fromtimestamp(now // 1000, UTC)
    context: dict[str, Any] = {
        "accountId": "anonymous" if caller is None else caller.account,
        "apiId": target.id,
        "domainName": target.domain,
        "domainPrefix": target.id,
        "http": {
            "method": request.method,
            "path": target.path,
            "protocol": "HTTP/1.1",
            "sourceIp": request.client_host,
            "userAgent": request.headers.get("user-agent", ""),
        },
        "requestId": request_id,
        "routeKey": "$default",
        "stage": "$default",
        "time": moment.strftime("%d/%b/%Y:%H:%M:%S +0000"),
        "timeEpoch": now,
    }
    if caller is not None:
        context["authorizer"] = {
            "iam": {
                "accountId": caller.account,
                "callerId": caller.keys.get("aws:userid", caller.account),
                "cognitoIdentity": None,
                "principalOrgId": None,
                "userArn": caller.name,
                "userId": caller.keys.get("aws:userid", caller.account),
            }
        }
    return context


# ---- answers ------------------------------------------------------------------------------------------------


def response_of(payload: bytes) -> Response:
    """The response that a function's answer means.

    Raises:
        AnswerMalformed: It says that it is a response, and is none.
    """
    try:
        answer = orjson.loads(payload)
    except orjson.JSONDecodeError:
        head, separator, body = payload.partition(PRELUDE_END)
        return head_of(head, body) if separator else Response(200, payload, "application/octet-stream")
    if isinstance(answer, str):
        return Response(200, answer.encode(), _JSON)
    if not isinstance(answer, dict) or "statusCode" not in answer:
        return Response(200, payload, _JSON)
    return _response(answer, _content(answer))


def head_of(prelude: bytes, body: bytes = b"") -> Response:
    """The response whose head a streaming function wrote in JSON before its body.

    Raises:
        AnswerMalformed: The head is none.
    """
    try:
        head = orjson.loads(prelude)
    except orjson.JSONDecodeError:
        raise AnswerMalformed from None
    if not isinstance(head, dict):
        raise AnswerMalformed
    return _response({"statusCode": 200, **head}, body)


def _response(answer: Mapping[str, Any], body: bytes) -> Response:
    headers = _written(answer.get("headers") or {})
    types = [value for name, value in headers.items() if name.lower() == "content-type"]
    remaining = {name: value for name, value in headers.items() if name.lower() not in _OURS}
    return Response(
        _status(answer["statusCode"]), body, types[0] if types else _JSON, remaining, cookies=_cookies(answer)
    )


def _status(status: object) -> int:
    text = str(status)
    if isinstance(status, bool) or not text.isdecimal() or not _STATUS_MIN <= int(text) <= _STATUS_MAX:
        raise AnswerMalformed
    return int(text)


def _written(given: object) -> dict[str, str]:
    if not isinstance(given, dict):
        raise AnswerMalformed
    headers = {name: _text(value) for name, value in given.items()}
    if not all(_HEADER.fullmatch(name) for name in headers):
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
    body = answer.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        return orjson.dumps(body)
    if not answer.get("isBase64Encoded"):
        return body.encode()
    try:
        return base64.b64decode(body, validate=True)
    except binascii.Error:
        raise AnswerMalformed from None
