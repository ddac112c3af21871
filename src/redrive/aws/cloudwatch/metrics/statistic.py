"""Statistics by their names: what `Average` or `p99.9` is of a period's samples."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from redrive.aws.cloudwatch.metrics.trimmed import Trim, read_trim
from redrive.model.metric import Statistics, ValueCount


@dataclass(frozen=True, slots=True)
class Measured:
    """One period of one metric."""

    at: int  # When it begins (ms)
    unit: str  # CloudWatch's
    statistics: Statistics  # Statistics of all samples
    values: Sequence[ValueCount] = ()  # The values of the samples whose senders gave values, smallest first


BASIC: Final[dict[str, Callable[[Statistics], float]]] = {
    "SampleCount": lambda statistics: statistics.samples,
    "Average": lambda statistics: statistics.average,
    "Sum": lambda statistics: statistics.total,
    "Minimum": lambda statistics: statistics.least,
    "Maximum": lambda statistics: statistics.greatest,
}
_PERCENTILE: Final = re.compile(r"p(100(\.0*)?|[0-9]{1,2}(\.[0-9]{0,10})?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Statistic:
    """One statistic."""

    name: str  # As it was asked for
    percent: float | None = None  # Percentile; None for any other statistic
    trim: Trim | None = None  # Range of values that it covers; None for basic statistics and percentiles

    @property
    def needs_values(self) -> bool:
        """True if it is computed of the values themselves."""
        return self.percent is not None or self.trim is not None

    def of(self, measured: Measured) -> float | None:
        """The value of the statistic; None if the period's samples do not tell."""
        if not self.needs_values:
            return BASIC[self.name](measured.statistics)
        known = _values(measured)
        if self.trim is not None:
            return self.trim.of(known) if known else None
        return _percentile(self.percent or 0.0, measured, known)


def statistic(name: str) -> Statistic | None:
    """The statistic of that name; None if there is none."""
    if name in BASIC:
        return Statistic(name)
    match = _PERCENTILE.fullmatch(name)
    if match is not None:
        return Statistic(name, float(match[1]))
    trim = read_trim(name)
    return None if trim is None else Statistic(name, trim=trim)


def _values(measured: Measured) -> Sequence[ValueCount]:
    """All values of a period, smallest first; none where some samples are known by their sum alone.

    So CloudWatch has it; unless all are equal.
    """
    statistics = measured.statistics
    if statistics.least == statistics.greatest:
        return (
            [ValueCount(measured.at, measured.unit, statistics.least, statistics.samples)]
            if statistics.samples
            else []
        )
    known = sum(value.samples for value in measured.values)
    return () if known < statistics.samples * (1 - 1e-9) else measured.values  # counts may be fractions


def _percentile(percent: float, measured: Measured, values: Sequence[ValueCount]) -> float | None:
    """The smallest value that so many percent of the samples do not exceed."""
    statistics = measured.statistics
    if statistics.least == statistics.greatest:
        return statistics.least
    if not values:
        return None
    rank = sum(value.samples for value in values) * percent / 100
    seen = 0.0
    for value in values:
        seen += value.samples
        if seen >= rank:
            return min(
                max(value.value, statistics.least), statistics.greatest
            )  # values are rounded, the ends are not
    return statistics.greatest
