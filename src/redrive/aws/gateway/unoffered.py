"""Requests to services that Redrive does not offer: one sentence, in the form of the protocol that was spoken.

The service is known by the scope of the signature, the protocol by the request's headers, path or parameters. Nobody is
authenticated and no body is parsed: a request that nobody answers must cost next to nothing.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from html import escape
from typing import Final, NamedTuple

import orjson

from redrive.aws.kit.service import service_of
from redrive.aws.services import FOLDERS
from redrive.aws.wire.service import answer_headers
from redrive.model.http import Request, Response

_SCOPE: Final = re.compile(
    r"Credential=[^/\s]{1,128}/[0-9]{8}/[a-z0-9-]{0,32}/([a-z0-9-]{1,64})/aws4_request"
)
_SCOPE_IN_QUERY: Final = re.compile(
    r"X-Amz-Credential=[^&/]{1,128}?(?:%2F|/)[0-9]{8}(?:%2F|/)[a-z0-9-]{0,32}(?:%2F|/)([a-z0-9-]{1,64})",
    re.IGNORECASE,
)
_ACTION: Final = re.compile(r"(?:^|&)Action=([A-Za-z0-9]{1,128})(?:&|$)")
_TARGET: Final = re.compile(r"([A-Za-z0-9_]{1,128})\.([A-Za-z0-9]{1,128})")
# Of a form that is looked through for its action, which clients put first.
_ACTION_BYTES_MAX: Final = 16 * 1024
_PATH_CHARS_MAX: Final = 200
_JSON: Final = "application/x-amz-json-1."
_FORM: Final = "application/x-www-form-urlencoded"
_CODE: Final = "UnknownOperationException"


def operation_text(service: str, operation: str) -> str:
    """The text for an operation that an offered service does not have here."""
    return f"Redrive does not offer the operation {service} {operation}."


def service_text(service: str, operation: str, offered: Iterable[str]) -> str:
    """The text for an operation of a service that is not offered.

    Args:
        service: The service as its signing scope or its target calls it.
        operation: The operation, or method and path where the protocol names none.
        offered: The services that are.
    """
    *most, last = sorted(offered)
    text = f"Redrive does not offer {service} {operation}; it offers {', '.join(most)} and {last}"
    switch = service_of(service).switch if service in FOLDERS else ""
    return f"{text}, and {service} too if it is {switch}." if switch else f"{text}."


class _UnofferedCall(NamedTuple):
    """The operation that a request asks for, and the writer of its refusal."""

    service: str
    operation: str
    write: Callable[[Request, str, str], Response]


def refusal(request: Request, request_id: str, offered: Iterable[str]) -> Response | None:
    """The answer to a request that no offered service recognises; None if it is not one to AWS."""
    call = _call_of(request)
    if call is None:
        return None
    if request.record is not None:
        request.record.service, request.record.operation = call.service, call.operation
        request.record.error = _CODES.get(call.write, _CODE)
    return call.write(request, service_text(call.service, call.operation, offered), request_id)


def _call_of(request: Request) -> _UnofferedCall | None:
    """A call to a service that is not here; None: the request does not look like one."""
    service = _service_in_scope(request)
    if (target := _TARGET.fullmatch(request.headers.get("x-amz-target", ""))) is not None:
        target_service, operation = target.groups()
        write = _as_denied if service == "ecr" else _as_json
        return _UnofferedCall(service or target_service, operation, write)
    if (action := _action(request)) is not None:
        return _UnofferedCall(service or "the action", action, _as_ec2 if service == "ec2" else _as_query)
    if service in (None, "sqs"):  # SQS's front says the same to whoever names no action (recorded)
        return None
    if request.headers.get("content-type", "").startswith(_FORM):
        return _UnofferedCall(service, "a form", _as_missing_action)
    method_and_path = f"{request.method} {request.path[:_PATH_CHARS_MAX]}"
    return _UnofferedCall(service, method_and_path, _REST.get(service, _as_rest_json))


def _service_in_scope(request: Request) -> str | None:
    match = _SCOPE.search(request.headers.get("authorization", "")) or _SCOPE_IN_QUERY.search(request.query)
    return None if match is None else match[1]


def _action(request: Request) -> str | None:
    form = request.body[:_ACTION_BYTES_MAX].decode("latin-1") if request.method == "POST" else request.query
    match = _ACTION.search(form)
    return None if match is None else match[1]


# ---- how each protocol writes an error --------------------------------------------------------------------------


def _as_json(request: Request, text: str, request_id: str) -> Response:
    return _json(request, _CODE, text, request_id)


def _as_denied(request: Request, text: str, request_id: str) -> Response:
    """The Serverless Framework looks for images to remove, and goes on where it may not."""
    return _json(request, "AccessDeniedException", text, request_id)


def _json(request: Request, code: str, text: str, request_id: str) -> Response:
    content_type = request.headers.get("content-type", "")
    version = content_type[len(_JSON)] if re.match(rf"{re.escape(_JSON)}[01]\b", content_type) else "1"
    body = orjson.dumps({"__type": code, "message": text})
    return Response(400, body, f"{_JSON}{version}", answer_headers(request_id))


def _as_rest_json(_: Request, text: str, request_id: str) -> Response:
    headers: Mapping[str, str] = {**answer_headers(request_id), "x-amzn-errortype": _CODE}
    return Response(404, orjson.dumps({"message": text}), "application/json", headers)


def _as_query(_: Request, text: str, request_id: str) -> Response:
    return _xml(
        400, "ErrorResponse", f"<Error><Type>Sender</Type>{_fault('InvalidAction', text)}</Error>", request_id
    )


def _as_missing_action(_: Request, _text: str, request_id: str) -> Response:
    """See "Common errors" of the API references of services that take forms."""
    inner = _fault("MissingAction", "The request is missing an action or a required parameter.")
    return _xml(400, "ErrorResponse", f"<Error><Type>Sender</Type>{inner}</Error>", request_id)


def _as_rest_xml(_: Request, text: str, request_id: str) -> Response:
    return _xml(404, "ErrorResponse", f"<Error><Type>Sender</Type>{_fault(_CODE, text)}</Error>", request_id)


def _as_ec2(_: Request, text: str, request_id: str) -> Response:
    return _xml(
        400, "Response", f"<Errors><Error>{_fault('InvalidAction', text)}</Error></Errors>", request_id
    )


def _as_s3(_: Request, text: str, request_id: str) -> Response:
    return _xml(501, "Error", _fault("NotImplemented", text), request_id)


def _fault(code: str, text: str) -> str:
    return f"<Code>{code}</Code><Message>{escape(text, quote=False)}</Message>"


def _xml(status: int, root: str, inner: str, request_id: str) -> Response:
    body = f"<{root}>{inner}<RequestId>{request_id}</RequestId></{root}>\n".encode()
    return Response(status, body, "text/xml", answer_headers(request_id))


#: The codes of those that have one of their own.
_CODES: Final[Mapping[Callable[[Request, str, str], Response], str]] = {
    _as_query: "InvalidAction",
    _as_missing_action: "MissingAction",
    _as_ec2: "InvalidAction",
    _as_s3: "NotImplemented",
    _as_denied: "AccessDeniedException",
}

#: The services whose REST answers are XML; those of all others are JSON.
_REST: Final[Mapping[str, Callable[[Request, str, str], Response]]] = {
    "s3": _as_s3,
    "route53": _as_rest_xml,
    "cloudfront": _as_rest_xml,
}
