"""The JSON form of query answers, which a client asks for by `Accept: application/json`; API Gateway does.

Recorded answers show what the JSON protocol does otherwise: an absent member is null, and so is an empty flattened
list. A flattened map is a list of its entries.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeAlias

from redrive.aws.wire.json import output as json_output
from redrive.aws.wire.service import Operation
from redrive.aws.wire.shapes import Member, Shape, Value

Writer: TypeAlias = Callable[[Value], Value]


@cache
def result_writer(operation: Operation, output: Shape) -> Writer:
    """Return the function that makes the operation's result, of the shape `output`, ready for JSON.

    It raises `KeyError` for a member the shape has not.
    """
    return _structure(output, operation.service.profile.answer_names)


def _structure(shape: Shape, names: Mapping[str, str]) -> Writer:
    members: list[tuple[str, str, Writer]] | None = None

    def write(value: Value) -> Value:
        nonlocal members
        if members is None:  # compiled at first use: a shape may contain itself
            members = [(m.name, names.get(m.name, m.name), _writer(m, names)) for m in shape.members.values()]
        for name in value:
            if name not in shape.members:
                raise KeyError(name)
        return {
            answer_name: None if value.get(name) is None else convert(value[name])
            for name, answer_name, convert in members
        }

    return write


def _writer(member: Member, names: Mapping[str, str]) -> Writer:
    shape = member.shape
    match shape.type:
        case "structure":
            return _structure(shape, names)
        case "list":
            return _list(_writer(shape.element, names), flattened=member.flattened)
        case "map":
            return _flattened_map(shape, names) if member.flattened else _map(_writer(shape.value, names))
        case _:
            return json_output.writer(shape) or _as_it_is


def _list(convert: Writer, *, flattened: bool) -> Writer:
    def write(value: Value) -> Value:
        return None if flattened and not value else [convert(item) for item in value]

    return write


def _map(convert: Writer) -> Writer:
    return lambda value: {key: convert(item) for key, item in value.items()}


def _flattened_map(shape: Shape, names: Mapping[str, str]) -> Writer:
    key_name, value_name = shape.key.query_name or "key", shape.value.query_name or "value"
    convert = _writer(shape.value, names)
    return lambda value: [{key_name: key, value_name: convert(item)} for key, item in value.items()]


def _as_it_is(value: Value) -> Value:
    return value
