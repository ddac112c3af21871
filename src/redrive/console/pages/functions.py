"""Functions: listed with their troubles of the last hour, and one with its log, its sources and where failures go."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from redrive.aws.lambda_.documents.backlogs import DIALECT, INVOCATIONS, BacklogTarget
from redrive.aws.lambda_.invocations.metrics import NAMESPACE
from redrive.aws.logs.events import read_events
from redrive.aws.logs.places import LogPlaces
from redrive.aws.wire.errors import AwsError
from redrive.console import links
from redrive.console.charts import time_chart, with_zeros
from redrive.console.commands import aws_command
from redrive.console.installation import LIMIT
from redrive.console.pages.invocations import EventRow, event_rows, invocations
from redrive.console.sorting import Row, sorted_page
from redrive.console.visit import PAGE_ROWS, Missing, Page, Redirect, Visit
from redrive.model.durations import HOUR_MS
from redrive.model.log import LogQuery
from redrive.model.metric import MINUTE_MS, PeriodStatistics, PointQuery, Series
from redrive.model.topic import Subscription

COUNTED_MAX: Final = 10_000
INVOCATIONS_MAX: Final = 20
_LOOKED_AT: Final = 100  # log events: one look
_BACKLOGS_MAX: Final = 500  # of an account's region: one for each version or alias that got events
_ENDS: Final[Mapping[str, str]] = {
    BacklogTarget.ON_FAILURE: "on failure",
    BacklogTarget.ON_SUCCESS: "on success",
}
_FIGURES: Final = ("Invocations", "Errors", "Throttles")


async def listing(visit: Visit) -> Page:
    """Functions by name: what failed or was throttled in the last hour, and which events wait how long."""
    if not visit.installation.services.offers("lambda"):
        return Page("functions_off.html")
    text = visit.parameter("filter").strip()
    all_functions = await visit.installation.functions.all()
    functions = [
        each.latest
        for each in all_functions
        if each.name._replace(name="") == visit.scope and text.lower() in each.name.name.lower()
    ]
    figures = await _last_hour(visit, [each.name.name for each in functions])
    waiting = await _waiting(visit, await _backlogs_of(visit, ""))
    rows = [
        {
            "name": each.name.name,
            "runtime": each.runtime,
            "link": visit.link("functions", each.name.name),
            "figures": figures[each.name.name],
            "waiting": waiting.get(each.name.name, (0, visit.now, 0)),
        }
        for each in functions
    ]
    columns: dict[str, Callable[[Row], Any]] = {
        "name": lambda row: row["name"],
        **{figure.lower(): functools.partial(_figure, figure) for figure in _FIGURES},
        "waiting": lambda row: row["waiting"][0],
    }
    page = sorted_page(visit, sorted(rows, key=_urgency), columns, "functions", filter=text)
    values = {
        "page": page,
        "filter": text,
        "form": visit.link("functions"),
        "is_cut": len(all_functions) == LIMIT,
        "start": _create_command(visit),
        "at_most": COUNTED_MAX,
    }
    return Page("functions.html", values, live_seconds=5)


def _urgency(row: Mapping[str, Any]) -> tuple[int, int, int]:
    """The order of functions of a page: those that fail first, then those that are throttled, then by what waits."""
    return -row["figures"]["Errors"], -row["figures"]["Throttles"], -row["waiting"][0]


def _figure(figure: str, row: Row) -> int:
    return int(row["figures"][figure])


def _create_command(visit: Visit) -> str:
    role = f"arn:aws:iam::{visit.args['account']}:role/bill"
    code = ("--runtime", "python3.11", "--handler", "app.handler", "--zip-file", "fileb://app.zip")
    return aws_command(visit, "lambda", "create-function", "--function-name", "bill", "--role", role, *code)


async def one(visit: Visit) -> Page:
    """A function: its configuration, its invocations, its sources, and where its failures go."""
    name = visit.args["function"]
    answer = await _function(visit, name)
    configuration: Mapping[str, Any] = answer["Configuration"]
    mappings = await visit.call("lambda", "ListEventSourceMappings", {"FunctionName": name})
    owed = await _backlogs_of(visit, name)
    waiting = await _waiting(visit, owed)
    group = configuration["LoggingConfig"]["LogGroup"]
    chart, figures = await _chart(visit, name)
    values = {
        "function": configuration,
        "reserved": answer.get("Concurrency", {}).get("ReservedConcurrentExecutions"),
        "tags": answer.get("Tags", {}),
        "variables": _variables(visit, configuration),
        "figures": figures,
        "chart": chart,
        "at_most": COUNTED_MAX,
        "waiting": waiting.get(name, (0, visit.now, 0)),
        "events": await _recent_events(visit, group),
        "log": visit.link("logs", "group", name=group),
        "log_name": group,
        "mappings": [_mapping(visit, mapping) for mapping in mappings["EventSourceMappings"][:PAGE_ROWS]],
        "ends": _ends(visit, configuration, owed),
        "invoke": visit.link("functions", name, "invoke"),
        "alarm": visit.link("alarms", "new", function=name),
        "back": visit.link("functions"),
    }
    return Page("function.html", values, live_seconds=5)


async def change_mapping(visit: Visit) -> Redirect:
    """Switch an event source mapping on or off."""
    enabled = visit.parameter("do") == "enable"
    params = {"UUID": visit.args["mapping"], "Enabled": enabled}
    answer = await visit.call("lambda", "UpdateEventSourceMapping", params)
    source = links.target(visit, answer["EventSourceArn"]).name
    sentence = f"{source} is consumed from now on" if enabled else f"{source} is no longer consumed"
    undo = visit.here.removeprefix(visit.base), {"do": ["disable" if enabled else "enable"]}
    return Redirect(visit.link("functions", visit.args["function"]), sentence=sentence, undo=undo)


async def _function(visit: Visit, name: str) -> Mapping[str, Any]:
    """A function as Lambda shows it; raises Missing, with a name that is near, if there is none."""
    if not visit.installation.services.offers("lambda"):
        raise Missing("This server runs no functions: start it with --functions on.")
    try:
        return await visit.call("lambda", "GetFunction", {"FunctionName": name})
    except AwsError as error:
        here = [each.name for each in await visit.installation.functions.all()]
        near = visit.nearest(
            "functions", name, (each.name for each in here if each._replace(name="") == visit.scope)
        )
        raise Missing(error.message, near) from None


def _variables(visit: Visit, configuration: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """The variables of a function; their values None where bodies are hidden: they are as secret."""
    variables = configuration.get("Environment", {}).get("Variables", {})
    return [(name, value if visit.bodies_shown else None) for name, value in sorted(variables.items())]


# ---- figures -----------------------------------------------------------------------------------------------------


async def _last_hour(visit: Visit, names: Sequence[str]) -> dict[str, dict[str, int]]:
    """The sums of each function in the last hour, in one read."""
    await visit.installation.settle()
    series = {(name, figure): _series(visit, name, figure) for name in names for figure in _FIGURES}
    since = visit.now - HOUR_MS
    query = PointQuery(list(series.values()), since - since % MINUTE_MS, visit.now + 1, 2 * HOUR_MS)
    points = await visit.installation.telemetry.find_points_each(query) if names else {}
    totals = {key: _total(points.get(each.id, ())) for key, each in series.items()}
    return {name: {figure: totals[name, figure] for figure in _FIGURES} for name in names}


async def _chart(visit: Visit, name: str) -> tuple[Any, dict[str, int]]:
    """The last hour of a function, minute by minute, and its sums."""
    await visit.installation.settle()
    since = (visit.now - HOUR_MS) // MINUTE_MS * MINUTE_MS
    series = {figure: _series(visit, name, figure) for figure in _FIGURES}
    query = PointQuery(list(series.values()), since, visit.now + 1, MINUTE_MS)
    buckets = await visit.installation.telemetry.find_points_each(query)
    points = {
        figure: with_zeros(
            [(bucket.at, bucket.statistics.total) for bucket in buckets.get(each.id, ())],
            since,
            visit.now,
            MINUTE_MS,
        )
        for figure, each in series.items()
    }
    sums = {figure: _total(buckets.get(each.id, ())) for figure, each in series.items()}
    if not any(sums.values()):
        return None, sums
    curves = {figure: values for figure, values in points.items() if figure == "Invocations" or sums[figure]}
    return time_chart(curves, since, max(visit.now, since + HOUR_MS), MINUTE_MS), sums


def _series(visit: Visit, name: str, figure: str) -> Series:
    scope = visit.scope
    return Series(scope.account, scope.region, NAMESPACE, figure, (("FunctionName", name),))


def _total(buckets: Sequence[PeriodStatistics]) -> int:
    return int(sum(bucket.statistics.total for bucket in buckets))


async def _backlogs_of(visit: Visit, name: str) -> list[Subscription]:
    """The backlogs of a function, or of all functions of the scope: of its events, and of the targets of their ends."""
    scope = visit.scope
    backlogs = await visit.engine.resources.subscriptions.of_account(
        scope.account, f"{scope.region}:{DIALECT}", limit=_BACKLOGS_MAX
    )
    return [backlog for backlog in backlogs if name in ("", backlog.topic.name.partition(":")[0])]


async def _waiting(visit: Visit, owed: Sequence[Subscription]) -> dict[str, tuple[int, int, int]]:
    """The number of events that wait for each function, when the first was sent, and when it is tried next (ms)."""
    backlogs = [backlog for backlog in owed if backlog.id == INVOCATIONS]
    counts = await visit.engine.messages.count_backlogs(backlogs, COUNTED_MAX)
    first = await visit.engine.messages.first_owed(backlogs)
    by_function: dict[str, tuple[int, int, int]] = {}
    for backlog in backlogs:
        function = backlog.topic.name.partition(":")[0]
        number, sent_at, next_at = by_function.get(function, (0, visit.now, 0))
        oldest = first.get(backlog.queue_id)
        if oldest is not None and oldest.sent_at <= sent_at:
            sent_at, next_at = oldest.sent_at, oldest.available_at
        by_function[function] = number + sum(counts[backlog.queue_id]), sent_at, next_at
    return by_function


# ---- what a function has ---------------------------------------------------------------------------------------


async def _recent_events(visit: Visit, group: str) -> list[EventRow]:
    """The events whose invocations the newest lines of a function's log tell of."""
    scopes = LogPlaces(visit.engine.resources.documents)
    try:
        log_group = await scopes.group(visit.scope._replace(name=group))
    except AwsError:  # it has not run yet
        return []
    query = LogQuery(log_group.id, limit=_LOOKED_AT, backwards=True)
    events, _ = await read_events(visit.installation.telemetry, query, lambda _: True, _LOOKED_AT)
    calls = invocations(events, INVOCATIONS_MAX)
    if not visit.bodies_shown:
        calls = [each._replace(trouble=each.trouble and "hidden") for each in calls]
    return event_rows(calls)


