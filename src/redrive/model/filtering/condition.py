"""Conditions: what one value of a message must be like.

Values are JSON scalars and keep their type: the string "5" is not the number 5, and true is not 1. Numbers
compare as Python compares them, integers exactly and fractions as doubles, which is finer than the published
five digits after the point for any number up to 10⁹.
"""

from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address
from math import inf
from typing import Protocol, TypeGuard

Scalar = str | int | float | bool | None

_STEPS_OF_ADDRESS = 10  # reading one takes 3 µs


class Condition(Protocol):
    """Anything that can tell whether a value matches."""

    def matches(self, value: Scalar) -> bool:
        """True if the value will do."""
        ...


def is_number(value: Scalar) -> TypeGuard[int | float]:
    """True if the value is a JSON number; Python would count true and false among them."""
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Exactly:
    """The value equals this one and has the same JSON type."""

    value: Scalar

    def matches(self, value: Scalar) -> bool:
        """True if the values are equal and of one type."""
        return value == self.value and isinstance(value, bool) is isinstance(self.value, bool)


@dataclass(frozen=True, slots=True)
class Prefix:
    """The value is a string that begins with this."""

    text: str

    def matches(self, value: Scalar) -> bool:
        """True if the value begins with the text."""
        return isinstance(value, str) and value.startswith(self.text)


@dataclass(frozen=True, slots=True)
class Suffix:
    """The value is a string that ends with this."""

    text: str

    def matches(self, value: Scalar) -> bool:
        """True if the value ends with the text."""
        return isinstance(value, str) and value.endswith(self.text)


@dataclass(frozen=True, slots=True)
class EqualsIgnoringCase:
    """The value is this string, in any mixture of upper and lower case."""

    text: str

    def matches(self, value: Scalar) -> bool:
        """True if the value is the text but for case."""
        return isinstance(value, str) and value.lower() == self.text.lower()


@dataclass(frozen=True, slots=True)
class NumberRange:
    """The value is a number between two bounds, either of which may be infinite."""

    low: int | float = -inf  # The lower bound
    high: int | float = inf  # The upper bound
    above: bool = False  # Whether the lower bound itself is left out
    below: bool = False  # Whether the upper bound itself is left out

    def matches(self, value: Scalar) -> bool:
        """True if the value is a number within the bounds."""
        if not is_number(value) or not self.low <= value <= self.high:
            return False
        return not (self.above and value == self.low) and not (self.below and value == self.high)


@dataclass(frozen=True, slots=True)
class InNetwork:
    """The value is a string with an address in this network; any spelling of the address will do."""

    network: IPv4Network | IPv6Network

    def matches(self, value: Scalar) -> bool:
        """True if the value is an address of the network."""
        if not isinstance(value, str):
            return False
        try:
            return ip_address(value) in self.network
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class Wildcard:
    """The value is a string made of these parts in order, with anything between two neighbours.

    The parts are looked for one after the other, so that a long value costs one pass: a regular expression
    would go back and forth between them.
    """

    parts: tuple[str, ...]

    def matches(self, value: Scalar) -> bool:
        """True if the value has the parts in order, the first at its beginning and the last at its end."""
        if not isinstance(value, str):
            return False
        first, *middle = self.parts
        if not middle:
            return value == first
        last = middle.pop()
        if len(value) < len(first) + len(last) or not (value.startswith(first) and value.endswith(last)):
            return False
        return _in_order(middle, value, len(first), len(value) - len(last))


def _in_order(parts: list[str], value: str, begin: int, end: int) -> bool:
    """True if the parts stand one behind the other within `value[begin:end]`."""
    for part in parts:
        position = value.find(part, begin, end)
        if position < 0:
            return False
        begin = position + len(part)
    return True


@dataclass(frozen=True, slots=True)
class AnythingBut:
    """The value is there and none of these conditions holds for it.

    A value of another type will do: the number 5 and null are anything but "a".
    """

    conditions: tuple[Condition, ...]

    def matches(self, value: Scalar) -> bool:
        """True if none of the conditions holds."""
        return not any(condition.matches(value) for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class Present:
    """There is a value, whatever it is."""

    def matches(self, value: Scalar) -> bool:  # noqa: ARG002 - any value will do
        """True: asked of a value, it is there."""
        return True


@dataclass(frozen=True, slots=True)
class KeyTest:
    """A test of one key: some value meets some condition."""

    key: str  # Its path, with dots
    conditions: tuple[Condition, ...]  # Any of these will do
    absent: bool = False  # Also satisfied if the key is missing
    steps: int = field(init=False, compare=False)  # Cost of testing one short value (`Budget`)

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", sum(map(_steps, self.conditions)))

    def accepts(self, value: Scalar) -> bool:
        """True if some condition holds for the value."""
        return any(condition.matches(value) for condition in self.conditions)


def _steps(condition: Condition) -> int:
    """The budget's steps for testing one value."""
    match condition:
        case AnythingBut(conditions):
            return sum(map(_steps, conditions))
        case Wildcard(parts):
            return len(parts)
        case InNetwork():
            return _STEPS_OF_ADDRESS
    return 1
