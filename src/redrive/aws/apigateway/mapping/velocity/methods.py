"""Methods that templates call of values: those of Java's strings, numbers, lists and maps."""

import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import re2

from redrive.aws.apigateway.mapping.velocity.values import (
    HostObject,
    TemplateFailed,
    TemplateList,
    Value,
    equal,
    key_of,
    text_of,
)
from redrive.aws.kit.regexes import compiled
from redrive.model.budget import Budget

_INTS: Final = 1 << 32


def call_method(budget: Budget, value: Value, name: str, arguments: list[Value]) -> Value:
    """The answer of a method, null if there is none of that name; raises TemplateFailed for its arguments."""
    budget.spend()
    if isinstance(value, HostObject):
        return value.call(budget, name, arguments)
    method = _METHODS.get(_kind(value), {}).get(name) or _COMMON_METHODS.get(name)
    if method is None:
        return None
    budget.spend_chars(len(value) if isinstance(value, str | list | dict) else 0)
    try:
        return method(budget, value, *arguments)
    except (TypeError, AttributeError, ValueError, IndexError, KeyError) as error:
        raise TemplateFailed(f"{name}: {error}") from None


def _kind(value: Value) -> type:
    """The type whose methods a value has; lists and texts of subclasses count as lists and texts."""
    if isinstance(value, bool):
        return bool
    if isinstance(value, int | float):
        return int
    return next((kind for kind in (str, list) if isinstance(value, kind)), type(value))


Method: TypeAlias = Callable[..., Value]
_GROUP: Final = re.compile(r"\$(\d)")


def _matches(budget: Budget, text: str, pattern: str) -> bool:
    return _compile(budget, text, pattern).fullmatch(text) is not None


def _compile(budget: Budget, text: str, pattern: str) -> Any:
    """A compiled regular expression, whose search of the text is paid for."""
    budget.spend(len(pattern))
    try:
        regex = compiled(pattern)
    except re2.error:
        raise TemplateFailed(f"{pattern} is not a regular expression") from None
    budget.spend_search(regex.programsize, len(text))
    return regex


