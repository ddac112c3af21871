"""Smithy RPC v2 CBOR: the path names the operation, the body is its input."""

from typing import Final

from redrive.aws.wire.cbor import cbor
from redrive.aws.wire.cbor.values import reader, writer
from redrive.aws.wire.codec import answer_headers
from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.service import Operation, Service
from redrive.aws.wire.shapes import Structure
from redrive.model.http import Request, Response

_CONTENT_TYPE: Final = "application/cbor"
_PROTOCOL: Final = {"smithy-protocol": "rpc-v2-cbor"}


class CborCodec:
    """The protocol."""

    __slots__ = ()

    def parse(self, operation: Operation, request: Request) -> Structure:
        """Return the operation's parameters; an operation without any may be called with an empty body.

        Raises:
            AwsError: `SerializationException`.
        """
        try:
            parsed: Structure = reader(operation.input)(cbor.decode(request.body) if request.body else {})
        except cbor.MalformedCbor as error:
            raise common("SerializationException") from error
        return parsed

    def render(self, operation: Operation, result: Structure, request_id: str) -> Response:
        """Return the result; an operation without output answers an empty body."""
        body = b"" if operation.output is None else cbor.encode(writer(operation.output)(result))
        return Response(200, body, _CONTENT_TYPE, {**answer_headers(request_id), **_PROTOCOL})

    def render_error(self, service: Service, error: AwsError, request_id: str) -> Response:
        """Return the error, and its query code in the header where the service once spoke query."""
        headers = {**answer_headers(request_id), **_PROTOCOL}
        if service.query_compatible:
            headers["x-amzn-query-error"] = f"{error.query_code};{error.fault}"
        document = {"__type": f"{error.namespace or service.profile.json_namespace}#{error.code}"}
        if error.message:
            document["message"] = error.message
        return Response(error.status, cbor.encode(document), _CONTENT_TYPE, headers)


CBOR: Final = CborCodec()
