"""StartLiveTail: sessions that follow groups, and tell their new events each second.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/CloudWatchLogs_LiveTail.html. Nothing is kept for a session: it
reads the store, whichever node wrote there, when its client takes the next update. So a client that does not read costs
nothing, and finds what it missed, as far as ten updates hold it.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.kit.offloading import each_in_turn
from redrive.aws.logs import names
from redrive.aws.logs.errors import error, invalid
from redrive.aws.logs.filter_pattern import LogPattern, match_steps, read_pattern
from redrive.aws.logs.places import LogPlaces, Settle
from redrive.aws.wire.json.event_stream import Events
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import Runtime, TelemetryStore
from redrive.model.errors import StoreUnavailable
from redrive.model.log import EVENT_BYTES, LogEvent, LogGroup, LogQuery
from redrive.model.names import id_text

#: Nodes write at the same time, and numbers are given before a transaction ends: one that ends so much later than another
#: with a higher number is still seen.
LATE_MS: Final = 2_000
EVENTS_PER_PAGE: Final = 100  # of up to a mebibyte each: memory is bounded by a page

Keeps = Callable[[str, LogEvent], bool]  # told the name of the event's stream
Steps = Callable[[LogEvent], int]
logger = logging.getLogger(__name__)
SESSIONS_MAX: Final = 15  # at once, of an account's region (CloudWatch Logs quotas); here of each node
SESSION_MS: Final = 3 * 60 * 60 * 1000
UPDATE_MS: Final = 1_000
EVENTS_MAX: Final = 500  # of an update
_UPDATE_BYTES_MAX: Final = 1_048_576
_EXAMINATIONS_MAX: Final = 2_000  # for an update: about 20 ms of the store's time
UPDATES_AT_ONCE_MAX: Final = 10  # for a client that was slow
_TIMEOUT: Final = "The Live Tail session has timed out after three hours."
_BROKEN: Final = "The Live Tail session cannot go on: the log events cannot be read."


class UpdateRoom:
    """The room that is left in one update, which all groups of a session share.

    Attributes:
        examinations: Number of events that may still be examined.
        events: Number of events that it may still take.
        bytes: Number of bytes that they may still come to.
        overflows: Whether an event was left for which there was no room.
    """

    def __init__(self, examinations: int, events: int, size: int) -> None:
        self.examinations, self.events, self.bytes = examinations, events, size
        self.overflows = False

    @property
    def is_full(self) -> bool:
        """True if no event is examined any more."""
        return self.examinations <= 0 or self.events <= 0 or self.bytes <= 0

    def take(self, event: LogEvent) -> None:
        """Take an event up into the update."""
        self.events -= 1
        self.bytes -= len(event.message.encode()) + EVENT_BYTES


class FollowedGroup:
    """One group, and how far it was read.

    Attributes:
        group: The group.
    """

    def __init__(self, store: TelemetryStore, places: LogPlaces, group: LogGroup) -> None:
        """Read from this store; `begin` comes first."""
        self._store = store
        self._places = places
        self.group = group
        self._after = 0  # what was written down before that is read for good
        self._read_seqs: set[int] = set()  # the events behind it that were read already
        self._ends: deque[tuple[int, int]] = deque()  # how far it was read, and when (ms)
        self._streams: dict[int, str | None] = {}  # None: deleted

    async def begin(self) -> None:
        """Begin, or go on, behind the last event there is now; earlier ones are left out."""
        last = LogQuery(self.group.id, limit=1, arrived_after=0, backwards=True)
        events = await self._store.find_events(last)
        self._after = events[0].seq if events else 0
        self._read_seqs.clear()
        self._ends.clear()

    async def read(
        self, keeps: Keeps, steps: Steps, room: UpdateRoom, now: int
    ) -> list[tuple[str, LogEvent]]:
        """The new events that are to be kept, with the names of their streams, as far as there is room."""
        self._close_ends(now)
        events: list[tuple[str, LogEvent]] = []
        after = self._after
        while not room.overflows:
            query = LogQuery(self.group.id, limit=EVENTS_PER_PAGE, arrived_after=after)
            page = await self._store.find_events(query)
            await self._learn_streams(page)
            events += await self._read(page, keeps, steps, room)
            if len(page) < EVENTS_PER_PAGE:
                break
            after = page[-1].seq
        if self._read_seqs:  # what has come so far is read for good when no slow transaction can add to it
            self._ends.append((now, max(self._read_seqs)))
        return events

    async def _read(
        self, page: Sequence[LogEvent], keeps: Keeps, steps: Steps, room: UpdateRoom
    ) -> list[tuple[str, LogEvent]]:
        """The new events of a page that match, with their streams, as far as there is room."""
        matches: list[tuple[str, LogEvent]] = []
        # Pages of the last two seconds are read again, in case a slow transaction adds to them.
        new = [event for event in page if event.seq not in self._read_seqs]
        streams = self._streams

        def is_match(event: LogEvent) -> bool:
            stream = streams[event.stream_id]  # None: deleted
            return stream is not None and keeps(stream, event)

        are_matches = await each_in_turn(self.group.name.account, new, steps, is_match)
        for event, is_matched in zip(new, are_matches, strict=True):
            if room.is_full:
                room.overflows = True
                break
            self._read_seqs.add(event.seq)
            room.examinations -= 1
            stream = streams[event.stream_id]
            if stream is not None and is_matched:
                room.take(event)
                matches.append((stream, event))
        return matches

    async def _learn_streams(self, events: Sequence[LogEvent]) -> None:
        """Read the streams' names again if one is unknown; those of deleted streams are None."""
        numbers = {event.stream_id for event in events}
        if numbers <= self._streams.keys():
            return
        names = {stream.id: stream.name for stream in await self._places.streams(self.group)}
        self._streams = dict.fromkeys(numbers) | names

    def _close_ends(self, now: int) -> None:
        """Take as read for good whatever was read long enough ago."""
        while self._ends and self._ends[0][0] <= now - LATE_MS:
            self._after = max(self._after, self._ends.popleft()[1])
        self._read_seqs = {seq for seq in self._read_seqs if seq > self._after}


