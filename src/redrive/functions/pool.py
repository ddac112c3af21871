"""The pool: environments are started on demand, used again, and ended after being idle for a while.

Nothing ticks while environments rest: each has one timer, which is set anew when it rings too early and not with each
invocation, and its process sleeps in a read. The environment that rested
shortest serves next, so that those there are too many of grow old and go.
"""

import asyncio
import logging
import os
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias
from weakref import WeakValueDictionary

from redrive.engine.ports import LogSink, Runtime, Timer
from redrive.functions import isolation
from redrive.functions.environment import Environment
from redrive.functions.launch import RUNTIME_FOLDER
from redrive.functions.output import Output
from redrive.functions.setting import Setting
from redrive.model.function import FunctionVersion, Invocation, InvocationResult, Isolation, Throttled
from redrive.model.names import ResourceName

logger = logging.getLogger(__name__)

Key: TypeAlias = tuple[ResourceName, str, str]  # a function's name, its version and its revision


class KeptEnvironments:
    """Sees to it that there are as many environments of a revision as are to be kept."""

    def __init__(
        self,
        count: Callable[[Key], int],
        start: Callable[[FunctionVersion], Awaitable[InvocationResult | None]],
    ) -> None:
        """Keep `count` environments of each revision; `start` starts one more: None, or the failure as a result."""
        self._count = count
        self._start = start
        self._provisions: dict[Key, tuple[FunctionVersion, int]] = {}  # with how many are to be kept
        self._failures: dict[Key, str] = {}
        self._starting: dict[Key, asyncio.Task[None]] = {}

    def keep(self, function: FunctionVersion, count: int) -> None:
        """Keep so many environments from now on; 0: none beyond those that invocations need."""
        if count == 0:
            self.forget(function.key)
            return
        self._provisions[function.key] = replace(function, provisioned=True), count
        self._failures.pop(function.key, None)
        self.refill(function.key)

    def forget(self, key: Key) -> None:
        """Keep none of a revision any more."""
        self._provisions.pop(key, None)
        self._failures.pop(key, None)

    def wants(self, key: Key) -> bool:
        """True if no environment of a revision is too many."""
        _, number = self._provisions.get(key, (None, -1))
        return self._count(key) <= number

    def failure(self, key: Key) -> str:
        """The reason that the last start failed for; empty: it did not."""
        return self._failures.get(key, "")

    def refill(self, key: Key) -> None:
        """Start the missing environments one after the other; after a failure none is started by itself."""
        if key not in self._provisions or key in self._starting or key in self._failures:
            return
        start_task = asyncio.get_running_loop().create_task(self._fill(key))
        self._starting[key] = start_task
        start_task.add_done_callback(lambda _: self._starting.pop(key, None))

    async def _fill(self, key: Key) -> None:
        """Start environments until there are as many as are to be kept, or one fails."""
        while (provision := self._provisions.get(key)) is not None and self._count(key) < provision[1]:
            failure = await self._start(provision[0])
            if failure is not None:
                self._failures[key] = failure.payload.decode(errors="replace")
                return

    async def close(self) -> None:
        """Keep nothing any more."""
        self._provisions.clear()
        starting = list(self._starting.values())
        for task in starting:
            task.cancel()
        await asyncio.gather(*starting, return_exceptions=True)


# Of an account. A start takes 0.1 to 0.3 s of a processor; sixty at once kept the server from its own work for 2 s.
STARTS_MAX: Final = 4
_EMPTY: Final = "empty"  # the layers of a function that has none
_HOSTS: Final = "hosts"
IDLE_MS: Final = 300_000  # an environment that was idle for five minutes is ended


