"""Smithy RPC v2 CBOR: the path names the operation, the body is its input; values are read and written by shape."""

from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

from cbor2 import CBORTag, undefined

from redrive.aws.wire import timestamps
from redrive.aws.wire.cbor import cbor
from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.service import Operation, Service, answer_headers
from redrive.aws.wire.shapes import Shape, Structure, Value
from redrive.model.http import Request, Response

Reader: TypeAlias = Callable[[Value], Value]
Writer: TypeAlias = Callable[[Value], Value]

_LONG_END: Final = 2**63  # integers are kept in 64-bit columns further in


# ---- reading -------------------------------------------------------------------------------------------------


@cache
def reader(shape: Shape) -> Reader:
    """Return the function that reads a decoded item as `shape`.

    It raises `AwsError`, a `SerializationException`, for an item of another type. A null is an absent member or no
    element at all, as in JSON.
    """
    match shape.type:
        case "structure":
            return _structure_reader(shape)
        case "list":
            return _list_reader(shape)
        case "map":
            return _map_reader(shape)
        case _:
            return _scalar_reader(shape)


def _structure_reader(shape: Shape) -> Reader:
    members: dict[str, tuple[str, Reader]] | None = None

    def read(item: Value) -> Value:
        nonlocal members
        if members is None:  # compiled at first use: a shape may contain itself
            members = {each.json_name: (each.name, reader(each.shape)) for each in shape.members.values()}
        structure = {}
        for name, value in _check_type(dict, item, shape).items():
            if not _is_absent(value) and (member := members.get(name)) is not None:
                member_name, read_member = member
                structure[member_name] = read_member(value)
        return structure

    return read


def _list_reader(shape: Shape) -> Reader:
    read = reader(shape.element.shape)
    return lambda item: [
        read(element) for element in _check_type(list, item, shape) if not _is_absent(element)
    ]


def _map_reader(shape: Shape) -> Reader:
    read = reader(shape.value.shape)
    return lambda item: {
        key: read(value) for key, value in _check_type(dict, item, shape).items() if not _is_absent(value)
    }


def _scalar_reader(shape: Shape) -> Reader:
    match shape.type:
        case "integer" | "long":
            return lambda item: _integer(item, shape)
        case "float" | "double":
            return lambda item: float(item if type(item) is int else _check_type(float, item, shape))
        case "timestamp":
            return lambda item: _read_moment(item, shape)
        case "blob":
            return lambda item: _check_type(bytes, item, shape)
        case "boolean":
            return lambda item: _check_type(bool, item, shape)
        case _:
            return lambda item: _check_type(str, item, shape)


def _is_absent(item: Value) -> bool:
    return item is None or item is undefined


def _check_type(expected_type: type, item: Value, shape: Shape) -> Value:
    if type(item) is not expected_type:
        raise _mismatch(shape)
    return item


def _integer(item: Value, shape: Shape) -> int:
    number: int = _check_type(int, item, shape)
    if not -_LONG_END <= number < _LONG_END:
        raise _mismatch(shape)
    return number


def _read_moment(item: Value, shape: Shape) -> int:
    """The milliseconds of a moment, with or without the tag for seconds since the epoch; raises AwsError."""
    seconds = item.value if type(item) is CBORTag and item.tag == cbor.EPOCH_SECONDS else item
    if type(seconds) is not int and type(seconds) is not float:
        raise _mismatch(shape)
    try:
        return timestamps.from_seconds(seconds)
    except ValueError as error:
        raise _mismatch(shape) from error


def _mismatch(shape: Shape) -> AwsError:
    return common("SerializationException", f"{shape.name} can not be read: a {shape.type} is expected")


# ---- writing -------------------------------------------------------------------------------------------------


@cache
def writer(shape: Shape) -> Writer:
    """Return the function that turns a value of `shape` into one that `cbor.encode` writes.

    It raises `KeyError` for a member the shape has not.
    """
    match shape.type:
        case "structure":
            return _structure_writer(shape)
        case "list":
            write_element = writer(shape.element.shape)
            return lambda value: list(map(write_element, value))
        case "map":
            write_value = writer(shape.value.shape)
            return lambda value: {key: write_value(item) for key, item in value.items()}
        case "float" | "double":
            return float
        case "timestamp":
            return lambda value: CBORTag(cbor.EPOCH_SECONDS, timestamps.to_fractional_seconds(value))
        case _:
            return lambda value: value


def _structure_writer(shape: Shape) -> Writer:
    members: dict[str, tuple[str, Writer]] | None = None

    def write(value: Value) -> Value:
        nonlocal members
        if members is None:  # compiled at first use: a shape may contain itself
            members = {each.name: (each.json_name, writer(each.shape)) for each in shape.members.values()}
        document = {}
        for name, item in value.items():
            if item is not None:
                json_name, write_item = members[name]
                document[json_name] = write_item(item)
        return document

    return write


# ---- the protocol --------------------------------------------------------------------------------------------

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
