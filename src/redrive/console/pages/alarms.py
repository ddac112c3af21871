"""Alarms: listed by state, one with its line and threshold, its history, and what it does."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from redrive.aws.cloudwatch.metrics.own_metrics import series_of
from redrive.console import links
from redrive.console.alarm_words import (
    condition,
    condition_words,
    history_words,
    last_value,
    measure_text,
    metric_of,
    metric_texts,
    period_seconds,
    subject,
    value_words,
)
from redrive.console.charts import Curve, TimeChart, figure, sparkline, time_chart
from redrive.console.navigation import troubled_subscriptions
from redrive.console.pages.metrics import metric_words, statistic_value, sum_by_moment
from redrive.console.visit import PAGE_ROWS, Missing, Page, Redirect, Unusable, Visit
from redrive.model.durations import HOUR_MS
from redrive.model.metric import MINUTE_MS, PointQuery
from redrive.model.names import ResourceName

STATES: Final = ("ALARM", "INSUFFICIENT_DATA", "OK")
KINDS: Final = ("MetricAlarm", "CompositeAlarm")
HISTORY_ROWS: Final = 20
QUERIES_DRAWN_MAX: Final = 4  # of an expression: a look each
_PERIODS_DRAWN: Final = 60
_TOPICS_MAX: Final = 2  # whose receivers are counted
_TREND_MS: Final = 30 * MINUTE_MS
_THINGS: Final = {"QueueName": "queues", "TopicName": "topics", "FunctionName": "functions"}
_ACTIONS: Final = {"ALARM": "AlarmActions", "OK": "OKActions", "INSUFFICIENT_DATA": "InsufficientDataActions"}


async def listing(visit: Visit) -> Page:
    """Alarms, those that are in alarm first; or those in one state."""
    state, after = visit.parameter("state"), visit.parameter("after")
    rows: list[dict[str, Any]] = []
    more = ""
    states = [state] if state in STATES else STATES
    for value in states:
        if len(rows) == PAGE_ROWS:
            more = visit.link("alarms", state=value)
            break
        params: dict[str, Any] = {
            "AlarmTypes": list(KINDS),
            "StateValue": value,
            "MaxRecords": PAGE_ROWS - len(rows),
        }
        answer = await visit.call(
            "cloudwatch", "DescribeAlarms", {**params, "NextToken": after} if after else params
        )
        alarms = [*answer["CompositeAlarms"], *answer["MetricAlarms"]]
        rows += [_row(visit, alarm) for alarm in sorted(alarms, key=lambda alarm: str(alarm["AlarmName"]))]
        if answer.get("NextToken"):
            more = visit.link("alarms", state=value, after=answer["NextToken"])
            break
    trends = await _trends(visit, [row["alarm"] for row in rows])
    values = {
        "rows": [{**row, "trend": trends.get(row["alarm"]["AlarmName"])} for row in rows],
        "state": state,
        "states": [
            ("", visit.link("alarms")),
            *((each, visit.link("alarms", state=each)) for each in STATES),
        ],
        "first": visit.link("alarms", state=state) if after else "",
        "next": more,
        "new": visit.link("alarms", "new"),
    }
    return Page("alarms.html", values, live_seconds=5)


async def one(visit: Visit) -> Page:
    """An alarm: its state, its line with the threshold, its actions and its history."""
    alarm = await _existing_alarm(visit)
    name = alarm["AlarmName"]
    history = await visit.call(
        "cloudwatch",
        "DescribeAlarmHistory",
        {"AlarmName": name, "AlarmTypes": list(KINDS), "MaxRecords": HISTORY_ROWS},
    )
    actions = actions_of(visit, alarm)
    values = {
        "alarm": alarm,
        "row": _row(visit, alarm),
        "value": last_value(alarm, alarm.get("StateReasonData")),
        "subject": subject(alarm),
        "chart": await _chart(visit, alarm),
        "metrics": metric_texts(alarm),
        "actions": actions,
        "reach": await _reach(visit, [each.arn for _, targets in actions for each in targets]),
        "history": [
            (item, history_words(item["HistorySummary"], item["HistoryData"]))
            for item in history["AlarmHistoryItems"]
        ],
        "change": visit.link("alarms", "alarm"),
        "set_state": visit.link("alarms", "state", name=name),
        "back": visit.link("alarms"),
    }
    return Page("alarm.html", values, live_seconds=5)


async def change(visit: Visit) -> Redirect:
    """Switch the actions of an alarm on or off."""
    name, enabled = visit.parameter("name"), visit.parameter("do") == "enable"
    await _existing_alarm(visit)
    operation = "EnableAlarmActions" if enabled else "DisableAlarmActions"
    await visit.call("cloudwatch", operation, {"AlarmNames": [name]})
    sentence = (
        "Its actions are performed from now on"
        if enabled
        else "Its actions are not performed until you enable them"
    )
    link = visit.link("alarms", "alarm", name=name)
    fields = {"name": [name], "do": ["disable" if enabled else "enable"]}
    return Redirect(link, sentence=sentence, undo=(link.removeprefix(visit.base).partition("?")[0], fields))


async def state_form(visit: Visit) -> Page:
    """The state that an alarm would be set to, and what that sets off: asked before it is done."""
    alarm = await _existing_alarm(visit)
    values = {
        "alarm": alarm,
        "states": [(state, _actions(visit, alarm, state)) for state in STATES],
        "back": visit.link("alarms", "alarm", name=alarm["AlarmName"]),
    }
    return Page("alarm_state.html", values)


async def set_state(visit: Visit) -> Redirect:
    """Set the state of an alarm, until it is evaluated again."""
    name, state = visit.parameter("name"), visit.parameter("state")
    if state not in STATES:
        raise Unusable(f"A state is one of {', '.join(STATES)}.")
    reason = visit.parameter("reason").strip() or "Set from the console"
    await visit.call(
        "cloudwatch", "SetAlarmState", {"AlarmName": name, "StateValue": state, "StateReason": reason}
    )
    sentence = f"It is {state} until it is evaluated again"
    return Redirect(visit.link("alarms", "alarm", name=name), sentence=sentence)


async def _existing_alarm(visit: Visit) -> Mapping[str, Any]:
    """The alarm that a link or a form names; raises Missing if there is none."""
    answer: Mapping[str, Any] = {}
    if name := visit.parameter("name"):
        params = {"AlarmNames": [name], "AlarmTypes": list(KINDS)}
        answer = await visit.call("cloudwatch", "DescribeAlarms", params)
    for kind in KINDS:
        for alarm in answer.get(f"{kind}s", ()):
            return {**alarm, "Kind": kind}
    raise Missing(f"There is no alarm {name[:200]} in {visit.scope.account} {visit.scope.region}.")


# ---- rows ------------------------------------------------------------------------------------------------------


def _row(visit: Visit, alarm: Mapping[str, Any]) -> dict[str, Any]:
    """The row of an alarm: its condition, the things that it is about, and the receivers it tells."""
    return {
        "alarm": alarm,
        "condition": condition(alarm),
        "words": condition_words(alarm),
        "of": [
            (str(each["Value"]), visit.link(_THINGS[each["Name"]], str(each["Value"])))
            if each["Name"] in _THINGS
            else (str(each["Value"]), "")
            for each in alarm.get("Dimensions", ())
        ],
        "tells": _actions(visit, alarm, "ALARM"),
        "link": visit.link("alarms", "alarm", name=alarm["AlarmName"]),
    }


def actions_of(visit: Visit, alarm: Mapping[str, Any]) -> list[tuple[str, Sequence[links.Target]]]:
    """The actions of an alarm by the state that sets them off."""
    by_state = [(state, _actions(visit, alarm, state)) for state in STATES]
    return [(state, actions) for state, actions in by_state if actions]


def _actions(visit: Visit, alarm: Mapping[str, Any], state: str) -> list[links.Target]:
    return [links.target(visit, arn) for arn in alarm.get(_ACTIONS[state], ())]


class Reach(NamedTuple):
    """The receivers that a topic passes an alarm's notice on to."""

    confirmed: int  # Receivers that get it
    troubled: int  # Of those, the ones that fail or are on hold
    more: bool  # Whether there are more than were looked at


