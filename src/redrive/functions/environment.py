"""An environment: one process of one revision of a function, which serves one invocation at a time."""

import asyncio
import contextlib
import json
import logging
import math
import os
import signal
import sys
from asyncio.subprocess import DEVNULL
from datetime import UTC, datetime
from typing import Any, Final

from redrive.engine.ports import Timer
from redrive.functions import isolation, processes
from redrive.functions.gateway import API_PORT, FunctionGateway
from redrive.functions.isolation import Owner
from redrive.functions.launch import LaunchChannel, Program, Unsupported, environment_of, program_for
from redrive.functions.output import Output
from redrive.functions.peers import Address, holds, peer_of
from redrive.functions.processes import (
    family,
    kill_all,
    kill_family,
    kill_user,
    memory_of,
    resident_kb,
    wait_for_end,
)
from redrive.functions.runtime_api import Posted, RuntimeApi, too_large_text
from redrive.functions.setting import Setting
from redrive.model.function import FunctionError, FunctionVersion, Invocation, InvocationResult, Isolation

logger = logging.getLogger(__name__)

INIT_MS: Final = 10_000  # AWS: the start of an environment may take ten seconds
RENEWED_MS: Final = 30 * 60 * 60 * 1000  # of constant use; its credentials are good for 36 hours
_LAST_WORDS_MS: Final = 1_000  # for the exit status of a process that has hung up
MEMORY_EVERY_MS: Final = 100  # while an invocation runs, its memory is looked at so often
MEMORY_TOLD_EVERY_MS: Final = 500  # the same while none takes so long, and for what their reports say of it
_MARK: Final = "REDRIVE_ENVIRONMENT"  # in the environment of every process that descends from this one


