"""The values of metric math: numbers, time series, and lists of time series, and what expressions make of them.

A point that one operand lacks is lacking in the result, as is what has no value: a division by zero, an overflow.
"""

import math
import operator
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Final

from redrive.aws.cloudwatch.metrics.expressions import (
    BinaryOperation,
    ExpressionError,
    FunctionCall,
    Many,
    Name,
    Node,
    Number,
    TextLiteral,
    names_in,
)
from redrive.model.budget import Budget

TimeSeries = Mapping[int, float]
"""Values by the beginnings of their periods (ms)."""
Value = float | TimeSeries | Sequence[TimeSeries]
_MS: Final = 1000
Binary = Callable[[float, float], float]
_SUMMARIES: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "AVG": statistics.fmean,
    "DATAPOINT_COUNT": lambda values: float(len(values)),
    "MAX": max,
    "MIN": min,
    "STDDEV": statistics.pstdev,
    "SUM": math.fsum,
}
_POINTWISE: Final[Mapping[str, Callable[[float], float]]] = {
    "ABS": abs,
    "CEIL": lambda value: float(math.ceil(value)),
    "FLOOR": lambda value: float(math.floor(value)),
}


@dataclass(frozen=True, slots=True)
class Computation:
    """The known values that expressions are computed from."""

    values: Mapping[str, Value]  # By the ids of queries
    metrics: Sequence[str]  # The ids of those that are metrics, for `METRICS`
    moments: Sequence[int]  # When the periods begin (ms), in order
    period_seconds: int  # How long each is
    budget: Budget = field(default_factory=Budget)  # Budget of points, spent before each is computed

    def value(self, node: Node) -> Value:
        """The value of an expression; raises ExpressionError if it has none."""
        if isinstance(node, Number):
            return node.value
        if isinstance(node, Name):
            return self._variable(node.name)
        if isinstance(node, Many):
            return [series for item in node.items for series in _several(self.value(item))]
        if isinstance(node, BinaryOperation):
            left, right = self.value(node.left), self.value(node.right)
            self._spend(left, right)
            return _combine(_OPERATORS[node.sign], left, right)
        if isinstance(node, FunctionCall):
            return self._call(node.function, node.arguments)
        raise ExpressionError(f"a string where a number is expected: {node.text}")

    def _variable(self, name: str) -> Value:
        value = self.values.get(name)
        if value is None:
            raise ExpressionError(f"{name} is not known")
        return value

    def _call(self, function: str, arguments: Sequence[Node]) -> Value:
        """The value of a function: of one argument, unless it is `METRICS`, `FILL` or `IF`."""
        if function == "METRICS":
            return self._metrics(arguments)
        if function == "FILL":
            return self._fill(*arguments)
        if function == "IF":
            return self._if(*(self.value(argument) for argument in arguments))
        (argument,) = arguments
        value = self.value(argument)
        self._spend(value)
        if function in _SUMMARIES:
            return _summary(_SUMMARIES[function], value)
        if function in _POINTWISE:
            return _each(partial(_map_values, _POINTWISE[function]), value)
        if function == "TIME_SERIES":
            self.budget.spend(len(self.moments))
            return dict.fromkeys(self.moments, _number(value, function))
        if isinstance(value, float):
            raise ExpressionError(f"{function} takes a time series")
        if function == "PERIOD":
            return float(self.period_seconds)
        return _each(partial(_ALONG[function], self.period_seconds), value)

    def _metrics(self, arguments: Sequence[Node]) -> Value:
        part = arguments[0].text if arguments and isinstance(arguments[0], TextLiteral) else ""
        values = [self.values[name] for name in self.metrics if part in name]
        return [series for value in values for series in _several(value)]

    def _fill(self, node: Node, by: Node) -> Value:
        """Series without gaps: by their last value (`REPEAT`), between neighbours (`LINEAR`), or by a value."""
        mode = by.name if isinstance(by, Name) and by.name in ("REPEAT", "LINEAR") else None
        value = self.value(node)
        self._spend(value)
        self.budget.spend(len(self.moments) * (1 if isinstance(value, float | Mapping) else len(value)))
        if mode is None:
            return _each(partial(_fill_with, self.moments, self.value(by)), value)
        fill = _repeat if mode == "REPEAT" else _interpolate
        return _each(partial(fill, self.moments), value)

    def _if(self, condition: Value, then: Value, otherwise: Value | None = None) -> Value:
        """A value for each moment by the condition's; none where the condition has none."""
        self.budget.spend(len(self.moments))
        points: dict[int, float] = {}
        for moment in self.moments:
            truth = _at(condition, moment, "the condition of IF")
            if truth is None:
                continue
            branch = then if truth else otherwise
            point = None if branch is None else _at(branch, moment, "a branch of IF")
            if point is not None:
                points[moment] = point
        return points

    def _spend(self, *values: Value) -> None:
        for value in values:
            series = () if isinstance(value, float) else _several(value)
            self.budget.spend(1 + len(series) + sum(map(len, series)))


