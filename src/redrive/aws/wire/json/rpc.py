"""The AWS JSON protocols 1.0 and 1.1: `X-Amz-Target` names the operation, the body is its input."""

from typing import Final

import orjson

from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.json.event_stream import CONTENT_TYPE, encode_events, initial_response
from redrive.aws.wire.json.values import as_base64, reader, writer
from redrive.aws.wire.service import Operation, Service, answer_headers
from redrive.aws.wire.shapes import Member, Structure, Value
from redrive.model.http import Request, Response

#: A body that is no longer cannot hold more values than are made of it in a few milliseconds.
_UNCOUNTED_BYTES: Final = 16 * 1024
_QUOTES_PER_VALUE: Final = 4  # around its name and around itself


def load(body: bytes, values_max: int) -> Value:
    """Read a JSON body.

    Raises:
        orjson.JSONDecodeError: It is no JSON.
        AwsError: `SerializationException`: it holds more objects, lists and elements than `values_max`.
    """
    if len(body) > _UNCOUNTED_BYTES and _exceeds(body, values_max):
        raise common("SerializationException", "The request holds too many values")
    return orjson.loads(body)


def _exceeds(body: bytes, values_max: int) -> bool:
    """True if a JSON document has more objects, lists and elements than that, without parsing it.

    Texts may hold brackets and commas of their own, so where there are many the texts are taken out: without escapes,
    every other piece between quotes is one. All of it are searches for bytes, 2 ms for a mebibyte.
    """
    if _count_marks(body) <= values_max:
        return False
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if unescaped.count(b'"') > _QUOTES_PER_VALUE * (values_max + 1):
        return True
    return _count_marks(b"".join(unescaped.split(b'"')[::2])) > values_max


def _count_marks(text: bytes) -> int:
    return text.count(b"{") + text.count(b"[") + text.count(b",")


class JsonCodec:
    """One version of the protocol. The versions differ in the content type alone, which answers repeat."""

    __slots__ = ("_content_type",)

    def __init__(self, version: str) -> None:
        self._content_type = f"application/x-amz-json-{version}"

    def parse(self, operation: Operation, request: Request) -> Structure:
        """Return the operation's parameters.

        Raises:
            AwsError: `SerializationException`, with no text where the body is no JSON at all, as recorded; with one
                where it has more values than the service has use for.
        """
        try:
            document = load(request.body, operation.service.profile.values_max)
            parsed: Structure = reader(operation.input)(document)
        # Only a shape that contains itself can go as deep as the document.
        except (orjson.JSONDecodeError, RecursionError) as error:
            raise common("SerializationException") from error
        return parsed

    def render(self, operation: Operation, result: Structure, request_id: str) -> Response:
        """Return the result as JSON; an operation without output answers an empty body, some a stream of events."""
        if operation.events is not None:
            return _stream_response(operation.events, dict(result), request_id)
        write = None if operation.output is None else writer(operation.output)
        body = b"" if write is None else orjson.dumps(write(result), default=as_base64)
        return Response(200, body, self._content_type, answer_headers(request_id))

    def render_error(self, service: Service, error: AwsError, request_id: str) -> Response:
        """Return the error, and its query code in the header where the service once spoke query."""
        headers = {**answer_headers(request_id)}
        if service.query_compatible:
            headers["x-amzn-query-error"] = f"{error.query_code};{error.fault}"
        body = {"__type": _qualified_code(service, error)}
        if error.message:
            body["message"] = error.message
        return Response(error.status, orjson.dumps(body), self._content_type, headers)


JSON_1_0: Final = JsonCodec("1.0")
JSON_1_1: Final = JsonCodec("1.1")


def _stream_response(member: Member, result: Structure, request_id: str) -> Response:
    """An answer that is a stream: a message of its other members, which no operation here has, and then the events."""
    parts = encode_events(member.shape, result.pop(member.name), initial_response(orjson.dumps(result)))
    return Response(200, b"", CONTENT_TYPE, answer_headers(request_id), parts=parts)


def _qualified_code(service: Service, error: AwsError) -> str:
    """Return the error's code with its namespace, which services of the JSON 1.1 generation leave out."""
    namespace = service.profile.json_namespace
    return f"{error.namespace or namespace}#{error.code}" if namespace else error.code
