"""Values of Logs Insights: how they compare, are calculated with, and are shown, and the functions of them."""

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from redrive.model.budget import Budget

Value = str | float | bool | None

#: Of a query, while events are read, and again for what is made of all of them: 2 s of a processor beside the event loop.
STEPS_MAX: Final = 4_000_000
_CHARS_PER_STEP: Final = 16  # of texts, which are kept: 64 million characters


class Fields(dict[str, Value]):
    """The fields of one row.

    Attributes:
        budget: What the query may still do.
    """

    __slots__ = ("budget",)

    def __init__(self, fields: Mapping[str, Value], budget: Budget) -> None:
        super().__init__(fields)
        self.budget = budget

    def spend(self, *values: Value) -> None:
        """Pay for what is made of these values; raises OverBudgetError if the query's budget is spent."""
        chars = sum(len(value) for value in values if isinstance(value, str))
        self.budget.spend(1 + chars // _CHARS_PER_STEP)


Compute = Callable[[Fields], Value]


def moment_text(at: float) -> str:
    """A moment as Insights shows it."""
    ms = int(at)
    return f"{datetime.fromtimestamp(ms // 1000, UTC):%Y-%m-%d %H:%M:%S}.{ms % 1000:03d}"


def unquoted(text: str) -> str:
    """A text without its quotes."""
    return re.sub(r"\\(.)", r"\1", text[1:-1])


def nought(_: Fields) -> Value:
    """0, of any row."""
    return 0.0


def number_of(value: Value) -> float | None:
    """A value as a number; None if it is not one."""
    if isinstance(value, int | float):
        return float(value)
    try:
        number = float(value) if value else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def text_of(value: Value) -> str:
    """A value as text; numbers without needless decimals."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:  # noqa: PLR2004 - as far as doubles count
        return str(int(value))
    return "" if value is None else str(value)


COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def comparison(sign: str, left: Compute, right: Compute) -> Compute:
    """The comparison of two expressions: as numbers where both are, else as texts."""
    compare = COMPARISONS[sign]

    def compare_row(row: Fields) -> bool:
        one, other = left(row), right(row)
        if one is None or other is None:
            return sign == "!=" and one is not other
        numbers = number_of(one), number_of(other)
        if None not in numbers:
            return compare(*numbers)
        return compare(text_of(one), text_of(other))

    return compare_row


def contains(left: Compute, quoted: str) -> Compute:
    """True if a text stands in the value."""
    phrase = unquoted(quoted)
    return lambda row: (value := left(row)) is not None and phrase in text_of(value)


def matches(left: Compute, pattern: Any) -> Compute:
    """True if an expression of RE2 finds anything in the value."""
    return lambda row: (value := left(row)) is not None and pattern.search(text_of(value)) is not None


_ARITHMETIC: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": math.fmod,
    "^": math.pow,
}


def calculate(first: Compute, others: Sequence[tuple[str, Compute]], row: Fields) -> Value:
    """The result of operators one after the other; None if it has none."""
    total = number_of(first(row))
    for sign, operand in others:
        number = number_of(operand(row))
        if total is None or number is None:
            return None
        try:
            total = _ARITHMETIC[sign](total, number)
        except (ArithmeticError, ValueError):
            return None
    return total if total is not None and math.isfinite(total) else None


def _of_number(compute: Callable[[float], float]) -> Callable[[Value], Value]:
    """A function of values by one of numbers; of no number it is None."""

    def computed(value: Value) -> Value:
        number = number_of(value)
        return None if number is None else compute(number)

    return computed


def _of_text(compute: Callable[[str], Value]) -> Callable[[Value], Value]:
    return lambda value: None if value is None else compute(text_of(value))


def _first_there(*values: Value) -> Value:
    return next((value for value in values if value is not None), None)


_ANY: Final = range(1, 20)
FUNCTIONS: Final[Mapping[str, tuple[Sequence[int], Callable[..., Value]]]] = {
    "abs": ((1,), _of_number(abs)),
    "ceil": ((1,), _of_number(math.ceil)),
    "coalesce": (_ANY, _first_there),
    "concat": (_ANY, lambda *values: "".join(map(text_of, values))),
    "floor": ((1,), _of_number(math.floor)),
    "isblank": ((1,), lambda value: not text_of(value).strip()),
    "isempty": ((1,), lambda value: not text_of(value)),
    "ispresent": ((1,), lambda value: value is not None),
    "strcontains": ((2,), lambda text, part: text_of(part) in text_of(text)),
    "strlen": ((1,), _of_text(lambda text: float(len(text)))),
    "tolower": ((1,), _of_text(str.lower)),
    "toupper": ((1,), _of_text(str.upper)),
    "trim": ((1,), _of_text(str.strip)),
}
