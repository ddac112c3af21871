"""The REST XML protocol as S3 speaks it: parameters in path, query, headers and body; documents in XML.

What S3's model lacks is here too: the roots of its documents, and the errors of what stands before it. Sources: the API
reference of S3 ("Error responses", and the response syntax of each operation), and Smithy's model.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from redrive.aws.wire import timestamps
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.query.query import escape, structure_writer
from redrive.aws.wire.rest.values import query_of, value_of
from redrive.aws.wire.rest.xml_input import malformed, read_xml, structure_of
from redrive.aws.wire.service import Operation, Service
from redrive.aws.wire.shapes import Member, Shape, Structure, Value
from redrive.aws.wire.signatures.aws_chunked import is_chunked, read_chunked
from redrive.model.http import TOKEN, Request, Response, StreamedBody

_ROOTS: Final[Mapping[str, str]] = {
    "CompleteMultipartUpload": "CompleteMultipartUploadResult",
    "CreateMultipartUpload": "InitiateMultipartUploadResult",
    "DeleteObjects": "DeleteResult",
    "GetBucketAccelerateConfiguration": "AccelerateConfiguration",
    "GetBucketAcl": "AccessControlPolicy",
    "GetBucketLogging": "BucketLoggingStatus",
    "GetBucketRequestPayment": "RequestPaymentConfiguration",
    "GetBucketTagging": "Tagging",
    "GetBucketVersioning": "VersioningConfiguration",
    "GetObjectTagging": "Tagging",
    "ListBuckets": "ListAllMyBucketsResult",
    "ListMultipartUploads": "ListMultipartUploadsResult",
    "ListObjects": "ListBucketResult",
    "ListObjectsV2": "ListBucketResult",
    "ListParts": "ListPartsResult",
}
"""The root of a document, where it is not called as its shape is."""

_UNWRAPPED: Final = frozenset({"GetBucketLocation"})
"""The operations whose document is their one member."""


class _Error(NamedTuple):
    code: str
    status: int
    message: str = ""


#: Errors of the front that all services share, by their codes, in the words of S3.
_FRONT_ERRORS: Final[Mapping[str, _Error]] = {
    "AccessDeniedException": _Error("AccessDenied", 403),
    "IncompleteSignatureException": _Error("AuthorizationHeaderMalformed", 400),
    "InternalFailure": _Error("InternalError", 500, "We encountered an internal error. Please try again."),
    "InvalidSignatureException": _Error("SignatureDoesNotMatch", 403),
    "MissingAuthenticationTokenException": _Error("AccessDenied", 403, "Access Denied"),
    "SerializationException": _Error("InvalidArgument", 400),
    "UnknownOperationException": _Error("NotImplemented", 501),
    "UnrecognizedClientException": _Error(
        "InvalidAccessKeyId", 403, "The AWS Access Key Id you provided does not exist in our records."
    ),
}


def as_s3_error(error: AwsError) -> AwsError:
    """An error as S3 says it."""
    s3_form = _FRONT_ERRORS.get(error.code)
    if s3_form is None:
        return error
    text = s3_form.message or error.message or "Invalid Argument"
    return AwsError(s3_form.code, text, status=s3_form.status, sender=error.sender, details=error.details)


_JSON: Final = "application/json"
_XML: Final = "application/xml"
_DECLARATION: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
_PARTIAL: Final = 206
_NOT_MODIFIED: Final = 304
_AMAZONS: Final = "x-amz-"
_UNSENT: Final = re.compile(r"[\r\n\0]|[^\x00-\xff]")  # in the value of a header


class RestXmlCodec:
    """The protocol, for one request whose bucket and key were found."""

    __slots__ = ("_parameters",)

    def __init__(self, parameters: Mapping[str, str]) -> None:
        """Take these parameters out of the path or the host, still encoded."""
        self._parameters = parameters

    def parse(self, operation: Operation, request: Request) -> Structure:
        """Return the operation's parameters; of a body in chunks its content, and its trailers as headers.

        Raises:
            AwsError: `InvalidURI`, `InvalidArgument`, `MalformedXML` or one of `aws_chunked`.
        """
        headers, body = request.headers, request.body
        if is_chunked(request):
            chunked_body = read_chunked(request)
            headers, body = {**chunked_body.trailers, **headers}, chunked_body.content
        query = query_of(request.query)
        shape = operation.input
        parsed: Structure = {}
        for name, member in shape.members.items():
            value = self._value_outside_body(member, query, headers)
            if value is not None:
                parsed[name] = value
        if shape.payload:
            _read_payload(shape.members[shape.payload], body, parsed)
        return parsed

    def _value_outside_body(
        self, member: Member, query: Mapping[str, list[str]], headers: Mapping[str, str]
    ) -> Value | None:
        """The value of a member in the path, the query or a header; None: it is not there."""
        name = member.json_name
        match member.location:
            case "uri":
                return _decode(self._parameters[name])
            case "querystring":
                value = query.get(name)
                return None if value is None else value_of(member.shape, value)
            case "header":
                text = _header(name.lower(), query, headers)
                return None if text is None else value_of(member.shape, [_sendable(name, text)])
            case "headers":
                prefix = name.lower()
                values_by_name = {**{each: values[-1] for each, values in query.items()}, **headers}
                return {
                    each.lower()[len(prefix) :]: _sendable(each, text)
                    for each, text in values_by_name.items()
                    if each.lower().startswith(prefix)
                }
            case _:
                return None

    def render(self, operation: Operation, result: Structure, request_id: str) -> Response:
        """Return the result: members in headers where the model has them there."""
        headers, length = _headers(request_id), None
        body: Structure = {}
        shape = operation.output
        members = {} if shape is None else shape.members
        for name, value in result.items():
            member = members[name]
            if value is None:
                continue
            if name == "ContentLength":
                length = int(value)
            elif member.location == "header":
                headers[member.json_name] = _header_text(member, value)
            elif member.location == "headers":
                headers |= {f"{member.json_name}{key}": text for key, text in value.items()}
            else:
                body[name] = value
        status = _PARTIAL if "ContentRange" in result else operation.status
        if shape is None or all(member.location for member in members.values()):  # nothing is in the body
            return Response(status, b"", "", headers, length)
        if shape.payload and shape.members[shape.payload].shape.type == "blob":
            content = body.get(shape.payload, b"")
            if isinstance(content, StreamedBody):
                return Response(status, b"", "", headers, content.length, parts=content.parts)
            return Response(status, content, "", headers, length)
        if shape.payload and shape.members[shape.payload].shape.type == "string":
            return Response(status, str(body.get(shape.payload, "")).encode(), _JSON, headers)
        return Response(status, _document(operation, shape, body), _XML, headers)

    def render_error(self, service: Service, error: AwsError, request_id: str) -> Response:  # noqa: ARG002 - as Codec
        """Return the error: a document with its code, its text and its details."""
        s3_error = as_s3_error(error)
        headers = _headers(request_id)
        if s3_error.status == _NOT_MODIFIED:
            return Response(s3_error.status, b"", "", {**headers, **s3_error.details})
        details = "".join(f"<{name}>{escape(text)}</{name}>" for name, text in s3_error.details.items())
        body = (
            f"{_DECLARATION}<Error><Code>{s3_error.code}</Code><Message>{escape(s3_error.message)}</Message>{details}"
            f"<RequestId>{request_id}</RequestId><HostId>{request_id}</HostId></Error>"
        )
        return Response(s3_error.status, body.encode(), _XML, headers)


def _headers(request_id: str) -> dict[str, str]:
    return {"x-amz-request-id": request_id, "x-amz-id-2": request_id}


def _header(name: str, query: Mapping[str, list[str]], headers: Mapping[str, str]) -> str | None:
    """A header, or the parameter that a presigned URL has in its place."""
    text = headers.get(name)
    if text is None and name.startswith(_AMAZONS) and name in query:
        return query[name][-1]
    return text


def _sendable(name: str, text: str) -> str:
    """A value that a header can have: a query has any, and some are stored, and sent as headers of answers.

    Raises:
        AwsError: `InvalidArgument`.
    """
    if TOKEN.fullmatch(name) is None or _UNSENT.search(text):
        raise AwsError("InvalidArgument", "A parameter that stands for a header is not a valid header.")
    return text


def _header_text(member: Member, value: Value) -> str:
    if member.shape.type == "timestamp":
        return timestamps.to_rfc822(value)
    if member.shape.type == "boolean":
        return "true" if value else "false"
    return str(value)


def _decode(text: str) -> str:
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise AwsError("InvalidURI", "Couldn't parse the specified URI.") from None


def _read_payload(member: Member, body: bytes, parsed: Structure) -> None:
    """Read the payload of a request into the parsed members: bytes, a text or a document."""
    if member.shape.type == "blob":
        parsed[member.name] = body
    elif member.shape.type == "string":  # a policy, which is JSON
        try:
            parsed[member.name] = body.decode()
        except UnicodeDecodeError:
            raise malformed() from None
    elif body:
        parsed[member.name] = structure_of(member.shape, read_xml(body))


def _document(operation: Operation, shape: Shape, members: Structure) -> bytes:
    """The document of a result; a result of one value is that value's element."""
    namespace = f' xmlns="{operation.service.xml_namespace}"'
    if operation.name in _UNWRAPPED:
        (name,) = shape.members
        text = members.get(name)
        inner = "" if text is None else escape(text)
        return f"{_DECLARATION}<{name}{namespace}>{inner}</{name}>".encode()
    if shape.payload:
        members, shape = members.get(shape.payload) or {}, shape.members[shape.payload].shape
    root = _ROOTS.get(operation.name, shape.name)
    out: list[str] = []
    structure_writer(shape)(members, out)
    return f"{_DECLARATION}<{root}{namespace}>{''.join(out)}</{root}>".encode()
