"""A worker's side: it serves sockets that its supervisor holds, and asks it for what only all workers know together.

Their channel carries JSON objects, each behind its length, over a pair of sockets. A worker says `ready` and, at its end,
`last`, and asks for `metrics` or `readiness`; the supervisor answers with `answer`, asks a worker to `read` its metrics
(`text`) and to `retire`.
"""

import asyncio
import itertools
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import orjson
from typing_extensions import override

from redrive.server.siblings import Readiness, Siblings

Message = dict[str, Any]

_LENGTH_BYTES: Final = 4


class WorkerChannel:
    """One end of the connection between a worker and its supervisor."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def over(cls, end: socket.socket) -> "WorkerChannel":
        """The channel over one end of a pair of sockets, which is the channel's from now on."""
        return cls(*await asyncio.open_connection(sock=end))

    def send(self, kind: str, **content: Any) -> None:
        """Send a message; to an end that is gone it is lost."""
        message = orjson.dumps({"kind": kind, **content})
        self._writer.write(len(message).to_bytes(_LENGTH_BYTES) + message)

    async def receive(self) -> Message | None:
        """The next message; None: the other end is gone."""
        try:
            length = int.from_bytes(await self._reader.readexactly(_LENGTH_BYTES))
            message: Message = orjson.loads(await self._reader.readexactly(length))
        except (OSError, asyncio.IncompleteReadError):
            return None
        return message

    async def flush(self) -> None:
        """Return when what was sent has left this process."""
        try:
            await self._writer.drain()
        except OSError:
            return

    def close(self) -> None:
        """End the channel, once what was sent has left."""
        self._writer.close()


logger = logging.getLogger(__name__)

#: How long (s) a worker that makes room for another goes on answering on the connections that it has.
RETIREMENT_SECONDS: Final = 3.0
_PATIENCE_SECONDS: Final = 3.0  # for an answer of the supervisor


class Worker(Siblings):
    """This process, as one of several."""

    def __init__(self, channel: socket.socket, sockets: Sequence[socket.socket]) -> None:
        """Take over what was inherited: a channel to the supervisor, and sockets that others listen on too."""
        self.sockets = sockets
        self._end = channel
        self._channel: WorkerChannel
        self._numbers = itertools.count()
        self._pending: dict[int, asyncio.Future[Message]] = {}
        self._task: asyncio.Task[None] | None = None

    async def attend(
        self,
        read_metrics: Callable[[], Awaitable[str]],
        retire: Callable[[float], Awaitable[None]],
        stop: asyncio.Event,
    ) -> None:
        """Say that requests are answered, and listen to the supervisor from now on.

        Args:
            read_metrics: This process's, as Prometheus reads them.
            retire: Lets others accept what comes from now on, and takes so long (s) at most.
            stop: Set when this process is to end: it has retired, or lost its supervisor.
        """
        self._channel = await WorkerChannel.over(self._end)
        self._channel.send("ready")
        self._task = asyncio.create_task(self._listen(read_metrics, retire, stop), name="redrive-worker")

    async def say_last(self, metrics: str) -> None:
        """Send the final metrics to the supervisor, and close."""
        self._channel.send("last", text=metrics)
        await self._channel.flush()
        if self._task is not None:
            self._task.cancel()
        self._channel.close()

    @override
    async def readiness(self) -> Readiness | None:
        """See `Siblings.readiness`."""
        answer = await self._ask("readiness")
        return None if answer is None else Readiness(answer["ready"], answer["wanted"])

    @override
    async def sum_metrics(self, own: str) -> str:
        """See `Siblings.sum_metrics`."""
        answer = await self._ask("metrics")
        return own if answer is None else answer["text"]

    async def _ask(self, what: str) -> Any:
        """The supervisor's answer to a question about all workers; None: it did not answer in time."""
        number = next(self._numbers)
        answer = self._pending[number] = asyncio.get_running_loop().create_future()
        self._channel.send(what, number=number)
        try:
            return await asyncio.wait_for(answer, _PATIENCE_SECONDS)
        except TimeoutError:
            logger.warning("worker.unanswered asked=%s: the supervisor did not answer", what)
            return None
        finally:
            del self._pending[number]

    async def _listen(
        self,
        read_metrics: Callable[[], Awaitable[str]],
        retire: Callable[[float], Awaitable[None]],
        stop: asyncio.Event,
    ) -> None:
        """Take what the supervisor says, until it asks this worker to retire, or is gone; then `stop` is set."""
        while (message := await self._channel.receive()) is not None:
            match message["kind"]:
                case "read":
                    self._channel.send("text", number=message["number"], text=await read_metrics())
                case "answer" if message["number"] in self._pending:
                    answering = self._pending[message["number"]]
                    if not answering.done():
                        answering.set_result(message)
                case "retire":
                    await retire(RETIREMENT_SECONDS)
                    break
        else:
            logger.warning("worker.orphaned: the supervisor is gone; this worker exits")
        stop.set()
