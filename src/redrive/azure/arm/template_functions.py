"""Functions of ARM templates that need nothing but their arguments, by their names in lower case.

https://learn.microsoft.com/azure/azure-resource-manager/templates/template-functions
"""

import hashlib
import json
import uuid
from base64 import b32encode, b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, unquote, urljoin

_GUIDS: Final = uuid.UUID("11fb06fb-712d-4ddd-98c7-e71bbd588830")  # the namespace that Azure makes them in
_UNIQUE_CHARS: Final = 13
_RANGE_MAX: Final = 10_000
TEXT_CHARS_MAX: Final = 1_000_000

Function = Callable[..., Any]


def text_of(value: Any) -> str:
    """A value as a template joins it to texts."""
    if isinstance(value, bool):
        return "True" if value else "False"
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) else json.dumps(value, separators=(",", ":"))


def _concat(*parts: Any) -> Any:
    if parts and all(isinstance(part, list) for part in parts):
        return [item for part in parts for item in part]
    return "".join(map(text_of, parts))


def _contains(container: Any, item: Any) -> bool:
    if isinstance(container, Mapping):
        return any(str(name).lower() == str(item).lower() for name in container)
    return item in container


def _format(pattern: str, *values: Any) -> str:
    for index, value in enumerate(values):
        pattern = _replace(pattern, f"{{{index}}}", text_of(value))
    return pattern


def _replace(text: str, old: str, new: str) -> str:
    """The text with replacements made, whose length is known before it is put together."""
    if len(text) + text.count(old) * len(new) > TEXT_CHARS_MAX:
        raise ValueError(f"a text has at most {TEXT_CHARS_MAX} characters")
    return text.replace(old, new)


def _range(first: int, count: int) -> list[int]:
    if not 0 <= count <= _RANGE_MAX:
        raise ValueError(f"the count of a range is at most {_RANGE_MAX}")
    return list(range(first, first + count))


def _union(*parts: Any) -> Any:
    """All members of some objects, later ones winning; or all items of some lists, each once."""
    if isinstance(parts[0], Mapping):
        return {name: value for part in parts for name, value in part.items()}
    elements: list[Any] = []
    for part in parts:
        elements += [item for item in part if item not in elements]
    return elements


def _intersection(first: Any, *others: Any) -> Any:
    """The members that some objects share with their values; or the items that some lists share."""
    if isinstance(first, Mapping):
        return {
            name: item
            for name, item in first.items()
            if all(name in part and part[name] == item for part in others)
        }
    return [item for item in first if all(item in part for part in others)]


def _index_of(value: str | list[Any], item: Any) -> int:
    """The place of a text in another, whatever its case, or of an item in a list; -1: it is not there."""
    if isinstance(value, str):
        return value.lower().find(item.lower())
    return value.index(item) if item in value else -1


def _split(text: str, delimiter: str | Sequence[str]) -> list[str]:
    parts = [text]
    delimiters = [delimiter] if isinstance(delimiter, str) else delimiter
    for each in delimiters:
        parts = [piece for part in parts for piece in part.split(each)]
    return parts


def _substring(text: str, first: int, length: int | None = None) -> str:
    end = len(text) if length is None else first + length
    if not 0 <= first <= end <= len(text):
        raise ValueError("the index and the length of a substring are within the text")
    return text[first:end]


def unique_string(*parts: str) -> str:
    """Thirteen letters and digits that follow from the texts; not those that Azure's own hash would give."""
    digest = hashlib.sha256("-".join(parts).encode()).digest()
    return b32encode(digest).decode().lower()[:_UNIQUE_CHARS]


def _flatten(lists: Sequence[Sequence[Any]]) -> list[Any]:
    return [item for each in lists for item in each]


def _equals(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


FUNCTIONS: Final[Mapping[str, Function]] = {
    "add": lambda one, other: one + other,
    "and": lambda *parts: all(parts),
    "array": lambda value: value if isinstance(value, list) else [value],
    "base64": lambda text: b64encode(text.encode()).decode(),
    "base64tojson": lambda text: json.loads(b64decode(text)),
    "base64tostring": lambda text: b64decode(text).decode(),
    "bool": lambda value: str(value).lower() in ("true", "1"),
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "concat": _concat,
    "contains": _contains,
    "createarray": lambda *values: list(values),
    "createobject": lambda *values: dict(zip(values[::2], values[1::2], strict=True)),
    "div": lambda one, other: int(one / other),
    "empty": lambda value: not value,
    "endswith": lambda text, end: text.lower().endswith(end.lower()),
    "equals": _equals,
    "false": lambda: False,
    "first": lambda value: value[0] if value else None,
    "flatten": _flatten,
    "float": float,
    "format": _format,
    "greater": lambda one, other: one > other,
    "greaterorequals": lambda one, other: one >= other,
    "guid": lambda *parts: str(uuid.uuid5(_GUIDS, "-".join(parts))),
    "indexof": _index_of,
    "int": int,
    "intersection": _intersection,
    "items": lambda value: [{"key": name, "value": value[name]} for name in sorted(value)],
    "join": lambda values, delimiter: delimiter.join(map(text_of, values)),
    "json": json.loads,
    "last": lambda value: value[-1] if value else None,
    "lastindexof": lambda text, item: text.lower().rfind(item.lower()),
    "length": len,
    "less": lambda one, other: one < other,
    "lessorequals": lambda one, other: one <= other,
    "max": lambda *values: max(values[0] if isinstance(values[0], list) else values),
    "min": lambda *values: min(values[0] if isinstance(values[0], list) else values),
    "mod": lambda one, other: one % other,
    "mul": lambda one, other: one * other,
    "not": lambda value: not value,
    "null": lambda: None,
    "objectkeys": sorted,
    "or": lambda *parts: any(parts),
    "padleft": lambda value, length, padding=" ": text_of(value).rjust(min(length, _RANGE_MAX), padding),
    "range": _range,
    "replace": _replace,
    "skip": lambda value, count: value[max(count, 0) :],
    "split": _split,
    "startswith": lambda text, beginning: text.lower().startswith(beginning.lower()),
    "string": text_of,
    "sub": lambda one, other: one - other,
    "substring": _substring,
    "take": lambda value, count: value[: max(count, 0)],
    "tolower": lambda text: text.lower(),
    "toupper": lambda text: text.upper(),
    "trim": lambda text: text.strip(),
    "true": lambda: True,
    "union": _union,
    "uniquestring": unique_string,
    "uri": urljoin,
    "uricomponent": lambda text: quote(text, safe=""),
    "uricomponenttostring": unquote,
}
