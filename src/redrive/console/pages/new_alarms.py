"""A new alarm on a queue or a function, made by one form that first shows what it would have done in the last day."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from redrive.aws.sns.documents import names
from redrive.aws.wire.errors import AwsError
from redrive.console.charts import TimeChart, time_chart
from redrive.console.visit import REFUSED, Page, Redirect, Unusable, Visit
from redrive.model.metric import MINUTE_MS
from redrive.model.queue import DAY_MS

_TOPICS_OFFERED: Final = 50
_DRAWN_MS: Final = 15 * MINUTE_MS  # of each point of the last day: 96 of them


class Watched(NamedTuple):
    """Something that an alarm can watch."""

    label: str  # In the form
    of: str  # `queue` or `function`
    namespace: str  # Namespace of the metric
    metric: str  # Its name
    statistic: str  # Statistic of each minute
    missing: str  # How minutes without points are treated


WATCHED: Final = {
    "waiting": Watched(
        "the number of messages that wait",
        "queue",
        "AWS/SQS",
        "ApproximateNumberOfMessagesVisible",
        "Maximum",
        "missing",
    ),
    "age": Watched(
        "the age of the oldest message, in seconds,",
        "queue",
        "AWS/SQS",
        "ApproximateAgeOfOldestMessage",
        "Maximum",
        "missing",
    ),
    "errors": Watched("the number of errors", "function", "AWS/Lambda", "Errors", "Sum", "notBreaching"),
    "throttles": Watched(
        "the number of throttles", "function", "AWS/Lambda", "Throttles", "Sum", "notBreaching"
    ),
}
_DIMENSIONS: Final = {"queue": "QueueName", "function": "FunctionName"}


async def form(visit: Visit) -> Page:
    """A form for an alarm on a queue or a function."""
    return await _form(visit, "")


async def make(visit: Visit) -> Page | Redirect:
    """Make the alarm by the service's own rules."""
    thing, of, name = visit.parameter("thing").strip(), _of(visit), visit.parameter("name").strip()
    watched = WATCHED.get(visit.parameter("watched"))
    if watched is None or watched.of != of:
        raise Unusable("The form names nothing that an alarm can watch.")
    if not thing or not name:
        return await _form(visit, f"An alarm has a name, and a {of} that it watches.", REFUSED)
    params: dict[str, Any] = {
        "AlarmName": name,
        "AlarmDescription": visit.parameter("description"),
        "Namespace": watched.namespace,
        "MetricName": watched.metric,
        "Dimensions": [{"Name": _DIMENSIONS[of], "Value": thing}],
        "Statistic": watched.statistic,
        "Period": 60,
        "EvaluationPeriods": max(1, visit.number("minutes", 1)),
        "Threshold": float(visit.number("threshold")),
        "ComparisonOperator": "GreaterThanThreshold",
        "TreatMissingData": watched.missing,
    }
    if visit.parameter("topic"):
        params["AlarmActions"] = params["OKActions"] = [visit.parameter("topic").strip()]
    try:
        existing = await visit.call("cloudwatch", "DescribeAlarms", {"AlarmNames": [name]})
        if existing["MetricAlarms"] and not visit.parameter("replace"):
            sentence = f"There is an alarm {name} already. Choose another name, or replace it."
            return await _form(visit, sentence, REFUSED, replaces=True)
        await visit.call("cloudwatch", "PutMetricAlarm", params)
    except AwsError as error:
        return await _form(visit, error.message, REFUSED)
    sentence = "Created; it is evaluated every minute"
    return Redirect(visit.link("alarms", "alarm", name=name), sentence=sentence)


class Rehearsal(NamedTuple):
    """The last day of what an alarm would watch."""

    sentence: str  # The number of times it would have fired
    chart: TimeChart  # The greatest value of each quarter of an hour, with the limit


