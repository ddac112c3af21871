"""Values of templates: Java's view of strings, numbers, lists and maps, which are Python's own here."""

from typing import Any, Final, Self, TypeAlias

import orjson
from typing_extensions import override

from redrive.aws.kit.java import java_double
from redrive.model.budget import Budget

Value: TypeAlias = Any
"""None, bool, int, float, str, list, dict, or an object with its own methods."""

_LONG_BITS: Final = 64
_LONG_END: Final = 1 << 63
_DEPTH_MAX: Final = 100


class TemplateFailed(Exception):  # noqa: N818 - a refusal
    """A template cannot be read or rendered; the text says why."""


class TemplateList(list[Value]):
    """A list that a template created. Its text is that of Java's lists; the text of a list of a body is JSON."""

    __slots__ = ()


class EmptyBody(str):
    """The body of a request without one: its text is `{}`, but it equals the empty text, too (both recorded)."""

    __slots__ = ()

    def __new__(cls) -> Self:
        """The one value there is."""
        return super().__new__(cls, "{}")

    @override
    def __eq__(self, other: object) -> bool:
        return other in ("", str(self))

    @override
    def __hash__(self) -> int:
        return super().__hash__()


class HostObject:
    """An object of the server in a template: `$input`, `$util`. A base class is faster to check than a protocol."""

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
    """The text of a value, as Java's `toString` writes it; empty for null.

    A list of a body is written as JSON (recorded).
    """
    if isinstance(value, str):
        return value
    budget.spend()
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return java_double(value)
    if depth > _DEPTH_MAX:
        raise TemplateFailed("A value is nested too deeply")
    if isinstance(value, dict):
        inner = (f"{key}={_inner(budget, item, depth)}" for key, item in value.items())
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, TemplateList):
        return "[" + ", ".join(_inner(budget, item, depth) for item in value) + "]"
    if isinstance(value, list):
        return _json(budget, value, depth)
    return value.text(budget) if isinstance(value, HostObject) else ""


def _inner(budget: Budget, value: Value, depth: int) -> str:
    """The text of a value in a list or a map, paid for as often as it occurs."""
    text = "null" if value is None else text_of(budget, value, depth + 1)
    budget.spend_chars(len(text))
    return text


def _json(budget: Budget, value: Value, depth: int) -> str:
    """A value as JSON, with numbers as Java writes them."""
    if depth > _DEPTH_MAX:
        raise TemplateFailed("A value is nested too deeply")
    if isinstance(value, list):
        text = f"[{','.join(_json(budget, item, depth + 1) for item in value)}]"
    elif isinstance(value, dict):
        members = (f"{_quoted(key)}:{_json(budget, item, depth + 1)}" for key, item in value.items())
        text = f"{{{','.join(members)}}}"
    elif isinstance(value, str):
        text = _quoted(value)
    else:
        text = "null" if value is None else text_of(budget, value)
    budget.spend()
    budget.spend_chars(len(text))
    return text


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()


def is_true(value: Value) -> bool:
    """True unless a value is null, false, zero or empty, as in Velocity 2."""
    if value is None or value is False:
        return False
    return bool(value) if isinstance(value, str | list | dict | int | float) else True


def equal(budget: Budget, left: Value, right: Value, depth: int = 0) -> bool:
    """True if two values are equal; a number and its text are, as in Velocity."""
    budget.spend()
    if depth > _DEPTH_MAX:
        raise TemplateFailed("A value is nested too deeply")
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(
            equal(budget, *pair, depth + 1) for pair in zip(left, right, strict=True)
        )
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
        left_text, right_text = text_of(budget, left), text_of(budget, right)
        budget.spend_chars(len(left_text) + len(right_text))
        return left_text + right_text
    return calculate("+", left, right)


def calculate(operator: str, left: Value, right: Value) -> Value:
    """A sum, difference, product, quotient or remainder, with the overflow of Java's longs; null if one is no number."""
    if not (_is_number(left) and _is_number(right)):
        return None
    is_integer = isinstance(left, int) and isinstance(right, int)
    if operator in "/%" and not right:
        return None
    try:
        match operator:
            case "+":
                result = left + right
            case "-":
                result = left - right
            case "*":
                result = left * right
            case "/" if is_integer:  # towards zero, as Java divides
                quotient = abs(left) // abs(right)
                result = quotient if (left < 0) == (right < 0) else -quotient
            case "/":
                result = left / right
            case _:  # with the sign of the dividend, as in Java
                result = abs(left) % abs(right) * (-1 if left < 0 else 1)
    except OverflowError:
        return None
    return _as_long(result) if is_integer else result


def _as_long(number: int) -> int:
    return (number + _LONG_END) % (1 << _LONG_BITS) - _LONG_END


def compare(operator: str, left: Value, right: Value) -> bool:
    """The result of `<`, `<=`, `>` or `>=`; false for values that have no order."""
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


# ---- members and indexes ---------------------------------------------------------------------------------------------


def member(value: Value, name: str) -> Value:
    """The property of a value: of a map the value of a key; null if there is none."""
    if isinstance(value, dict):
        return value.get(name)
    return value.member(name) if isinstance(value, HostObject) else None


def element(value: Value, index: Value) -> Value:
    """The element at an index, or the value of a key; null if there is none."""
    if isinstance(value, list) and isinstance(index, int):
        return value[index] if 0 <= index < len(value) else None
    if isinstance(value, dict):
        return value.get(key_of(index))
    return value.member(index) if isinstance(value, HostObject) and isinstance(index, str) else None


def put(value: Value, index: Value, item: Value) -> None:
    """Put an element at an index, or a value under a key; does nothing if the index is out of bounds."""
    if isinstance(value, dict):
        value[key_of(index)] = item
    elif isinstance(value, list) and isinstance(index, int) and 0 <= index < len(value):
        value[index] = item


def key_of(value: Value) -> str:
    """A value as a key of a map, which is always a text."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return java_double(value)
    if value is None or isinstance(value, bool | int):
        return str(value)
    raise TemplateFailed("A list or a map cannot be a key")
