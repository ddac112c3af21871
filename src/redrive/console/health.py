"""Health of subscriptions: how their receivers answered in the last hour, and how fast, out of points read together."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from redrive.console.charts import Curve, TimeChart, time_chart
from redrive.console.hour import Hour
from redrive.model.metric import MINUTE_MS, SPANS_MS, Series, Statistics
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription
from redrive.telemetry.accumulators import OTHER, WEB, Answer, Labels, topic_series

_LABELS: tuple[Labels, ...] = (WEB, OTHER)
SPANS: Final = len(SPANS_MS) + 1
_SECOND_MS: Final = 1000
_BARS_MIN: Final = 8  # that a histogram has room for: one bar alone would be as wide as the page


class Health(NamedTuple):
    """The answers of a receiver in the last hour."""

    attempts: int  # Number of attempts
    delivered: int  # Number of successful attempts
    mean_ms: int | None  # The time that they took on average; None: there were none
    slowest_ms: int | None  # The longest; None: there were none
    drawn: Curve | None  # The deliveries of each period; None: there were none

    @property
    def success(self) -> str:
        """The share that succeeded: `99.6 %`, and `100 %` when it is all of them."""
        return share_text(self.delivered, self.attempts) if self.attempts else ""


def share_text(number: int, of: int) -> str:
    """A share: `99.6 %`, `100 %` when it is all of them; empty: there is none to tell of."""
    if number == of:
        return "100 %" if of else ""
    return f"{min(99.9, 100 * number / of):.1f} %"


def answer_series(subscriptions: Iterable[Subscription]) -> list[Series]:
    """The series that the health of these is read from: two of each."""
    return [answer_of(each, delivered).series for each in subscriptions for delivered in (True, False)]


def answer_of(subscription: Subscription, delivered: bool) -> Answer:  # noqa: FBT001 - a member of the answer
    """The answers of a subscription's receiver with this result."""
    return Answer(subscription.topic, subscription.id, delivered)


def health(hour: Hour, subscription: Subscription) -> Health:
    """The health of a subscription, by the points that `hour` has of its `answer_series`."""
    delivered = answer_of(subscription, delivered=True).series
    successes = hour.tally(delivered)
    attempts = hour.tally(delivered, answer_of(subscription, delivered=False).series)
    if attempts.mean is None or attempts.greatest is None:
        return Health(0, 0, None, None, None)
    words = f"{successes.samples:,} deliveries in the last hour"
    return Health(
        attempts.samples,
        successes.samples,
        round(attempts.mean),
        round(attempts.greatest),
        hour.sparkline(words, delivered),
    )


def answers_chart(hour: Hour, subscription: Subscription) -> TimeChart | None:
    """The attempts of each minute by their result; None: there were none."""
    return hour.line_chart(
        {
            "Delivered": [answer_of(subscription, delivered=True).series],
            "Failed": [answer_of(subscription, delivered=False).series],
        }
    )


def latency_chart(hour: Hour, subscription: Subscription) -> TimeChart | None:
    """The average and the slowest answer of each minute; None: there were none."""
    by_minute: dict[int, list[Statistics]] = {}
    for delivered in (True, False):
        for bucket in hour.points(answer_of(subscription, delivered).series):
            by_minute.setdefault(bucket.at, []).append(bucket.statistics)
    if not by_minute:
        return None
    means, slowest = [], []
    for at, minute in sorted(by_minute.items()):
        means.append((at, sum(each.total for each in minute) / sum(each.samples for each in minute)))
        slowest.append((at, max(each.greatest for each in minute)))
    points = {"On average": means, "Slowest": slowest}
    return time_chart(points, hour.since, hour.until - MINUTE_MS, MINUTE_MS, unit=" ms")


def topic_hour_series(topic: ResourceName) -> list[Series]:
    """The series that `topic_chart` draws."""
    deliveries = [topic_series(topic, "deliveries_made", labels) for labels in _LABELS]
    return [topic_series(topic, "messages_published"), *failed_series(topic), *deliveries]


