"""Values read from JSON and made ready for it, by shape.

A value of the wrong type is refused in the words of AWS's own deserialiser, which were recorded from an AWS JSON service
for every pair of JSON type and shape type; there, too, a null is an absent member or no element at all, and a fraction is
cut off where an integer is expected.
"""

import binascii
from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

from redrive.aws.wire import timestamps
from redrive.aws.wire.errors import AwsError, common
from redrive.aws.wire.shapes import Shape, Value

Reader: TypeAlias = Callable[[Value], Value]
Writer: TypeAlias = Callable[[Value], Value]

_LONG_END: Final = 2**63  # integers are kept in 64-bit columns further in
#: Types whose values are taken as JSON has them, without the call of a reader: nearly all values are of these.
_UNCONVERTED: Final[dict[str, type]] = {"string": str, "character": str, "boolean": bool}
_FLOAT_WORDS: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


# ---- reading -------------------------------------------------------------------------------------------------


@cache
def reader(shape: Shape) -> Reader:
    """Return the function that reads a JSON value as `shape`.

    It raises `AwsError`, a `SerializationException`, for a value of another type.
    """
    return _READERS[shape.type](shape)


def _structure_reader(shape: Shape) -> Reader:
    members: dict[str, tuple[str, type | None, Reader]] | None = None

    def read(value: Value) -> Value:
        nonlocal members
        if members is None:  # compiled at first use: a shape may contain itself
            members = {
                each.json_name: (each.name, _UNCONVERTED.get(each.shape.type), reader(each.shape))
                for each in shape.members.values()
            }
        if type(value) is not dict:
            raise _mismatch(value, "Expected null")
        structure = {}
        for name, item in value.items():
            if item is not None and (member := members.get(name)) is not None:
                member_name, unconverted_type, read_item = member
                structure[member_name] = item if type(item) is unconverted_type else read_item(item)
        return structure

    return read


def _list_reader(shape: Shape) -> Reader:
    element = reader(shape.element.shape)
    elements_max = shape.elements_max

    def read(value: Value) -> Value:
        if type(value) is not list:
            raise _mismatch(value, "Expected list or null")
        if len(value) > elements_max:
            raise _serialization(f"A list of {len(value)} elements is too long")
        return [element(item) for item in value if item is not None]

    return read


def _map_reader(shape: Shape) -> Reader:
    item_reader = reader(shape.value.shape)
    elements_max = shape.elements_max

    def read(value: Value) -> Value:
        if type(value) is not dict:
            raise _mismatch(value, "Expected null")
        if len(value) > elements_max:
            raise _serialization(f"A map of {len(value)} entries is too long")
        return {key: item_reader(item) for key, item in value.items() if item is not None}

    return read


def _string_reader(_: Shape) -> Reader:
    def read(value: Value) -> Value:
        if type(value) is str:
            return value
        raise _mismatch(value, "{} can not be converted to a String")

    return read


def _integer_reader(shape: Shape) -> Reader:
    sentence = f"{{}} can not be converted to {'an Integer' if shape.type == 'integer' else 'a Long'}"

    def read(value: Value) -> Value:
        is_number = type(value) is int or type(value) is float
        if is_number and -_LONG_END <= value < _LONG_END:
            return int(value)
        raise _mismatch(value, sentence)

    return read


def _float_reader(_: Shape) -> Reader:
    def read(value: Value) -> Value:
        if type(value) is float or type(value) is int:
            return float(value)
        if type(value) is str and value in _FLOAT_WORDS:
            return _FLOAT_WORDS[value]
        raise _mismatch(value, "{} can not be converted to a Double")

    return read


def _boolean_reader(_: Shape) -> Reader:
    def read(value: Value) -> Value:
        if type(value) is bool:
            return value
        raise _mismatch(value, "{} can not be converted to a Boolean")

    return read


def _blob_reader(_: Shape) -> Reader:
    def read(value: Value) -> Value:
        if type(value) is not str:
            raise _mismatch(value, "{} can not be converted to a Blob")
        try:
            return binascii.a2b_base64(value, strict_mode=True)
        except ValueError as error:  # binascii.Error is one, and so is text beyond ASCII
            raise _serialization("Value is not valid base64") from error

    return read