class FunctionPool:
    """Runs functions in environments of their own."""

    def __init__(
        self,
        setting: Setting,
        runtime: Runtime,
        sink: LogSink,
        folder: Path,
        unreserved_max: Callable[[str], int],
        idle_ms: int = IDLE_MS,
    ) -> None:
        """Create an empty pool, which makes `folder` for each environment's /tmp, and removes it in `close`.

        `unreserved_max` is how many invocations of functions without a reservation an account may have under way.
        """
        self._setting = setting
        self._runtime = runtime
        self._sink = sink
        self._folder = folder
        self._unreserved_max = unreserved_max
        self._idle_ms = idle_ms
        self._idle: dict[Key, list[Environment]] = {}
        self._timers: dict[Environment, Timer] = {}
        self._busy: set[Environment] = set()
        self._starting: set[Environment] = set()
        self._spare: dict[Key, list[str]] = {}  # the folders of /tmp that ended environments left
        self._running: Counter[ResourceName] = Counter()
        self._unreserved: Counter[str] = Counter()
        self._outdated: set[Key] = set()
        self._starts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._closed = False
        self._ending: set[asyncio.Task[None]] = set()
        self._kept = KeptEnvironments(self._count, self._warm)

    def running(self, name: ResourceName) -> int:
        """The number of invocations of a function that are under way."""
        return self._running[name]

    async def invoke(self, function: FunctionVersion, invocation: Invocation) -> InvocationResult:
        """Run one invocation, in an environment that rests or a new one.

        Raises:
            Throttled: As many are under way as may be.
        """
        self._admit(function)
        try:
            return await self._run(function, invocation)
        finally:
            self._release(function)

    def begin(
        self, function: FunctionVersion, invocation: Invocation, take: Callable[[InvocationResult], None]
    ) -> bool:
        """Begin an invocation in an environment that rests; `take` is called with its result. False: none rests."""
        self._admit(function)
        environment = self._take_resting(function)
        if environment is None:
            self._release(function)
            return False
        self._busy.add(environment)

        def end(result: InvocationResult) -> None:
            if self._rest(environment):
                hand_over(result)
            else:
                self._start_end(environment).add_done_callback(lambda _: hand_over(result))

        def hand_over(result: InvocationResult) -> None:
            self._release(function)
            take(result)

        environment.begin(invocation, end)
        return True

    def _admit(self, function: FunctionVersion) -> None:
        """Count an invocation among those of the function's reservation, or of its account's functions without one."""
        account = function.name.account
        if function.reserved is not None:
            if self._running[function.name] >= function.reserved:
                raise Throttled(by_function=True)
        elif self._unreserved[account] >= self._unreserved_max(account):
            raise Throttled(by_function=False)
        else:
            self._unreserved[account] += 1
        self._running[function.name] += 1

    def _release(self, function: FunctionVersion) -> None:
        self._running[function.name] -= 1
        if function.reserved is None:
            self._unreserved[function.name.account] -= 1

    async def _run(self, function: FunctionVersion, invocation: Invocation) -> InvocationResult:
        """Run an invocation in an environment that rests, or in a new one."""
        environment, init_ms = self._take_resting(function), None
        if environment is None:
            began = self._setting.milliseconds()
            started = await self._start_environment(function)
            if isinstance(started, InvocationResult):
                return started
            environment = started
            init_ms = self._setting.milliseconds() - began
        self._busy.add(environment)
        try:
            return await environment.invoke(invocation, init_ms)
        finally:
            if not self._rest(environment):
                await self._end(environment)

    # ---- environments -----------------------------------------------------------------------------------

    async def _start_environment(self, function: FunctionVersion) -> Environment | InvocationResult:
        """A new environment, which is busy; or the failure to start one, as an invocation's result."""
        async with self._starts.setdefault(function.name.account, asyncio.Semaphore(STARTS_MAX)):
            if self._closed:
                raise Throttled(by_function=False)
            environment = self._new(function)
            self._busy.add(environment)
            self._starting.add(environment)
            try:
                failure = await environment.start()
            except BaseException:
                await self._end(environment)
                raise
            finally:
                self._starting.discard(environment)
        if failure is None:
            return environment
        await self._end(environment)
        return failure

    def _take_resting(self, function: FunctionVersion) -> Environment | None:
        """The environment that has rested the shortest; None: none rests. Those that have ended are removed."""
        key = function.key
        resting = self._idle.get(key, [])
        while resting:
            environment = resting.pop()
            if environment.usable:
                return environment
            self._start_end(environment)
        self._idle.pop(key, None)
        return None

    def _new(self, function: FunctionVersion) -> Environment:
        """A new environment, with its output, folders and user, which is not started yet."""
        mark = self._runtime.message_id().hex()
        group = function.name._replace(name=function.log_group)

        def write(at: int, message: str) -> None:
            if function.logs:
                self._sink.write(group, environment.stream, at, message, environment.rounds)

        output = Output(self._setting.clock.now, write)
        folders = self._folders(function, mark)
        owner = isolation.owner_of(function.name, folders.temporary, self._setting.user_key)
        if self._setting.isolation is Isolation.USER:
            os.chown(folders.temporary, owner.user, owner.group)
        environment = Environment(function, folders, owner, self._setting, mark, output)
        return environment

    def _folders(self, function: FunctionVersion, mark: str) -> isolation.Folders:
        """The folders of a new environment; its /tmp is one that an ended environment left, if there is one."""
        folder = self._prepare_folder()
        spare = self._spare.get(function.key)
        temporary = Path(spare.pop()) if spare else folder / mark
        temporary.mkdir(mode=0o700, exist_ok=True)
        layers = function.layers or str(folder / _EMPTY)
        return isolation.Folders(
            function.code, layers, str(RUNTIME_FOLDER), str(temporary), str(folder / _HOSTS)
        )

    def _prepare_folder(self) -> Path:
        """The folder of all environments, made if it is not there; each user may enter its own folder in it alone."""
        folder = self._folder
        if not folder.is_dir():
            folder.mkdir(parents=True)
            (folder / _EMPTY).mkdir()
            (folder / _HOSTS).write_text(self._setting.endpoint.hosts)
            for path, mode in ((folder, 0o711), (folder / _EMPTY, 0o755), (folder / _HOSTS, 0o644)):
                path.chmod(mode)  # whatever this process's umask is
        return folder

    def _rest(self, environment: Environment) -> bool:
        """Let an environment rest until it is used again; False: it cannot be used again."""
        key = environment.key
        if not environment.usable or key in self._outdated:
            return False
        self._busy.discard(environment)
        self._idle.setdefault(key, []).append(environment)
        if environment not in self._timers:
            self._set_timer(environment, self._setting.clock.now() + self._idle_ms)
        return True

    def _set_timer(self, environment: Environment, at: int) -> None:
        self._timers[environment] = self._setting.clock.call_at(at, lambda: self._ring(environment))

    def _ring(self, environment: Environment) -> None:
        """End an environment that has rested long enough; one that was used meanwhile gets a new timer."""
        del self._timers[environment]
        if environment not in self._idle.get(environment.key, ()):
            return  # it is busy, and put back with a new timer
        over_at = environment.idle_since + self._idle_ms
        if self._setting.clock.now() < over_at:
            self._set_timer(environment, over_at)
        else:
            self._reap(environment)

    def keep(self, function: FunctionVersion, count: int) -> None:
        """Keep so many environments ready from now on; 0: none beyond those that invocations need."""
        self._kept.keep(function, count)

    def readiness(self, function: FunctionVersion) -> tuple[int, str]:
        """The number of environments that are there, and why the last one could not be started; empty: it could."""
        return self._count(function.key), self._kept.failure(function.key)

    def _count(self, key: Key) -> int:
        """The number of environments of a revision that serve or could."""
        busy = [each for each in self._busy - self._starting if each.key == key and each.usable]
        return len(self._idle.get(key, ())) + len(busy)

    async def _warm(self, function: FunctionVersion) -> InvocationResult | None:
        """Start an environment that rests at once; None, or the failure as an invocation's result."""
        started = await self._start_environment(function)
        if isinstance(started, InvocationResult):
            return started
        if not self._rest(started):
            await self._end(started)
        return None

    def _reap(self, environment: Environment) -> None:
        """End an environment that has rested its time, unless it has to be kept."""
        key = environment.key
        others = [other for other in self._idle.get(key, []) if other is not environment]
        if self._kept.wants(key):
            self._idle[key] = [environment, *others]
            self._set_timer(environment, self._setting.clock.now() + self._idle_ms)
            return
        self._idle[key] = others
        self._start_end(environment)

    # ---- ends -------------------------------------------------------------------------------------------

    def _start_end(self, environment: Environment) -> asyncio.Task[None]:
        outcome = asyncio.get_running_loop().create_task(self._end(environment))
        self._ending.add(outcome)
        outcome.add_done_callback(self._ending.discard)
        return outcome

    async def _end(self, environment: Environment) -> None:
        """End an environment. Its /tmp is the next one's, as after a time-out on AWS, unless the revision is over."""
        self._busy.discard(environment)
        if (timer := self._timers.pop(environment, None)) is not None:
            timer.cancel()
        await environment.close()
        key, temporary = environment.key, environment.temporary
        if key in self._outdated:
            await asyncio.to_thread(shutil.rmtree, temporary, ignore_errors=True)
        else:
            self._spare.setdefault(key, []).append(temporary)
            self._kept.refill(key)

    async def drop(self, name: ResourceName, version: str | None = None, revision: str = "") -> None:
        """End the resting environments of a function, or of one version of it; busy ones end after their invocation.

        Those of `revision` stay.
        """
        for key in self._known():
            key_name, key_version, key_revision = key
            if key_name != name or version not in (None, key_version) or key_revision == revision:
                continue
            self._outdated.add(key)
            self._kept.forget(key)
            for environment in self._idle.pop(key, []):
                await self._end(environment)
            for temporary in self._spare.pop(key, []):
                await asyncio.to_thread(shutil.rmtree, temporary, ignore_errors=True)

    def _known(self) -> set[Key]:
        return {*self._idle, *self._spare, *(environment.key for environment in self._busy)}

    async def close(self) -> None:
        """End every environment and remove what they kept; no process is left."""
        self._closed = True
        await self._kept.close()
        resting = [environment for environments in self._idle.values() for environment in environments]
        self._idle.clear()
        for environment in [*resting, *self._busy]:
            await self._end(environment)
        if self._ending:
            await asyncio.wait(self._ending)
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
