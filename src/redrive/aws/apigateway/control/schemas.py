"""Models: bodies checked against JSON Schema, draft 4, as far as request validation needs it, within a budget.

A schema is read once: refused where a keyword has a value that it cannot have, its patterns compiled, its `enum` made a
set. The meta-schema is that of https://json-schema.org/draft-04/schema.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from math import inf
from typing import Any, Final

import orjson
import re2

from redrive.aws.apigateway.control.errors import bad_request
from redrive.aws.kit.regexes import compiled
from redrive.model.budget import Budget
from redrive.model.memo import remembered

_DEPTH_MAX: Final = 64
#: Of one value and one schema: 2 µs.
_CHECK_STEPS: Final = 4
_VALUES_MAX: Final = 100_000
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
#: Of a compiled pattern; RE2 keeps its own states for the texts that it has seen, 8 MiB of them by default.
_PATTERN_BYTES_MAX: Final = 1024 * 1024
_INVALID: Final = (
    "Invalid model specified: Validation Result: warnings : [], errors : [Invalid model schema specified]"
)


class BodyInvalid(Exception):  # noqa: N818 - an answer
    """A body is not valid by its model; the text says why."""


class _SchemaInvalidError(Exception):
    """A text that is no JSON Schema."""


def check_schema(text: str) -> None:
    """Refuse a model whose schema is no JSON Schema of draft 4; raises AwsError (`BadRequestException`)."""
    if _read(text) is None:
        raise bad_request(_INVALID)


def check_body(text: str, body: bytes, models: Mapping[str, str], budget: Budget) -> None:
    """Check a request's body against a schema, which may refer to other models of the API by the ends of their URLs.

    The budget is of steps for each pair of a value and a schema, a required name, or a pattern and a name.

    Raises:
        BodyInvalid: The body is not valid, or is no JSON.
        OverBudgetError: The check takes too long.
    """
    budget.spend_chars(len(body))
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise BodyInvalid("the body is not JSON") from None
    root = _read(text)
    if root is None:
        raise BodyInvalid("the model's schema is invalid")
    _BodyCheck(root, models, budget).check(value, root, "", 0)


# ---- reading ---------------------------------------------------------------------------------------------------------


@remembered(256, 16 * 1024, longer_max=8)
def _read(text: str) -> Mapping[str, Any] | None:
    """A schema with its patterns compiled and its `enum` hashed; None: the text is no schema."""
    try:
        return _compile(orjson.loads(text), Budget(_VALUES_MAX), 0)
    except (orjson.JSONDecodeError, _SchemaInvalidError):
        return None


def _compile(schema: Any, budget: Budget, depth: int) -> dict[str, Any]:
    """A schema with the values that checks need, see `_read`; raises _SchemaInvalidError if it has none."""
    if not isinstance(schema, dict) or depth > _DEPTH_MAX or budget.left < len(schema):
        raise _SchemaInvalidError
    budget.spend(1 + len(schema))

    def read_inner(inner: Any) -> dict[str, Any]:
        return _compile(inner, budget, depth + 1)

    return {
        name: _KEYWORDS[name](value, read_inner) if name in _KEYWORDS else value
        for name, value in schema.items()
    }


_Read = Callable[[Any], dict[str, Any]]
_Keyword = Callable[[Any, _Read], Any]


def _constant(is_valid: Callable[[Any], bool]) -> _Keyword:
    """A keyword whose value is used as it is."""

    def keyword(value: Any, _: _Read) -> Any:
        if not is_valid(value):
            raise _SchemaInvalidError
        return value

    return keyword


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_text_set(value: Any) -> bool:
    """True for a list of one or more texts without duplicates."""
    if not (isinstance(value, list) and value and all(isinstance(each, str) for each in value)):
        return False
    return len(set(value)) == len(value)


def _is_type_name(value: Any) -> bool:
    """True if a value is the name of a type, or a set of such names."""
    return (
        all(each in _TYPES for each in value)
        if _is_text_set(value)
        else isinstance(value, str) and value in _TYPES
    )


def _schema(value: Any, read: _Read) -> Any:
    return read(value)


def _schemas_by_name(value: Any, read: _Read) -> Any:
    if not isinstance(value, dict):
        raise _SchemaInvalidError
    return {name: read(inner) for name, inner in value.items()}


def _schema_list(value: Any, read: _Read) -> Any:
    if not isinstance(value, list) or not value:
        raise _SchemaInvalidError
    return [read(inner) for inner in value]


def _schema_or_boolean(value: Any, read: _Read) -> Any:
    return value if isinstance(value, bool) else read(value)


def _schema_or_list(value: Any, read: _Read) -> Any:
    return _schema_list(value, read) if isinstance(value, list) else read(value)


def _choices(value: Any, _: _Read) -> frozenset[bytes]:
    if not isinstance(value, list) or not value:
        raise _SchemaInvalidError
    return frozenset(_identity(each) for each in value)


def _pattern(value: Any, _: _Read) -> Any:
    """A compiled pattern; None for one that RE2 does not have (`(?=…)`), which forbids nothing."""
    if not isinstance(value, str):
        raise _SchemaInvalidError
    try:
        return compiled(value, memory_bytes=_PATTERN_BYTES_MAX)
    except re2.error:
        return None


def _patterns(value: Any, read: _Read) -> Any:
    return [(_pattern(name, read), inner) for name, inner in _schemas_by_name(value, read).items()]


_KEYWORDS: Final[Mapping[str, _Keyword]] = {
    **dict.fromkeys(("minimum", "maximum"), _constant(_is_number)),
    **dict.fromkeys(
        ("exclusiveMinimum", "exclusiveMaximum", "uniqueItems"), _constant(lambda v: isinstance(v, bool))
    ),
    **dict.fromkeys(
        (f"{bound}{name}" for bound in ("min", "max") for name in ("Length", "Items", "Properties")),
        _constant(_is_count),
    ),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), _schema_list),
    **dict.fromkeys(("properties", "definitions"), _schemas_by_name),
    "$ref": _constant(lambda value: isinstance(value, str)),
    "additionalItems": _schema_or_boolean,
    "additionalProperties": _schema_or_boolean,
    "enum": _choices,
    "items": _schema_or_list,
    "multipleOf": _constant(lambda value: _is_number(value) and value > 0),
    "not": _schema,
    "pattern": _pattern,
    "patternProperties": _patterns,
    "required": _constant(_is_text_set),
    "type": _constant(_is_type_name),
}


def _identity(value: Any) -> bytes:
    """The same bytes for equal values; 1.0 is 1."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # an integer of more than 64 bits, as a double has it
        return repr(value).encode()