# ---- values ----------------------------------------------------------------------------------------------------


def _several(value: Value) -> Sequence[TimeSeries]:
    if isinstance(value, float):
        raise ExpressionError("a number in a list of time series")
    return [value] if isinstance(value, Mapping) else value


def _number(value: Value, function: str) -> float:
    if not isinstance(value, float):
        raise ExpressionError(f"{function} takes a number")
    return value


def _at(value: Value, moment: int, what: str) -> float | None:
    """The value at a moment: a number is the same at all. Raises ExpressionError for a list; `what` names it."""
    if isinstance(value, float):
        return value
    if isinstance(value, Mapping):
        return value.get(moment)
    raise ExpressionError(f"{what} is a list of time series")


def _each(change: Callable[[TimeSeries], TimeSeries], value: Value) -> Value:
    if isinstance(value, float):
        return next(iter(change({0: value}).values()), math.nan)
    return change(value) if isinstance(value, Mapping) else [change(series) for series in value]


def _map_values(change: Callable[[float], float], series: TimeSeries) -> TimeSeries:
    return {at: change(value) for at, value in series.items()}


# ---- operators -------------------------------------------------------------------------------------------------


def _truth(compare: Callable[[float, float], bool]) -> Binary:
    return lambda left, right: float(compare(left, right))


_OPERATORS: Final[Mapping[str, Binary]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": math.pow,
    "<": _truth(operator.lt),
    "<=": _truth(operator.le),
    ">": _truth(operator.gt),
    ">=": _truth(operator.ge),
    "==": _truth(operator.eq),
    "!=": _truth(operator.ne),
    "AND": _truth(lambda left, right: bool(left and right)),
    "OR": _truth(lambda left, right: bool(left or right)),
}


def _compute(operate: Binary, left: float, right: float) -> float:
    """The result; not a number where it has none."""
    try:
        return operate(left, right)
    except (ArithmeticError, ValueError):
        return math.nan


def _combine(operate: Binary, left: Value, right: Value) -> Value:
    """Two values combined: as numbers, moment by moment, or for each series of a list."""
    if isinstance(left, float) and isinstance(right, float):
        return _compute(operate, left, right)
    if not isinstance(left, float | Mapping):
        return [_series(operate, series, right) for series in left]
    if not isinstance(right, float | Mapping):
        return [_series(operate, left, series) for series in right]
    return _series(operate, left, right)


