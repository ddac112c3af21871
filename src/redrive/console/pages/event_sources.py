"""Event sources: what feeds which function, and whether it keeps up; and one, with a tester of its filter."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from redrive.aws.lambda_.documents.records import MAPPING, EventSourceMapping
from redrive.aws.lambda_.invocations.metrics import BATCHES, FAILED, FAILED_IN_PART, SUCCEEDED, batch_series
from redrive.aws.lambda_.mappings.batches import MappingFilter
from redrive.console import json_text, links
from redrive.console.commands import aws_command
from redrive.console.hour import Hour, last_hour
from redrive.console.sorting import Row, sorted_page
from redrive.console.visit import Missing, Page, Redirect, Visit
from redrive.engine.ports import Counts
from redrive.model.queue import Queue

COUNTED_MAX: Final = 10_000
MAPPINGS_MAX: Final = 500
_EMPTY: Final = Counts(0, 0, 0)


async def listing(visit: Visit) -> Page:
    """The event source mappings of an account's region, those that fail first."""
    text = visit.parameter("filter").strip().lower()
    mappings = await mappings_of(visit)
    matches = [each for each in mappings if text in f"{each.queue.name} {each.function.name}".lower()]
    hour = await _hour(visit, matches)
    levels = {level.name: level.counts.available for level in visit.installation.queue_levels()}
    rows = [{**_row(visit, each, hour), "waiting": levels.get(each.queue, 0)} for each in matches]
    columns: dict[str, Callable[[Row], Any]] = {
        "source": lambda row: row["source"].name,
        "function": lambda row: row["function"].name,
        "waiting": lambda row: row["waiting"],
        "batches": lambda row: row["batches"],
        "failed": lambda row: row["failed"],
    }
    page = sorted_page(
        visit, sorted(rows, key=_urgency), columns, "event-sources", filter=visit.parameter("filter")
    )
    counts = await _waiting(visit, [row["mapping"] for row in page.rows])
    values = {
        "page": page,
        "counts": counts,
        "at_most": COUNTED_MAX,
        "filter": visit.parameter("filter"),
        "form": visit.link("event-sources"),
        "start": _create_command(visit),
    }
    return Page("event_sources.html", values, live_seconds=5)


def _urgency(row: Row) -> tuple[bool, float, int, str]:
    """The key that mappings are sorted by: enabled ones first, by the share of failed batches, then by what waits."""
    return (
        not row["mapping"].enabled,
        -row["failed"] / (row["batches"] or 1),
        -row["waiting"],
        row["source"].name,
    )


def _create_command(visit: Visit) -> str:
    queue = f"arn:aws:sqs:{visit.args['region']}:{visit.args['account']}:orders"
    names = ("--function-name", "bill", "--event-source-arn", queue)
    return aws_command(visit, "lambda", "create-event-source-mapping", *names)


async def one(visit: Visit) -> Page:
    """A mapping: its figures, its settings, and whether its filter accepts a typed record."""
    mapping = await _mapping(visit)
    hour = await _hour(visit, [mapping])
    series = {result: [batch_series(mapping, result)] for result in BATCHES}
    labels = {"Succeeded": series[SUCCEEDED], "Failed": series[FAILED] + series[FAILED_IN_PART]}
    values = {
        **_row(visit, mapping, hour),
        "counts": (await _waiting(visit, [mapping]))[mapping.queue],
        "at_most": COUNTED_MAX,
        "chart": hour.line_chart(labels),
        "filters": [json_text.pretty(pattern) or pattern for pattern in mapping.filters],
        "record": visit.parameter("record"),
        "verdict": _verdict(mapping, visit.parameter("record")),
        "form": visit.link("event-sources", mapping.id),
    }
    return Page("event_source.html", values, live_seconds=5)


def _verdict(mapping: EventSourceMapping, text: str) -> tuple[bool, str] | None:
    """The fate of a message with this body: True if it goes to the function, and a sentence; None: none was typed."""
    if not text.strip():
        return None
    if not mapping.filters:
        return True, "It goes to the function: there is no filter."
    record = {"body": text, "eventSource": "aws:sqs", "eventSourceARN": mapping.queue_arn}
    if MappingFilter(mapping.filters).matches(record):
        return True, "It goes to the function."
    hint = "" if _is_document(text) else " It is not a JSON object or array, so patterns see it as text."
    return (
        False,
        f"No pattern matches: it would be deleted from the queue, and the function would not get it.{hint}",
    )


