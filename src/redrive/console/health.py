"""Health of subscriptions: how their receivers answered in the last hour, out of points that are read together."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from redrive.console.hour import MINUTES, Hour
from redrive.console.picture import Curve, sparkline
from redrive.console.time_chart import TimeChart, time_chart
from redrive.model.metric import MINUTE_MS, Series
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription
from redrive.telemetry.accumulators import OTHER, WEB, Labels, topic_series
from redrive.telemetry.answers import Answer


class Health(NamedTuple):
    """The answers of a receiver in the last hour.

    Attributes:
        attempts: How many there were.
        delivered: How many of them succeeded.
        mean_ms: The time that they took on average; None: there were none.
        slowest_ms: The longest; None: there were none.
        drawn: The deliveries of each minute; None: there were none.
    """

    attempts: int
    delivered: int
    mean_ms: int | None
    slowest_ms: int | None
    drawn: Curve | None

    @property
    def success(self) -> str:
        """The share that succeeded: `99.6 %`, and `100 %` when it is all of them."""
        if not self.attempts:
            return ""
        if self.delivered == self.attempts:
            return "100 %"
        return f"{min(99.9, 100 * self.delivered / self.attempts):.1f} %"


def answer_series(subscriptions: Iterable[Subscription]) -> list[Series]:
    """The series that the health of these is read from: two of each."""
    return [_answer(each, delivered).series for each in subscriptions for delivered in (True, False)]


def _answer(subscription: Subscription, delivered: bool) -> Answer:  # noqa: FBT001 - a member of the answer
    return Answer(subscription.topic, subscription.id, delivered)


def health(hour: Hour, subscription: Subscription) -> Health:
    """The health of a subscription.

    Args:
        hour: With the points of `answer_series`.
        subscription: One of those.
    """
    taken = hour.points(_answer(subscription, delivered=True).series)
    failed = hour.points(_answer(subscription, delivered=False).series)
    statistics = [bucket.statistics for bucket in (*taken, *failed)]
    attempts = sum(each.samples for each in statistics)
    if not attempts:
        return Health(0, 0, None, None, None)
    delivered = sum(bucket.statistics.samples for bucket in taken)
    minutes = [0.0] * (MINUTES + 1)
    for bucket in taken:
        minutes[min(MINUTES, (bucket.at - hour.since) // MINUTE_MS)] += bucket.statistics.samples
    return Health(
        int(attempts),
        int(delivered),
        round(sum(each.total for each in statistics) / attempts),
        round(max(each.greatest for each in statistics)),
        sparkline(minutes, f"{delivered:,.0f} deliveries in the last hour, minute by minute"),
    )


def answers_chart(hour: Hour, subscription: Subscription) -> TimeChart | None:
    """The attempts of each minute by their result; None: there were none."""
    return _minutes(
        hour,
        {
            "Delivered": [_answer(subscription, delivered=True).series],
            "Failed": [_answer(subscription, delivered=False).series],
        },
        samples=True,
    )


def latency_chart(hour: Hour, subscription: Subscription) -> TimeChart | None:
    """The average and the slowest answer of each minute; None: there were none."""
    taken: dict[int, list[tuple[float, float, float]]] = {}
    for delivered in (True, False):
        for bucket in hour.points(_answer(subscription, delivered).series):
            statistics = bucket.statistics
            taken.setdefault(bucket.at, []).append(
                (statistics.total, statistics.samples, statistics.greatest)
            )
    if not taken:
        return None
    means = [
        (at, sum(total for total, _, _ in each) / sum(samples for _, samples, _ in each))
        for at, each in sorted(taken.items())
    ]
    slowest = [(at, max(greatest for _, _, greatest in each)) for at, each in sorted(taken.items())]
    points = {"On average": means, "Slowest": slowest}
    return time_chart(points, hour.since, hour.until - MINUTE_MS, MINUTE_MS, unit=" ms")


_LABELS: tuple[Labels, ...] = (WEB, OTHER)


def topic_hour_series(topic: ResourceName) -> list[Series]:
    """The series that `topic_chart` draws."""
    return [
        topic_series(topic, "messages_published"),
        *(
            topic_series(topic, name, labels)
            for name in ("attempts_failed", "deliveries_made")
            for labels in _LABELS
        ),
    ]


def topic_chart(hour: Hour, topic: ResourceName) -> TimeChart | None:
    """Publications, failed attempts and deliveries of each minute; None: there were none."""
    published, *others = topic_hour_series(topic)
    lines = {"Published": [published], "Failed attempts": others[:2], "Delivered": others[2:]}
    return _minutes(hour, lines)


def _minutes(
    hour: Hour, lines: dict[str, Sequence[Series]] | dict[str, list[Series]], *, samples: bool = False
) -> TimeChart | None:
    """Lines whose minutes add up some series each; None: all of them are empty."""
    if not any(hour.points(each) for series in lines.values() for each in series):
        return None
    whole = hour.until - MINUTE_MS  # the minute that has not ended says too little
    points = {}
    for label, series in lines.items():
        sums: dict[int, float] = {}
        for bucket in (bucket for each in series for bucket in hour.points(each)):
            value = bucket.statistics.samples if samples else bucket.statistics.total
            sums[bucket.at] = sums.get(bucket.at, 0.0) + value
        points[label] = [(at, sums.get(at, 0.0)) for at in range(hour.since, whole, MINUTE_MS)]
    return time_chart(points, hour.since, whole, MINUTE_MS, unit="/min")
