"""Ports of a node: clock and random numbers, which can be simulated; telemetry's store, and the sink of log lines."""

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from redrive.engine.ports.store import Store
from redrive.model.log import LogEvent, LogQuery, LogSpan
from redrive.model.metric import MetricPoint, PeriodStatistics, PointQuery, Series, SeriesQuery, ValueCount
from redrive.model.names import ResourceName


class Timer(Protocol):
    """A call that is scheduled for a later time."""

    def cancel(self) -> None:
        """Do not make the call; harmless after it was made."""
        ...


class Clock(Protocol):
    """The time, as an object that is passed in and can be simulated."""

    def now(self) -> int:
        """Milliseconds since the epoch, UTC."""
        ...

    def call_at(self, at: int, call: Callable[[], None]) -> Timer:
        """Make a call at that moment (ms), or at the next turn of the loop when it has passed."""
        ...

    async def sleep_until(self, at: int) -> None:
        """Return at that moment (ms)."""
        ...


@dataclass(frozen=True, slots=True)
class Runtime:
    """Time, randomness and the name of this node, passed to every part that needs one."""

    clock: Clock
    rng: random.Random
    node: str
    _ids: list[bytes] = field(default_factory=list, repr=False, compare=False)

    def message_id(self) -> bytes:
        """A fresh message id: 16 random bytes with the marks of a version 4 UUID."""
        if not self._ids:
            self._ids.extend(_ids_from(self.rng.randbytes(_ID_BYTES * _IDS_MADE)))
        return self._ids.pop()

    def token(self) -> int:
        """A fresh claim token, 63 random bits."""
        return self.rng.getrandbits(63)

    def first_version(self) -> int:
        """The version that a new document begins at, of 52 random bits.

        A document that was removed and made again under its name is never taken for the one before, which another node
        may still remember.
        """
        return 1 + self.rng.getrandbits(52)


# An id is made for every message, and a publication to four queues takes six: one by one they were a twentieth of its
# time, so they are made 256 at a time.
_ID_BYTES: Final = 16
_IDS_MADE: Final = 256
# What a random byte becomes at the two places where a UUID says of what kind it is.
_VERSION: Final = bytes(byte & 0x0F | 0x40 for byte in range(256))
_VARIANT: Final = bytes(byte & 0x3F | 0x80 for byte in range(256))


def _ids_from(random_bytes: bytes) -> list[bytes]:
    """Cut random bytes into ids that are UUIDs: version (byte 6) and variant (byte 8) are set in all of them at once."""
    ids = bytearray(random_bytes)
    ids[6::_ID_BYTES] = ids[6::_ID_BYTES].translate(_VERSION)
    ids[8::_ID_BYTES] = ids[8::_ID_BYTES].translate(_VARIANT)
    id_bytes = bytes(ids)
    return [id_bytes[at : at + _ID_BYTES] for at in range(0, len(id_bytes), _ID_BYTES)]


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

    async def log_beginnings(
        self, group_ids: Sequence[int], since: int, limit: int, chars: int
    ) -> Mapping[int, Sequence[str]]:
        """The first characters of each group's newest events since a moment, `limit` of each at most, in one read."""
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

    #: Whether nodes of an older version may use it too, which read only what that version wrote; never of a file, which
    #: one process has to itself. An attribute: each sealed message asks.
    has_older_nodes: bool = False


class LogSink(Protocol):
    """A sink of log lines."""

    def write(self, group: ResourceName, stream: str, at: int, message: str, rounds: int = 0) -> None:
        """Hand in a line (`LogEvent`) that was said `at` a moment (ms); it is on disk some seconds later.

        Group and stream are made where they are missing; for `rounds` see `LogEvent`.
        """
        ...