def _timestamp_reader(shape: Shape) -> Reader:
    in_seconds = shape.timestamp_format in {None, "unixTimestamp", timestamps.FRACTIONAL_SECONDS}
    expected: type = float if in_seconds else str
    parse: Callable[[Value], int] = timestamps.from_seconds if in_seconds else timestamps.from_text

    def read(value: Value) -> Value:
        number = float(value) if type(value) is int else value
        if type(number) is not expected:
            raise _mismatch(value, "{} can not be converted to a Date")
        try:
            return parse(number)
        except ValueError as error:
            raise _serialization(f"{value} is not a valid date") from error

    return read


_READERS: Final[dict[str, Callable[[Shape], Reader]]] = {
    "structure": _structure_reader,
    "list": _list_reader,
    "map": _map_reader,
    "string": _string_reader,
    "character": _string_reader,
    "integer": _integer_reader,
    "long": _integer_reader,
    "float": _float_reader,
    "double": _float_reader,
    "boolean": _boolean_reader,
    "blob": _blob_reader,
    "timestamp": _timestamp_reader,
}


def _mismatch(value: Value, sentence: str) -> AwsError:
    """Return the error for a value where a shape expects another type; `{}` in the sentence is its JSON type."""
    match value:
        case list():
            return _serialization("Start of list found where not expected")
        case dict():
            return _serialization("Start of structure or map found where not expected.")
        case bool():
            return _serialization(sentence.format("TRUE_VALUE" if value else "FALSE_VALUE"))
        case str():
            return _serialization(sentence.format("STRING_VALUE"))
        case _:
            return _serialization(sentence.format("NUMBER_VALUE"))


def _serialization(message: str) -> AwsError:
    return common("SerializationException", message)


# ---- writing -------------------------------------------------------------------------------------------------

_TIMESTAMPS: Final[dict[str | None, Writer]] = {
    None: timestamps.to_seconds,
    "unixTimestamp": timestamps.to_seconds,
    timestamps.FRACTIONAL_SECONDS: timestamps.to_fractional_seconds,
    "iso8601": timestamps.to_iso8601,
    "rfc822": timestamps.to_rfc822,
}


def as_base64(value: object) -> str:
    """Return a blob as JSON has it, for orjson, which calls this for the values it does not know.

    Raises:
        TypeError: Neither bytes nor any other value JSON has.
    """
    if isinstance(value, bytes):
        return binascii.b2a_base64(value, newline=False).decode("ascii")
    raise TypeError(f"{type(value).__name__} is no value of any shape")


@cache
def writer(shape: Shape) -> Writer | None:
    """Return the function that makes a value of `shape` ready for JSON; None if it is ready as it is."""
    match shape.type:
        case "structure":
            return _structure_writer(shape)
        case "list":
            return _list_writer(shape)
        case "map":
            return _map_writer(shape)
        case "timestamp":
            return _TIMESTAMPS[shape.timestamp_format]
        case "float" | "double":
            return float
        case _:
            return None


def _structure_writer(shape: Shape) -> Writer:
    ready_names: frozenset[str] | None = None  # members that go out under their own name as they are
    members: dict[str, tuple[str, Writer | None]] = {}

    def write(value: Value) -> Value:
        nonlocal ready_names
        if ready_names is None:  # compiled at first use: a shape may contain itself
            for member in shape.members.values():
                members[member.name] = member.json_name, writer(member.shape)
            ready_names = frozenset(name for name, target in members.items() if target == (name, None))
        # Most structures are ready whole, and to see it takes a third of what copying them would.
        if ready_names.issuperset(value) and None not in value.values():
            return value
        document = {}
        for name, item in value.items():
            if item is not None:
                json_name, convert = members[name]
                document[json_name] = item if convert is None else convert(item)
        return document

    return write


def _list_writer(shape: Shape) -> Writer | None:
    element = writer(shape.element.shape)
    return None if element is None else lambda value: [element(item) for item in value]


def _map_writer(shape: Shape) -> Writer | None:
    convert = writer(shape.value.shape)
    return None if convert is None else lambda value: {key: convert(item) for key, item in value.items()}
