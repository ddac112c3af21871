"""The supervisor with workers that say what they are told to, and serve nothing."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from redrive.workers import supervisor as supervising
from redrive.workers.member import SupervisedWorker, WorkerFailed
from redrive.workers.supervisor import Supervisor

# Ready at once; ends when it is asked to retire; without the file `fit` it ends before it is ready.
SCRIPT = """
import json, os, socket, sys
channel = socket.socket(fileno=int(sys.argv[1]))
def send(**message):
    text = json.dumps(message).encode()
    channel.sendall(len(text).to_bytes(4, "big") + text)
if not os.path.exists(sys.argv[2]):
    sys.exit(3)
send(kind="ready")
while head := channel.recv(4):
    message = json.loads(channel.recv(int.from_bytes(head, "big")))
    if message["kind"] == "retire":
        break
"""


class Supervised:
    """A supervisor of two such workers."""

    def __init__(self, directory: Path) -> None:
        self.fit = directory / "fit"
        self.fit.touch()
        self.fit_from = 0  # the start with which workers are fit again
        self.started: list[int] = []
        self.supervisor = Supervisor(2, [], self._command)

    def _command(self, channel: int, sockets: Sequence[int]) -> list[str]:
        self.started.append(channel)
        if len(self.started) == self.fit_from:
            self.fit.touch()
        return [sys.executable, "-S", "-c", SCRIPT, str(channel), str(self.fit)]

    @property
    def pids(self) -> list[int]:
        return [member.pid for member in self.supervisor.members]

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do this once all are ready, and stop them."""
        ready = asyncio.Event()
        running = asyncio.create_task(self.supervisor.run(ready.set))
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
        if ready.is_set():
            await work()
            signal.raise_signal(signal.SIGTERM)
        waiting.cancel()
        await running


@pytest.fixture
def supervised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Supervised:
    monkeypatch.setattr(supervising, "BACKOFF_SECONDS", (0.01,))
    return Supervised(tmp_path)


async def until(supervised: Supervised, fulfilled: Callable[[], bool]) -> None:
    """Return when the supervisor's tasks have made this true."""
    while not fulfilled():
        tasks: set[Any] = supervised.supervisor._tasks
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


async def test_a_worker_that_ends_is_replaced_after_failures_too(supervised: Supervised) -> None:
    async def work() -> None:
        before = supervised.pids
        supervised.fit.unlink()
        supervised.supervisor.members[0]._process.kill()
        supervised.fit_from = 4  # after the replacement's failure
        await until(supervised, lambda: len(supervised.pids) == 2 and supervised.pids != before)
        assert before[1] in supervised.pids
        assert len(supervised.started) > 3

    await supervised.run(work)


async def test_a_reload_exchanges_all_or_none(supervised: Supervised) -> None:
    async def work() -> None:
        before = supervised.pids
        supervised.fit.unlink()
        await supervised.supervisor.reload()
        assert supervised.pids == before
        supervised.fit.touch()
        await supervised.supervisor.reload()
        assert not set(supervised.pids) & set(before)
        await until(supervised, lambda: not supervised.supervisor._retired)
        assert len(supervised.pids) == 2

    await supervised.run(work)


async def test_a_worker_that_ends_while_others_are_reloaded_is_replaced(supervised: Supervised) -> None:
    killed: list[int] = []
    start = supervised.supervisor._start_member

    async def start_and_kill_the_first() -> SupervisedWorker:
        member = await start()
        if not killed:
            killed.append(member.pid)
            member._process.kill()
            await member.ended()
        return member

    async def work() -> None:
        supervised.supervisor._start_member = start_and_kill_the_first  # type: ignore[method-assign]  # a start that fails late
        await supervised.supervisor.reload()
        await until(supervised, lambda: len(supervised.pids) == 2 and killed[0] not in supervised.pids)

    await supervised.run(work)


async def test_a_first_worker_that_fails_ends_the_supervisor_with_its_status(supervised: Supervised) -> None:
    async def work() -> None:
        raise AssertionError("nobody is ready")

    supervised.fit.unlink()
    with pytest.raises(WorkerFailed) as failed:
        await supervised.run(work)
    assert failed.value.status == 3
    assert len(supervised.started) == 1
