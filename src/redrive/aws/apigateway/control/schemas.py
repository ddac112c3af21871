"""Models: bodies checked against JSON Schema, draft 4, as far as request validation needs it, at a bounded cost."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import orjson
import re2

from redrive.aws.apigateway.control.errors import bad_request

_STEPS_MAX: Final = 100_000
_DEPTH_MAX: Final = 64
_DEFINITIONS: Final = "#/definitions/"
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


class Unfit(Exception):  # noqa: N818 - an answer
    """A body that a model does not allow; the text says why."""


@lru_cache(maxsize=256)
def _read(text: str) -> Any:
    return orjson.loads(text)


def check_schema(text: str) -> None:
    """Refuse a model whose schema is no JSON.

    Raises:
        AwsError: `BadRequestException`.
    """
    try:
        _read(text)
    except orjson.JSONDecodeError:
        raise bad_request("Model schema is not a valid JSON document") from None


def check_body(text: str, body: bytes, models: Mapping[str, str]) -> None:
    """Check a body against the schema of a model.

    Args:
        text: The schema.
        body: Of a request.
        models: The texts of the API's other models, by name, which a schema may refer to by their URLs' ends.

    Raises:
        Unfit: It does not fit, or is no JSON.
    """
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise Unfit("the body is no JSON") from None
    root = _read(text)
    _Checking(root, models).check(value, root, "", 0)


class _Checking:
    def __init__(self, root: Any, models: Mapping[str, str]) -> None:
        self._root = root
        self._models = models
        self._left = _STEPS_MAX

    def check(self, value: Any, schema: Any, path: str, depth: int) -> None:
        """Raise Unfit where a value does not fit a schema; one that is no object allows everything."""
        self._left -= 1
        if self._left < 0 or depth > _DEPTH_MAX:
            raise Unfit("the model takes too long to check")
        if not isinstance(schema, Mapping):
            return
        if "$ref" in schema:
            self.check(value, self._referred(str(schema["$ref"])), path, depth + 1)
            return
        _check_value(value, schema, path)
        if isinstance(value, dict):
            self._check_object(value, schema, path, depth)
        elif isinstance(value, list):
            self._check_list(value, schema, path, depth)
        self._check_choices(value, schema, path, depth)

    def _referred(self, reference: str) -> Any:
        if reference.startswith(_DEFINITIONS):
            return (self._root.get("definitions") or {}).get(reference.removeprefix(_DEFINITIONS))
        text = self._models.get(reference.rpartition("/")[2])
        return None if text is None else _read(text)

    def _check_object(
        self, value: Mapping[str, Any], schema: Mapping[str, Any], path: str, depth: int
    ) -> None:
        properties = schema.get("properties") or {}
        missing = [name for name in _names(schema.get("required")) if name not in value]
        if missing:
            raise Unfit(f"object has missing required properties ({missing})")
        patterns = schema.get("patternProperties") or {}
        others = schema.get("additionalProperties", True)
        for name, item in value.items():
            if name in properties:
                self.check(item, properties[name], f"{path}/{name}", depth + 1)
                continue
            fitting = [inner for pattern, inner in patterns.items() if _found(pattern, name)]
            for inner in fitting:
                self.check(item, inner, f"{path}/{name}", depth + 1)
            if not fitting and others is False:
                raise Unfit(f"object instance has properties which are not allowed by the schema: {name}")
            if not fitting:
                self.check(item, others, f"{path}/{name}", depth + 1)

    def _check_list(self, value: Sequence[Any], schema: Mapping[str, Any], path: str, depth: int) -> None:
        items = schema.get("items")
        if schema.get("uniqueItems"):
            self._left -= len(value)
            if len({orjson.dumps(item, option=orjson.OPT_SORT_KEYS) for item in value}) < len(value):
                raise Unfit(f"{path}: the elements are not unique")
        for number, item in enumerate(value):
            inner = items[number] if isinstance(items, list) and number < len(items) else items
            self.check(item, inner, f"{path}/{number}", depth + 1)

    def _check_choices(self, value: Any, schema: Mapping[str, Any], path: str, depth: int) -> None:
        for inner in schema.get("allOf") or ():
            self.check(value, inner, path, depth + 1)
        for name in ("anyOf", "oneOf"):
            choices = schema.get(name) or ()
            fitting = sum(self._fits(value, inner, path, depth) for inner in choices)
            if choices and (not fitting or (name == "oneOf" and fitting > 1)):
                raise Unfit(f"{path}: {name} is not met")
        if "not" in schema and self._fits(value, schema["not"], path, depth):
            raise Unfit(f"{path}: not is met")

    def _fits(self, value: Any, schema: Any, path: str, depth: int) -> bool:
        try:
            self.check(value, schema, path, depth + 1)
        except Unfit:
            if self._left < 0:
                raise
            return False
        return True


def _names(given: Any) -> Sequence[str]:
    return given if isinstance(given, list) else ()


def _check_value(value: Any, schema: Mapping[str, Any], path: str) -> None:
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        raise Unfit(f"{path}: instance type does not match any allowed primitive type (allowed: {kinds})")
    if "enum" in schema and value not in schema["enum"]:
        raise Unfit(f"{path}: instance value not found in enum")
    if isinstance(value, str):
        _check_length(len(value), schema, "Length", path)
        if "pattern" in schema and not _found(str(schema["pattern"]), value):
            raise Unfit(f"{path}: the text does not match its pattern")
    elif isinstance(value, list):
        _check_length(len(value), schema, "Items", path)
    elif isinstance(value, dict):
        _check_length(len(value), schema, "Properties", path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _check_number(value, schema, path)


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(kind, (object,)))


def _check_length(length: int, schema: Mapping[str, Any], name: str, path: str) -> None:
    if not schema.get(f"min{name}", 0) <= length <= schema.get(f"max{name}", length):
        raise Unfit(f"{path}: its length is not allowed")


def _check_number(value: float, schema: Mapping[str, Any], path: str) -> None:
    least, most = schema.get("minimum", value), schema.get("maximum", value)
    outside = value < least or value > most
    at_bound = (value == least and schema.get("exclusiveMinimum") is True and "minimum" in schema) or (
        value == most and schema.get("exclusiveMaximum") is True and "maximum" in schema
    )
    step = schema.get("multipleOf")
    if outside or at_bound or (step and value % step):
        raise Unfit(f"{path}: the number is not allowed")


def _found(pattern: str, text: str) -> bool:
    try:
        return re2.search(pattern, text) is not None
    except re2.error:
        return True  # a pattern that this server cannot read forbids nothing
