"""Metrics: what is counted and measured over time, gathered by the minute."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple, Self

MINUTE_MS = 60_000

# Values are told apart to three significant digits, so a percentile is off by at most 0.5 %, and a minute's values
# take at most 900 places for each power of ten they range over, however many there are.
VALUE_DIGITS = 3

#: The greatest times (ms) of the spans that answers are counted by, each 1.6 times the one before; the last has none.
SPANS_MS: Final = tuple(round(5 * 1.6**power) for power in range(17))


class Series(NamedTuple):
    """One metric of one set of dimensions."""

    account: str  # Whose
    region: str  # Where
    namespace: str  # Keeps metrics of equal names apart. Redrive's own begin with a colon.
    name: str  # Name of the metric
    dimensions: tuple[tuple[str, str], ...] = ()  # Names and values, ordered by name

    @property
    def id(self) -> int:
        """63 bits that stand for the series in every store and on every node."""
        chars = sum(len(name) + len(value) for name, value in self.dimensions)
        return _remembered_id(self) if chars <= _CHARS_REMEMBERED else _series_id(self)


def _series_id(series: Series) -> int:
    parts = [*series[:4], *(part for pair in series.dimensions for part in pair)]
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) >> 1


# Of 1,800 queues that something happens to: 12 MB. To work it out anew takes 3 µs, a tenth of what storing a point does.
# A caller's series may have 30 dimensions of 1,280 characters.
_remembered_id: Final = lru_cache(maxsize=16_384)(_series_id)
_CHARS_REMEMBERED: Final = 512


class SeriesGroup:
    """Series that a sample is added to together, told apart by identity: to hash each of them takes a microsecond.

    Attributes:
        series: They.
    """

    __slots__ = ("series",)

    def __init__(self, *series: Series) -> None:
        self.series = series


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of a number of samples."""

    samples: float  # How many; a fraction where the sender weighed them so
    total: float  # Their sum
    least: float  # The smallest
    greatest: float  # The largest

    @classmethod
    def of(cls, value: float, samples: float = 1) -> Self:
        """Samples that all have one value."""
        return cls(samples, value * samples, value, value)

    def __add__(self, other: "Statistics") -> "Statistics":
        return Statistics(
            self.samples + other.samples,
            self.total + other.total,
            min(self.least, other.least),
            max(self.greatest, other.greatest),
        )

    @property
    def average(self) -> float:
        """The mean; 0 of no samples."""
        return self.total / self.samples if self.samples else 0.0


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """A measurement of a series at one time, to be added to the statistics of that time."""

    series: Series  # Of what
    at: int  # The moment (ms): a minute's beginning, or a second's where a metric is that fine
    unit: str  # In the facade's own words; empty if the series says it
    statistics: Statistics  # The measurement
    # The values themselves and how often each came, where they are to be kept for percentiles.
    values: Mapping[float, float] = field(default_factory=dict)
    fills: bool = False  # Counts only where nothing of the series is known in that moment and unit


class PeriodStatistics(NamedTuple):
    """The statistics of one or several series in one period."""

    at: int  # When the period begins (ms)
    unit: str  # Points of different units are never added up
    statistics: Statistics  # Statistics of all samples


class ValueCount(NamedTuple):
    """The number of samples of one period with one value; `at` and `unit` as in Bucket."""

    at: int
    unit: str
    value: float
    samples: float


@dataclass(frozen=True, slots=True)
class PointQuery:
    """A query for the points of one or several series together."""

    series: Sequence[Series]  # Whose points are added up
    since: int  # From that moment on (ms); the first period begins here
    until: int  # From before that moment (ms)
    period_ms: int  # How long a period is


@dataclass(frozen=True, slots=True)
class SeriesQuery:
    """A query for the series that exist."""

    account: str  # Whose
    region: str  # Where
    limit: int  # At most so many
    namespace: str | None = None  # In this namespace; None: in any
    name: str | None = None  # Of this name; None: of any
    # With points for a moment since then (ms). Known to ten minutes: writing the last moment down with every
    # point would cost as much as the points.
    active_since: int = 0
    after: Series | None = None  # Only those behind this one in order


def rounded(value: float) -> float:
    """A value as it is kept for percentiles, to VALUE_DIGITS."""
    return float(f"{value:.{VALUE_DIGITS}g}")
