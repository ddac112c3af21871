"""Logs: lines are collected in memory and written down together, in groups and streams made when they are missing."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from redrive.engine.ports import NodeStore, Put, Resource
from redrive.model.errors import Conflict
from redrive.model.log import LOG_GROUP, LOG_STREAM, LogEvent, LogGroup, LogStream, stream_key
from redrive.model.names import ResourceName
from redrive.telemetry.audit import kept_days

logger = logging.getLogger(__name__)

# Lines that a store which is away has not taken yet; about as many megabytes as thousands. What is beyond is lost.
WAITING_MAX = 50_000
LINES_PER_CALL = 500  # one transaction's worth: about 3 ms of the store's time
# Default retention of groups that the server creates.
RETENTION_DAYS = 30


class _PendingLine(NamedTuple):
    group: ResourceName
    stream: str
    at: int
    message: str
    rounds: int

    @property
    def group_and_stream(self) -> tuple[ResourceName, str]:
        return self.group, self.stream


class LogBuffer:
    """`redrive.engine.ports.LogSink`: takes lines at once, and to the store when it is flushed.

    Attributes:
        write_down: Writes events down, given the names of their streams by number.
    """

    def __init__(self, store: NodeStore, news: Callable[[], None]) -> None:
        """Write to this store; `news` is called when there is something to flush again."""
        self._store = store
        self._news = news
        self._lines: list[_PendingLine] = []
        self.write_down: Callable[[Sequence[LogEvent], Mapping[int, str]], Awaitable[None]] = self._add

    def write(self, group: ResourceName, stream: str, at: int, message: str, rounds: int = 0) -> None:
        """See `LogSink.write`."""
        if not self._lines:
            self._news()
        self._keep([_PendingLine(group, stream, at, message, rounds)])

    async def flush(self, now: int) -> None:
        """Write down what was handed in.

        Raises:
            StoreUnavailable: What was not written is kept for the next time.
        """
        lines, self._lines = self._lines, []
        try:
            places = dict.fromkeys(line.group_and_stream for line in lines)
            streams = {(group, name): await self._stream(group, name, now) for group, name in places}
            names = {stream.id: stream.name for stream in streams.values()}
            while lines:
                events = [
                    _event(streams[line.group_and_stream], line, now) for line in lines[:LINES_PER_CALL]
                ]
                await self.write_down(events, names)
                del lines[:LINES_PER_CALL]
        finally:
            newer_lines, self._lines = self._lines, []
            self._keep([*lines, *newer_lines])

    async def _add(self, events: Sequence[LogEvent], _: Mapping[int, str]) -> None:
        await self._store.add_events(events)

    def _keep(self, lines: Sequence[_PendingLine]) -> None:
        room = WAITING_MAX - len(self._lines)
        if len(lines) > room:
            logger.warning("telemetry.lines_lost number=%d: the store refused them", len(lines) - room)
        self._lines.extend(lines[:room])

    async def _stream(self, group: ResourceName, name: str, now: int) -> LogStream:
        """The stream of a group, created if it is absent."""
        group_id = (await self._group(group, now)).id
        key = stream_key(group_id, name)
        stored: Put | Resource | None = await self._store.get(LOG_STREAM, key)
        if stored is None:
            stream = LogStream(await self._store.new_id(), group_id, name, now)
            stored = await self._create_or_get(Put(LOG_STREAM, key, stream.to_document()))
        return LogStream.from_document(stored.document)

    async def _group(self, name: ResourceName, now: int) -> LogGroup:
        """The group of that name, created if it is absent."""
        stored: Put | Resource | None = await self._store.get(LOG_GROUP, name.key)
        if stored is None:
            days = kept_days(name) or RETENTION_DAYS
            group = LogGroup(await self._store.new_id(), name, now, days)
            stored = await self._create_or_get(Put(LOG_GROUP, name.key, group.to_document()))
        return LogGroup.from_document(stored.document)

    async def _create_or_get(self, creation: Put) -> Put | Resource:
        """Create a document; returns what is stored then, since another node may have been faster."""
        try:
            await self._store.write([creation])
        except Conflict:
            return await self._store.get(creation.kind, creation.key) or creation
        return creation


def _event(stream: LogStream, line: _PendingLine, now: int) -> LogEvent:
    return LogEvent(stream.group_id, stream.id, line.at, now, line.message, rounds=line.rounds)
