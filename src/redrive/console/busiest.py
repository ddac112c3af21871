"""The queues and topics that most goes through, and those that fail most: ranked once a minute.

Candidates are those that this node has counted most of since it started; their last hour is that of all nodes. So
ranking them takes no read of its own: their series are read with the others of the hour, in one render of a minute.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import Final, NamedTuple

from redrive.console.charts import Curve
from redrive.console.health import failed_series, share_text, topic_hour_series, topic_traffic
from redrive.console.hour import SENT, SETTLED_MS, Hour
from redrive.model.metric import MINUTE_MS, Series
from redrive.model.names import ResourceName
from redrive.telemetry.accumulators import queue_series

CANDIDATES_MAX: Final = 15  # of each kind: 5,400 rows
SHOWN_MAX: Final = 5
_PLACES_MAX: Final = 100
_HOUR_SECONDS: Final = 3600

Scopes = Collection[ResourceName]
Counted = Callable[[], Iterable[tuple[ResourceName, int]]]


class Ranked(NamedTuple):
    """A queue or a topic with its last hour."""

    kind: str  # `queue` or `topic`
    name: ResourceName
    number: int  # Messages that came, or attempts that failed
    share: str  # Of attempts those that failed; empty: it is ranked by what came
    curve: Curve | None  # Minute by minute

    @property
    def rate(self) -> float:
        """The number of a second, on average."""
        return self.number / _HOUR_SECONDS


class Ranking(NamedTuple):
    """The most of each, first."""

    busiest: Sequence[Ranked] = ()
    failing: Sequence[Ranked] = ()


@dataclass(frozen=True, slots=True)
class Candidates:
    """The queues and topics that are ranked; none while the ranking of the minute is known."""

    queues: Sequence[ResourceName] = ()
    topics: Sequence[ResourceName] = ()

    @property
    def series(self) -> list[Series]:
        """The series that they are ranked by."""
        of_topics = [series for topic in self.topics for series in topic_hour_series(topic)]
        return [*(queue_series(queue, SENT) for queue in self.queues), *of_topics]


class Rankings:
    """The rankings of accounts and regions, each known for a minute."""

    def __init__(self, queues: Counted, topics: Counted) -> None:
        """Rank nothing yet; both tell how much this node has counted, in each queue and in each topic."""
        self._queues = queues
        self._topics = topics
        self._known: dict[tuple[ResourceName, ...], tuple[int, Ranking]] = {}

    def candidates(self, scopes: Scopes, now: int) -> Candidates:
        """The candidates whose last hour has to be read now (ms)."""
        known = self._known.get(tuple(scopes))
        if known is not None and known[0] == now // MINUTE_MS:
            return Candidates()
        return Candidates(_most(self._queues(), scopes), _most(self._topics(), scopes))

    def of(self, scopes: Scopes, candidates: Candidates, hour: Hour, now: int) -> Ranking:
        """The ranking of some accounts and regions, of these candidates, by the points that `hour` has of them."""
        minute = now // MINUTE_MS
        if tuple(scopes) in self._known:
            ranked_in, ranking = self._known[tuple(scopes)]
            if ranked_in == minute:
                return ranking
        if len(self._known) >= _PLACES_MAX:
            self._known.clear()
        ranking = _ranking(candidates, _whole_minutes(hour, candidates, now))
        self._known[tuple(scopes)] = minute, ranking
        return ranking


def _whole_minutes(hour: Hour, candidates: Candidates, now: int) -> Hour:
    """The whole minutes that all nodes have written down, as in the rates of the page."""
    until = (now - SETTLED_MS) // MINUTE_MS * MINUTE_MS
    points = {
        each.id: [bucket for bucket in hour.points(each) if bucket.at < until] for each in candidates.series
    }
    return Hour(hour.since, until, points)


def _most(numbers: Iterable[tuple[ResourceName, int]], scopes: Scopes) -> list[ResourceName]:
    counted = ((number, name) for name, number in numbers if number and name._replace(name="") in scopes)
    return [name for _, name in nlargest(CANDIDATES_MAX, counted)]


def _ranking(candidates: Candidates, hour: Hour) -> Ranking:
    """The busiest queues and topics, and the topics with the most failed attempts."""
    topics = [(name, topic_traffic(hour, name)) for name in candidates.topics]
    busiest = [
        *(_queue(name, hour) for name in candidates.queues),
        *(Ranked("topic", name, each.published, "", each.curve) for name, each in topics),
    ]
    failing = [
        Ranked(
            "topic",
            name,
            each.failed,
            share_text(each.failed, each.failed + each.delivered),
            hour.sparkline(f"{each.failed:,} failed attempts", *failed_series(name), sums=True),
        )
        for name, each in topics
    ]
    return Ranking(_first(busiest), _first(failing))


def _queue(name: ResourceName, hour: Hour) -> Ranked:
    series = queue_series(name, SENT)
    sent = int(hour.total(series))
    curve = hour.sparkline(f"{sent:,} messages sent in the last hour", series, sums=True)
    return Ranked("queue", name, sent, "", curve)


def _first(ranked: Iterable[Ranked]) -> list[Ranked]:
    return nlargest(SHOWN_MAX, (each for each in ranked if each.number), key=lambda each: each.number)