def _series(operate: Binary, left: Value, right: Value) -> TimeSeries:
    """The results of an operator at the moments that both series have; a number counts at each. Not finite: left out."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        pairs = {at: (value, right[at]) for at, value in left.items() if at in right}
    elif isinstance(left, Mapping) and isinstance(right, float):
        pairs = {at: (value, right) for at, value in left.items()}
    elif isinstance(left, float) and isinstance(right, Mapping):
        pairs = {at: (left, value) for at, value in right.items()}
    else:
        raise ExpressionError("an operator between two lists")
    results = {at: _compute(operate, *pair) for at, pair in pairs.items()}
    return {at: value for at, value in results.items() if math.isfinite(value)}


# ---- functions -------------------------------------------------------------------------------------------------


def _summary(summarize: Callable[[Sequence[float]], float], value: Value) -> Value:
    """Of a series one number; of several a series, moment by moment, of those that have a point there."""
    if isinstance(value, float):
        return summarize([value])
    if isinstance(value, Mapping):
        points = list(value.values())  # of no points only the count is a number
        return summarize(points) if points or summarize is _SUMMARIES["DATAPOINT_COUNT"] else math.nan
    by_moment: dict[int, list[float]] = {}
    for series in value:
        for at, point in series.items():
            by_moment.setdefault(at, []).append(point)
    return {at: summarize(by_moment[at]) for at in sorted(by_moment)}


def _differences(_: int, series: TimeSeries) -> TimeSeries:
    moments = sorted(series)
    return {at: series[at] - series[before] for before, at in pairwise(moments)}


def _rates(_: int, series: TimeSeries) -> TimeSeries:
    moments = sorted(series)
    return {at: (series[at] - series[before]) / ((at - before) / _MS) for before, at in pairwise(moments)}


def _running_sums(_: int, series: TimeSeries) -> TimeSeries:
    total, sums = 0.0, {}
    for at in sorted(series):
        total += series[at]
        sums[at] = total
    return sums


_ALONG: Final[Mapping[str, Callable[[int, TimeSeries], TimeSeries]]] = {
    "DIFF": _differences,
    "RATE": _rates,
    "RUNNING_SUM": _running_sums,
}


def _fill_with(moments: Sequence[int], by: Value, series: TimeSeries) -> TimeSeries:
    fill = {moment: _at(by, moment, "the second argument of FILL") for moment in moments}
    return {**{at: value for at, value in fill.items() if value is not None}, **series}


def _repeat(moments: Sequence[int], series: TimeSeries) -> TimeSeries:
    """A series with the last value before it at each moment that has none."""
    last, result = None, dict(series)
    for moment in moments:
        last = series.get(moment, last)
        if last is not None:
            result[moment] = last
    return result


def _interpolate(moments: Sequence[int], series: TimeSeries) -> TimeSeries:
    """Fill between two points; before the first and after the last nothing is known."""
    result, values = dict(series), sorted(series)
    for before, after in pairwise(values):
        slope = (series[after] - series[before]) / (after - before)
        for moment in moments[bisect_right(moments, before) : bisect_left(moments, after)]:
            result[moment] = series[before] + slope * (moment - before)
    return result


def in_order(expressions: Mapping[str, Node], values: Collection[str]) -> list[str]:
    """The ids of expressions, each behind those that it names; `values` are the ids of other queries.

    Raises:
        ExpressionError: An expression names what is not there, or itself by way of others.
    """
    remaining = {name: set(names_in(node)) for name, node in expressions.items()}
    for name, names in remaining.items():
        if unknown := sorted(names - set(values) - set(expressions)):
            raise ExpressionError(f"Error in expression '{name}': {unknown[0]} is not known")
    result: list[str] = []
    while remaining:
        ready = [name for name, names in remaining.items() if not names & remaining.keys()]
        if not ready:
            raise ExpressionError(f"Error in expression '{min(remaining)}': it depends on itself")
        result += ready
        for name in ready:
            del remaining[name]
    return result


def compute_values(
    expressions: Mapping[str, Node],
    metrics: Mapping[str, TimeSeries],
    moments: Sequence[int],
    period_seconds: int,
    budget: Budget,
) -> dict[str, Value]:
    """The values of metrics and of expressions on them, by their ids, of periods that begin at `moments` (ms).

    The budget is of points.

    Raises:
        ExpressionError: An expression has no value; the text names it.
        OverBudgetError: They have more points than they may.
    """
    values: dict[str, Value] = dict(metrics)
    for name in in_order(expressions, metrics):
        computation = Computation(values, list(metrics), moments, period_seconds, budget)
        try:
            values[name] = computation.value(expressions[name])
        except ExpressionError as invalid:
            raise ExpressionError(f"Error in expression '{name}': {invalid}") from None
    return values
