"""The subject of a filter: a message's attributes or its body, flattened to keys and values."""

import enum
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from redrive.model.budget import weight
from redrive.model.filtering.condition import Scalar
from redrive.model.topic import Attribute


class FilterVerdict(enum.StrEnum):
    """The answer of a filter to a message: that it matches, or the reason, as the filtering metrics tell them apart."""

    MATCHED = "matched"
    NO_ATTRIBUTES = "no attributes"  # the message has none at all
    ATTRIBUTES = "attributes"
    INVALID_ATTRIBUTES = "invalid attributes"  # an attribute the filter names cannot be read
    BODY = "body"
    INVALID_BODY = "invalid body"  # the body is not a JSON object
    EVENT = "event"  # a filter on events
    TOO_COSTLY = "too costly"  # the filter needs more steps for this message than it has: see `Budget`


class FilterKeys:
    """The keys that filters test, name by name, so that a body is read along them and no further.

    Attributes:
        keys: Each with how many filters ask about it.
    """

    __slots__ = ("keys", "root")

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self.keys: dict[str, int] = {}
        self.root = _PathStep()
        for key in keys:
            self.add(key)

    def add(self, key: str) -> None:
        """One filter more asks about the key."""
        self.keys[key] = self.keys.get(key, 0) + 1
        if self.keys[key] > 1:
            return
        step = self.root
        for name in key.split("."):
            step = step.below.setdefault(name, _PathStep())
        step.key = key

    def discard(self, key: str) -> None:
        """One filter fewer asks about it."""
        self.keys[key] -= 1
        if self.keys[key]:
            return
        del self.keys[key]
        steps = [self.root]
        names = key.split(".")
        for name in names:
            steps.append(steps[-1].below[name])
        steps[-1].key = None
        for name in reversed(names):  # the steps that no other key needs go, the last one first
            step = steps.pop()
            if step.below or step.key is not None:
                return
            del steps[-1].below[name]


class _PathStep:
    """One step of a path along the names."""

    __slots__ = ("below", "key")

    def __init__(self) -> None:
        self.key: str | None = None
        self.below: dict[str, _PathStep] = {}

    def to(self, name: str) -> "_PathStep | None":
        """Further along a member's name, which may be several of the path's: `{"a.b":1}` is `{"a":{"b":1}}`."""
        step: _PathStep | None = self
        parts = name.split(".") if "." in name else (name,)
        for part in parts:
            step = None if step is None else step.below.get(part)
        return step


@dataclass(slots=True)
class ArrayPlaces:
    """The positions of values in a body: for each array of objects around a value, the element.

    A place is the number of an element, and 0 what is in no such array. Elements are numbered as they are met, those
    of all arrays together.
    """

    # For each element: the element that contains its array
    around: list[int] = field(default_factory=lambda: [0])
    arrays: list[int] = field(default_factory=lambda: [0])  # For each element: the number of its array

    def add(self, around: int, array: int) -> int:
        """A new element of an array."""
        self.around.append(around)
        self.arrays.append(array)
        return len(self.around) - 1


@dataclass(slots=True)
class SubjectFields:
    """Keys and their values. A key whose arrays are empty is not there."""

    values: Mapping[str, list[Scalar]]  # For each key, every value it has
    value_places: Mapping[str, list[int]]  # For each key, the place of each of its values, in the same order
    # What the places stand for; None for a message without arrays of objects: all its values go together.
    places: ArrayPlaces | None = None
    invalid: frozenset[str] = frozenset()  # Keys that are there and could not be read; they have no values
    _weights: dict[str, int] | None = None

    def weight(self, key: str) -> int:
        """The steps of looking at each value of a key once."""
        if self._weights is None:
            self._weights = {}
        known_weight = self._weights.get(key)
        if known_weight is None:
            known_weight = self._weights[key] = sum(map(weight, self.values.get(key, ())))
        return known_weight


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
        """The body as a JSON object; None for any other body."""
        if self._document is _UNREAD:
            self._document = _parse(self.body)
        return self._document if isinstance(self._document, dict) else None

    def attribute_fields(self, keys: Collection[str]) -> SubjectFields:
        """The attributes among `keys`."""
        values: dict[str, list[Scalar]] = {}
        invalid = set()
        for name, attribute in self.attributes.items():
            if name not in keys:
                continue
            try:
                attribute_values = _attribute_values(attribute)
            except ValueError:
                invalid.add(name)
                continue
            if attribute_values:
                values[name] = attribute_values
        return SubjectFields(values, {}, None, frozenset(invalid))

    def body_fields(self, paths: FilterKeys) -> SubjectFields | None:
        """The body's leaves at `paths`.

        Returns:
            None if the body is not a JSON object. The path of a leaf joins the names around it with dots, so
            that `{"a":{"b":1}}` and `{"a.b":1}` are the same; arrays do not show in a path.
        """
        document = self.document
        return None if document is None else _flatten(document, paths)


_UNREAD: Final = object()


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
    """A finite number, spelled without underscores, which Python would read.

    Raises:
        ValueError: It is not such a number.
    """
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
    """The JSON document; None if the text is not JSON, or is `null`: no filter matches either."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):  # RecursionError: nested about a thousand deep
        return None


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _flatten(document: Mapping[str, Any], paths: FilterKeys) -> SubjectFields:
    """The scalars of a body under the keys that filters name, each with its element of an array, if they differ."""
    values: dict[str, list[Scalar]] = {}
    value_places: dict[str, list[int]] = {}
    places = ArrayPlaces()
    array_count = 0
    is_scattered = False  # some value stands in an element of its own
    # A stack of its own: a body may be nested deeper than Python calls itself.
    pending: list[tuple[_PathStep, Any, int]] = [(paths.root, document, 0)]
    while pending:
        step, node, array_place = pending.pop()
        if isinstance(node, dict):
            for name, child in node.items():
                if (below := step.to(name)) is not None:
                    pending.append((below, child, array_place))
        elif isinstance(node, list):
            # Scalars side by side belong together; objects and arrays stand each in its own element.
            array_count += 1
            for element in node:
                is_nested = isinstance(element, dict | list)
                element_place = places.add(array_place, array_count) if is_nested else array_place
                pending.append((step, element, element_place))
        elif step.key is not None:
            values.setdefault(step.key, []).append(node)
            value_places.setdefault(step.key, []).append(array_place)
            is_scattered = is_scattered or array_place > 0
    return SubjectFields(values, value_places, places if is_scattered else None)
