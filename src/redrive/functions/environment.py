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
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from redrive.functions import isolation, processes
from redrive.functions.gateway import API_PORT, FunctionGateway
from redrive.functions.isolation import Owner
from redrive.functions.launch import LaunchChannel, Program, Unsupported, environment_of, program_for
from redrive.functions.memory_watch import MemoryWatch
from redrive.functions.output import Output
from redrive.functions.peers import Address, holds, peer_of
from redrive.functions.processes import family, kill_all, kill_family, kill_user, wait_for_end
from redrive.functions.runtime_api import Posted, RuntimeApi, too_large_text
from redrive.functions.setting import Setting
from redrive.model.function import FunctionError, FunctionVersion, Invocation, InvocationResult, Isolation

logger = logging.getLogger(__name__)

INIT_MS: Final = 10_000  # AWS: the start of an environment may take ten seconds
RENEWED_MS: Final = 30 * 60 * 60 * 1000  # of constant use; its credentials are good for 36 hours
_LAST_WORDS_MS: Final = 1_000  # for the exit status of a process that has hung up
_MARK: Final = "REDRIVE_ENVIRONMENT"  # in the environment of every process that descends from this one


@dataclass(slots=True)
class _Run:
    """An invocation that is under way."""

    invocation: Invocation
    init_ms: float | None
    take: Callable[[InvocationResult], None]  # Called with its result
    began: float  # By the setting's count of milliseconds


