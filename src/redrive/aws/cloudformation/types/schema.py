"""Schemas of resource types: the properties, their types, and those whose change replaces a resource.

The table is generated from cfn-lint's published schemas (`tests/aws/cloudformation/make_schemas.py`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson

from redrive.aws.cloudformation.template.errors import TemplateInvalid
from redrive.aws.cloudformation.template.parameters import text_of

SCHEMAS: Final = Path(__file__).with_name("schemas.json")
DYNAMIC: Final = "{{resolve:"
_DEFINITION: Final = "#/definitions/"
# In Python; where a schema allows several, a value keeps its own type if that is one of them.
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (Mapping,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


@dataclass(frozen=True, slots=True)
class TypeSchema:
    """The schema of a type."""

    properties: Mapping[str, Any]  # The schema of each property
    required: tuple[str, ...]  # Those that must be given
    create_only: frozenset[str]  # Those whose change replaces the resource
    read_only: frozenset[str]  # Paths of those that only the service sets: attributes, for the most part
    definitions: Mapping[str, Any]  # Schemas that others refer to
    is_open: bool = False  # Other properties are allowed, too

    def typed(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Returns properties with each value of its type: templates may have numbers and booleans as texts.

        Raises:
            TemplateInvalid: One is missing or unknown, or cannot be converted to its type.
        """
        faults: list[str] = []
        schema: dict[str, Any] = {"type": "object", "properties": self.properties, "required": self.required}
        if not self.is_open:
            schema["additionalProperties"] = False
        typed: dict[str, Any] = _Converter(self.definitions, faults).convert(properties, schema, "")
        faults += [
            f"Encountered a read-only property {{/{name}}}"
            for name in typed
            if name in self.read_only and name not in self.create_only
        ]
        if faults:
            raise TemplateInvalid(f"Property validation failure: [{', '.join(faults)}]")
        return typed

    def typed_as_far_as_possible(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a service's properties, converted to their types where that is possible."""
        converter = _Converter(self.definitions, faults=[])
        known = {name: value for name, value in properties.items() if name in self.properties}
        return {name: converter.convert(value, self.properties[name], "") for name, value in known.items()}


@dataclass(frozen=True, slots=True)
class _Converter:
    definitions: Mapping[str, Any]
    faults: list[str]

    def convert(self, value: Any, schema: Mapping[str, Any], path: str) -> Any:
        """A value of the types of its schema; what does not fit is added to the faults."""
        while "$ref" in schema:
            schema = self.definitions.get(schema["$ref"].removeprefix(_DEFINITION), {})
        kinds = schema.get("type", ())
        kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
        if not kinds and "properties" in schema:
            kinds = ("object",)
        if not kinds:
            return value
        if isinstance(value, Mapping) and "object" in kinds:
            return dict(self._members(value, schema, path))
        if isinstance(value, list) and "array" in kinds:
            items = schema.get("items", {})
            return [self.convert(item, items, f"{path}/{number}") for number, item in enumerate(value)]
        scalar = _scalar(value, kinds)
        if scalar is None:
            self.faults.append(f"Value of property {{{path}}} does not match type {{{kinds[0].title()}}}")
        elif "enum" in schema and scalar not in schema["enum"]:
            self.faults.append(f"Value of property {{{path}}} is not one of {list(schema['enum'])}")
        return scalar

    def _members(
        self, value: Mapping[str, Any], schema: Mapping[str, Any], path: str
    ) -> Iterator[tuple[str, Any]]:
        """The members of an object, converted; those that are missing or unknown are faults."""
        properties = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                self.faults.append(f"The property {{{path}/{name}}} is required")
        for name, child in value.items():
            if name in properties:
                yield name, self.convert(child, properties[name], f"{path}/{name}")
            elif schema.get("additionalProperties", True) is False and not schema.get("patternProperties"):
                self.faults.append(f"#{path}: extraneous key [{name}] is not permitted")
            else:
                yield name, child


def _scalar(value: Any, kinds: tuple[str, ...]) -> Any:
    """The value converted to one of these types; None: that is impossible."""
    if isinstance(value, Mapping | list):
        return None
    for kind in kinds:
        if isinstance(value, _KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool)):
            return value
    text = text_of(value)
    if DYNAMIC in text:  # the reference is resolved when the resource is created
        return text
    for kind in kinds:
        scalar = _read(text, kind)
        if scalar is not None:
            return scalar
    return None


def _read(text: str, kind: str) -> Any:
    """The text as a value of a type; None: it is not one."""
    try:
        match kind:
            case "string":
                return text
            case "integer":
                return int(text)
            case "number":
                return float(text)
            case "boolean":
                return {"true": True, "false": False}.get(text.lower())
    except ValueError:
        pass
    return None


@cache
def _table() -> Mapping[str, Any]:
    schemas: Mapping[str, Any] = orjson.loads(SCHEMAS.read_bytes())
    return schemas


@cache
def schema_of(kind: str) -> TypeSchema:
    """The schema of a type; a type without one allows all properties."""
    row = _table().get(kind)
    if row is None:
        return TypeSchema({}, (), frozenset(), frozenset(), {}, is_open=True)
    return TypeSchema(
        properties=row["properties"],
        required=tuple(row.get("required", ())),
        create_only=frozenset(row["createOnly"]),
        read_only=frozenset(row["readOnly"]),
        definitions=row["definitions"],
    )
