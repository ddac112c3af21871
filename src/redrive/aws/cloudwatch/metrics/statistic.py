"""Statistics by their names: what `Average` or `p99.9` is of a period's samples.

`tm90` is the mean of the lowest 90 %, `TM(10%:90%)` of what is between, `TM(100:2000)` of the values above 100 up to
2,000; likewise `TS` (sum), `TC` (count), `WM` (mean, with values outside taken for the nearest inside) and `PR` (the
percentage of samples inside). `IQM` is `TM(25%:75%)`. Source: CloudWatch user guide, "CloudWatch statistics definitions".
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from redrive.model.metric import Statistics, ValueCount

_NUMBER: Final = r"-?[0-9]{1,15}(?:\.[0-9]{0,10})?"
_SHORT: Final = re.compile(r"(tm|wm|tc|ts)(100|[0-9]{1,2}(?:\.[0-9]{1,10})?)", re.ASCII)
_LONG: Final = re.compile(rf"(TM|WM|TC|TS|PR)\(({_NUMBER})?(%?):({_NUMBER})?(%?)\)", re.ASCII)
_WHOLE: Final = 100.0
BASIC: Final[dict[str, Callable[[Statistics], float]]] = {
    "SampleCount": lambda statistics: statistics.samples,
    "Average": lambda statistics: statistics.average,
    "Sum": lambda statistics: statistics.total,
    "Minimum": lambda statistics: statistics.least,
    "Maximum": lambda statistics: statistics.greatest,
}
_PERCENTILE: Final = re.compile(r"p(100(\.0*)?|[0-9]{1,2}(\.[0-9]{0,10})?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Trim:
    """A statistic of the values inside two bounds."""

    kind: str  # `TM`, `WM`, `TC`, `TS` or `PR`
    low: float | None  # The lower bound, not itself inside; None: there is none
    high: float | None  # The upper bound; None: there is none
    percent: bool  # The bounds are percentages of the samples, smallest first; else values

    def of(self, values: Sequence[ValueCount]) -> float | None:
        """The statistic of all values of a period, smallest first; None if nothing is inside."""
        inside = list(self._inside(values))
        samples_inside = sum(count for _, count in inside)
        samples = sum(value.samples for value in values)
        if self.kind == "TC":  # trimmed count
            return samples_inside
        if self.kind == "PR":  # percentile rank
            return samples_inside / samples * _WHOLE
        if not samples_inside:
            return None
        if self.kind == "WM":  # winsorized mean
            return self._winsorized_sum(values, inside) / samples
        sum_inside = sum(value * count for value, count in inside)
        return sum_inside if self.kind == "TS" else sum_inside / samples_inside  # trimmed sum, or mean

    def _inside(self, values: Sequence[ValueCount]) -> Iterator[tuple[float, float]]:
        """Values inside the bounds, and how many samples of each are."""
        if not self.percent:
            low, high = _or(self.low, -math.inf), _or(self.high, math.inf)
            yield from ((each.value, each.samples) for each in values if low < each.value <= high)
            return
        total = sum(each.samples for each in values)
        begin, end = total * _or(self.low, 0) / _WHOLE, total * _or(self.high, _WHOLE) / _WHOLE
        samples_before = 0.0
        for each in values:
            count_inside = min(samples_before + each.samples, end) - max(samples_before, begin)
            if count_inside > 0:
                yield each.value, count_inside
            samples_before += each.samples

    def _winsorized_sum(self, values: Sequence[ValueCount], inside: Sequence[tuple[float, float]]) -> float:
        """The sum of all samples, those outside the bounds taken for the least and the greatest value inside."""
        least, greatest = inside[0][0], inside[-1][0]
        return sum(min(max(each.value, least), greatest) * each.samples for each in values)


def _or(bound: float | None, otherwise: float) -> float:
    return otherwise if bound is None else bound


def read_trim(name: str) -> Trim | None:
    """The trimmed statistic of that name; None if no trimmed statistic has that name."""
    if name == "IQM":
        return Trim("TM", 25, 75, percent=True)
    if (short := _SHORT.fullmatch(name)) is not None:
        return Trim(short[1].upper(), None, float(short[2]), percent=True)
    match = _LONG.fullmatch(name)
    return None if match is None else _long(match)


def _long(match: "re.Match[str]") -> Trim | None:
    """The statistic of a match of `_LONG`; None if its bounds do not fit: `PR` takes values, not percentages."""
    kind, low, low_percent, high, high_percent = match.groups()
    signs = {sign for bound, sign in ((low, low_percent), (high, high_percent)) if bound is not None}
    if len(signs) != 1 or (low is None and low_percent) or (high is None and high_percent):
        return None
    percent = signs == {"%"}
    trim = Trim(kind, _float(low), _float(high), percent)
    return trim if _is_sound(trim) and not (kind == "PR" and percent) else None


def _is_sound(trim: Trim) -> bool:
    bounds = [bound for bound in (trim.low, trim.high) if bound is not None]
    is_in_range = not trim.percent or all(0 <= bound <= _WHOLE for bound in bounds)
    return is_in_range and bounds == sorted(set(bounds))


def _float(text: str | None) -> float | None:
    return None if text is None else float(text)


@dataclass(frozen=True, slots=True)
class Measurement:
    """One period of one metric."""

    at: int  # When it begins (ms)
    unit: str  # CloudWatch's
    statistics: Statistics  # Statistics of all samples
    values: Sequence[ValueCount] = ()  # The values of the samples whose senders gave values, smallest first


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

    def of(self, measurement: Measurement) -> float | None:
        """The value of the statistic; None if the period's samples do not tell."""
        if not self.needs_values:
            return BASIC[self.name](measurement.statistics)
        values = _values(measurement)
        if self.trim is not None:
            return self.trim.of(values) if values else None
        return _percentile(self.percent or 0.0, measurement, values)


def statistic(name: str) -> Statistic | None:
    """The statistic of that name; None if there is none."""
    if name in BASIC:
        return Statistic(name)
    match = _PERCENTILE.fullmatch(name)
    if match is not None:
        return Statistic(name, float(match[1]))
    trim = read_trim(name)
    return None if trim is None else Statistic(name, trim=trim)


def _values(measurement: Measurement) -> Sequence[ValueCount]:
    """All values of a period, smallest first; none where some samples are known by their sum alone.

    So CloudWatch has it; unless all are equal.
    """
    statistics = measurement.statistics
    if statistics.least == statistics.greatest:
        return (
            [ValueCount(measurement.at, measurement.unit, statistics.least, statistics.samples)]
            if statistics.samples
            else []
        )
    samples = sum(value.samples for value in measurement.values)
    return () if samples < statistics.samples * (1 - 1e-9) else measurement.values  # counts may be fractions


def _percentile(percent: float, measurement: Measurement, values: Sequence[ValueCount]) -> float | None:
    """The smallest value that so many percent of the samples do not exceed."""
    statistics = measurement.statistics
    if statistics.least == statistics.greatest:
        return statistics.least
    if not values:
        return None
    rank = sum(value.samples for value in values) * percent / 100
    samples_before = 0.0
    for value in values:
        samples_before += value.samples
        if samples_before >= rank:
            # Values are rounded, the ends are not.
            return min(max(value.value, statistics.least), statistics.greatest)
    return statistics.greatest
