"""Queries with expressions: in which order they are computed, and what of."""

from collections.abc import Collection, Mapping, Sequence

from redrive.aws.cloudwatch.metrics.expressions import ExpressionError, Node, names_in
from redrive.aws.cloudwatch.metrics.metric_math import Computation, TimeSeries, Value
from redrive.model.budget import Budget


def in_order(expressions: Mapping[str, Node], known: Collection[str]) -> list[str]:
    """The ids of expressions, each behind those that it names.

    Args:
        expressions: By their ids.
        known: The ids of other queries.

    Raises:
        ExpressionError: An expression names what is not there, or itself by way of others.
    """
    left = {name: set(names_in(node)) for name, node in expressions.items()}
    for name, query in left.items():
        if unknown := sorted(query - set(known) - set(expressions)):
            raise ExpressionError(f"Error in expression '{name}': {unknown[0]} is not known")
    ordered: list[str] = []
    while left:
        free = [name for name, query in left.items() if not query & left.keys()]
        if not free:
            raise ExpressionError(f"Error in expression '{min(left)}': it depends on itself")
        ordered += free
        for name in free:
            del left[name]
    return ordered


def computed(
    expressions: Mapping[str, Node],
    metrics: Mapping[str, TimeSeries],
    moments: Sequence[int],
    period_seconds: int,
    budget: Budget,
) -> dict[str, Value]:
    """The values of metrics and of expressions on them, by their ids.

    Args:
        expressions: By their ids.
        metrics: What the queries of metrics found, by their ids.
        moments: When the periods begin (ms), in order.
        period_seconds: How long each is.
        budget: Of points.

    Raises:
        ExpressionError: An expression has no value; the text names it.
        OverBudgetError: They have more points than they may.
    """
    known: dict[str, Value] = dict(metrics)
    for name in in_order(expressions, metrics):
        computation = Computation(known, list(metrics), moments, period_seconds, budget)
        try:
            known[name] = computation.value(expressions[name])
        except ExpressionError as invalid:
            raise ExpressionError(f"Error in expression '{name}': {invalid}") from None
    return known