class Environment:
    """One process of a function.

    Attributes:
        function: What it runs.
        key: The identity that it shares with others of the function's revision.
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

        Its own /tmp is among the folders; `owner` owns that and its processes, where it has its own user. `mark` is a
        text that no other environment has: 32 hexadecimal digits. `output` takes what it prints.
        """
        self.function = function
        self.key = function.key
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
        self._memory = MemoryWatch(setting.clock, function.memory_mb, setting.processes_max, self._kill_group)
        self._run: _Run | None = None
        self._timer: asyncio.TimerHandle | None = None  # outlasts a run, see `_ring`; None: none is set
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
        """Start the process and wait until it asks for work; None, or the failure as an invocation's result."""
        folders = isolation.folders_inside(self._setting.isolation, self._folders)
        try:
            program = program_for(self.function, folders, self._setting.java_client)
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
                await self._tell(channel, program, folders, framed)
        except TimeoutError:
            return self._not_in_time()
        except OSError:  # it ended before it was told what to run
            await self._until(asyncio.get_running_loop().create_future(), _LAST_WORDS_MS)
            self.kill()
            return self._failed(FunctionError.EXIT, self._exit_text())
        return await self._wait_until_ready()

    async def _spawn(self, program: Program) -> tuple[LaunchChannel, int]:
        """Start the chain that ends in the launcher; the channel to that, and its descriptor for framed records."""
        setting, channel = self._setting, LaunchChannel()
        launch_command = isolation.command(
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
                    *launch_command,
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
        self._memory.pid = self._process.pid
        self._exit = asyncio.ensure_future(self._process.wait())
        self._exit.add_done_callback(lambda _: self._api.abandon())
        return channel, framed

    async def _tell(
        self, channel: LaunchChannel, program: Program, folders: isolation.Folders, framed: int
    ) -> None:
        """Tell the launcher what to run, and listen where the process can connect: in its namespace, if it has one."""
        setting = self._setting
        inside = setting.isolation is Isolation.BUBBLEWRAP
        api = f"127.0.0.1:{API_PORT}" if inside else await self._api.open(self._is_own)
        variables = environment_of(self.function, folders, api, self.stream, program)
        variables |= await setting.variables(self.function) | dict(self.function.variables)
        variables |= {"_LAMBDA_TELEMETRY_LOG_FD": str(framed), **self._marks}
        ports = (API_PORT, setting.endpoint.port_inside) if inside else ()
        listeners = await channel.tell(program.command, variables, folders.task, ports)
        for listener, listen in zip(listeners, (self._api.listen, self._gateway.open), strict=False):
            await listen(listener)

    @property
    def _marks(self) -> dict[str, str]:
        return {_MARK: self._mark, processes.OWNER: processes.this_server()}

    def _is_own(self, address: Address, server_address: Address) -> bool:
        """True if the process or its children connected from an address; other systems than Linux are not checked."""
        if sys.platform != "linux":
            return True
        peer = peer_of(address, server_address)
        if peer is None or self._process is None:
            return False
        if self._setting.isolation is Isolation.USER:
            return peer.user == self._owner.user
        return peer.user == os.geteuid() and holds(family(self._process.pid), peer.inode)

    async def _wait_until_ready(self) -> InvocationResult | None:
        """Wait until the process asks for work, tells of a failure or ends, for ten seconds; None, or the failure."""
        if not await self._until(self._api.ready, INIT_MS):
            return self._not_in_time()
        if not self._api.ready.done():  # the process ended before
            self.kill()
            return self._failed(FunctionError.EXIT, self._exit_text())
        posted = self._api.ready.result()
        if posted is None:
            return None
        self.kill()
        return InvocationResult(posted.body, failed=True)

    def _not_in_time(self) -> InvocationResult:
        self.kill()
        return self._failed(FunctionError.TIMEOUT, f"Init timed out after {INIT_MS / 1000:.2f} seconds")

    async def _until(self, answered: "asyncio.Future[Any]", milliseconds: int) -> bool:
        """Wait until the process has answered or is gone; True if that was in time."""
        waiting: list[asyncio.Future[Any]] = [answered] if self._exit is None else [answered, self._exit]
        done, _ = await asyncio.wait(
            waiting, timeout=milliseconds / 1000, return_when=asyncio.FIRST_COMPLETED
        )
        return bool(done)

    # ---- an invocation ----------------------------------------------------------------------------------

    async def invoke(self, invocation: Invocation, init_ms: float | None) -> InvocationResult:
        """Run one invocation; `init_ms`: how long the environment took to start, if it was started for this."""
        ended: asyncio.Future[InvocationResult] = asyncio.get_running_loop().create_future()

        def take(result: InvocationResult) -> None:
            if not ended.done():
                ended.set_result(result)

        try:
            self.begin(invocation, take, init_ms)
            return await ended
        finally:
            self._forget_run()  # where its caller is gone, its answer counts no more

    def begin(
        self, invocation: Invocation, take: Callable[[InvocationResult], None], init_ms: float | None = None
    ) -> None:
        """Begin one invocation; `take` is called with its result."""
        output, function = self._output, self.function
        self.rounds = invocation.rounds
        output.begin()
        output.event(f"START RequestId: {invocation.request_id} Version: {function.version}\n")
        now = self._setting.clock.now()
        self._run = _Run(invocation, init_ms, take, self._setting.milliseconds())
        self._memory.begin(now)
        if self._timer is None:
            self._set_timer(function.timeout_ms)
        self._api.hand_over(invocation, now + function.timeout_ms, self._end)

    def _set_timer(self, milliseconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(milliseconds / 1000, self._ring)

    def _ring(self) -> None:
        """End a run that is out of time; the timer may be an earlier run's: there is one a time-out, not one a run."""
        run, self._timer = self._run, None
        if run is None:
            return
        remaining_ms = run.began + self.function.timeout_ms - self._setting.milliseconds()
        if remaining_ms > 0:
            self._set_timer(remaining_ms)
        else:
            self._finish(run, self._time_out(run.invocation))

    def _end(self, posted: Posted | None) -> None:
        """The process has posted its answer, or is gone."""
        if self._run is None:  # it was out of time, or nobody waits any more
            return
        if posted is not None:
            if posted.too_large:
                self.kill()  # runtime clients give up when their answer is refused: AWS starts anew as well
            self._finish(self._run, _result_of(posted))
            return
        self.kill()
        text = f"RequestId: {self._run.invocation.request_id} Error: {self._exit_text()}"
        self._finish(self._run, self._failed(FunctionError.EXIT, text))

    def _forget_run(self) -> None:
        self._run = None
        self._memory.end()

    def _finish(self, run: _Run, result: InvocationResult) -> None:
        """End a run: write its last lines, note what it took, and hand over its result."""
        self._forget_run()
        output, request_id = self._output, run.invocation.request_id
        duration_ms = self._setting.milliseconds() - run.began
        output.drain()
        memory_mb = self._memory.used_mb()
        billed_ms = math.ceil(duration_ms + (run.init_ms or 0))
        output.event(f"END RequestId: {request_id}\n")
        output.event(self._report(request_id, duration_ms, billed_ms, memory_mb, run.init_ms))
        self.idle_since = self._setting.clock.now()
        result.duration_ms, result.init_ms = duration_ms, run.init_ms
        result.memory_mb, result.log_tail = memory_mb, output.tail
        run.take(result)

    def _time_out(self, invocation: Invocation) -> InvocationResult:
        """AWS ends the process at the moment; what it had in memory is gone, and its /tmp stays."""
        self.kill()
        seconds = self.function.timeout_ms / 1000
        text = f"RequestId: {invocation.request_id} Error: Task timed out after {seconds:.2f} seconds"
        self._output.drain()
        at = datetime.fromtimestamp(self._setting.clock.now() / 1000, UTC)
        moment = f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"
        self._output.event(f"{moment} {invocation.request_id} Task timed out after {seconds:.2f} seconds\n\n")
        return self._failed(FunctionError.TIMEOUT, text)

    def _report(
        self, request_id: str, duration_ms: float, billed_ms: int, memory_mb: int, init_ms: float | None
    ) -> str:
        """The line of Lambda's log about what an invocation took."""
        line = (
            f"REPORT RequestId: {request_id}\tDuration: {duration_ms:.2f} ms\t"
            f"Billed Duration: {billed_ms} ms\tMemory Size: {self.function.memory_mb} MB\t"
            f"Max Memory Used: {memory_mb} MB\t"
        )
        return line + (f"Init Duration: {init_ms:.2f} ms\t\n" if init_ms is not None else "\n")

    # ---- its end ----------------------------------------------------------------------------------------

    def kill(self) -> None:
        """End the process and its family at once; it serves no more."""
        self._over = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
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
        """The reason for the process's end in Lambda's words."""
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


def _result_of(posted: Posted) -> InvocationResult:
    """The result that an answer of the process stands for."""
    if posted.too_large:
        text = too_large_text("Response payload size exceeded")
        document = {"errorMessage": text, "errorType": FunctionError.TOO_LARGE.value}
        return InvocationResult(json.dumps(document).encode(), failed=True)
    return InvocationResult(posted.body, failed=posted.error_type is not None, streamed=posted.streamed)
