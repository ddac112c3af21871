"""Groups that are followed: events that were written to them since the last look, whichever node wrote it."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from redrive.aws.kit.offloading import each_in_turn
from redrive.aws.logs.places import LogPlaces
from redrive.engine.ports import TelemetryStore
from redrive.model.log import EVENT_BYTES, LogEvent, LogGroup, LogQuery

#: Nodes write at the same time, and numbers are given before a transaction ends: one that ends so much later than another
#: with a higher number is still seen.
LATE_MS: Final = 2_000
EVENTS_PER_PAGE: Final = 100  # of up to a mebibyte each: memory is bounded by a page

Keeps = Callable[[str, LogEvent], bool]  # told the name of the event's stream
Steps = Callable[[LogEvent], int]


class ReadingRoom:
    """The room of one update, which all groups of a session share.

    Attributes:
        looked_at: Events that may still be looked at.
        events: Events that may still be kept.
        bytes: What they may still come to.
        is_short: Something found no room.
    """

    def __init__(self, looked_at: int, events: int, size: int) -> None:
        self.looked_at, self.events, self.bytes = looked_at, events, size
        self.is_short = False

    @property
    def is_full(self) -> bool:
        """True if nothing more is looked at."""
        return self.looked_at <= 0 or self.events <= 0 or self.bytes <= 0

    def take(self, event: LogEvent) -> None:
        """Let an event have its part."""
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
        self._seen: set[int] = set()  # what stands behind it, and was read
        self._ends: deque[tuple[int, int]] = deque()  # how far it was read, and when (ms)
        self._streams: dict[int, str | None] = {}  # None: deleted

    async def begin(self) -> None:
        """Begin behind what is there, or go on there: what stands before it is left out."""
        last = LogQuery(self.group.id, limit=1, arrived_after=0, backwards=True)
        events = await self._store.find_events(last)
        self._after = events[0].seq if events else 0
        self._seen.clear()
        self._ends.clear()

    async def read(
        self, keeps: Keeps, steps: Steps, room: ReadingRoom, now: int
    ) -> list[tuple[str, LogEvent]]:
        """The new events that are to be kept, with the names of their streams, as far as there is room.

        Args:
            keeps: Which.
            steps: What it takes to say so.
            room: What is taken of is taken away.
            now: ms.
        """
        self._close_ends(now)
        events: list[tuple[str, LogEvent]] = []
        after = self._after
        while not room.is_short:
            query = LogQuery(self.group.id, limit=EVENTS_PER_PAGE, arrived_after=after)
            page = await self._store.find_events(query)
            await self._learn_streams(page)
            events += await self._read(page, keeps, steps, room)
            if len(page) < EVENTS_PER_PAGE:
                break
            after = page[-1].seq
        if self._seen:
            self._ends.append((now, max(self._seen)))
        return events

    async def _read(
        self, page: Sequence[LogEvent], keeps: Keeps, steps: Steps, room: ReadingRoom
    ) -> list[tuple[str, LogEvent]]:
        matches: list[tuple[str, LogEvent]] = []
        new = [event for event in page if event.seq not in self._seen]
        streams = self._streams

        def is_kept(event: LogEvent) -> bool:
            stream = streams[event.stream_id]
            return stream is not None and keeps(stream, event)

        each = await each_in_turn(self.group.name.account, new, steps, is_kept)
        for event, is_told in zip(new, each, strict=True):
            if room.is_full:
                room.is_short = True
                break
            self._seen.add(event.seq)
            room.looked_at -= 1
            stream = streams[event.stream_id]
            if stream is not None and is_told:
                room.take(event)
                matches.append((stream, event))
        return matches

    async def _learn_streams(self, events: Sequence[LogEvent]) -> None:
        numbers = {event.stream_id for event in events}
        if numbers <= self._streams.keys():
            return
        names = {stream.id: stream.name for stream in await self._places.streams(self.group)}
        self._streams = dict.fromkeys(numbers) | names

    def _close_ends(self, now: int) -> None:
        """Take as read for good whatever was read long enough ago."""
        while self._ends and self._ends[0][0] <= now - LATE_MS:
            self._after = max(self._after, self._ends.popleft()[1])
        self._seen = {seq for seq in self._seen if seq > self._after}
