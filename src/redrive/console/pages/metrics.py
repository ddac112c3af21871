"""Metrics: what CloudWatch's clients see of an account and region, as lines over the last hours."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from redrive.aws.cloudwatch.metrics.own_metrics import MetricName, names_of, series_of, unit_of
from redrive.console.charts import Point, time_chart, with_zeros
from redrive.console.commands import aws_command
from redrive.console.marks import marks_of, with_marks
from redrive.console.place_charts import place_charts
from redrive.console.visit import Page, Visit
from redrive.console.words import moment
from redrive.model.durations import HOUR_MS
from redrive.model.metric import MINUTE_MS, PeriodStatistics, PointQuery, Series, SeriesQuery, Statistics
from redrive.model.search import read_moment

DRAWN_MAX: Final = 8
LINKED_MAX: Final = 100
THINGS_MAX: Final = 60  # beside six charts: 15 KiB
_SERIES_MAX: Final = 1000  # that are looked through
_KEPT_MS: Final = 15 * 24 * HOUR_MS
_SPANS: Final = {
    "1h": (HOUR_MS, MINUTE_MS),
    "6h": (6 * HOUR_MS, 5 * MINUTE_MS),
    "24h": (24 * HOUR_MS, 15 * MINUTE_MS),
    "15d": (_KEPT_MS, 6 * HOUR_MS),
}
_STATISTICS: Final = ("Sum", "Average", "Minimum", "Maximum", "SampleCount")
_WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_UNITS: Final = {"Seconds": " s", "Milliseconds": " ms", "Bytes": " B", "Percent": " %"}
_LEVELS: Final = ("Approximate", "Concurrent")  # how a thing stands, which nobody adds up
_MEANS: Final = ("Size", "Duration", "Latency", "Age", "AgeOfOldestMessage")
#: The metrics that the console's form for alarms knows, by what it calls them.
_WATCHED: Final = {
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible"): ("queue", "waiting"),
    ("AWS/SQS", "ApproximateAgeOfOldestMessage"): ("queue", "age"),
    ("AWS/Lambda", "Errors"): ("function", "errors"),
    ("AWS/Lambda", "Throttles"): ("function", "throttles"),
}


async def page(visit: Visit) -> Page:
    """Metrics by namespace, name and thing: the first eight that fit as lines, the others as links."""
    await visit.installation.settle()
    until, visit = _until(visit)
    since = visit.parameter("since", "1h")
    since = since if since in _SPANS else "1h"
    span_ms, period_ms = _SPANS[since]
    series = await _series(visit)
    metrics = {metric for each in series for metric in names_of(each)}
    names = sorted(metrics, key=lambda metric: (metric.namespace, metric.dimensions, metric.name))
    namespace, name = visit.parameter("namespace"), visit.parameter("metric")
    of = visit.parameter("of").strip()
    matches = [metric for metric in names if _fits(metric, namespace, name, of)]
    exactly = [metric for metric in matches if of in (value for _, value in metric.dimensions)]
    matches = exactly or matches
    is_narrowed = bool(namespace or name or of)
    charted = matches[:DRAWN_MAX] if is_narrowed else []
    scope = visit.scope
    dead = await visit.engine.operations.dead_letters.targets(scope.account, scope.region)
    marks = await marks_of(visit, visit.now - span_ms, visit.now, of)
    overall = [] if is_narrowed else await place_charts(visit, series, dead, (since, span_ms, period_ms))
    charts = await _charts(visit, charted, since)
    query = {"namespace": namespace, "metric": name, "of": of, "stat": _choice(visit)}
    values = {
        "chosen": is_narrowed,
        "place": [
            each if each.drawn is None else each._replace(drawn=with_marks(each.drawn, marks))
            for each in overall
        ],
        "marks": marks,
        "things": [] if is_narrowed else _things(visit, names),
        "charts": [{**each, "drawn": with_marks(each["drawn"], marks)} for each in charts],
        "others": [
            _link_row(visit, metric, since)
            for metric in (matches[DRAWN_MAX : DRAWN_MAX + LINKED_MAX] if is_narrowed else ())
        ],
        "left_out": max(0, len(matches) - DRAWN_MAX - LINKED_MAX) if is_narrowed else 0,
        "namespaces": sorted({metric.namespace for metric in names}),
        "names": sorted({metric.name for metric in names if namespace in ("", metric.namespace)}),
        "namespace": namespace,
        "metric": name,
        "of": of,
        "since": since,
        "until": until,
        "end": visit.now,
        # To the minute, so that the page changes no more often than its points do.
        "freeze": visit.link("metrics", **query, since=since, until=f"{moment(visit.now)[:16]}Z"),
        "follow": visit.link("metrics", **query, since=since),
        "spans": [(span, visit.link("metrics", **query, since=span, until=until)) for span in _SPANS],
        "statistics": _STATISTICS,
        "stat": _choice(visit),
        "form": visit.link("metrics"),
    }
    return Page("metrics.html", values, live_seconds=0 if until else 10)


def _until(visit: Visit) -> tuple[str, Visit]:
    """The moment that the page is frozen at, as it was typed, and the visit as of then; empty: it goes with the time.

    Raises:
        SearchInvalidError: The text is no time.
    """
    until = visit.parameter("until").strip()
    return until, replace(visit, now=min(visit.now, read_moment(until, visit.now))) if until else visit


def _things(visit: Visit, names: Sequence[MetricName]) -> list[tuple[str, str, str, int]]:
    """The things that have metrics: namespace, name, link to its lines, and how many it has."""
    numbers = Counter((each.namespace, each.dimensions[-1][1]) for each in names if each.dimensions)
    return [
        (namespace, of, visit.link("metrics", namespace=namespace, of=of), number)
        for (namespace, of), number in sorted(numbers.items())
    ][:THINGS_MAX]


def metric_words(name: str) -> str:
    """`Messages sent` of `NumberOfMessagesSent`."""
    words = _WORD.sub(" ", name.removeprefix("Approximate").removeprefix("NumberOf")).lower()
    return words[:1].upper() + words[1:]


def _choice(visit: Visit) -> str:
    statistic = visit.parameter("stat")
    return statistic if statistic in _STATISTICS else ""


async def _series(visit: Visit) -> list[Series]:
    """The series with points in the time that is kept."""
    scope = visit.scope
    query = SeriesQuery(scope.account, scope.region, _SERIES_MAX, active_since=max(0, visit.now - _KEPT_MS))
    return await visit.installation.telemetry.find_series(query)


def _fits(metric: MetricName, namespace: str, name: str, of: str) -> bool:
    """True if a metric has this namespace and name, and `of` in a dimension's value; empty ones fit all."""
    if namespace and metric.namespace != namespace:
        return False
    if name and metric.name != name:
        return False
    return not of or any(of in value for _, value in metric.dimensions)


