"""Statistics by their names: what `Average` or `p99.9` is of a period's samples."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from redrive.model.metric import Statistics, ValueCount


@dataclass(frozen=True, slots=True)
class Measured:
    """One period of one metric.

    Attributes:
        at: When it begins (ms).
        unit: CloudWatch's.
        statistics: Of all its samples.
        values: The values of the samples whose senders gave values, smallest first.
    """

    at: int
    unit: str
    statistics: Statistics
    values: Sequence[ValueCount] = ()


BASIC: Final[dict[str, Callable[[Statistics], float]]] = {
    "SampleCount": lambda kept: kept.samples,
    "Average": lambda kept: kept.average,
    "Sum": lambda kept: kept.total,
    "Minimum": lambda kept: kept.least,
    "Maximum": lambda kept: kept.greatest,
}
_PERCENTILE: Final = re.compile(r"p(100(\.0*)?|[0-9]{1,2}(\.[0-9]{0,10})?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Statistic:
    """One statistic.

    Attributes:
        name: As it was asked for.
        percent: Which percentile; None for a basic one.
    """

    name: str
    percent: float | None = None

    def of(self, measured: Measured) -> float | None:
        """The value of the statistic; None where the period's samples do not tell."""
        if self.percent is None:
            return BASIC[self.name](measured.statistics)
        return _percentile(self.percent, measured)


def statistic(name: str) -> Statistic | None:
    """The statistic of that name; None where there is none, or none that Redrive knows (`tm90`, `IQM`, `PR` …)."""
    if name in BASIC:
        return Statistic(name)
    found = _PERCENTILE.fullmatch(name)
    return None if found is None else Statistic(name, float(found[1]))


def _percentile(percent: float, measured: Measured) -> float | None:
    """The smallest value that so many percent of the samples do not exceed.

    Where some samples are known by their sum alone, there is none, as CloudWatch has it; unless all are equal.
    """
    kept = measured.statistics
    if kept.least == kept.greatest:
        return kept.least
    known = sum(value.samples for value in measured.values)
    if known < kept.samples * (1 - 1e-9):  # counts may be fractions
        return None
    wanted = known * percent / 100
    seen = 0.0
    for value in measured.values:
        seen += value.samples
        if seen >= wanted:
            return min(max(value.value, kept.least), kept.greatest)  # values are rounded, the ends are not
    return kept.greatest
