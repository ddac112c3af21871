"""Query parameters read by shape: flattened and member lists, flattened and entry maps, everything from text."""

import binascii
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, TypeAlias

from redrive.aws.wire import timestamps
from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.query.form import FormNode
from redrive.aws.wire.shapes import Member, Shape, Value

Reader: TypeAlias = Callable[[FormNode], Value]

_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_INDEX: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|NaN|[+-]?Infinity", re.ASCII)
_LONG_END: Final = 2**63  # integers are kept in 64-bit columns further in
_BOOLEANS: Final = {"true": True, "false": False}


@cache
def structure_reader(shape: Shape) -> Reader:
    """Return the function that reads the structure below a node.

    It raises `AwsError`, in query terms `MalformedInput`, for text or names that do not fit the shape.
    """
    members: dict[str, tuple[str, Reader]] | None = None

    def read(node: FormNode) -> Value:
        nonlocal members
        if members is None:  # compiled at first use: a shape may contain itself
            members = _members(shape)
        parsed = {}
        for step, child in node.children.items():
            member = members.get(step)
            if member is not None:
                parsed[member[0]] = member[1](child)
        return parsed

    return read


def _members(shape: Shape) -> dict[str, tuple[str, Reader]]:
    """Return the members' names and readers by their names in the request.

    A flattened list has two: SDKs write its elements under their name, but an empty list under the list's own.
    """
    members = [(member, (member.name, _reader(member))) for member in shape.members.values()]
    own = {member.query_name or member.name: value for member, value in members}
    return own | {member.query_key: value for member, value in members}


def _reader(member: Member) -> Reader:
    shape = member.shape
    match shape.type:
        case "structure":
            return structure_reader(shape)
        case "list":
            return _list(shape, flattened=member.flattened)
        case "map":
            return _map(shape, flattened=member.flattened)
        case _:
            return _scalar(shape)


def _list(shape: Shape, *, flattened: bool) -> Reader:
    read_element = _reader(shape.element)
    element_name = shape.element.query_name or "member"
    most = shape.elements_max

    def read(node: FormNode) -> Value:
        if flattened:
            if node.text:  # one element without its index, as people write it by hand
                return [read_element(node)]
            return [read_element(child) for child in _indexed(node, most)]
        elements = node.children.get(element_name)
        return [] if elements is None else [read_element(child) for child in _indexed(elements, most)]

    return read


def _map(shape: Shape, *, flattened: bool) -> Reader:
    key_name = shape.key.query_name or "key"
    value_name = shape.value.query_name or "value"
    read_key, read_value = _reader(shape.key), _reader(shape.value)
    most = shape.elements_max

    def entries(node: FormNode) -> Iterator[FormNode]:
        if not flattened:
            return _indexed(node.children["entry"], most) if "entry" in node.children else iter(())
        if key_name in node.children:  # `Attribute.Name=…&Attribute.Value=…`, as SQS's reference writes it
            return iter((node,))
        return _indexed(node, most)

    def read(node: FormNode) -> Value:
        parsed = {}
        for entry in entries(node):
            key, value = entry.children.get(key_name), entry.children.get(value_name)
            if key is None or value is None:
                raise _malformed(f"A map entry must have a {key_name} and a {value_name}")
            parsed[read_key(key)] = read_value(value)
        return parsed

    return read


def _indexed(node: FormNode, most: float) -> Iterator[FormNode]:
    """Return the numbered steps below a node in the order of their numbers, which may have gaps."""
    if len(node.children) > most:
        raise _malformed(f"A list or map of {len(node.children)} elements is too long")
    for index in node.children:
        if _INDEX.fullmatch(index) is None:
            raise _malformed(f"{index} is not a valid index")
    return (node.children[index] for index in sorted(node.children, key=int))


def _scalar(shape: Shape) -> Reader:
    parse = _PARSERS[shape.type]

    def read(node: FormNode) -> Value:
        if node.text is None:
            raise _malformed("Start of structure or map found where not expected.")
        try:
            return parse(node.text)
        except ValueError as error:
            raise _malformed(f"{node.text} can not be converted to {_ARTICLES[shape.type]}") from error

    return read


def _integer(text: str) -> int:
    if _WHOLE_NUMBER.fullmatch(text) is None or not -_LONG_END <= (number := int(text)) < _LONG_END:
        raise ValueError(text)
    return number


def _float(text: str) -> float:
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(text)
    return float(text)


def _boolean(text: str) -> bool:
    if (value := _BOOLEANS.get(text.lower())) is None:
        raise ValueError(text)
    return value


def _blob(text: str) -> bytes:
    return binascii.a2b_base64(text, strict_mode=True)


_PARSERS: Final[dict[str, Callable[[str], Value]]] = {
    "string": str,
    "character": str,
    "integer": _integer,
    "long": _integer,
    "float": _float,
    "double": _float,
    "boolean": _boolean,
    "blob": _blob,
    "timestamp": timestamps.from_text,
}

_ARTICLES: Final = {
    "integer": "an Integer",
    "long": "a Long",
    "float": "a Float",
    "double": "a Double",
    "boolean": "a Boolean",
    "blob": "a Blob",
    "timestamp": "a Date",
}


def _malformed(message: str) -> AwsError:
    return common("SerializationException", message)