def _mapping(visit: Visit, mapping: Mapping[str, Any]) -> dict[str, Any]:
    """An event source mapping of the function, with links to its queue and to the form that changes it."""
    source = links.target(visit, mapping["EventSourceArn"])
    return {
        "mapping": mapping,
        "source": source,
        "enabled": mapping["State"] in ("Enabled", "Enabling", "Creating", "Updating"),
        "function": mapping["FunctionArn"].rpartition(":function:")[2],
        "change": visit.link("functions", visit.args["function"], "mappings", mapping["UUID"]),
    }


def _ends(
    visit: Visit, configuration: Mapping[str, Any], owed: Sequence[Subscription]
) -> list[dict[str, Any]]:
    """The targets of events that end: the dead-letter target, and the destinations of each version and alias."""
    letters = configuration.get("DeadLetterConfig", {}).get("TargetArn", "")
    targets = [("$LATEST", "dead letters", letters)] if letters else []
    targets += [
        (backlog.topic.name.partition(":")[2], _ENDS[backlog.id], backlog.endpoint)
        for backlog in owed
        if backlog.id in _ENDS
    ]
    return [
        {
            "of": qualifier,
            "kind": kind,
            "target": links.target(visit, arn),
            "workbench": links.dead_letters(visit, arn) if kind != _ENDS[BacklogTarget.ON_SUCCESS] else "",
        }
        for qualifier, kind, arn in targets
    ]
