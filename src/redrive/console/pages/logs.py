"""Logs: groups, their streams, and the events of a group by pattern and time."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from redrive.aws.logs.events import read_events
from redrive.aws.logs.filter_pattern import match_steps, read_pattern
from redrive.aws.logs.places import GROUP, LogPlaces
from redrive.aws.wire.errors import AwsError
from redrive.console import json_text
from redrive.console.visit import PAGE_ROWS, Missing, Page, Unusable, Visit, whole
from redrive.console.words import many, moment
from redrive.model.durations import MINUTE_MS
from redrive.model.log import END_OF_TIME, LogEvent, LogGroup, LogQuery, LogStream
from redrive.model.queue import DAY_MS

LISTED_LINES: Final = 5000  # of the last hour, of all groups of a list together
_ERROR_PATTERN: Final = "?ERROR ?error ?FATAL ?CRITICAL ?Traceback"
LOOKED_AT: Final = 400  # events for one page of those that match: four looks
_LATER: Final = 20  # events of the same stream that stand before one whose surroundings are shown
_STREAMS_MAX: Final = 1000
_MESSAGE_CHARS: Final = 10_000  # of an event that may have a million
#: How far back a page looks, by the words of its form.
LAST: Final[Mapping[str, int]] = {
    "15 min": 15 * MINUTE_MS,
    "1 h": 60 * MINUTE_MS,
    "6 h": 360 * MINUTE_MS,
    "24 h": 1440 * MINUTE_MS,
}


_BARS_OF: Final = 1000  # events that one look counts by level: 5 ms
_BARS_MAX: Final = 60
_BAR_HEIGHT: Final = 40
_STEPS_MS: Final = tuple(each * MINUTE_MS for each in (1, 5, 15, 60, 360, 1440, 10_080, 525_600))
_JSON_LEVEL: Final = re.compile(r'"(?:level|severity|lvl)"\s*:\s*"(\w+)"', re.IGNORECASE)
_WRITTEN_LEVEL: Final = re.compile(r"\b(?:(FATAL|CRITICAL|ERROR|Traceback)|WARN(?:ING)?)\b")
_LEVEL_CHARS: Final = 300  # from the beginning of an event, where its level stands
_ERRORS: Final = ("fatal", "critical", "error")
_UUID: Final = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


@dataclass(frozen=True, slots=True)
class Range:
    """The time that is looked at."""

    since: int = 0  # From that moment on (ms)
    until: int = END_OF_TIME  # Until before that moment (ms)


async def listing(visit: Visit) -> Page:
    """Log groups by name, with their size."""
    pattern, after = visit.parameter("pattern").strip(), visit.parameter("after")
    params: dict[str, Any] = {"limit": PAGE_ROWS}
    if pattern:
        params["logGroupNamePattern"] = pattern
    if after:
        params["nextToken"] = after
    answer = await visit.call("logs", "DescribeLogGroups", params)
    hours = await _last_hour(visit, [group["logGroupName"] for group in answer["logGroups"]])
    rows = [
        {
            "group": group,
            "hour": hours.get(group["logGroupName"]),
            "errors": visit.link(
                "logs", "group", name=group["logGroupName"], last="1 h", pattern=_ERROR_PATTERN
            ),
            "link": visit.link("logs", "group", name=group["logGroupName"]),
            "streams": visit.link("logs", "streams", name=group["logGroupName"]),
        }
        for group in answer["logGroups"]
    ]
    more = answer.get("nextToken") if len(rows) == PAGE_ROWS else None  # a pattern's pages always have one
    values = {
        "rows": rows,
        "pattern": pattern,
        "first": visit.link("logs", pattern=pattern) if after else "",
        "next": visit.link("logs", pattern=pattern, after=more) if more else "",
    }
    return Page("logs.html", values, live_seconds=10)


class LogHour(NamedTuple):
    """The last hour of a log group."""

    lines: int
    at_most: int  # So many were looked at
    errors: int | None  # Among these; None: bodies are hidden
    last: str  # The newest that is an error; empty: there is none


async def _last_hour(visit: Visit, names: Sequence[str]) -> dict[str, LogHour]:
    """The newest lines of the last hour of some groups by name: one read, in which groups have equal shares."""
    await visit.installation.settle()
    keys = {visit.scope._replace(name=name).key: name for name in names}
    groups = await visit.engine.resources.documents.get_each([(GROUP, key) for key in keys])
    by_id = {group.id: keys[key] for (_, key), group in groups.items()}
    if not by_id:
        return {}
    share, since = LISTED_LINES // len(by_id), visit.now - LAST["1 h"]
    read = await visit.installation.telemetry.log_beginnings(list(by_id), since, share, _LEVEL_CHARS)
    return {by_id[group_id]: _hour(visit, lines, share) for group_id, lines in read.items()}


def _hour(visit: Visit, lines: Sequence[str], share: int) -> LogHour:
    if not visit.bodies_shown:
        return LogHour(len(lines), share, None, "")
    errors = [line for line in lines if level_of(line) == "error"]
    return LogHour(len(lines), share, len(errors), errors[0] if errors else "")


async def streams(visit: Visit) -> Page:
    """The streams of a group, the one with the latest event first."""
    name, after = visit.parameter("name"), visit.parameter("after")
    params = {"logGroupName": name, "orderBy": "LastEventTime", "descending": True, "limit": PAGE_ROWS}
    await _group(visit, name)
    answer = await visit.call(
        "logs", "DescribeLogStreams", {**params, "nextToken": after} if after else params
    )
    rows = [
        {"stream": stream, "link": visit.link("logs", "group", name=name, stream=stream["logStreamName"])}
        for stream in answer["logStreams"]
    ]
    more = answer.get("nextToken")
    values = {
        "name": name,
        "rows": rows,
        "events": visit.link("logs", "group", name=name),
        "first": visit.link("logs", "streams", name=name) if after else "",
        "next": visit.link("logs", "streams", name=name, after=more) if more else "",
        "back": visit.link("logs"),
    }
    return Page("log_streams.html", values, live_seconds=10)


async def events(visit: Visit) -> Page:
    """The events of a group, latest first: those of a stream, that match a pattern, within a time."""
    name, stream = visit.parameter("name"), visit.parameter("stream")
    pattern = visit.parameter("pattern").strip()
    if pattern and not visit.bodies_shown:
        raise Unusable("What was logged is not shown here, so it is not searched either.")
    pattern_filter = read_pattern(pattern)
    group = await _group(visit, name)
    group_streams = await LogPlaces(visit.engine.resources.documents).streams(group, limit=_STREAMS_MAX)
    around = _position(visit.parameter("around"))
    query = await _surrounding(visit, _query(visit, group, group_streams, stream), around)
    lines, cursor = await read_events(
        visit.installation.telemetry,
        query,
        lambda event: pattern_filter.matches(event.message),
        LOOKED_AT,
        account=group.name.account,
        steps=lambda event: match_steps(pattern, pattern_filter.regexes, event.message),
    )
    bars = await _bars(visit, query) if not (visit.live_alone or visit.parameter("after") or around) else None
    names = {each.id: each.name for each in group_streams}
    params = {
        "name": name,
        "stream": stream,
        "pattern": pattern,
        **{field: visit.parameter(field) for field in ("last", "since", "until")},
    }
    after = visit.parameter("after")
    values = {
        "params": params,
        "lasts": list(LAST),
        "bars": bars,
        "readable": visit.bodies_shown,
        "rows": [{**_row(visit, event, names), "chosen": event.position == around} for event in lines],
        "first": visit.link("logs", "group", **params) if after or around else "",
        "next": visit.link("logs", "group", **params, after=_cursor(cursor)) if cursor else "",
        "streams": visit.link("logs", "streams", name=name),
        "form": visit.link("logs", "group"),
        "clear": visit.link("logs", "group", name=name),
        "back": visit.link("logs"),
    }
    return Page("log_events.html", values, live_seconds=0 if after or around else 5)


async def _group(visit: Visit, name: str) -> LogGroup:
    """The log group of this name; raises Missing if there is none."""
    await visit.installation.settle()  # which makes groups that this node writes to
    try:
        return await LogPlaces(visit.engine.resources.documents).group(visit.scope._replace(name=name))
    except AwsError:
        why = (
            " A topic writes one if its delivery-status attributes name a role." if name[:4] == "sns/" else ""
        )
        raise Missing(f"There is no log group {name[:200]} in {visit.scope.region} (yet).{why}") from None


def _query(visit: Visit, group: LogGroup, group_streams: list[LogStream], stream: str) -> LogQuery:
    """The query that the address asks for: a time, a text, and one stream of the group or all."""
    time = time_range(visit)
    stream_ids = None
    if stream:
        stream_ids = tuple(each.id for each in group_streams if each.name == stream)
        if not stream_ids:
            raise Missing(f"There is no stream {stream[:200]} in {group.name.name}.")
    return LogQuery(
        group.id,
        limit=PAGE_ROWS,
        stream_ids=stream_ids,
        since=time.since,
        until=time.until,
        after=_position(visit.parameter("after")),
        backwards=True,
    )


async def _surrounding(visit: Visit, query: LogQuery, around: tuple[int, int] | None) -> LogQuery:
    """The query of the events around one of them: it begins with those that followed it."""
    if around is None:
        return query
    later = await visit.installation.telemetry.find_events(
        replace(query, limit=_LATER + 1, after=around, backwards=False)
    )
    return replace(query, after=later[_LATER].position if len(later) > _LATER else None)


def _row(visit: Visit, event: LogEvent, names: Mapping[int, str]) -> dict[str, Any]:
    """The row of an event; a UUID in it leads to the trace of that message."""
    message = event.message[:_MESSAGE_CHARS].rstrip("\n") if visit.bodies_shown else None
    uuid_match = None if message is None else _UUID.search(message)
    stream = names.get(event.stream_id, "")
    return {
        "at": event.at,
        "stream": stream,
        "around": visit.link(
            "logs", "group", name=visit.parameter("name"), stream=stream, around=_cursor(event.position)
        ),
        "message": message,
        "pretty": None if message is None else json_text.pretty(message),
        "level": "" if message is None else level_of(message),
        "trace": "" if uuid_match is None else visit.link("messages", uuid_match[0]),
        "today": event.at // DAY_MS == visit.now // DAY_MS,
        "cut": len(event.message) > _MESSAGE_CHARS,
    }


# ---- levels ----------------------------------------------------------------------------------------------------


def level_of(message: str) -> str:
    """`error` or `warn`, as an event says of itself where it begins; empty: it is neither."""
    begin = message[:_LEVEL_CHARS]
    if (level_match := _JSON_LEVEL.search(begin)) is not None:
        level = level_match[1].lower()
        if level in _ERRORS:
            return "error"
        return "warn" if level.startswith("warn") else ""
    level_word = _WRITTEN_LEVEL.search(begin)
    if level_word is None:
        return ""
    return "error" if level_word[1] else "warn"


class Bar(NamedTuple):
    """The events of some minutes."""

    x: float  # Where it stands (percent)
    width: float  # How wide it is (percent)
    # Of errors, of warnings and of all else: its place from the top and its height.
    parts: Sequence[tuple[str, int, int]]
    words: str  # What it counts
    link: str  # To these events


class Bars(NamedTuple):
    """The newest events of a time by level."""

    bars: Sequence[Bar]  # In order of time; those of no event are left out
    number: int  # How many events there are
    capped: bool  # Whether there are more before them
    errors: int  # How many of them are such
    warnings: int  # How many of them are such
    since: int  # The time that they are drawn over (ms)
    until: int  # The time that they are drawn over (ms)


async def _bars(visit: Visit, query: LogQuery) -> Bars | None:
    """The newest events of a query by minutes and level; None: there are none, or they may not be read."""
    if not visit.bodies_shown:
        return None
    page = await visit.installation.telemetry.find_events(replace(query, limit=_BARS_OF))
    if not page:
        return None
    until = min(query.until, max(visit.now, page[0].at) + 1)
    since = query.since or page[-1].at
    step = next((each for each in _STEPS_MS if (until - since) / each <= _BARS_MAX), _STEPS_MS[-1])
    since = since // step * step
    counts: dict[int, Counter[str]] = {}
    for event in page:
        counts.setdefault((event.at - since) // step, Counter())[level_of(event.message)] += 1
    most = max(each.total() for each in counts.values())
    slots = max(1, -(-(until - since) // step))
    bars = [
        _bar(visit, since + step * slot, step, (100 * slot / slots, 100 / slots), each, most)
        for slot, each in sorted(counts.items())
    ]
    levels = sum(counts.values(), Counter[str]())
    return Bars(
        bars, len(page), len(page) == _BARS_OF, levels["error"], levels["warn"], since, since + step * slots
    )


def _bar(
    visit: Visit, at: int, step: int, position: tuple[float, float], counts: Counter[str], most: int
) -> Bar:
    """The bar of `step` ms from `at` on; the one with the `most` events has all the height."""
    x, width = position
    parts, top = [], _BAR_HEIGHT
    for level in ("error", "warn", ""):
        if height := -(-counts[level] * _BAR_HEIGHT // most):  # rounded up
            top -= height
            parts.append((level, max(0, top), height))
    fields = {name: visit.parameter(name) for name in ("name", "stream", "pattern")}
    link = visit.link("logs", "group", **fields, since=moment(at)[:19], until=moment(at + step)[:19])
    total, errors = counts.total(), counts["error"]
    words = f"{moment(at)[11:16]}Z: {total:,} {many(total, 'event')}, {errors:,} {many(errors, 'error')}"
    return Bar(round(x, 2), round(width, 2), parts, words, link)


# ---- time and place --------------------------------------------------------------------------------------------


def time_range(visit: Visit) -> Range:
    """The time that a form asks for: the last minutes or hours, or from a moment to another, in UTC.

    Raises:
        Unusable: A moment cannot be read.
    """
    last = visit.parameter("last")
    if last in LAST:
        return Range(since=visit.now - LAST[last])
    since, until = _moment(visit.parameter("since")), _moment(visit.parameter("until"))
    return Range(since or 0, END_OF_TIME if until is None else until)


def _moment(text: str) -> int | None:
    """The moment (ms) of a typed date and time, in UTC unless it has a zone; None: nothing was typed. Raises Unusable."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise Unusable(f"{text[:40]!r} is not a time like 2026-11-22T05:00.") from None


def _cursor(position: tuple[int, int]) -> str:
    return f"{position[0]}.{position[1]}"


def _position(cursor: str) -> tuple[int, int] | None:
    at, _, seq = cursor.partition(".")
    return (whole(at), whole(seq)) if cursor else None