@dataclass(frozen=True, slots=True)
class _Selection:
    """The events that a session tells."""

    text: str  # Text of the pattern
    pattern: LogPattern  # They match it
    in_stream: Callable[[str], bool]  # Says of a stream's name whether they may be of it

    def keeps(self, stream: str, event: LogEvent) -> bool:
        """True if an event of that stream is part of the session."""
        return self.in_stream(stream) and self.pattern.matches(event.message)

    def steps(self, event: LogEvent) -> int:
        """The steps of saying so."""
        return match_steps(self.text, self.pattern.regexes, event.message)


class LiveTails:
    """The sessions of this node."""

    def __init__(
        self, store: TelemetryStore, places: LogPlaces, settle: Settle, runtime: Runtime, *, simulated: bool
    ) -> None:
        self._store = store
        self._places = places
        self._settle = settle
        self._runtime = runtime
        # The clock is a simulated one: an update comes as soon as there is news, too
        self._simulated = simulated
        self._open: Counter[tuple[str, str]] = Counter()
        self._wakers: set[asyncio.Future[None]] = set()
        self._news_count = 0
        self._is_closing = False

    async def start_live_tail(self, call: Call, params: Structure) -> Structure:
        selection = _selection(params)
        arns: Sequence[str] = params["logGroupIdentifiers"]
        groups = [await self._places.group(names.name_in_arn(call, arn)) for arn in dict.fromkeys(arns)]
        if self._open[call.account, call.region] >= SESSIONS_MAX:
            raise error(
                "LimitExceededException", f"At most {SESSIONS_MAX} Live Tail sessions are open at once."
            )
        await self._settle()
        followed_groups = [FollowedGroup(self._store, self._places, group) for group in groups]
        for group in followed_groups:
            await group.begin()
        start = {
            "requestId": call.id,
            "sessionId": id_text(self._runtime.message_id()),
            "logGroupIdentifiers": arns,
            "logStreamNames": params.get("logStreamNames") or [],
            "logStreamNamePrefixes": params.get("logStreamNamePrefixes") or [],
            "logEventFilterPattern": params.get("logEventFilterPattern") or "",
        }
        return {
            "responseStream": self._session((call.account, call.region), start, followed_groups, selection)
        }

    def note_news(self) -> None:
        """Events were written down on this node."""
        if self._simulated:
            self._news_count += 1
            self._wake()

    def close(self) -> None:
        """End every session; from now on none begins."""
        self._is_closing = True
        self._wake()

    # ---- sessions ----------------------------------------------------------------------------------------

    async def _session(
        self, owner: tuple[str, str], start: Structure, groups: Sequence[FollowedGroup], selection: _Selection
    ) -> Events:
        """The events of a session, which ends when this generator is closed."""
        self._open[owner] += 1
        clock = self._runtime.clock
        due_at, news_count = clock.now(), self._news_count
        ends_at = due_at + SESSION_MS
        try:
            yield "sessionStart", start
            while not self._is_closing:
                # A client that was slow gets the updates it missed, but not more than so many at once.
                due_at = max(due_at + UPDATE_MS, clock.now() - (UPDATES_AT_ONCE_MAX - 1) * UPDATE_MS)
                await self._until(due_at, news_count)
                due_at, news_count = min(due_at, clock.now()), self._news_count
                is_behind = due_at + UPDATE_MS <= clock.now()  # the rest goes with the next, which is due
                yield "sessionUpdate", await self._update(groups, selection, is_behind=is_behind)
                if clock.now() >= ends_at:
                    yield "SessionTimeoutException", {"message": _TIMEOUT}
                    return
        except StoreUnavailable as away:
            logger.warning("live_tail.broken session=%s error=%s", start["sessionId"], away)
            yield "SessionStreamingException", {"message": _BROKEN}
        except Exception:
            logger.exception("live_tail.failed session=%s", start["sessionId"])
            yield "SessionStreamingException", {"message": _BROKEN}
        finally:
            self._open[owner] -= 1

    async def _update(
        self, groups: Sequence[FollowedGroup], selection: _Selection, *, is_behind: bool
    ) -> Structure:
        """The next update; what does not fit is left out (`sampled`), or comes with the next one if it `is_behind`."""
        await self._settle()
        room = UpdateRoom(_EXAMINATIONS_MAX, EVENTS_MAX, _UPDATE_BYTES_MAX)
        now = self._runtime.clock.now()
        results = [
            _as_structure(group, stream, event)
            for group in groups
            for stream, event in await group.read(selection.keeps, selection.steps, room, now)
        ]
        sampled = room.overflows and not is_behind
        if sampled:  # the rest of this second is left out
            for group in groups:
                await group.begin()
        return {"sessionMetadata": {"sampled": sampled}, "sessionResults": results}

    async def _until(self, moment: int, news_count: int) -> None:
        """Return at that moment (ms), or as soon as there is other news, or when the server ends."""
        if self._is_closing or news_count != self._news_count or moment <= self._runtime.clock.now():
            return
        waker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._wakers.add(waker)
        timer = self._runtime.clock.call_at(moment, lambda: _set(waker))
        try:
            await waker
        finally:
            timer.cancel()
            self._wakers.discard(waker)

    def _wake(self) -> None:
        for waker in self._wakers:
            _set(waker)


