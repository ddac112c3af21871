"""The supervisor: it holds the listening sockets, starts workers that accept from them, and answers for all of them.

All workers accept from the same sockets, which stay open in this process: whoever connects while workers come and go
waits in the kernel's queue for the next that accepts, and is refused by nobody (decision 0034).
"""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from redrive.workers.member import SupervisedWorker, WorkerFailed

logger = logging.getLogger(__name__)

#: Between the end of a worker (s) and the start of its successor: the first time, the second …; the last for all others.
BACKOFF_SECONDS: Final = (0.2, 1.0, 2.0, 5.0, 10.0)
_STABLE_SECONDS: Final = 60.0  # a worker that served for so long did not fail at its start
_READ_SECONDS: Final = 2.0  # for the metrics of a worker

Command = Callable[[int, Sequence[int]], list[str]]


class Supervisor:
    """Keeps a number of workers at work.

    Attributes:
        members: The workers that accept.
    """

    def __init__(self, number: int, sockets: Sequence[socket.socket], command: Command) -> None:
        """Supervise `number` workers; `command` gets the descriptors of a worker's channel and of the sockets."""
        self._number = number
        self._sockets = sockets
        self._command = command
        self.members: list[SupervisedWorker] = []
        self._retired: set[SupervisedWorker] = set()
        self._past_metrics = MetricsSum()  # of workers that are gone
        self._failures = 0
        self._stopping = asyncio.Event()
        self._changing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve until SIGTERM or SIGINT; SIGHUP exchanges all workers.

        Args:
            ready: Called when every worker answers.

        Raises:
            WorkerFailed: A worker ended before the first time that all were ready.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        loop.add_signal_handler(signal.SIGHUP, lambda: self._spawn(self.reload()))
        try:
            # One before the others: it makes what all of them need, the schema and certificates.
            async with self._changing:
                self._admit([await self._start_member()])
                self._admit(await asyncio.gather(*(self._start_member() for _ in range(self._number - 1))))
            ready()
            await self._stopping.wait()
        finally:
            self._stopping.set()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*(member.end() for member in self._living))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="redrive-supervisor")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ---- coming and going --------------------------------------------------------------------------------------

    async def _start_member(self) -> SupervisedWorker:
        """Start a further worker and wait until it answers; it is not supervised before it is admitted."""
        member = await SupervisedWorker.start(self._command, self._sockets, self._answer)
        try:
            await member.ready()
        except BaseException:
            await member.end()
            raise
        return member

    def _admit(self, members: Sequence[SupervisedWorker]) -> None:
        """Count on workers from now on: one that has ended since it was ready is replaced, too."""
        self.members += members
        for member in members:
            self._spawn(self._watch(member))

    async def _watch(self, member: SupervisedWorker) -> None:
        """Wait for a worker's end, and put another in its place unless it was asked to end."""
        status = await member.ended()
        self._past_metrics.add(member.metrics, gauges=False)
        self._retired.discard(member)
        if member not in self.members or self._stopping.is_set():
            return
        self.members.remove(member)
        logger.error("worker.ended pid=%d status=%d: another is started", member.pid, status)
        self._failures = 0 if member.age() > _STABLE_SECONDS else self._failures
        await self._replace()

    async def _replace(self) -> None:
        """Start workers until there are as many as there should be, ever more slowly where they fail."""
        async with self._changing:
            while len(self.members) < self._number:
                pause = BACKOFF_SECONDS[min(self._failures, len(BACKOFF_SECONDS) - 1)]
                self._failures += 1
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), pause)
                try:
                    self._admit([await self._start_member()])
                except WorkerFailed as error:
                    logger.error("worker.failed error=%s: tried again", error)  # noqa: TRY400 - the worker has said it
                else:
                    logger.warning("worker.replaced pid=%d", self.members[-1].pid)

    async def reload(self) -> None:
        """Exchange all workers: the new ones accept before the old ones stop; where one fails, the old ones stay."""
        async with self._changing:
            results = await asyncio.gather(
                *(self._start_member() for _ in range(self._number)), return_exceptions=True
            )
            members = [member for member in results if isinstance(member, SupervisedWorker)]
            failures = [error for error in results if isinstance(error, BaseException)]
            if failures:
                logger.error("worker.reload_failed error=%s: the old workers continue", failures[0])
                await asyncio.gather(*(member.end() for member in members))
                return
            before, self.members = self.members, []
            self._admit(members)
            self._retired |= set(before)
            for member in before:
                member.retire()
            logger.info("worker.reloaded pids=%s", ",".join(str(member.pid) for member in members))

    @property
    def _living(self) -> list[SupervisedWorker]:
        return [*self.members, *self._retired]

    # ---- answering ---------------------------------------------------------------------------------------------

    async def _answer(self, request: str) -> dict[str, Any]:
        """The answer to a worker's question about all of them: how many are ready, or the sum of their metrics."""
        if request == "readiness":
            return {"ready": len(self.members), "wanted": self._number}
        await asyncio.gather(*(member.read_metrics(_READ_SECONDS) for member in self._living))
        total = MetricsSum()
        for member in self._living:  # now: some may have ended meanwhile, and are among the ended
            total.add(member.metrics)
        total.add(self._past_metrics.text, gauges=False)
        return {"text": total.text}


# Metrics of several processes as one text: counters and histograms are added, of a gauge the greatest counts.
#
# Gauges of Redrive tell what is in the store, which all processes see alike, each at its own moment.

_SUMMED: Final = frozenset({"counter", "histogram"})


@dataclass(slots=True)
class _Family:
    """One family: what stands above its samples, its type, and the samples by name and labels."""

    head: list[str] = field(default_factory=list)
    kind: str = ""
    samples: dict[str, float] = field(default_factory=dict)


class MetricsSum:
    """A sum in the making."""

    def __init__(self) -> None:
        self._families: dict[str, _Family] = {}

    def add(self, text: str, *, gauges: bool = True) -> None:
        """Add the metrics of one process, as Prometheus reads them: each family begins with its HELP and its TYPE.

        Of a process that has ended, the gauges are left out: it sees nothing any more.
        """
        current = _Family()
        for line in text.splitlines():
            if line.startswith("# "):
                _, keyword, name, text_or_kind = line.split(" ", 3)
                current = self._families.setdefault(name, _Family())
                if keyword == "TYPE":
                    current.kind = text_or_kind
                if line not in current.head:
                    current.head.append(line)
            elif line:
                sample, _, value = line.rpartition(" ")
                _count(current, sample, _number(value), gauges=gauges)

    @property
    def text(self) -> str:
        """The sum."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterable[str]:
        for family in self._families.values():
            yield from family.head
            for sample, value in family.samples.items():
                yield f"{sample} {value}"


def _count(family: _Family, sample: str, value: float, *, gauges: bool) -> None:
    if family.kind in _SUMMED:
        family.samples[sample] = family.samples.get(sample, 0) + value
    elif gauges:
        family.samples[sample] = max(value, family.samples.get(sample, value))


def _number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        return float(text)
