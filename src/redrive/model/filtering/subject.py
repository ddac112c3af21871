"""What a filter looks at: a message's attributes or its body, flattened to keys and values."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from redrive.model.filtering.condition import Scalar

# Where in the body a value stands: for each array of objects around it, the array's number and the element's.
Place = Mapping[int, int]
_NOWHERE: Final[Place] = {}


class Attribute(NamedTuple):
    """A message attribute: its declared type and its text.

    The type decides how the text is read: one that begins with `Number` is a number, `String.Array` is a JSON
    array of scalars, any other `String` is the text itself. An attribute of another type (`Binary`) is not
    there for a filter.
    """

    data_type: str
    text: str


@dataclass(frozen=True, slots=True)
class Fields:
    """Keys and their values. A key whose arrays are empty is not there.

    Attributes:
        values: For each key, every value it has.
        places: For each key, where each of its values stands, in the same order; None for a message without
            arrays of objects, of which all values go together.
        invalid: Keys that are there and could not be read; they have no values.
    """

    values: Mapping[str, list[Scalar]]
    places: Mapping[str, list[Place]] | None = None
    invalid: frozenset[str] = frozenset()


class Subject:
    """A message as filters see it. Its body is parsed when the first filter asks for it, and once."""

    __slots__ = ("_document", "attributes", "body")

    def __init__(
        self, attributes: Mapping[str, Attribute], body: str, document: Mapping[str, object] | None = None
    ) -> None:
        """See a message so; its body is not parsed again where it comes with the `document` that it is."""
        self.attributes = attributes
        self.body = body
        self._document: Any = _UNREAD if document is None else document

    @property
    def document(self) -> Mapping[str, object] | None:
        """The body as a JSON object; None where it is none."""
        if self._document is _UNREAD:
            self._document = _parse(self.body)
        return self._document if isinstance(self._document, dict) else None

    def attribute_fields(self, wanted: Collection[str]) -> Fields:
        """The attributes among `wanted`."""
        values: dict[str, list[Scalar]] = {}
        invalid = set()
        for name, attribute in self.attributes.items():
            if name not in wanted:
                continue
            try:
                read = _attribute_values(attribute)
            except ValueError:
                invalid.add(name)
                continue
            if read:
                values[name] = read
        return Fields(values, None, frozenset(invalid))

    def body_fields(self, wanted: Collection[str]) -> Fields | None:
        """The body's leaves, as far as their paths and all the paths above them are in `wanted`.

        Returns:
            None where the body is no JSON object. The path of a leaf joins the names around it with dots, so
            that `{"a":{"b":1}}` and `{"a.b":1}` are the same; arrays do not show in a path.
        """
        document = self.document
        return None if document is None else _flatten(document, wanted)


_UNREAD: Final = object()


def path_and_above(key: str) -> list[str]:
    """A key and every path that leads to it: `a.b.c` gives `a`, `a.b` and `a.b.c`."""
    names = key.split(".")
    return [".".join(names[:count]) for count in range(1, len(names) + 1)]


def _attribute_values(attribute: Attribute) -> list[Scalar]:
    """An attribute's values; ValueError where the text is not what the type says."""
    if attribute.data_type == "String.Array":
        return _array_values(attribute.text)
    if attribute.data_type.startswith("Number"):
        return [_number(attribute.text)]
    if attribute.data_type.startswith("String"):
        # A quote or backslash in a text is compared in its escaped form: policies must escape them twice.
        return [attribute.text.replace("\\", "\\\\").replace('"', '\\"')]
    return []


def _array_values(text: str) -> list[Scalar]:
    values = _parse(text)
    if not isinstance(values, list) or any(isinstance(value, dict | list) for value in values):
        raise ValueError("not a JSON array of scalars")
    return values


def _number(text: str) -> int | float:
    if "_" in text:  # Python would read 1_000
        raise ValueError("not a number")
    try:
        return int(text)
    except ValueError:
        number = float(text)
    if number - number != 0:  # infinite, or not a number at all
        raise ValueError("not a number")
    return number


def _parse(text: str) -> object:
    """The JSON document; None where the text is none, as where it is `null`: no filter wants either."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):  # RecursionError: nested about a thousand deep
        return None


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


@dataclass(slots=True)
class _Leaves:
    """The leaves found so far."""

    values: dict[str, list[Scalar]] = field(default_factory=dict)
    places: dict[str, list[Place]] = field(default_factory=dict)

    def add(self, path: str, value: Scalar, place: Place) -> None:
        self.values.setdefault(path, []).append(value)
        self.places.setdefault(path, []).append(place)


def _flatten(document: Mapping[str, Any], wanted: Collection[str]) -> Fields:
    leaves = _Leaves()
    arrays = 0
    # A stack of its own: a body may be nested deeper than Python calls itself.
    waiting: list[tuple[str, Any, Place]] = [
        (name, child, _NOWHERE) for name, child in document.items() if name in wanted
    ]
    while waiting:
        path, node, place = waiting.pop()
        if isinstance(node, dict):
            below = ((f"{path}.{name}", child) for name, child in node.items())
            waiting.extend((name, child, place) for name, child in below if name in wanted)
        elif isinstance(node, list):
            # Scalars side by side belong together; objects and arrays stand each in its own element.
            for number, element in enumerate(node):
                nested = isinstance(element, dict | list)
                waiting.append((path, element, {**place, arrays: number} if nested else place))
            arrays += 1
        else:
            leaves.add(path, node, place)
    scattered = any(place for places in leaves.places.values() for place in places)
    return Fields(leaves.values, leaves.places if scattered else None)