def failed_series(topic: ResourceName) -> list[Series]:
    """Those of them that count failed attempts."""
    return [topic_series(topic, "attempts_failed", labels) for labels in _LABELS]


class TopicTraffic(NamedTuple):
    """The traffic of a topic in the last hour."""

    published: int  # Messages that came
    delivered: int  # Deliveries that receivers accepted
    failed: int  # Attempts that did not succeed
    curve: Curve | None  # The publications of each period; None: there were none


def topic_traffic(hour: Hour, topic: ResourceName) -> TopicTraffic:
    """The last hour of a topic, of points of `topic_hour_series`."""
    published, *others = topic_hour_series(topic)
    publications = int(hour.total(published))
    totals = [hour.total(each) for each in others]  # two series of failures, and then two of deliveries
    curve = hour.sparkline(f"{publications:,} publications in the last hour", published, sums=True)
    return TopicTraffic(publications, int(sum(totals[2:])), int(sum(totals[:2])), curve)


def topic_chart(hour: Hour, topic: ResourceName) -> TimeChart | None:
    """Publications, failed attempts and deliveries of each minute; None: there were none."""
    published, *others = topic_hour_series(topic)
    lines = {"Published": [published], "Failed attempts": others[:2], "Delivered": others[2:]}
    return hour.line_chart(lines, sums=True)


class SpanBar(NamedTuple):
    """The answers that took about as long."""

    label: str  # The greatest time, as text
    tick: str  # The same below the bar
    delivered: int  # How many of them were good
    failed: int  # How many were not
    x: float  # The left edge, in percent of the picture
    height: float  # Total, in percent of the highest bar
    failed_height: float  # Failures, in percent of the highest bar


class HistogramChart(NamedTuple):
    """The times that answers took in the last hour."""

    bars: Sequence[SpanBar]  # From the first span that has an answer to the last
    width: float  # Width of a bar, in percent of the picture
    median: str  # The span that half of the answers are within, as text
    most: str  # The one that 95 % of them are within
    summary: str  # It in a sentence


def span_series(subscription: Subscription) -> list[Series]:
    """The series that `answer_times` draws."""
    return [
        answer_of(subscription, delivered).series_of_span(span)
        for delivered in (True, False)
        for span in range(SPANS)
    ]


def answer_times(hour: Hour, subscription: Subscription) -> HistogramChart | None:
    """The distribution of a receiver's times to answer; None: there were no attempts."""
    delivered, failed = (
        [hour.tally(answer_of(subscription, result).series_of_span(span)).samples for span in range(SPANS)]
        for result in (True, False)
    )
    totals = [good + bad for good, bad in zip(delivered, failed, strict=True)]
    if not any(totals):
        return None
    first = next(span for span, number in enumerate(totals) if number)
    end = SPANS - next(span for span, number in enumerate(reversed(totals)) if number)
    width, highest = 100 / max(end - first, _BARS_MIN), max(totals)
    bars = [
        SpanBar(
            span_text(span),
            _text(SPANS_MS[span]) if span < len(SPANS_MS) else "more",
            delivered[span],
            failed[span],
            round((span - first) * width, 2),
            round(100 * totals[span] / highest, 1),
            round(100 * failed[span] / highest, 1),
        )
        for span in range(first, end)
    ]
    median, most = (span_text(span_within(totals, share)) for share in (0.5, 0.95))
    summary = f"half of {sum(totals):,} attempts took {median}, 95 % of them {most}; {sum(failed):,} failed"
    return HistogramChart(bars, width, median, most, summary)


def span_text(span: int) -> str:
    """A span of time to answer: `41 ms or less`."""
    if span >= len(SPANS_MS):
        return f"more than {_text(SPANS_MS[-1])}"
    return f"{_text(SPANS_MS[span])} or less"


def _text(ms: int) -> str:
    return f"{ms} ms" if ms < _SECOND_MS else f"{ms / _SECOND_MS:.1f} s"


def span_within(numbers: Sequence[int], share: float) -> int:
    """The span that a share of the answers is within."""
    needed = share * sum(numbers)
    return next(span for span, seen in enumerate(accumulate(numbers)) if seen >= needed)