async def _reach(visit: Visit, arns: Sequence[str]) -> dict[str, Reach]:
    """The reach of each topic among the actions of an alarm, the first ones of them: a read each."""
    topics: dict[str, ResourceName] = {}
    for arn in [each for each in dict.fromkeys(arns) if each.startswith("arn:aws:sns:")][:_TOPICS_MAX]:
        region, account, name = arn.split(":", 5)[3:]
        if visit.session.sees(account):
            topics[arn] = ResourceName(account, region, name)
    troubled = await troubled_subscriptions(visit, {topic._replace(name="") for topic in topics.values()})
    reach: dict[str, Reach] = {}
    for arn, topic in topics.items():
        page = await visit.engine.resources.subscriptions.of(topic, limit=PAGE_ROWS)
        confirmed = [each.key for each in page if each.confirmed]
        number = len(set(confirmed) & set(troubled))
        reach[arn] = Reach(len(confirmed), number, len(page) == PAGE_ROWS)
    return reach


class Trend(NamedTuple):
    """The last half hour of an alarm's metric."""

    now: str  # The latest value, as text
    curve: Curve | None  # The last half hour; None: there is nothing but zeros


async def _trends(visit: Visit, alarms: Sequence[Mapping[str, Any]]) -> dict[str, Trend]:
    """Trends of alarms on single metrics, by the alarms' names: one read for all of them."""
    scope, begin = visit.scope, max(0, (visit.now - _TREND_MS) // MINUTE_MS * MINUTE_MS)
    simple = {each["AlarmName"]: each for each in alarms if each.get("MetricName") and each.get("Statistic")}
    series = {
        name: series_of(scope.account, scope.region, metric_of(alarm)) for name, alarm in simple.items()
    }
    all_series = [each for of_alarm in series.values() for each in of_alarm]
    query = PointQuery(all_series, begin, visit.now + 1, MINUTE_MS)
    points = await visit.installation.telemetry.find_points_each(query) if all_series else {}
    trends = {}
    for name, alarm in simple.items():
        minutes = sum_by_moment(bucket for each in series[name] for bucket in points.get(each.id, ()))
        if minutes:
            values = {at: statistic_value(each, alarm["Statistic"]) for at, each in minutes.items()}
            trends[name] = _trend(values, begin, visit.now, alarm["MetricName"])
    return trends


def _trend(values: Mapping[int, float], begin: int, now: int, metric: str) -> Trend:
    """The latest value of a metric and, unless all are 0, its curve minute by minute."""
    latest = values[max(values)]
    words = f"{metric_words(metric)} in the last 30 min: {figure(max(values.values()))} at most"
    line = [values.get(at, 0.0) for at in range(begin, now, MINUTE_MS)]
    text = value_words(metric, latest)
    return Trend(text, sparkline(line, words) if any(line) else None)


# ---- the line --------------------------------------------------------------------------------------------------


async def _chart(visit: Visit, alarm: Mapping[str, Any]) -> TimeChart | None:
    """The line that an alarm looks at, over the last hours; None: it has none, or one of too many metrics."""
    queries = _queries(alarm)
    if not queries or len(queries) > QUERIES_DRAWN_MAX:
        return None
    period_ms = 1000 * period_seconds(alarm)
    span = max(HOUR_MS, _PERIODS_DRAWN * period_ms)
    since = (visit.now - span) // period_ms * period_ms
    answer = await visit.call(
        "cloudwatch",
        "GetMetricData",
        {
            "MetricDataQueries": queries,
            "StartTime": since,
            "EndTime": visit.now,
            "ScanBy": "TimestampAscending",
        },
    )
    results = answer["MetricDataResults"]
    points = list(zip(results[0]["Timestamps"], results[0]["Values"], strict=True)) if results else []
    line = {alarm.get("Statistic") or measure_text(alarm): points}
    return time_chart(line, since, visit.now, period_ms, alarm.get("Threshold"))


def _queries(alarm: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The metrics of an alarm as GetMetricData asks for them; none of a composite alarm."""
    if alarm.get("Metrics"):
        return list(alarm["Metrics"])
    if not alarm.get("MetricName"):
        return []
    metric = {name: alarm[name] for name in ("Namespace", "MetricName", "Dimensions") if alarm.get(name)}
    stat = {
        "Metric": metric,
        "Period": alarm["Period"],
        "Stat": alarm.get("Statistic") or alarm["ExtendedStatistic"],
    }
    if alarm.get("Unit"):
        stat["Unit"] = alarm["Unit"]
    return [{"Id": "m", "MetricStat": stat}]
