"""A worker as its supervisor sees it: a process, the channel to it, and the metrics that it told last."""

import asyncio
import contextlib
import itertools
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from redrive.runtime.machine import monotonic
from redrive.workers.worker import Message, WorkerChannel

#: How long (s) a worker may take to end: to retire, to answer what is under way, and to close its store.
END_SECONDS: Final = 40.0
_UNCOUNTED: Final = ""

Answer = Callable[[str], Awaitable[dict[str, Any]]]


class WorkerFailed(Exception):  # noqa: N818 - what became of a start
    """A worker ended before it was ready; it has said why itself."""

    def __init__(self, status: int) -> None:
        super().__init__(f"a worker ended with status {status} before it was ready")
        self.status = status


class SupervisedWorker:
    """One worker.

    Attributes:
        metrics: As Prometheus reads them, when it was last asked or when it ended.
    """

    def __init__(self, process: asyncio.subprocess.Process, channel: WorkerChannel, answer: Answer) -> None:
        self.metrics = _UNCOUNTED
        self._process = process
        self._channel = channel
        self._answer = answer
        self._ready = asyncio.Event()
        self._numbers = itertools.count()
        self._pending_reads: dict[int, asyncio.Event] = {}  # by the number of the request to read
        self._loop = asyncio.get_running_loop()
        self._began_at = monotonic()
        self._answering: set[asyncio.Task[None]] = set()
        self._task = asyncio.create_task(self._listen(), name=f"redrive-worker-{process.pid}")

    @classmethod
    async def start(
        cls,
        command: Callable[[int, Sequence[int]], list[str]],
        sockets: Sequence[socket.socket],
        answer: Answer,
    ) -> "SupervisedWorker":
        """Start a process that inherits a channel and these sockets."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003 - the method's only argument
        descriptors = [each.fileno() for each in sockets]
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *command(theirs.fileno(), descriptors), pass_fds=(theirs.fileno(), *descriptors)
            )
        return cls(process, await WorkerChannel.over(ours), answer)

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def age(self) -> float:
        """The time (s) since it was started."""
        return monotonic() - self._began_at

    async def ready(self) -> None:
        """Return when it answers requests; raises WorkerFailed if it ended."""
        ready = asyncio.create_task(self._ready.wait())
        await asyncio.wait([ready, self._task], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if not self._ready.is_set():
            raise WorkerFailed(await self._process.wait())

    async def ended(self) -> int:
        """Return when the process has ended and all that it said was heard; its exit status."""
        status = await self._process.wait()
        await self._task
        return status

    def retire(self) -> None:
        """Let it accept nothing more, answer what it has, and end."""
        self._channel.send("retire")
        self._loop.call_later(END_SECONDS, self._kill)

    async def end(self) -> None:
        """Ask it to end at once, answering what is under way, and return when it has."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        timer = self._loop.call_later(END_SECONDS, self._kill)
        await self._process.wait()
        timer.cancel()

    async def read_metrics(self, seconds: float) -> None:
        """Ask for its metrics, for so long at most; `metrics` has them then."""
        number = next(self._numbers)
        read = self._pending_reads[number] = asyncio.Event()
        self._channel.send("read", number=number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(read.wait(), seconds)
        del self._pending_reads[number]

    def _kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()

    async def _listen(self) -> None:
        """Take what the worker says, until its end: readiness, metrics, and questions, which are answered."""
        while (message := await self._channel.receive()) is not None:
            match message["kind"]:
                case "ready":
                    self._ready.set()
                case "text" | "last":
                    self.metrics = message["text"]
                    if (read := self._pending_reads.get(message.get("number", -1))) is not None:
                        read.set()
                case request:
                    task = asyncio.create_task(
                        self._reply(request, message), name="redrive-supervisor-answer"
                    )
                    self._answering.add(task)
                    task.add_done_callback(self._answering.discard)
        for read in self._pending_reads.values():
            read.set()
        self._channel.close()

    async def _reply(self, request: str, message: Message) -> None:
        self._channel.send("answer", number=message["number"], **await self._answer(request))
