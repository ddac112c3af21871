"""The AWS query protocol: a form goes in, with its operation in `Action`; XML, or JSON if asked for, comes out.

Recorded JSON answers differ from those of the JSON protocol: an absent member is null, and so is an empty flattened
list. A flattened map is a list of its entries.
"""

import binascii
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final, NamedTuple, TypeAlias

import orjson
from typing_extensions import override

from redrive.aws.wire import timestamps
from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.json import values as json_values
from redrive.aws.wire.json.values import as_base64
from redrive.aws.wire.query.input import flat_reader, read_form, structure_reader, tree
from redrive.aws.wire.service import Operation, Service, answer_headers
from redrive.aws.wire.shapes import Member, Shape, Structure, Value
from redrive.model.http import Request, Response

# ---- answers in XML ------------------------------------------------------------------------------------------

XmlWriter: TypeAlias = Callable[[Value, list[str]], None]

#: What cannot stand in text as it is: markup, the carriage return (which an XML reader would make a line feed),
#: and what XML 1.0 has no way to write at all.
_SPECIAL: Final = re.compile('[&<>"\r\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]')
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;"}


def escape(text: str) -> str:
    """Return text for an element; what XML 1.0 cannot write becomes the replacement character."""
    if _SPECIAL.search(text) is None:
        return text
    return _SPECIAL.sub(lambda match: _ENTITIES.get(match[0], "\ufffd"), text)


@cache
def structure_writer(shape: Shape) -> XmlWriter:
    """Return the function that appends the members of a structure, in the model's order, to a list of text.

    It raises `KeyError` for a member the shape has not.
    """
    members: dict[str, XmlWriter] | None = None

    def write(value: Value, out: list[str]) -> None:
        nonlocal members
        if members is None:  # compiled at first use: a shape may contain itself
            members = {member.name: _member_writer(member) for member in shape.members.values()}
        for name in value:
            if name not in members:
                raise KeyError(name)
        for name, write_member in members.items():
            item = value.get(name)
            if item is not None:
                write_member(item, out)

    return write


def _member_writer(member: Member) -> XmlWriter:
    """Return the writer of one member with its tags; a flattened collection has them around each part."""
    shape, tag = member.shape, member.query_key
    if member.flattened and shape.type == "list":
        return _writer_of_each(_element_writer(tag, shape.element.shape))
    if member.flattened and shape.type == "map":
        return _entries_writer(tag, shape)
    return _element_writer(tag, shape)


def _element_writer(tag: str, shape: Shape) -> XmlWriter:
    """Return the writer of a value within a tag."""
    match shape.type:
        case "structure":
            return _with_tags(tag, structure_writer(shape))
        case "list":
            return _with_tags(
                tag,
                _writer_of_each(_element_writer(shape.element.query_name or "member", shape.element.shape)),
            )
        case "map":
            return _with_tags(tag, _entries_writer("entry", shape))
        case _:
            return _scalar_writer(tag, shape)


def _with_tags(tag: str, write_content: XmlWriter) -> XmlWriter:
    start, end = f"<{tag}>", f"</{tag}>"

    def write(value: Value, out: list[str]) -> None:
        out.append(start)
        write_content(value, out)
        out.append(end)

    return write


def _writer_of_each(write_element: XmlWriter) -> XmlWriter:
    def write(value: Value, out: list[str]) -> None:
        for element in value:
            write_element(element, out)

    return write


def _entries_writer(tag: str, shape: Shape) -> XmlWriter:
    """Return the writer of a map: a tag for each entry, with its key and value."""
    write_key = _element_writer(shape.key.query_name or "key", shape.key.shape)
    write_value = _element_writer(shape.value.query_name or "value", shape.value.shape)

    def write_entry(entry: Value, out: list[str]) -> None:
        key, item = entry
        write_key(key, out)
        write_value(item, out)

    write_entries = _writer_of_each(_with_tags(tag, write_entry))
    return lambda value, out: write_entries(value.items(), out)


def _scalar_writer(tag: str, shape: Shape) -> XmlWriter:
    start, end, text = f"<{tag}>", f"</{tag}>", _text_of_scalar(shape)
    return lambda value, out: out.append(f"{start}{text(value)}{end}")


def _text_of_scalar(shape: Shape) -> Callable[[Value], str]:
    match shape.type:
        case "string" | "character":
            return escape
        case "boolean":
            return lambda value: "true" if value else "false"
        case "blob":
            return lambda value: binascii.b2a_base64(value, newline=False).decode("ascii")
        case "timestamp":
            return timestamps.to_iso8601
        case _:
            return str


# ---- answers in JSON -----------------------------------------------------------------------------------------

Writer: TypeAlias = Callable[[Value], Value]


@cache
def result_writer(operation: Operation, output: Shape) -> Writer:
    """Return the function that makes the operation's result, of the shape `output`, ready for JSON.

    It raises `KeyError` for a member the shape has not.
    """
    return _json_structure_writer(output, operation.service.profile.answer_names)


def _json_structure_writer(shape: Shape, names: Mapping[str, str]) -> Writer:
    members: list[tuple[str, str, Writer]] | None = None

    def write(value: Value) -> Value:
        nonlocal members
        if members is None:  # compiled at first use: a shape may contain itself
            members = [
                (member.name, names.get(member.name, member.name), _json_writer(member, names))
                for member in shape.members.values()
            ]
        for name in value:
            if name not in shape.members:
                raise KeyError(name)
        return {
            answer_name: None if value.get(name) is None else convert(value[name])
            for name, answer_name, convert in members
        }

    return write


