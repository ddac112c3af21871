"""Values of templates: Java's view of strings, numbers, lists and maps, which are Python's own here."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import re2

from redrive.protocols.aws.apigateway.velocity.budget import Budget, TemplateFailed

Value: TypeAlias = Any
"""None, bool, int, float, str, list, dict, or an object with methods of its own."""

_LONG_BITS: Final = 64
_LONG_END: Final = 1 << 63
_DEPTH_MAX: Final = 100


class HostObject:
    """An object that templates are given: `$input`, `$util`. To tell it by its class takes no time."""

    __slots__ = ()

    def member(self, name: str) -> Value:  # noqa: ARG002 - of those that have some
        """A property; None: there is none."""
        return None

    def call(self, budget: Budget, name: str, arguments: list[Value]) -> Value:
        """The answer of a method."""
        raise NotImplementedError

    def text(self, budget: Budget) -> str:  # noqa: ARG002 - as overridden
        """The text in the place of the object itself: nothing."""
        return ""


def text_of(budget: Budget, value: Value, depth: int = 0) -> str:
    """The text of a value, as Java's `toString` writes it; nothing for null."""
    if isinstance(value, str):
        return value
    budget.spend()
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if depth > _DEPTH_MAX:
        raise TemplateFailed("A value is nested too deeply")
    if isinstance(value, dict):
        inner = (f"{key}={_inner(budget, item, depth)}" for key, item in value.items())
        return budget.text("{" + ", ".join(inner) + "}")
    if isinstance(value, list):
        return budget.text("[" + ", ".join(_inner(budget, item, depth) for item in value) + "]")
    if isinstance(value, HostObject):
        return budget.text(value.text(budget))
    return ""


def _inner(budget: Budget, value: Value, depth: int) -> str:
    return "null" if value is None else text_of(budget, value, depth + 1)


def is_true(value: Value) -> bool:
    """True unless a value is null, false, zero, or empty: what Velocity 2 takes for false."""
    if value is None or value is False:
        return False
    return bool(value) if isinstance(value, str | list | dict | int | float) else True


def equal(budget: Budget, left: Value, right: Value, depth: int = 0) -> bool:
    """True if two values are equal; a number and its text are, as in Velocity."""
    budget.spend()
    if depth > _DEPTH_MAX:
        raise TemplateFailed("A value is nested too deeply")
    if isinstance(left, list) and isinstance(right, list):
        pairs = zip(left, right, strict=True) if len(left) == len(right) else None
        return pairs is not None and all(equal(budget, *pair, depth + 1) for pair in pairs)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            equal(budget, item, right[key], depth + 1) for key, item in left.items()
        )
    if isinstance(left, list | dict) or isinstance(right, list | dict):
        return False
    if type(left) is type(right) or (_is_number(left) and _is_number(right)):
        return bool(left == right)
    if left is None or right is None:
        return False
    return text_of(budget, left) == text_of(budget, right)


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# ---- operators -------------------------------------------------------------------------------------------------------