class Environment:
    """One process of a function.

    Attributes:
        function: What it runs.
        stream: The log stream of its own.
        idle_since: When its last invocation ended (ms).
        rounds: See `Invocation.rounds`, of the last.
    """

    def __init__(
        self,
        function: FunctionVersion,
        folders: isolation.Folders,
        owner: Owner,
        setting: Setting,
        mark: str,
        output: Output,
    ) -> None:
        """Describe an environment; `start` starts its process.

        Args:
            function: What it runs.
            folders: Its own /tmp among them.
            owner: Of that, and of its processes, where it has its own user.
            setting: What all share.
            mark: A text that no other environment has: 32 hexadecimal digits.
            output: Takes what it prints.
        """
        self.function = function
        self.idle_since = setting.clock.now()
        self.rounds = 0
        self._renewed_at = self.idle_since + RENEWED_MS
        day = datetime.fromtimestamp(self.idle_since / 1000, UTC)
        self.stream = f"{day:%Y/%m/%d}/[{function.version}]{mark}"
        self._folders = folders
        self._owner = owner
        self._setting = setting
        self._mark = mark
        self._output = output
        self._api = RuntimeApi()
        self._gateway = FunctionGateway(setting.endpoint)
        self._process: asyncio.subprocess.Process | None = None
        self._exit: asyncio.Task[int] | None = None
        self._memory_mb = 0
        self._memory_at = 0
        self._watching: Timer | None = None
        self._runs_since: int | None = None
        self._looked_at = 0
        self._over = False

    @property
    def temporary(self) -> str:
        """The folder that is its /tmp."""
        return self._folders.temporary

    @property
    def usable(self) -> bool:
        """True if it can serve another invocation."""
        runs = self._process is not None and self._process.returncode is None
        return runs and not self._over and self._setting.clock.now() < self._renewed_at

    # ---- its start --------------------------------------------------------------------------------------

    async def start(self) -> InvocationResult | None:
        """Start the process and wait until it asks for work; what went wrong, as an invocation's result, or None."""
        seen = isolation.seen(self._setting.isolation, self._folders)
        try:
            program = program_for(self.function, seen, self._setting.java_client)
        except Unsupported as error:
            return self._failed(FunctionError.ENTRYPOINT, str(error))
        self._output.event(f"INIT_START Runtime Version: {self.function.runtime}\n")
        if program.remark:
            self._output.event(f"[redrive] {program.remark}\n")
        try:
            channel, framed = await self._spawn(program)
        except OSError as error:
            return self._failed(FunctionError.ENTRYPOINT, f"{program.command[0]}: {error.strerror}")
        try:
            async with asyncio.timeout(INIT_MS / 1000):
                await self._tell(channel, program, seen, framed)
        except TimeoutError:
            return self._not_in_time()
        except OSError:  # it ended before it was told
            await self._until(asyncio.get_running_loop().create_future(), _LAST_WORDS_MS)
            self.kill()
            return self._failed(FunctionError.EXIT, self._exit_text())
        return await self._started()

    async def _spawn(self, program: Program) -> tuple[LaunchChannel, int]:
        """Start the chain that ends in the launcher; the channel to that, and its descriptor for framed records."""
        setting, channel = self._setting, LaunchChannel()
        before = isolation.command(
            setting.isolation,
            setting.tools,
            self._owner,
            self._folders,
            program.folders,
            self.function.storage_mb,
        )
        out, framed = self._output.pipe(), self._output.pipe(framed=True)
        try:
            with channel:
                self._process = await asyncio.create_subprocess_exec(
                    *before,
                    str(channel.theirs.fileno()),
                    env=self._marks,
                    cwd="/",
                    stdin=DEVNULL,
                    stdout=out,
                    stderr=out,
                    pass_fds=(framed, channel.theirs.fileno()),
                    start_new_session=True,
                )
        finally:
            os.close(out)
            os.close(framed)
        self._exit = asyncio.ensure_future(self._process.wait())
        self._exit.add_done_callback(lambda _: self._api.abandon())
        return channel, framed

    async def _tell(
        self, channel: LaunchChannel, program: Program, seen: isolation.Folders, framed: int
    ) -> None:
        """Hand over what is to run, and listen where that can ask: inside its network namespace, if it has one."""
        setting = self._setting
        inside = setting.isolation is Isolation.BUBBLEWRAP
        api = f"127.0.0.1:{API_PORT}" if inside else await self._api.open(self._is_own)
        variables = environment_of(self.function, seen, api, self.stream, program)
        variables |= await setting.variables(self.function) | dict(self.function.variables)
        variables |= {"_LAMBDA_TELEMETRY_LOG_FD": str(framed), **self._marks}
        ports = (API_PORT, setting.endpoint.port_inside) if inside else ()
        listeners = await channel.tell(program.command, variables, seen.task, ports)
        for listener, listen in zip(listeners, (self._api.listen, self._gateway.open), strict=False):
            await listen(listener)

    @property
    def _marks(self) -> dict[str, str]:
        return {_MARK: self._mark, processes.OWNER: processes.this_server()}

    def _is_own(self, address: Address, own: Address) -> bool:
        """True if the process or its children connected from an address; other systems than Linux are not checked."""
        if sys.platform != "linux":
            return True
        peer = peer_of(address, own)
        if peer is None or self._process is None:
            return False
        if self._setting.isolation is Isolation.USER:
            return peer.user == self._owner.user
        return peer.user == os.geteuid() and holds(family(self._process.pid), peer.inode)

    async def _started(self) -> InvocationResult | None:
        """Wait for the first question, a failure that the process tells of, its end, or the end of ten seconds."""
        if not await self._until(self._api.ready, INIT_MS):
            return self._not_in_time()
        posted = self._api.ready.result() if self._api.ready.done() else None
        if posted is not None:
            self.kill()
            return InvocationResult(posted.body, failed=True)
        if not self._api.ready.done():
            self.kill()
            return self._failed(FunctionError.EXIT, self._exit_text())
        return None

    def _not_in_time(self) -> InvocationResult:
        self.kill()
        return self._failed(FunctionError.TIMEOUT, f"Init timed out after {INIT_MS / 1000:.2f} seconds")

    async def _until(self, answered: "asyncio.Future[Any]", milliseconds: int) -> bool:
        """Wait until the process has answered or is gone; whether that was in time."""
        waiting: list[asyncio.Future[Any]] = [answered] if self._exit is None else [answered, self._exit]
        done, _ = await asyncio.wait(
            waiting, timeout=milliseconds / 1000, return_when=asyncio.FIRST_COMPLETED
        )
        return bool(done)

    # ---- an invocation ----------------------------------------------------------------------------------

    async def invoke(self, invocation: Invocation, init_ms: float | None) -> InvocationResult:
        """Run one invocation.

        Args:
            invocation: What is called.
            init_ms: How long the environment took to start, if it was started for this.
        """
        output, milliseconds = self._output, self._setting.milliseconds
        self.rounds = invocation.rounds
        output.begin()
        output.event(f"START RequestId: {invocation.request_id} Version: {self.function.version}\n")
        began = milliseconds()
        result = await self._run(invocation)
        duration_ms = milliseconds() - began
        output.drain()
        memory = self._memory_used()
        billed = math.ceil(duration_ms + (init_ms or 0))
        output.event(f"END RequestId: {invocation.request_id}\n")
        output.event(self._report(invocation, duration_ms, billed, memory, init_ms))
        self.idle_since = self._setting.clock.now()
        return InvocationResult(
            result.payload, result.failed, result.streamed, duration_ms, init_ms, memory, output.tail
        )

    async def _run(self, invocation: Invocation) -> InvocationResult:
        function, now = self.function, self._setting.clock.now()
        self._runs_since = now
        if self._watching is None:
            self._watch_at(now + MEMORY_EVERY_MS)
        answer = self._api.hand_over(invocation, now + function.timeout_ms)
        # `asyncio.timeout` does as much and more, for 4 us.
        timer = asyncio.get_running_loop().call_later(function.timeout_ms / 1000, _give_up, answer)
        try:
            posted = await answer
        except TimeoutError:
            return self._timed_out(invocation)
        finally:
            timer.cancel()
            self._runs_since = None
        if posted is not None:
            if posted.too_large:
                self.kill()  # runtime clients give up when their answer is refused: AWS starts anew as well
            return _result_of(posted)
        self.kill()
        return self._failed(
            FunctionError.EXIT, f"RequestId: {invocation.request_id} Error: {self._exit_text()}"
        )

    def _timed_out(self, invocation: Invocation) -> InvocationResult:
        """AWS ends the process at the moment; what it had in memory is gone, and its /tmp stays."""
        self.kill()
        seconds = self.function.timeout_ms / 1000
        text = f"RequestId: {invocation.request_id} Error: Task timed out after {seconds:.2f} seconds"
        self._output.drain()
        at = datetime.fromtimestamp(self._setting.clock.now() / 1000, UTC)
        moment = f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"
        self._output.event(f"{moment} {invocation.request_id} Task timed out after {seconds:.2f} seconds\n\n")
        return self._failed(FunctionError.TIMEOUT, text)

    def _watch_at(self, at: int) -> None:
        self._watching = self._setting.clock.call_at(at, self._watch_processes)

    def _watch_processes(self) -> None:
        """Kill the process when it and its children are or hold more than they may; look again in a while.

        The last look comes behind the last invocation: to begin and to end them with each took 4 us. Where invocations
        are shorter than the time between two looks, there is one in half a second: a look takes 60 us.
        """
        self._watching = None
        if self._process is None or self._runs_since is None:
            return
        now = self._setting.clock.now()
        looks_at = min(self._runs_since + MEMORY_EVERY_MS, self._looked_at + MEMORY_TOLD_EVERY_MS)
        if now < looks_at:
            self._watch_at(looks_at)
            return
        self._looked_at = now
        sizes = resident_kb(family(self._process.pid))
        if len(sizes) > self._setting.processes_max or sum(sizes) // 1024 > self.function.memory_mb:
            self._kill_group()
            return
        self._watch_at(now + MEMORY_EVERY_MS)

    def _memory_used(self) -> int:
        """The most that it has held; a look takes 60 us, and a figure that only grows may be a moment old."""
        now = self._setting.clock.now()
        if self._process is not None and now - self._memory_at >= MEMORY_TOLD_EVERY_MS:
            self._memory_mb = min(memory_of(family(self._process.pid)), self.function.memory_mb)
            self._memory_at = now
        return self._memory_mb

    def _report(
        self, invocation: Invocation, duration_ms: float, billed: int, memory: int, init_ms: float | None
    ) -> str:
        line = (
            f"REPORT RequestId: {invocation.request_id}\tDuration: {duration_ms:.2f} ms\t"
            f"Billed Duration: {billed} ms\tMemory Size: {self.function.memory_mb} MB\t"
            f"Max Memory Used: {memory} MB\t"
        )
        return line + (f"Init Duration: {init_ms:.2f} ms\t\n" if init_ms is not None else "\n")

    # ---- its end ----------------------------------------------------------------------------------------

    def kill(self) -> None:
        """End the process and its family at once; it serves no more."""
        self._over = True
        self._kill_group()
        self._api.close()
        self._gateway.close()

    async def close(self) -> None:
        """End the process and all that descends from it, and wait until they are gone."""
        self.kill()
        descendants = await asyncio.to_thread(self._kill_all)
        own = [] if self._exit is None else [self._exit]
        await asyncio.gather(*own, *(wait_for_end(process) for process in descendants))
        self._output.close()

    def _kill_all(self) -> list[int]:
        """Kill what has left the family; where the user is this environment's own, all that it runs."""
        if self._setting.isolation is Isolation.USER:
            return kill_user(isolation.kill_command(self._setting.tools, self._owner.user), self._owner.user)
        return kill_all(_MARK, self._mark.__eq__)

    def _kill_group(self) -> None:
        if self._process is not None and self._process.returncode is None:
            kill_family(self._process.pid)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _exit_text(self) -> str:
        status = None if self._process is None else self._process.returncode
        if status is None or status == 0:
            return "Runtime exited without providing a reason"
        if status < 0:
            return f"Runtime exited with error: signal: {_SIGNALS.get(-status, str(-status))}"
        return f"Runtime exited with error: exit status {status}"

    def _failed(self, error: FunctionError, text: str) -> InvocationResult:
        document = {"errorType": error.value, "errorMessage": text}
        return InvocationResult(json.dumps(document, separators=(",", ":")).encode(), failed=True)


_SIGNALS: Final[dict[int, str]] = {
    signal.SIGKILL: "killed",
    signal.SIGSEGV: "segmentation fault",
    signal.SIGABRT: "aborted",
}


def _give_up(answer: "asyncio.Future[Posted | None]") -> None:
    if not answer.done():
        answer.set_exception(TimeoutError())


def _result_of(posted: Posted) -> InvocationResult:
    if posted.too_large:
        text = too_large_text("Response payload size exceeded")
        document = {"errorMessage": text, "errorType": FunctionError.TOO_LARGE.value}
        return InvocationResult(json.dumps(document).encode(), failed=True)
    return InvocationResult(posted.body, failed=posted.error_type is not None, streamed=posted.streamed)
