"""Payload format 2.0: requests of HTTP APIs and of function URLs as events, and what functions answer to them.

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
"""

import base64
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs

import orjson

from redrive.access.principals import Principal
from redrive.model.http import Request

JSON: Final = "application/json"
_QUERY_FIELDS_MAX: Final = 1000
# What was measured on AWS, of HTTP APIs and of function URLs: forms and bodies without a type go as base64.
_TEXT: Final = re.compile(r"text/.*|application/((.+\+)?(json|xml)|javascript|ecmascript)")


class EventContext(NamedTuple):
    """The stage that a request came to, and the moment."""

    account: str  # The API's; `anonymous` at a function URL where nobody signed
    api: str  # The id of the API, or of the URL
    domain: str  # The host
    prefix: str  # Its first part
    stage: str  # Its name
    request_id: str
    now: int  # When it came (ms)


def trace_of(request: Request, now: int, request_id: str) -> str:
    """The name of a request in traces: its own, or a new one of the moment (ms) and the request's id."""
    new_trace = f"Root=1-{now // 1000:08x}-{request_id.replace('-', '')[:24]}"
    return request.headers.get("x-amzn-trace-id") or new_trace


def event_of(
    request: Request,
    context: EventContext,
    route: str,
    path: str,
    authorizer: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The event of a request, without its body.

    Args:
        request: As it came.
        context: Where it is for.
        route: The key of the route.
        path: As it was asked for.
        authorizer: What is known of the caller, by the kind of what told it; None: nobody asked.
    """
    headers = {**request.headers, **forwarding_headers(request)}
    cookies, query = headers.pop("cookie", ""), query_of(request)
    return {
        "version": "2.0",
        "routeKey": route,
        "rawPath": path,
        "rawQueryString": request.query,
        **({"cookies": [cookie.strip() for cookie in cookies.split(";")]} if cookies else {}),
        "headers": headers,
        **(
            {"queryStringParameters": {name: ",".join(values) for name, values in query.items()}}
            if query
            else {}
        ),
        "requestContext": {
            "accountId": context.account,
            "apiId": context.api,
            **({} if authorizer is None else {"authorizer": authorizer}),
            "domainName": context.domain,
            "domainPrefix": context.prefix,
            "http": {
                "method": request.method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": request.client_host,
                "userAgent": request.headers.get("user-agent", ""),
            },
            "requestId": context.request_id,
            "routeKey": route,
            "stage": context.stage,
            "time": moment_text(context.now // 1000),
            "timeEpoch": context.now,
        },
    }


def body_of(request: Request) -> dict[str, Any]:
    """The members of an event that have a request's body: as it is where it says that it is text, else as base64."""
    if not request.body:
        return {"isBase64Encoded": False}
    if not needs_base64(request):
        return {"body": request.body.decode(), "isBase64Encoded": False}
    return {"body": base64.b64encode(request.body).decode(), "isBase64Encoded": True}


def needs_base64(request: Request) -> bool:
    """True if a request's body goes into events as base64: it is not said to be text, or is not UTF-8."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.body and not _TEXT.fullmatch(content_type):
        return True
    try:
        request.body.decode()
    except UnicodeDecodeError:
        return True
    return False


def signer_of(caller: Principal) -> dict[str, Any]:
    """The `iam` of events: who signed a request."""
    user = caller.keys.get("aws:userid", caller.account)
    return {
        "accountId": caller.account,
        "callerId": user,
        "cognitoIdentity": None,
        "principalOrgId": None,
        "userArn": caller.name,
        "userId": user,
    }


def query_of(request: Request) -> Mapping[str, Sequence[str]]:
    """The parameters of a query; none of one that has too many."""
    try:
        return parse_qs(request.query, keep_blank_values=True, max_num_fields=_QUERY_FIELDS_MAX)
    except ValueError:
        return {}


def forwarding_headers(request: Request) -> dict[str, str]:
    """The headers that a load balancer adds."""
    port = request.host.rpartition(":")[2]
    if not port.isdigit():
        port = "443" if request.scheme == "https" else "80"
    return {
        "x-forwarded-for": request.client_host,
        "x-forwarded-port": port,
        "x-forwarded-proto": request.scheme,
    }


@lru_cache(maxsize=64)
def moment_text(second: int) -> str:
    """A moment (s) as access logs and events have it; most requests of a second ask for the same."""
    return datetime.fromtimestamp(second, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")


def response_in(payload: bytes) -> Mapping[str, Any] | bytes:
    """The answer of a function: a response, where it says a status; else the body of one, in JSON.

    Raises:
        ValueError: It is no JSON.
    """
    answer = orjson.loads(payload)
    if isinstance(answer, str):
        return answer.encode()
    return answer if isinstance(answer, dict) and "statusCode" in answer else payload