def _set(woken: "asyncio.Future[None]") -> None:
    if not woken.done():
        woken.set_result(None)


def _as_structure(group: FollowedGroup, stream: str, event: LogEvent) -> Structure:
    name = group.group.name
    return {
        "logStreamName": stream,
        "logGroupIdentifier": f"{name.account}:{name.name}",
        "message": event.message,
        "timestamp": event.at,
        "ingestionTime": event.ingested_at,
    }


def _selection(params: Structure) -> _Selection:
    """The events that a request asks for; raises AwsError (`InvalidParameterException`)."""
    stream_names, prefixes = params.get("logStreamNames"), params.get("logStreamNamePrefixes")
    if stream_names and prefixes:
        raise invalid("logStreamNames and logStreamNamePrefixes are mutually exclusive parameters.")
    if (stream_names or prefixes) and len(params["logGroupIdentifiers"]) > 1:
        raise invalid(
            "logStreamNames and logStreamNamePrefixes can only be specified with one logGroupIdentifier."
        )
    text = params.get("logEventFilterPattern") or ""
    return _Selection(
        text, read_pattern(text), _stream_filter(frozenset(stream_names or ()), tuple(prefixes or ("",)))
    )


def _stream_filter(stream_names: frozenset[str], prefixes: tuple[str, ...]) -> Callable[[str], bool]:
    """A test of streams by their names or, if there are none, by beginnings of names."""
    return (
        (lambda stream: stream in stream_names)
        if stream_names
        else (lambda stream: stream.startswith(prefixes))
    )