async def _charts(visit: Visit, metrics: Sequence[MetricName], since: str) -> list[dict[str, Any]]:
    """The lines of some metrics: all of their points by one read."""
    span_ms, period_ms = _SPANS[since]
    begin = max(0, (visit.now - span_ms) // period_ms * period_ms)
    scope = visit.scope
    series = {metric: series_of(scope.account, scope.region, metric) for metric in metrics}
    all_series = [each for own in series.values() for each in own]
    query = PointQuery(all_series, begin, visit.now + 1, period_ms)
    buckets = await visit.installation.telemetry.find_points_each(query) if all_series else {}
    charts = []
    for metric in metrics:
        statistic = _choice(visit) or _usual(metric)
        by_moment = sum_by_moment(bucket for each in series[metric] for bucket in buckets.get(each.id, ()))
        points: list[Point] = [
            (at, statistic_value(statistics, statistic)) for at, statistics in sorted(by_moment.items())
        ]
        if statistic in ("Sum", "SampleCount"):
            points = with_zeros(points, begin, visit.now, period_ms)
        charts.append(
            {
                **_link_row(visit, metric, since),
                "drawn": time_chart(
                    {statistic: points},
                    begin,
                    visit.now,
                    period_ms,
                    unit=_UNITS.get(unit_of(metric) or "", ""),
                ),
                "points": bool(by_moment),
                "unit": unit_of(metric) or "",
                "alarm": _alarm(visit, metric),
                "command": _command(visit, metric, statistic, period_ms),
            }
        )
    return charts


def sum_by_moment(buckets: Iterator[PeriodStatistics]) -> Mapping[int, Statistics]:
    """The statistics by moment: a metric may be several series."""
    sums: dict[int, Statistics] = {}
    for bucket in buckets:
        sum_so_far = sums.get(bucket.at)
        sums[bucket.at] = bucket.statistics if sum_so_far is None else sum_so_far + bucket.statistics
    return sums


def _usual(metric: MetricName) -> str:
    if metric.name.startswith(_LEVELS):
        return "Maximum"
    return "Average" if metric.name.endswith(_MEANS) else "Sum"


def statistic_value(statistics: Statistics, statistic: str) -> float:
    """One of CloudWatch's simple statistics."""
    if statistic == "Average":
        return statistics.total / statistics.samples if statistics.samples else 0.0
    values = {"Sum": statistics.total, "Minimum": statistics.least, "Maximum": statistics.greatest}
    return values.get(statistic, statistics.samples)


def _link_row(visit: Visit, metric: MetricName, since: str) -> dict[str, Any]:
    """The row of a metric in the list, with a link to its chart."""
    things = ", ".join(f"{name} {value}" for name, value in metric.dimensions)
    _, of = metric.dimensions[-1] if metric.dimensions else ("", "")
    link = visit.link("metrics", namespace=metric.namespace, metric=metric.name, of=of, since=since)
    return {
        "name": metric.name,
        "words": metric_words(metric.name),
        "namespace": metric.namespace,
        "things": things,
        "link": link,
    }


def _alarm(visit: Visit, metric: MetricName) -> str:
    """The link to a form for an alarm on the metric, where the console's form knows it."""
    alarm_form = _WATCHED.get((metric.namespace, metric.name))
    if alarm_form is None or len(metric.dimensions) != 1:
        return ""
    of, watched = alarm_form
    return visit.link("alarms", "new", of=of, thing=metric.dimensions[0][1], watched=watched)


def _command(visit: Visit, metric: MetricName, statistic: str, period_ms: int) -> str:
    """The command for an alarm on the metric."""
    dimensions = orjson.dumps([{"Name": name, "Value": value} for name, value in metric.dimensions]).decode()
    numbers = ["--period", str(max(60, period_ms // 1000)), "--evaluation-periods", "1", "--threshold", "0"]
    return aws_command(
        visit,
        *("cloudwatch", "put-metric-alarm", "--alarm-name", "NAME", "--namespace", metric.namespace),
        *("--metric-name", metric.name, "--dimensions", dimensions, "--statistic", statistic),
        *("--comparison-operator", "GreaterThanThreshold", *numbers),
    )