def _is_document(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict | list)
    except orjson.JSONDecodeError:
        return False


async def change(visit: Visit) -> Redirect:
    """Switch a mapping on or off, by the service's own rules."""
    mapping, enabled = await _mapping(visit), visit.parameter("do") == "enable"
    await visit.call("lambda", "UpdateEventSourceMapping", {"UUID": mapping.id, "Enabled": enabled})
    source = mapping.queue.name
    sentence = f"{source} is consumed from now on" if enabled else f"{source} is no longer consumed"
    undo = visit.here.removeprefix(visit.base), {"do": ["disable" if enabled else "enable"]}
    return Redirect(visit.link("event-sources"), sentence=sentence, undo=undo)


async def mappings_of(visit: Visit) -> list[EventSourceMapping]:
    """The mappings of the account and region of a page, from queues to functions."""
    beginning = f"{visit.scope.account}/{visit.scope.region}/"
    return await visit.engine.resources.documents.find(MAPPING, beginning, limit=MAPPINGS_MAX)


async def _mapping(visit: Visit) -> EventSourceMapping:
    """The event source mapping that the address names; raises Missing if there is none."""
    mapping_id = visit.args["mapping"]
    key = f"{visit.scope.account}/{visit.scope.region}/{mapping_id}"
    mapping = await visit.engine.resources.documents.get(MAPPING, key)
    if mapping is None:
        raise Missing(f"There is no event source {mapping_id[:80]}.")
    return mapping


async def _hour(visit: Visit, mappings: Sequence[EventSourceMapping]) -> Hour:
    await visit.installation.settle()
    series = [batch_series(each, result) for each in mappings for result in BATCHES]
    return await last_hour(visit.installation.telemetry, series, visit.now)


async def _waiting(visit: Visit, mappings: Sequence[EventSourceMapping]) -> Mapping[Any, Counts]:
    """The counts of the queues of these mappings, by the queues' names: one read for all of them."""
    queues: dict[Any, Queue] = {}
    for mapping in mappings:
        queue = await visit.engine.resources.queues.get(mapping.queue)
        if queue is not None:
            queues[mapping.queue] = queue
    counts = await visit.engine.messages.count_each(list(queues.values()), COUNTED_MAX) if queues else {}
    return {
        each.queue: counts[queues[each.queue].id] if each.queue in queues else _EMPTY for each in mappings
    }


def _row(visit: Visit, mapping: EventSourceMapping, hour: Hour) -> dict[str, Any]:
    """The row of a mapping: its queue, its function, and the batches of the hour."""
    series = {result: batch_series(mapping, result) for result in BATCHES}
    tallies = {result: hour.tally(each) for result, each in series.items()}
    batches = hour.tally(*series.values())
    return {
        "mapping": mapping,
        "source": links.target(visit, mapping.queue_arn),
        "function": links.target(visit, mapping.reference.arn),
        "batches": batches.samples,
        "messages": round(batches.total),
        "failed": tallies[FAILED].samples + tallies[FAILED_IN_PART].samples,
        "last": _last(hour, series),
        "drawn": hour.sparkline(
            f"{batches.samples:,} batches in the last hour, minute by minute", *series.values()
        ),
        "link": visit.link("event-sources", mapping.id),
        "change": visit.link("event-sources", mapping.id),
    }


def _last(hour: Hour, series: Mapping[str, Any]) -> dict[str, Any] | None:
    """The outcome of the batches of the last minute in which there was one; None: there was none in the hour."""
    last_at = hour.tally(*series.values()).last_at
    if last_at is None:
        return None
    minutes = {
        result: [bucket.statistics for bucket in hour.points(each) if bucket.at == last_at]
        for result, each in series.items()
    }
    failed = sum(statistics.samples for result in (FAILED, FAILED_IN_PART) for statistics in minutes[result])
    return {
        "at": last_at,
        "failed": round(failed),
        "messages": round(sum(statistics.total for each in minutes.values() for statistics in each)),
        "batches": round(sum(statistics.samples for each in minutes.values() for statistics in each)),
    }
