"""The nineteen operators of Event Grid's advanced filters, each on the value that an event has under a key.

Four things tell them apart: which values they compare, how, whether they ask for a match or for none, and what
an event without the key is to them ("Understand event filtering for Event Grid subscriptions"):

    operator                                    compares   an event without the key
    NumberIn, NumberLessThan … NumberInRange    numbers    does not pass
    NumberNotIn, NumberNotInRange               numbers    passes
    BoolEquals                                  booleans   does not pass
    StringIn, StringContains, …BeginsWith …     texts      does not pass
    StringNotIn                                 texts      passes
    StringNotContains, …NotBeginsWith …         texts      does not pass, as published
    IsNullOrUndefined, IsNotNull                -          passes; does not pass

Texts are compared without regard to case. NumberNotInRange without a key is not published; it goes with NumberNotIn.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from redrive.model.errors import RedriveError

Scalar = str | int | float
Holds = Callable[[Any], bool]


class EventFilterInvalid(RedriveError):  # noqa: N818 - an answer, named as a caller says it
    """A filter that Event Grid would refuse; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One operator with its operand."""

    # A value in the form that is compared; None: a value of another kind, which never matches.
    comparable: Callable[[object], Scalar | None]
    holds: Holds  # Whether such a value matches the operand
    negated: bool = False  # No value may match, where otherwise one has to
    passes_without: bool = False  # Result for an event without the key

    def accepts(self, value: object) -> bool:
        """True if a single value passes."""
        comparable = self.comparable(value)
        return comparable is not None and self.holds(comparable) != self.negated

    def accepts_any(self, values: Sequence[object]) -> bool:
        """True if an array passes; elements of another kind are passed over."""
        comparables = (self.comparable(value) for value in values)
        return any(self.holds(value) for value in comparables if value is not None) != self.negated


def read_comparison(operator: str, members: Mapping[str, Any]) -> Comparison:
    """The comparison that an advanced filter asks for.

    Args:
        operator: Its `operatorType`; names are read without regard to case.
        members: The filter as written, with its `value` or `values`.

    Raises:
        EventFilterInvalid: There is no such operator, or it does not compare with such operands.
    """
    reader = _OPERATORS.get(operator.lower())
    if reader is None:
        raise EventFilterInvalid(f"'{operator}' is not an operator of advanced filters")
    return reader(operator, members)


# ---- values ------------------------------------------------------------------------------------------------------


def _number(value: object) -> Scalar | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _flag(value: object) -> Scalar | None:
    return value if isinstance(value, bool) else None


def _text(value: object) -> Scalar | None:
    return value.lower() if isinstance(value, str) else None


# ---- operands ----------------------------------------------------------------------------------------------------


def _values_of(operator: str, members: Mapping[str, Any]) -> list[Any]:
    values = members.get("values")
    if not isinstance(values, list) or not values:
        raise EventFilterInvalid(f"{operator} needs a list of values")
    return values


def _read_operands(
    operator: str, values: Sequence[object], comparable: Callable[[object], Scalar | None]
) -> list[Scalar]:
    operands = [comparable(value) for value in values]
    if None in operands:
        raise EventFilterInvalid(f"{operator} does not compare with {values[operands.index(None)]!r}")
    return [value for value in operands if value is not None]


def _membership(comparable: Callable[[object], Scalar | None], *, negated: bool) -> Callable[..., Comparison]:
    """A reader of operators with a list of values, of which one (negated: none) must equal the event's."""

    def reader(operator: str, members: Mapping[str, Any]) -> Comparison:
        values = frozenset(_read_operands(operator, _values_of(operator, members), comparable))
        return Comparison(comparable, values.__contains__, negated, passes_without=negated)

    return reader


def _bound(compare: Callable[[Any, Any], bool]) -> Callable[..., Comparison]:
    """A reader of operators with one number, which `compare` compares the event's with."""

    def reader(operator: str, members: Mapping[str, Any]) -> Comparison:
        (bound,) = _read_operands(operator, [members.get("value")], _number)
        return Comparison(_number, lambda value: compare(value, bound))

    return reader


def _ranges(*, negated: bool) -> Callable[..., Comparison]:
    """A reader of operators with a list of ranges, in one (negated: none) of which the event's number must lie."""

    def reader(operator: str, members: Mapping[str, Any]) -> Comparison:
        ranges = [_range(operator, pair) for pair in _values_of(operator, members)]
        return Comparison(
            _number,
            lambda value: any(low <= value <= high for low, high in ranges),
            negated,
            passes_without=negated,
        )

    return reader


def _range(operator: str, pair: object) -> tuple[Any, Any]:
    if not isinstance(pair, list) or len(pair) != 2:  # noqa: PLR2004 - from and to
        raise EventFilterInvalid(f"{operator} needs pairs of numbers")
    low, high = _read_operands(operator, pair, _number)
    return low, high


def _flag_equals(operator: str, members: Mapping[str, Any]) -> Comparison:
    (flag,) = _read_operands(operator, [members.get("value")], _flag)
    return Comparison(_flag, lambda value: value is flag)


def _text_parts(holds: Callable[[str, str], bool], *, negated: bool) -> Callable[..., Comparison]:
    """A reader of operators with a list of texts, for one (negated: none) of which `holds` must be true."""

    def reader(operator: str, members: Mapping[str, Any]) -> Comparison:
        parts = [str(part) for part in _read_operands(operator, _values_of(operator, members), _text)]
        return Comparison(_text, lambda value: any(holds(value, part) for part in parts), negated)

    return reader


_OPERATORS: Final[Mapping[str, Callable[[str, Mapping[str, Any]], Comparison]]] = {
    "numberin": _membership(_number, negated=False),
    "numbernotin": _membership(_number, negated=True),
    "numberlessthan": _bound(lambda value, bound: value < bound),
    "numberlessthanorequals": _bound(lambda value, bound: value <= bound),
    "numbergreaterthan": _bound(lambda value, bound: value > bound),
    "numbergreaterthanorequals": _bound(lambda value, bound: value >= bound),
    "numberinrange": _ranges(negated=False),
    "numbernotinrange": _ranges(negated=True),
    "boolequals": _flag_equals,
    "stringin": _membership(_text, negated=False),
    "stringnotin": _membership(_text, negated=True),
    "stringcontains": _text_parts(lambda value, part: part in value, negated=False),
    "stringnotcontains": _text_parts(lambda value, part: part in value, negated=True),
    "stringbeginswith": _text_parts(str.startswith, negated=False),
    "stringnotbeginswith": _text_parts(str.startswith, negated=True),
    "stringendswith": _text_parts(str.endswith, negated=False),
    "stringnotendswith": _text_parts(str.endswith, negated=True),
}