async def _rehearse(visit: Visit, thing: str, watched: Watched) -> Rehearsal | None:
    """The last day as the alarm of the form would have seen it; None: there are no values of it."""
    limit, minutes = visit.number("threshold"), max(1, visit.number("minutes", 1))
    since = (visit.now - DAY_MS) // MINUTE_MS * MINUTE_MS
    stat = {
        "Metric": {
            "Namespace": watched.namespace,
            "MetricName": watched.metric,
            "Dimensions": [{"Name": _DIMENSIONS[watched.of], "Value": thing}],
        },
        "Period": 60,
        "Stat": watched.statistic,
    }
    params = {
        "MetricDataQueries": [{"Id": "m", "MetricStat": stat}],
        "StartTime": since,
        "EndTime": visit.now,
    }
    answer = await visit.call("cloudwatch", "GetMetricData", {**params, "ScanBy": "TimestampAscending"})
    (row,) = answer["MetricDataResults"]
    values = dict(zip(row["Timestamps"], row["Values"], strict=True))
    if not values:
        return None
    times = firings(values, limit, minutes, gaps_end_it=watched.missing == "notBreaching")
    often = {0: "never", 1: "once", 2: "twice"}.get(times, f"{times:,} times")
    peaks: dict[int, float] = {}
    for at, value in values.items():
        peak_at = at // _DRAWN_MS * _DRAWN_MS
        peaks[peak_at] = max(value, peaks.get(peak_at, value))
    line = {watched.statistic: sorted(peaks.items())}
    return Rehearsal(
        f"In the last 24 h it would have fired {often}.",
        time_chart(line, since // _DRAWN_MS * _DRAWN_MS, visit.now, _DRAWN_MS, limit),
    )


def firings(values: Mapping[int, float], limit: float, minutes: int, *, gaps_end_it: bool) -> int:
    """The number of times that as many minutes in a row were above a limit.

    The decision of alarms looks at all minutes of its window each time: for a day that is up to two million steps.

    Args:
        values: By minute (ms), in order.
        limit: The limit.
        minutes: Minutes in a row that it takes.
        gaps_end_it: Whether a minute without a value counts as one below the limit.
    """
    times = above = before = 0
    for at, value in values.items():
        if gaps_end_it and at - before > MINUTE_MS:
            above = 0
        above = above + 1 if value > limit else 0
        times += above == minutes
        before = at
    return times


def _of(visit: Visit) -> str:
    of = visit.parameter("of") or ("function" if visit.parameter("function") else "queue")
    if of not in _DIMENSIONS:
        raise Unusable("An alarm created here watches a queue or a function.")
    return of


async def _form(visit: Visit, notice: str, status: int = 200, *, replaces: bool = False) -> Page:
    """The form as the page's address or the form that was sent fills it in; `replaces`: an alarm of its name is there."""
    of = _of(visit)
    thing = visit.parameter("thing") or visit.parameter(of)
    watched = WATCHED.get(visit.parameter("watched")) or next(
        each for each in WATCHED.values() if each.of == of
    )
    topics = await visit.engine.resources.topics.of_account(
        visit.scope.account, visit.scope.region, limit=_TOPICS_OFFERED
    )
    values = {
        "notice": notice,
        "of": of,
        "thing": thing,
        "replaces": replaces,
        "watched": visit.parameter("watched"),
        "rehearsed": await _rehearse(visit, thing, watched) if thing and watched.of == of else None,
        "choices": [(key, each.label) for key, each in WATCHED.items() if each.of == of],
        "name": visit.parameter("name") or (f"{thing}-alarm" if thing else ""),
        "description": visit.parameter("description"),
        "threshold": visit.parameter("threshold") or "0",
        "minutes": visit.parameter("minutes") or "1",
        "topic": visit.parameter("topic"),
        "topics": [names.arn_of(topic.name) for topic in topics],
        "action": visit.link("alarms", "new"),
        "others": [(each, visit.link("alarms", "new", of=each)) for each in _DIMENSIONS if each != of],
        "back": visit.link("alarms"),
    }
    return Page("new_alarm.html", values, status)
