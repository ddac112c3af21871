"""Values made ready for JSON by shape: absent members left out, timestamps as the model prints them."""

import binascii
from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

from redrive.aws.wire import timestamps
from redrive.aws.wire.shapes import Shape, Value

Writer: TypeAlias = Callable[[Value], Value]

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
            return _structure(shape)
        case "list":
            return _list(shape)
        case "map":
            return _map(shape)
        case "timestamp":
            return _TIMESTAMPS[shape.timestamp_format]
        case "float" | "double":
            return float
        case _:
            return None


def _structure(shape: Shape) -> Writer:
    ready: frozenset[str] | None = None  # members that go out under their own name as they are
    members: dict[str, tuple[str, Writer | None]] = {}

    def write(value: Value) -> Value:
        nonlocal ready
        if ready is None:  # compiled at first use: a shape may contain itself
            members.update((m.name, (m.json_name, writer(m.shape))) for m in shape.members.values())
            ready = frozenset(name for name, means in members.items() if means == (name, None))
        # Most structures are ready whole, and to see it takes a third of what copying them would.
        if ready.issuperset(value) and None not in value.values():
            return value
        written = {}
        for name, item in value.items():
            if item is not None:
                json_name, convert = members[name]
                written[json_name] = item if convert is None else convert(item)
        return written

    return write


def _list(shape: Shape) -> Writer | None:
    element = writer(shape.element.shape)
    return None if element is None else lambda value: [element(item) for item in value]


def _map(shape: Shape) -> Writer | None:
    convert = writer(shape.value.shape)
    return None if convert is None else lambda value: {key: convert(item) for key, item in value.items()}