def add(budget: Budget, left: Value, right: Value) -> Value:
    """The sum of numbers, or texts one after the other."""
    if isinstance(left, str) or isinstance(right, str):
        budget.spend((len(left) if isinstance(left, str) else 0) // 64)
        return budget.text(text_of(budget, left) + text_of(budget, right))
    return calculated("+", left, right)


def calculated(operator: str, left: Value, right: Value) -> Value:
    """A sum, difference, product, quotient or remainder, as long as Java's longs; null of what is no number."""
    if not (_is_number(left) and _is_number(right)):
        return None
    whole = isinstance(left, int) and isinstance(right, int)
    if operator in "/%" and not right:
        return None
    try:
        match operator:
            case "+":
                made = left + right
            case "-":
                made = left - right
            case "*":
                made = left * right
            case "/":  # towards zero, as Java divides
                made = (
                    abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
                    if whole
                    else left / right
                )
            case _:
                made = abs(left) % abs(right) * (-1 if left < 0 else 1)
    except OverflowError:
        return None
    return _as_long(made) if whole else made


def _as_long(number: int) -> int:
    return (number + _LONG_END) % (1 << _LONG_BITS) - _LONG_END


def compared(operator: str, left: Value, right: Value) -> bool:
    """The answer of `<`, `<=`, `>` or `>=`; false of values that have no order."""
    if not ((_is_number(left) and _is_number(right)) or (isinstance(left, str) and isinstance(right, str))):
        return False
    match operator:
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case _:
            return bool(left >= right)


# ---- members, indexes and methods ------------------------------------------------------------------------------------


def member(value: Value, name: str) -> Value:
    """The property of a value: of a map the value of a key; null where there is none."""
    if isinstance(value, dict):
        return value.get(name)
    return value.member(name) if isinstance(value, HostObject) else None


def element(value: Value, index: Value) -> Value:
    """The element at an index, or the value of a key; null where there is none."""
    if isinstance(value, list) and isinstance(index, int):
        return value[index] if 0 <= index < len(value) else None
    if isinstance(value, dict):
        return value.get(_key(index))
    return value.member(index) if isinstance(value, HostObject) and isinstance(index, str) else None


def put(value: Value, index: Value, item: Value) -> None:
    """Put an element in its place, or a value under its key; nothing where there is no such place."""
    if isinstance(value, dict):
        value[_key(index)] = item
    elif isinstance(value, list) and isinstance(index, int) and 0 <= index < len(value):
        value[index] = item


def _key(value: Value) -> str:
    """The key that a value is, which is a text in JSON."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool | int | float):
        return str(value)
    raise TemplateFailed("A list or a map is no key")


def called(budget: Budget, value: Value, name: str, arguments: list[Value]) -> Value:
    """The answer of a method; null of one that is not there.

    Raises:
        TemplateFailed: Its arguments are none of its.
    """
    budget.spend()
    if isinstance(value, HostObject):
        return value.call(budget, name, arguments)
    found = _METHODS.get(_kind(value), {}).get(name) or _OF_ALL.get(name)
    if found is None:
        return None
    budget.spend(len(value) // 64 if isinstance(value, str | list | dict) else 0)
    try:
        made = found(budget, value, *arguments)
    except (TypeError, AttributeError, ValueError, IndexError, KeyError) as error:
        raise TemplateFailed(f"{name}: {error}") from None
    return budget.text(made) if isinstance(made, str) else made


def _kind(value: Value) -> type:
    if isinstance(value, bool):
        return bool
    if isinstance(value, int | float):
        return int
    return type(value)


Method: TypeAlias = Callable[..., Value]
_GROUP: Final = re.compile(r"\$(\d)")


def _matches(_: Budget, text: str, pattern: str) -> bool:
    return _compiled(pattern).fullmatch(text) is not None


def _compiled(pattern: str) -> Any:
    try:
        return re2.compile(pattern)
    except re2.error:
        raise TemplateFailed(f"{pattern} is no regular expression") from None


def _replaced(budget: Budget, text: str, old: str, new: str, count: int = -1) -> str:
    budget.spend((len(text) + text.count(old) * len(new)) // 64)
    return text.replace(old, new, count)


def _replaced_all(budget: Budget, text: str, pattern: str, new: str, count: int = 0) -> str:
    def expanded(found: Any) -> str:
        budget.spend()
        made = _GROUP.sub(lambda group: _group(found, int(group[1])), new)
        return budget.text(made)

    return str(_compiled(pattern).sub(expanded, text, count=count))


def _group(found: Any, number: int) -> str:
    """The text of a group of a match."""
    if number > found.re.groups:
        raise TemplateFailed(f"No group {number}")
    return found[number] or ""


def _split(budget: Budget, text: str, pattern: str) -> list[str]:
    parts: list[str] = [part or "" for part in _compiled(pattern).split(text)]
    while len(parts) > 1 and not parts[-1]:  # as Java leaves them out
        parts.pop()
    budget.spend(len(parts))
    return parts


def _substring(_: Budget, text: str, begin: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= begin <= end <= len(text):
        raise TemplateFailed("substring: the index is out of bounds")
    return text[begin:end]


def _appended(_: Budget, items: list[Value], *given: Value) -> bool:
    if len(given) == 1:
        items.append(given[0])
    else:
        items.insert(*given)
    return True


def _set(_: Budget, items: list[Value], index: int, item: Value) -> Value:
    before, items[index] = items[index], item
    return before


def _removed(budget: Budget, items: list[Value], index: Value) -> Value:
    if isinstance(index, int):
        return items.pop(index)
    found = _index_of(budget, items, index)
    if found >= 0:
        del items[found]
    return found >= 0


def _extended(budget: Budget, items: list[Value], others: list[Value]) -> bool:
    budget.spend(len(others))
    items.extend(others)
    return True


def _put_all(budget: Budget, items: dict[str, Value], others: Mapping[str, Value]) -> None:
    budget.spend(len(others))
    items.update(others)


def _put(_: Budget, items: dict[str, Value], key: Value, item: Value) -> Value:
    before = items.get(_key(key))
    items[_key(key)] = item
    return before


def _copied(budget: Budget, items: Any) -> list[Value]:
    budget.spend(len(items))
    return list(items)


def _contains(budget: Budget, items: list[Value], item: Value) -> bool:
    return any(equal(budget, each, item) for each in items)


def _index_of(budget: Budget, items: list[Value], item: Value) -> int:
    return next((at for at, each in enumerate(items) if equal(budget, each, item)), -1)


_OF_ALL: Final[Mapping[str, Method]] = {
    "toString": text_of,
    "equals": lambda budget, value, other: type(value) is type(other) and equal(budget, value, other),
}
_OF_TEXTS: Final[Mapping[str, Method]] = {
    "length": lambda _, text: len(text),
    "isEmpty": lambda _, text: not text,
    "isBlank": lambda _, text: not text.strip(),
    "contains": lambda _, text, part: part in text,
    "startsWith": lambda _, text, part: text.startswith(part),
    "endsWith": lambda _, text, part: text.endswith(part),
    "indexOf": lambda _, text, part, *begin: text.find(part, *begin),
    "lastIndexOf": lambda _, text, part: text.rfind(part),
    "substring": _substring,
    "charAt": lambda _, text, index: text[index],
    "toUpperCase": lambda _, text: text.upper(),
    "toLowerCase": lambda _, text: text.lower(),
    "trim": lambda _, text: text.strip(),
    "concat": lambda _, text, other: text + other,
    "replace": _replaced,
    "replaceAll": _replaced_all,
    "replaceFirst": lambda budget, text, pattern, new: _replaced_all(budget, text, pattern, new, 1),
    "matches": _matches,
    "split": _split,
    "equalsIgnoreCase": lambda _, text, other: isinstance(other, str) and text.lower() == other.lower(),
    "compareTo": lambda _, text, other: (text > other) - (text < other),
    "hashCode": lambda _, text: len(text),
}
_OF_LISTS: Final[Mapping[str, Method]] = {
    "size": lambda _, items: len(items),
    "isEmpty": lambda _, items: not items,
    "get": lambda _, items, index: items[index],
    "set": _set,
    "add": _appended,
    "addAll": _extended,
    "remove": _removed,
    "contains": _contains,
    "indexOf": _index_of,
}
_OF_MAPS: Final[Mapping[str, Method]] = {
    "size": lambda _, items: len(items),
    "isEmpty": lambda _, items: not items,
    "get": lambda _, items, key: items.get(_key(key)),
    "getOrDefault": lambda _, items, key, otherwise: items.get(_key(key), otherwise),
    "put": _put,
    "putAll": _put_all,
    "remove": lambda _, items, key: items.pop(_key(key), None),
    "containsKey": lambda _, items, key: _key(key) in items,
    "containsValue": lambda budget, items, item: _contains(budget, list(items.values()), item),
    "keySet": lambda budget, items: _copied(budget, items.keys()),
    "values": lambda budget, items: _copied(budget, items.values()),
    "entrySet": lambda budget, items: [
        {"key": key, "value": item} for key, item in _copied(budget, items.items())
    ],
}
_OF_ENTRIES: Final = {"getKey": "key", "getValue": "value"}
_METHODS: Final[Mapping[type, Mapping[str, Method]]] = {
    str: _OF_TEXTS,
    list: _OF_LISTS,
    dict: {
        **_OF_MAPS,
        **{name: lambda _, items, at=at: items.get(at) for name, at in _OF_ENTRIES.items()},
    },
    int: {
        "intValue": lambda _, number: int(number),
        "longValue": lambda _, number: int(number),
        "doubleValue": lambda _, number: float(number),
    },
    bool: {"booleanValue": lambda _, truth: truth},
}
