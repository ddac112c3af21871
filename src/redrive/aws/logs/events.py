"""PutLogEvents, GetLogEvents and FilterLogEvents.

An answer holds at most ten thousand events or a megabyte. It is put together from small pages of the store's, so
that memory is bounded by a page and an answer whatever the events' sizes.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.kit.offloading import each_in_turn
from redrive.aws.logs import names
from redrive.aws.logs.errors import invalid, invalid_token
from redrive.aws.logs.filter_pattern import match_steps, read_pattern
from redrive.aws.logs.places import LogPlaces, Settle, WriteDown
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import TelemetryStore
from redrive.model.log import END_OF_TIME, EVENT_BYTES, LogEvent, LogGroup, LogQuery
from redrive.model.metric import MINUTE_MS
from redrive.model.queue import DAY_MS

BATCH_BYTES_MAX: Final = 1_048_576
_SPAN_MS: Final = DAY_MS
_PAST_MS: Final = 14 * DAY_MS
_FUTURE_MS: Final = 2 * 60 * MINUTE_MS
EVENTS_MAX: Final = 10_000
ANSWER_BYTES_MAX: Final = 1_048_576
LOOKED_AT_MAX: Final = 10_000  # by one FilterLogEvents, about 50 ms; its token leads on from there
_EVENTS_PER_PAGE: Final = 100
_TOKEN: Final = re.compile(r"([fb])/([0-9]{20})([0-9]{20})", re.ASCII)
Place = tuple[int, int]


class PutEventOperations:
    """Takes events from callers."""

    def __init__(self, places: LogPlaces, write_down: WriteDown) -> None:
        self._places = places
        self._write_down = write_down

    async def put_log_events(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html.

        The sequence token is not asked for, as it is no longer asked for there; one is answered all the same.
        """
        entries: Sequence[Structure] = params["logEvents"]
        group = await self._places.group(names.group_name(call, params["logGroupName"]))
        stream = await self._places.stream(group, params["logStreamName"])
        _check(entries)
        # The entries are in order of time: the first may be too old, the last too new.
        rejections = _rejections(entries, group, call.now)
        first = max(rejections.get("tooOldLogEventEndIndex", 0), rejections.get("expiredLogEventEndIndex", 0))
        last = rejections.get("tooNewLogEventStartIndex", len(entries))
        events = [
            LogEvent(group.id, stream.id, event["timestamp"], call.now, event["message"])
            for event in entries[first:last]
        ]
        if events:
            await self._write_down(events, {stream.id: stream.name})
        answer: Structure = {"nextSequenceToken": f"{call.now:056d}"}
        return answer | {"rejectedLogEventsInfo": rejections} if rejections else answer


def _check(events: Sequence[Structure]) -> None:
    """Refuse events that are too many bytes, out of order, or of more than a day."""
    sizes = [len(event["message"].encode()) + EVENT_BYTES for event in events]
    if sum(sizes) > BATCH_BYTES_MAX:
        raise invalid(f"Upload too large: {sum(sizes)} bytes exceeds limit of {BATCH_BYTES_MAX}")
    moments = [event["timestamp"] for event in events]
    if moments != sorted(moments):
        raise invalid("Log events in a single PutLogEvents request must be in chronological order.")
    if moments[-1] - moments[0] > _SPAN_MS:
        raise invalid(
            "The batch of log events in a single PutLogEvents request cannot span more than 24 hours."
        )


def _rejections(events: Sequence[Structure], group: LogGroup, now: int) -> Structure:
    """The first and the end of the events, in order of time, that can be taken; the rest is reported, not refused."""
    moments = [event["timestamp"] for event in events]
    indexes = {
        "tooOldLogEventEndIndex": sum(at < now - _PAST_MS for at in moments),
        "expiredLogEventEndIndex": sum(at < group.expired_before(now) for at in moments),
    }
    rejections = {name: end for name, end in indexes.items() if end}
    too_new = sum(at > now + _FUTURE_MS for at in moments)
    return rejections | ({"tooNewLogEventStartIndex": len(moments) - too_new} if too_new else {})