def _json_writer(member: Member, names: Mapping[str, str]) -> Writer:
    shape = member.shape
    match shape.type:
        case "structure":
            return _json_structure_writer(shape, names)
        case "list":
            return _json_list_writer(_json_writer(shape.element, names), flattened=member.flattened)
        case "map":
            return (
                _json_flattened_map_writer(shape, names)
                if member.flattened
                else _json_map_writer(_json_writer(shape.value, names))
            )
        case _:
            return json_values.writer(shape) or _as_it_is


def _json_list_writer(convert: Writer, *, flattened: bool) -> Writer:
    def write(value: Value) -> Value:
        return None if flattened and not value else [convert(item) for item in value]

    return write


def _json_map_writer(convert: Writer) -> Writer:
    return lambda value: {key: convert(item) for key, item in value.items()}


def _json_flattened_map_writer(shape: Shape, names: Mapping[str, str]) -> Writer:
    key_name, value_name = shape.key.query_name or "key", shape.value.query_name or "value"
    convert = _json_writer(shape.value, names)
    return lambda value: [{key_name: key, value_name: convert(item)} for key, item in value.items()]


def _as_it_is(value: Value) -> Value:
    return value


# ---- the protocol --------------------------------------------------------------------------------------------

_XML: Final = "text/xml"
_JSON: Final = "application/json"


class QueryCodec:
    """The protocol."""

    __slots__ = ()

    def parse(self, operation: Operation, request: Request) -> Structure:
        """Return the operation's parameters; where SQS's queue URL is not among them, it is the request's own.

        Raises:
            AwsError: In query terms `MalformedInput`.
        """
        profile = operation.service.profile
        fields_max = profile.fields_max
        try:
            fields = read_form(request, fields_max)
            parsed = flat_reader(operation.input)(fields)
            if parsed is None:
                parsed = structure_reader(operation.input)(tree(fields, fields_max))
        except RecursionError as error:  # only a shape that contains itself can go as deep as a name
            raise common("SerializationException") from error
        member = profile.path_member
        if member in operation.input.members and member not in parsed and request.path.count("/") > 1:
            parsed[member] = f"{request.scheme}://{request.host}{request.path}"
        return parsed

    def render(self, operation: Operation, result: Structure, request_id: str) -> Response:
        """Return the result as XML."""
        frame = _frame(operation)
        out: list[str] = []
        if operation.output is not None:
            structure_writer(operation.output)(result, out)
        inner = f"{frame.start}{''.join(out)}{frame.end}" if out else frame.empty
        body = f"{frame.before}{inner}{frame.between}{escape(request_id)}{frame.after}"
        return Response(200, body.encode(), _XML, answer_headers(request_id))

    def render_error(self, service: Service, error: AwsError, request_id: str) -> Response:
        """Return the error as XML."""
        body = (
            f'{service.profile.xml_declaration}<ErrorResponse xmlns="{service.xml_namespace}"><Error>'
            f"<Type>{error.fault}</Type><Code>{escape(error.query_code)}</Code>"
            f"{_message(error.query_message)}"
            f"{'<Detail/>' if service.profile.error_detail else ''}</Error>"
            f"<RequestId>{escape(request_id)}</RequestId></ErrorResponse>"
        )
        return Response(error.status, body.encode(), _XML, answer_headers(request_id))


def _message(text: str) -> str:
    """The element of an error's text; an error without a text has none."""
    return f"<Message>{escape(text)}</Message>" if text else ""


class _Frame(NamedTuple):
    """The XML around an operation's result and the request's id."""

    before: str  # Before the result
    start: str  # Opens the result's element
    end: str  # Closes it
    empty: str  # In the place of all three for a result with nothing in it; recorded for SQS
    between: str  # Before the request's id
    after: str  # Behind it


@cache
def _frame(operation: Operation) -> _Frame:
    """The text of an answer around its result."""
    service, wrapper = operation.service, operation.result_wrapper
    return _Frame(
        before=f'{service.profile.xml_declaration}<{operation.name}Response xmlns="{service.xml_namespace}">',
        start=f"<{wrapper}>",
        end=f"</{wrapper}>",
        empty="" if operation.output is None else f"<{wrapper}/>",
        between="<ResponseMetadata><RequestId>",
        after=f"</RequestId></ResponseMetadata></{operation.name}Response>",
    )


class QueryAsJsonCodec(QueryCodec):
    """The protocol for a request that accepts JSON: the same parameters, the same answers in JSON."""

    __slots__ = ()

    @override
    def render(self, operation: Operation, result: Structure, request_id: str) -> Response:
        """Return `{"<Operation>Response": {"<Operation>Result": …, "ResponseMetadata": …}}`."""
        answer: dict[str, object] = {"ResponseMetadata": {"RequestId": request_id}}
        if operation.output is not None:
            answer[operation.result_wrapper] = result_writer(operation, operation.output)(result)
        return _as_json(200, {f"{operation.name}Response": answer}, request_id)

    @override
    def render_error(self, service: Service, error: AwsError, request_id: str) -> Response:
        """Return `{"Error": {"Code": …, "Message": …, "Type": …}, "RequestId": …}`."""
        members = {"Code": error.query_code, "Message": error.query_message, "Type": error.fault}
        return _as_json(error.status, {"Error": members, "RequestId": request_id}, request_id)


QUERY: Final = QueryCodec()
QUERY_AS_JSON: Final = QueryAsJsonCodec()


def _as_json(status: int, answer: Mapping[str, object], request_id: str) -> Response:
    return Response(status, orjson.dumps(answer, default=as_base64), _JSON, answer_headers(request_id))
