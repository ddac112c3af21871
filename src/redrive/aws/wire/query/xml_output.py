"""Values written as the XML of query answers, by shape."""

import binascii
import re
from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

from redrive.aws.wire import timestamps
from redrive.aws.wire.shapes import Member, Shape, Value

Writer: TypeAlias = Callable[[Value, list[str]], None]

#: What cannot stand in text as it is: markup, the carriage return (which an XML reader would make a line feed),
#: and what XML 1.0 has no way to write at all.
_SPECIAL: Final = re.compile('[&<>"\r\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]')
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;"}


def escaped(text: str) -> str:
    """Return text for an element; what XML 1.0 cannot write becomes the replacement character."""
    if _SPECIAL.search(text) is None:
        return text
    return _SPECIAL.sub(lambda match: _ENTITIES.get(match[0], "\ufffd"), text)


@cache
def structure_writer(shape: Shape) -> Writer:
    """Return the function that appends the members of a structure, in the model's order, to a list of text.

    It raises `KeyError` for a member the shape has not.
    """
    members: dict[str, Writer] | None = None

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


def _member_writer(member: Member) -> Writer:
    """Return the writer of one member with its tags; a flattened collection has them around each part."""
    shape, tag = member.shape, member.query_key
    if member.flattened and shape.type == "list":
        return _each(_element(tag, shape.element.shape))
    if member.flattened and shape.type == "map":
        return _entries(tag, shape)
    return _element(tag, shape)


def _element(tag: str, shape: Shape) -> Writer:
    match shape.type:
        case "structure":
            return _wrapped(tag, structure_writer(shape))
        case "list":
            return _wrapped(tag, _each(_element(shape.element.query_name or "member", shape.element.shape)))
        case "map":
            return _wrapped(tag, _entries("entry", shape))
        case _:
            return _scalar(tag, shape)


def _wrapped(tag: str, write_content: Writer) -> Writer:
    start, end = f"<{tag}>", f"</{tag}>"

    def write(value: Value, out: list[str]) -> None:
        out.append(start)
        write_content(value, out)
        out.append(end)

    return write


def _each(write_element: Writer) -> Writer:
    def write(value: Value, out: list[str]) -> None:
        for element in value:
            write_element(element, out)

    return write


def _entries(tag: str, shape: Shape) -> Writer:
    write_key = _element(shape.key.query_name or "key", shape.key.shape)
    write_value = _element(shape.value.query_name or "value", shape.value.shape)

    def write_entry(entry: Value, out: list[str]) -> None:
        write_key(entry[0], out)
        write_value(entry[1], out)

    write_entries = _each(_wrapped(tag, write_entry))
    return lambda value, out: write_entries(value.items(), out)


def _scalar(tag: str, shape: Shape) -> Writer:
    start, end, text = f"<{tag}>", f"</{tag}>", _text(shape)
    return lambda value, out: out.append(f"{start}{text(value)}{end}")


def _text(shape: Shape) -> Callable[[Value], str]:
    match shape.type:
        case "string" | "character":
            return escaped
        case "boolean":
            return lambda value: "true" if value else "false"
        case "blob":
            return lambda value: binascii.b2a_base64(value, newline=False).decode("ascii")
        case "timestamp":
            return timestamps.to_iso8601
        case _:
            return str