class LogReader:
    """Reads events."""

    def __init__(self, store: TelemetryStore, places: LogPlaces, settle: Settle) -> None:
        self._store = store
        self._places = places
        self._settle = settle

    async def get_log_events(self, call: Call, params: Structure) -> Structure:
        await self._settle()
        group = await self._places.group(names.named_group(call, params))
        stream = await self._places.stream(group, params["logStreamName"])
        token = params.get("nextToken")
        forward, after = _read_token(token) if token else (bool(params.get("startFromHead")), None)
        query = LogQuery(
            group.id,
            limit=params.get("limit") or EVENTS_MAX,
            stream_ids=(stream.id,),
            since=params.get("startTime") or 0,
            until=_or_never(params.get("endTime")),
            after=after,
            backwards=not forward,
        )
        events, _ = await read_events(self._store, query, lambda _: True)
        events.sort(key=lambda event: event.position)
        same_place = after or (0, 0)
        return {
            "events": [_as_structure(event) for event in events],
            "nextForwardToken": _token("f", events[-1].position if events else same_place),
            "nextBackwardToken": _token("b", events[0].position if events else same_place),
        }

    async def filter_log_events(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html.

        A page may be empty and still have a token, as there: so many events were looked at, and none matched.
        """
        text = params.get("filterPattern") or ""
        pattern = read_pattern(text)
        await self._settle()
        group = await self._places.group(names.named_group(call, params))
        streams = await self._streams(group, params)
        token, end = params.get("nextToken"), params.get("endTime")
        _, after = _read_token(token) if token else (True, None)
        query = LogQuery(
            group.id,
            limit=params.get("limit") or EVENTS_MAX,
            stream_ids=tuple(streams) if _chooses_streams(params) else None,
            since=params.get("startTime") or 0,
            until=_or_never(None if end is None else end + 1),  # events at the end time are within
            after=after,
            backwards=params.get("startFromHead") is False,
        )
        page, cursor = await read_events(
            self._store,
            query,
            lambda event: event.stream_id in streams and pattern.matches(event.message),
            account=call.account,
            steps=lambda event: match_steps(text, pattern.regexes, event.message),
        )
        events = [
            {"logStreamName": streams[event.stream_id], "eventId": _event_id(event), **_as_structure(event)}
            for event in page
        ]
        answer: Structure = {"events": events, "searchedLogStreams": []}
        return answer if cursor is None else answer | {"nextToken": _token("f", cursor)}

    async def _streams(self, group: LogGroup, params: Structure) -> dict[int, str]:
        """The names of the streams that are asked for, by their numbers."""
        stream_names, prefix = params.get("logStreamNames"), params.get("logStreamNamePrefix")
        if stream_names and prefix:
            raise invalid("logStreamNames and logStreamNamePrefix are mutually exclusive parameters.")
        if stream_names:
            streams = [await self._places.stream(group, name) for name in stream_names]
        else:
            streams = await self._places.streams(group, prefix or "")
        return {stream.id: stream.name for stream in streams}


async def read_events(
    store: TelemetryStore,
    query: LogQuery,
    keeps: Callable[[LogEvent], bool],
    looked_at_max: int = LOOKED_AT_MAX,
    *,
    account: str = "",
    steps: Callable[[LogEvent], int] = lambda _: 1,
) -> tuple[list[LogEvent], Place | None]:
    """The events of a query that are to be kept, and where to go on; None if the end was reached.

    The query's limit counts events that are kept. The store is asked for a hundred at a time, until `looked_at_max`
    were looked at. `steps` is the cost of deciding whether to keep one, which `account` is charged with.
    """
    events: list[LogEvent] = []
    cursor, looked_at, room = query.after, 0, ANSWER_BYTES_MAX
    while True:
        page = await store.find_events(replace(query, limit=_EVENTS_PER_PAGE, after=cursor))
        for event, matches in zip(page, await each_in_turn(account, page, steps, keeps), strict=True):
            if matches:
                room -= len(event.message.encode()) + EVENT_BYTES
                if room < 0 and events:
                    return events, cursor
                events.append(event)
            cursor, looked_at = event.position, looked_at + 1
            if len(events) == query.limit or looked_at == looked_at_max:
                return events, cursor
        if len(page) < _EVENTS_PER_PAGE:
            return events, None


def _chooses_streams(params: Structure) -> bool:
    return bool(params.get("logStreamNames") or params.get("logStreamNamePrefix"))


def _or_never(moment: int | None) -> int:
    return END_OF_TIME if moment is None else moment


def _as_structure(event: LogEvent) -> Structure:
    return {"timestamp": event.at, "message": event.message, "ingestionTime": event.ingested_at}


def _event_id(event: LogEvent) -> str:
    return f"{event.at:020d}{event.seq:036d}"


def _token(direction: str, cursor: Place) -> str:
    return f"{direction}/{cursor[0]:020d}{cursor[1]:020d}"


def _read_token(token: str) -> tuple[bool, Place]:
    """The direction that a token leads in, and its beginning; raises AwsError if it leads nowhere."""
    match = _TOKEN.fullmatch(token)
    if match is None:
        raise invalid_token()
    return match[1] == "f", (int(match[2]), int(match[3]))