def _replace(budget: Budget, text: str, old: str, new: str) -> str:
    budget.spend_chars(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def _replace_all(budget: Budget, text: str, pattern: str, new: str, count: int = 0) -> str:
    def expand(match: Any) -> str:
        budget.spend()
        budget.spend_chars(len(new))
        return _GROUP.sub(lambda group: _group(budget, match, int(group[1])), new)

    return str(_compile(budget, text, pattern).sub(expand, text, count=count))


def _group(budget: Budget, match: Any, number: int) -> str:
    """The text of a group of a match."""
    if number > match.re.groups:
        raise TemplateFailed(f"No group {number}")
    text: str = match[number] or ""
    budget.spend()
    budget.spend_chars(len(text))
    return text


def _split(budget: Budget, text: str, pattern: str) -> list[str]:
    """The texts between matches, as in Java: none before an empty first match, and no empty ones at the end."""
    parts: list[str] = []
    begin = 0
    for match in _compile(budget, text, pattern).finditer(text):
        budget.spend()
        if match.end() > 0:
            parts.append(text[begin : match.start()])
            begin = match.end()
    if not parts:
        return TemplateList([text])
    parts.append(text[begin:])
    while parts and not parts[-1]:
        parts.pop()
    return TemplateList(parts)


def _substring(_: Budget, text: str, begin: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= begin <= end <= len(text):
        raise TemplateFailed("substring: the index is out of bounds")
    return text[begin:end]


def _index_from(_: Budget, text: str, part: str, begin: int = 0) -> int:
    return text.find(part, max(0, begin))


def _last_index(_: Budget, text: str, part: str) -> int:
    """The last place of a part. Python's `rfind` takes time by the product of both lengths, and `find` by their sum."""
    index = text[::-1].find(part[::-1])
    return index if index < 0 else len(text) - len(part) - index


def _concat(budget: Budget, text: str, other: str) -> str:
    budget.spend_chars(len(other))
    return text + other


def _hash_code(budget: Budget, text: str) -> int:
    """The hash that Java computes, of UTF-16 units, as a signed number of 32 bits."""
    budget.spend(len(text) // 8)
    code = 0
    for (unit,) in struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        code = (31 * code + unit) % _INTS
    return code - _INTS if code >= _INTS // 2 else code


def _checked_index(index: int, places: int) -> int:
    """An index, checked to be within a list; negative ones are errors, as in Java."""
    if not 0 <= index < places:
        raise TemplateFailed(f"{index} is out of bounds")
    return index


def _get(_: Budget, items: str | list[Value], index: int) -> Value:
    return items[_checked_index(index, len(items))]


def _add(_: Budget, items: list[Value], *arguments: Value) -> bool:
    """Java's `List.add`: put an element at the end, or at an index."""
    if len(arguments) == 1:
        items.append(arguments[0])
    else:
        index, item = arguments
        items.insert(_checked_index(index, len(items) + 1), item)
    return True


def _set(_: Budget, items: list[Value], index: int, item: Value) -> Value:
    before, items[index] = items[_checked_index(index, len(items))], item
    return before


def _remove(budget: Budget, items: list[Value], index: Value) -> Value:
    """Java's `List.remove`: returns the element at an index, or whether a value was in the list."""
    if isinstance(index, int):
        return items.pop(_checked_index(index, len(items)))
    item_index = _index_of(budget, items, index)
    if item_index >= 0:
        del items[item_index]
    return item_index >= 0


def _add_all(budget: Budget, items: list[Value], others: list[Value]) -> bool:
    budget.spend(len(others))
    items.extend(others)
    return True


def _put_all(budget: Budget, items: dict[str, Value], others: Mapping[str, Value]) -> None:
    budget.spend(len(others))
    items.update(others)


def _put(_: Budget, items: dict[str, Value], key: Value, item: Value) -> Value:
    before = items.get(key_of(key))
    items[key_of(key)] = item
    return before


def _copy(budget: Budget, items: Any) -> list[Value]:
    budget.spend(len(items))
    return TemplateList(items)


def _contains(budget: Budget, items: list[Value], item: Value) -> bool:
    return any(equal(budget, each, item) for each in items)


def _index_of(budget: Budget, items: list[Value], item: Value) -> int:
    return next((index for index, each in enumerate(items) if equal(budget, each, item)), -1)


_COMMON_METHODS: Final[Mapping[str, Method]] = {
    "toString": text_of,
    "equals": lambda budget, value, other: _kind(value) is _kind(other) and equal(budget, value, other),
}
_TEXT_METHODS: Final[Mapping[str, Method]] = {
    "length": lambda _, text: len(text),
    "isEmpty": lambda _, text: not text,
    "isBlank": lambda _, text: not text.strip(),
    "contains": lambda _, text, part: part in text,
    "startsWith": lambda _, text, part: text.startswith(part),
    "endsWith": lambda _, text, part: text.endswith(part),
    "indexOf": _index_from,
    "lastIndexOf": _last_index,
    "substring": _substring,
    "charAt": _get,
    "toUpperCase": lambda _, text: text.upper(),
    "toLowerCase": lambda _, text: text.lower(),
    "trim": lambda _, text: text.strip(),
    "concat": _concat,
    "replace": _replace,
    "replaceAll": _replace_all,
    "replaceFirst": lambda budget, text, pattern, new: _replace_all(budget, text, pattern, new, 1),
    "matches": _matches,
    "split": _split,
    "equalsIgnoreCase": lambda _, text, other: isinstance(other, str) and text.lower() == other.lower(),
    "compareTo": lambda _, text, other: (text > other) - (text < other),
    "hashCode": _hash_code,
}
_LIST_METHODS: Final[Mapping[str, Method]] = {
    "size": lambda _, items: len(items),
    "isEmpty": lambda _, items: not items,
    "get": _get,
    "set": _set,
    "add": _add,
    "addAll": _add_all,
    "remove": _remove,
    "contains": _contains,
    "indexOf": _index_of,
}
_MAP_METHODS: Final[Mapping[str, Method]] = {
    "size": lambda _, items: len(items),
    "isEmpty": lambda _, items: not items,
    "get": lambda _, items, key: items.get(key_of(key)),
    "getOrDefault": lambda _, items, key, default: items.get(key_of(key), default),
    "put": _put,
    "putAll": _put_all,
    "remove": lambda _, items, key: items.pop(key_of(key), None),
    "containsKey": lambda _, items, key: key_of(key) in items,
    "containsValue": lambda budget, items, item: _contains(budget, list(items.values()), item),
    "keySet": lambda budget, items: _copy(budget, items.keys()),
    "values": lambda budget, items: _copy(budget, items.values()),
    "entrySet": lambda budget, items: TemplateList(
        {"key": key, "value": item} for key, item in _copy(budget, items.items())
    ),
}
_ENTRY_METHODS: Final = {"getKey": "key", "getValue": "value"}
_METHODS: Final[Mapping[type, Mapping[str, Method]]] = {
    str: _TEXT_METHODS,
    list: _LIST_METHODS,
    dict: {
        **_MAP_METHODS,
        **{name: lambda _, items, key=key: items.get(key) for name, key in _ENTRY_METHODS.items()},
    },
    int: {
        "intValue": lambda _, number: int(number),
        "longValue": lambda _, number: int(number),
        "doubleValue": lambda _, number: float(number),
    },
    bool: {"booleanValue": lambda _, value: value},
}
