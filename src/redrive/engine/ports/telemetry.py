"""Ports of telemetry: its store, and the sink of log lines."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Final, Protocol

from redrive.engine.ports.store import Store
from redrive.model.log import LogEvent, LogQuery, LogSpan
from redrive.model.metric import MetricPoint, PeriodStatistics, PointQuery, Series, SeriesQuery, ValueCount
from redrive.model.names import ResourceName


class TelemetryStore(Protocol):
    """Metric points and log events. Groups and streams of logs are documents, kept by `Store`."""

    # metrics

    def add_points(self, points: Sequence[MetricPoint]) -> Awaitable[None]:
        """Add what was measured to what is known of each series, moment and unit."""
        ...

    async def find_points(self, query: PointQuery) -> list[PeriodStatistics]:
        """The statistics of each period, in order of time and unit; a period without points is left out."""
        ...

    async def find_points_each(self, query: PointQuery) -> Mapping[int, Sequence[PeriodStatistics]]:
        """As `find_points`, each series by itself, by its id; a series without points is left out.

        For whoever looks at very many at once: a thousand series take one call.
        """
        ...

    async def find_values(self, query: PointQuery) -> list[ValueCount]:
        """The values that were kept, counted by period, in order of time, unit and value."""
        ...

    async def find_series(self, query: SeriesQuery) -> list[Series]:
        """The series there are, in order of namespace, name and dimensions (as JSON text)."""
        ...

    async def drop_points(self, before: int, limit: int) -> int:
        """Remove points from before that moment (ms), `limit` of each kind at most; how many rows went.

        Kinds are statistics, values, and series without points since.
        """
        ...

    # logs

    def add_events(self, events: Sequence[LogEvent]) -> Awaitable[None]:
        """Write events down; their `seq` is given here."""
        ...

    async def find_events(self, query: LogQuery) -> list[LogEvent]:
        """See LogQuery; in order of time, or backwards."""
        ...

    async def log_spans(self, group_id: int, stream_ids: Sequence[int]) -> Mapping[int, LogSpan]:
        """From when to when the streams reach; those without events are left out."""
        ...

    async def log_bytes(self) -> Mapping[int, int]:
        """The size of every group that has events, by its number: messages in UTF-8 and EVENT_BYTES for each."""
        ...

    async def drop_events(self, group_id: int, stream_id: int | None, before: int, limit: int) -> int:
        """Remove up to `limit` events of a group, or one stream of it, from before that moment (ms); how many."""
        ...


class CommitMeter(Protocol):
    """Measures the time that a store's commits take. A store that runs on a thread of its own calls it from there."""

    def begin(self) -> float:
        """The moment at which a commit begins, for `end`."""
        ...

    def end(self, began: float, calls: int) -> None:
        """A commit that began then is done, for so many calls."""
        ...


class _Unmeasured:
    def begin(self) -> float:
        return 0.0

    def end(self, began: float, calls: int) -> None:
        pass


#: For stores that nobody measures.
UNMEASURED: Final[CommitMeter] = _Unmeasured()


class NodeStore(Store, TelemetryStore, Protocol):
    """Everything that a node stores."""


class LogSink(Protocol):
    """A sink of log lines."""

    def write(self, group: ResourceName, stream: str, at: int, message: str, rounds: int = 0) -> None:
        """Hand in a line; it is on disk some seconds later. Group and stream are made where they are missing.

        Args:
            group: The group's name.
            stream: The stream's.
            at: When it was said (ms).
            message: The line.
            rounds: See `LogEvent.rounds`.
        """
        ...
