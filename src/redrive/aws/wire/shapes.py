"""The shapes of a published service model, resolved on first use and read only while compiling."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final, TypeAlias

#: A value of some shape: str, int, float, bool, bytes, milliseconds since the epoch for a timestamp, a list,
#: or a dict for maps and structures. Which of them, the service model says; the type checker cannot know.
Value: TypeAlias = Any

#: A structure: values under the model's member names. An absent member is missing or None.
Structure: TypeAlias = dict[str, Value]

#: A model as parsed from JSON: its keys are strings, its values whatever the model format says.
Raw: TypeAlias = Mapping[str, Any]

SCALARS: Final = frozenset(
    {"string", "character", "boolean", "integer", "long", "float", "double", "blob", "timestamp"}
)

_PARTS: Final = ("member", "key", "value")

#: A list of a few elements too many gets the service's own answer; one of many times as many is not read for it.
_READ_BEYOND: Final = 10


@dataclass(slots=True, eq=False)
class Shape:
    """One shape. Compared and hashed by identity: a service holds each shape once."""

    name: str  # The shape's name in the model
    type: str  # `structure`, `list`, `map` or one of `SCALARS`
    # Of a structure, in model order, under the model's names.
    members: dict[str, "Member"] = field(default_factory=dict)
    required: tuple[str, ...] = ()  # The names of a structure's required members
    parts: dict[str, "Member"] = field(default_factory=dict)  # A list's `member`, a map's `key` and `value`
    enum: tuple[str, ...] = ()  # The permitted strings, empty when every string is
    least: float | None = None  # The smallest number, or the shortest length of a string, blob, list or map
    most: float | None = None  # The largest number, or the longest length
    pattern: str | None = None  # A Java regular expression a string must match whole
    # `iso8601`, `rfc822`, `unixTimestamp`, or None for the protocol's own.
    timestamp_format: str | None = None
    # The member that is a REST body by itself; empty: the body is an object of the members without a place.
    payload: str = ""
    is_event_stream: bool = False  # Its members are events, of which an answer is a row
    is_exception: bool = False  # It is an error; in a row of events the last of them
    names_null: bool = False  # A refusal of its elements or values names the rule against null ones besides

    @property
    def elements_max(self) -> float:
        """The most elements of a list or a map that are read, enough for the service's own refusal."""
        return inf if self.most is None else _READ_BEYOND * self.most

    @property
    def element(self) -> "Member":
        """The member of a list."""
        return self.parts["member"]

    @property
    def key(self) -> "Member":
        """A map's key."""
        return self.parts["key"]

    @property
    def value(self) -> "Member":
        """A map's value."""
        return self.parts["value"]


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A shape where another shape uses it: a structure's member, a list's element, a map's key or value."""

    name: str  # The model's name; for elements, keys and values `member`, `key` and `value`
    shape: Shape  # Shape of the member
    json_name: str
    # The name in query requests and their XML, or None if the model gives no other name.
    query_name: str | None
    flattened: bool  # Whether query protocols leave the surrounding element out
    # Its place in a REST request or answer: `uri`, `querystring`, `header`, `headers`, `statusCode`; empty:
    # the body.
    location: str = ""
    is_event_payload: bool = False  # Whether it is an event's payload by itself

    @property
    def query_key(self) -> str:
        """The name inside a query structure: a flattened list stands under its elements' name."""
        element_name = self.shape.element.query_name if self.flattened and self.shape.type == "list" else None
        return element_name or self.query_name or self.name


class Shapes:
    """The shapes of one model by name. A shape and all it reaches are resolved when first asked for."""

    __slots__ = ("_raw", "_resolved")

    def __init__(self, raw: Raw) -> None:
        self._raw = raw
        self._resolved: dict[str, Shape] = {}

    def __getitem__(self, name: str) -> Shape:
        """Return the shape called `name`; raises KeyError if the model has none."""
        shape = self._resolved.get(name)
        return self._resolve(name) if shape is None else shape

    def _resolve(self, name: str) -> Shape:
        raw = self._raw[name]
        shape = Shape(
            name=name,
            type=raw["type"],
            required=tuple(raw.get("required", ())),
            enum=tuple(raw.get("enum", ())),
            least=raw.get("min"),
            most=raw.get("max"),
            pattern=raw.get("pattern"),
            timestamp_format=raw.get("timestampFormat"),
            payload=raw.get("payload", ""),
            is_event_stream=raw.get("eventstream", False),
            is_exception=raw.get("exception", False),
            names_null=raw.get("namesNull", False),
        )
        self._resolved[name] = shape  # before its members: a shape may contain itself
        shape.members.update({key: self._member(key, ref) for key, ref in raw.get("members", {}).items()})
        shape.parts.update({key: self._member(key, raw[key]) for key in _PARTS if key in raw})
        return shape

    def _member(self, name: str, ref: Raw) -> Member:
        location_name = ref.get("locationName")
        return Member(
            name=name,
            shape=self[ref["shape"]],
            json_name=location_name or name,
            query_name=ref.get("queryName") or location_name,
            flattened=bool(ref.get("flattened") or self._raw[ref["shape"]].get("flattened")),
            location=ref.get("location", ""),
            is_event_payload=ref.get("eventpayload", False),
        )
