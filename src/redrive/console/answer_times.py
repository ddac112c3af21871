"""Times to answer: how the attempts at a receiver in the last hour are distributed over what they took."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from redrive.console.health import answer_of
from redrive.console.hour import Hour
from redrive.model.metric import SPANS_MS, Series
from redrive.model.topic import Subscription

SPANS: Final = len(SPANS_MS) + 1
_SECOND_MS: Final = 1000


class SpanBar(NamedTuple):
    """The answers that took about as long."""

    label: str  # The greatest time, as text
    tick: str  # The same below the bar
    delivered: int  # How many of them were good
    failed: int  # How many were not
    x: float  # The left edge, in percent of the picture
    height: float  # Total, in percent of the highest bar
    failed_height: float  # Failures, in percent of the highest bar


class Histogram(NamedTuple):
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


def answer_times(hour: Hour, subscription: Subscription) -> Histogram | None:
    """The distribution of a receiver's times to answer; None: there were no attempts."""
    delivered, failed = (
        [hour.tally(answer_of(subscription, result).series_of_span(span)).samples for span in range(SPANS)]
        for result in (True, False)
    )
    both = [good + bad for good, bad in zip(delivered, failed, strict=True)]
    if not any(both):
        return None
    first = next(span for span, number in enumerate(both) if number)
    end = SPANS - next(span for span, number in enumerate(reversed(both)) if number)
    width, highest = 100 / (end - first), max(both)
    bars = [
        SpanBar(
            _span_text(span),
            _text(SPANS_MS[span]) if span < len(SPANS_MS) else "more",
            delivered[span],
            failed[span],
            round((span - first) * width, 2),
            round(100 * both[span] / highest, 1),
            round(100 * failed[span] / highest, 1),
        )
        for span in range(first, end)
    ]
    median, most = span_within(both, 0.5), span_within(both, 0.95)
    summary = f"half of {sum(both):,} attempts took {median}, 95 % of them {most}; {sum(failed):,} failed"
    return Histogram(bars, width, median, most, summary)


def _span_text(span: int) -> str:
    if span >= len(SPANS_MS):
        return f"more than {_text(SPANS_MS[-1])}"
    return f"{_text(SPANS_MS[span])} or less"


def _text(ms: int) -> str:
    return f"{ms} ms" if ms < _SECOND_MS else f"{ms / _SECOND_MS:.1f} s"


def span_within(numbers: Sequence[int], share: float) -> str:
    """The span that a share of the answers is within, as text."""
    seen, needed = 0, share * sum(numbers)
    for span, number in enumerate(numbers):
        seen += number
        if seen >= needed:
            return _span_text(span)
    return ""