# ---- checking --------------------------------------------------------------------------------------------------------


class _BodyCheck:
    """The check of one body against a schema and the models that it refers to."""

    def __init__(self, root: Mapping[str, Any], models: Mapping[str, str], budget: Budget) -> None:
        self._root = root
        self._models = models
        self._budget = budget

    def check(self, value: Any, schema: Any, path: str, depth: int) -> None:
        """Raise BodyInvalid where a value does not fit a schema; one that is not an object allows everything."""
        self._budget.spend(_CHECK_STEPS)
        self._budget.spend_chars(len(path))
        if depth > _DEPTH_MAX:
            raise BodyInvalid("the model takes too long to check")
        if not isinstance(schema, Mapping):
            return
        if "$ref" in schema:
            self.check(value, self._target_of(schema["$ref"]), path, depth + 1)
            return
        self._check_value(value, schema, path)
        if isinstance(value, dict):
            self._check_object(value, schema, path, depth)
        elif isinstance(value, list):
            self._check_list(value, schema, path, depth)
        self._check_choices(value, schema, path, depth)

    def _target_of(self, reference: str) -> Any:
        """The schema that a `$ref` names: a definition of the schema, or a model of the API; None: there is none."""
        name = reference.rpartition("/")[2]
        definitions: Mapping[str, Any] = self._root.get("definitions") or {}
        if reference.startswith(_DEFINITIONS) and name in definitions:
            return definitions[name]
        return _read(self._models[name]) if name in self._models else None

    def _check_object(
        self, value: Mapping[str, Any], schema: Mapping[str, Any], path: str, depth: int
    ) -> None:
        """Check each member by the schema of its name, else by those whose patterns fit, else by that of all others."""
        properties, required = schema.get("properties") or {}, schema.get("required") or ()
        self._budget.spend(len(required))
        missing = [name for name in required if name not in value]
        if missing:
            raise BodyInvalid(
                f"object has missing required properties ({[_short(name) for name in missing[:20]]})"
            )
        patterns = schema.get("patternProperties") or ()
        additional = schema.get("additionalProperties", True)
        for name, item in value.items():
            if name in properties:
                self.check(item, properties[name], f"{path}/{name}", depth + 1)
                continue
            matching_schemas = [inner for pattern, inner in patterns if self._fits_pattern(pattern, name)]
            for inner in matching_schemas:
                self.check(item, inner, f"{path}/{name}", depth + 1)
            if not matching_schemas and additional is False:
                raise BodyInvalid(
                    f"object instance has properties which are not allowed by the schema: {_short(name)}"
                )
            if not matching_schemas:
                self.check(item, additional, f"{path}/{name}", depth + 1)

    def _check_list(self, value: Sequence[Any], schema: Mapping[str, Any], path: str, depth: int) -> None:
        """Check elements by the one schema, or each by its own of several."""
        items = schema.get("items")
        if schema.get("uniqueItems") and len({self._identity(item) for item in value}) < len(value):
            raise BodyInvalid(f"{path}: the elements are not unique")
        for number, item in enumerate(value):
            inner = items[number] if isinstance(items, list) and number < len(items) else items
            self.check(item, inner, f"{path}/{number}", depth + 1)

    def _check_choices(self, value: Any, schema: Mapping[str, Any], path: str, depth: int) -> None:
        for inner in schema.get("allOf") or ():
            self.check(value, inner, path, depth + 1)
        for name in ("anyOf", "oneOf"):
            choices = schema.get(name) or ()
            match_count = sum(self._fits(value, inner, path, depth) for inner in choices)
            if choices and (not match_count or (name == "oneOf" and match_count > 1)):
                raise BodyInvalid(f"{path}: {name} is not met")
        if "not" in schema and self._fits(value, schema["not"], path, depth):
            raise BodyInvalid(f"{path}: not is met")

    def _fits(self, value: Any, schema: Any, path: str, depth: int) -> bool:
        """True if a value keeps to a schema."""
        try:
            self.check(value, schema, path, depth + 1)
        except BodyInvalid:
            return False
        return True

    def _check_value(self, value: Any, schema: Mapping[str, Any], path: str) -> None:
        kinds = schema.get("type")
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if kinds and not any(_has_type(value, kind) for kind in kinds):
            raise BodyInvalid(
                f"{path}: instance type does not match any allowed primitive type (allowed: {kinds})"
            )
        if "enum" in schema and not self._is_choice(value, schema["enum"]):
            raise BodyInvalid(f"{path}: instance value not found in enum")
        if isinstance(value, str):
            _check_length(len(value), schema, "Length", path)
            if "pattern" in schema and not self._fits_pattern(schema["pattern"], value):
                raise BodyInvalid(f"{path}: the text does not match its pattern")
        elif isinstance(value, list):
            _check_length(len(value), schema, "Items", path)
        elif isinstance(value, dict):
            _check_length(len(value), schema, "Properties", path)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            _check_number(value, schema, path)

    def _is_choice(self, value: Any, choices: Collection[bytes]) -> bool:
        return self._identity(value) in choices

    def _identity(self, value: Any) -> bytes:
        identity = _identity(value)
        self._budget.spend_chars(len(identity))
        return identity

    def _fits_pattern(self, pattern: Any, text: str) -> bool:
        if pattern is None:
            return True
        self._budget.spend_search(pattern.programsize, len(text))
        return pattern.search(text) is not None


def _short(name: str) -> str:
    """The beginning of a name: the reasons of all branches of a choice are built."""
    return name[:100]


def _has_type(value: Any, kind: str) -> bool:
    """True if a value is of a type of JSON schema: `1.0` is an integer, and true is no number."""
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


def _check_length(length: int, schema: Mapping[str, Any], name: str, path: str) -> None:
    if not schema.get(f"min{name}", 0) <= length <= schema.get(f"max{name}", length):
        raise BodyInvalid(f"{path}: its length is not allowed")


def _check_number(value: float, schema: Mapping[str, Any], path: str) -> None:
    minimum, maximum = schema.get("minimum", -inf), schema.get("maximum", inf)
    is_low = value <= minimum if schema.get("exclusiveMinimum") is True else value < minimum
    is_high = value >= maximum if schema.get("exclusiveMaximum") is True else value > maximum
    step = schema.get("multipleOf")
    if is_low or is_high or (step and value % step):
        raise BodyInvalid(f"{path}: the number is not allowed")
