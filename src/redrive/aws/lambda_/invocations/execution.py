"""Execution: one invocation of one version, handed to whoever runs functions, and counted."""

from collections.abc import Callable
from typing import Final, NamedTuple

import orjson

from redrive.aws.gateway.rounds import Rounds
from redrive.aws.lambda_.documents.lookup import FunctionTarget
from redrive.aws.lambda_.documents.ports import CodeKeeper, Runner
from redrive.aws.lambda_.documents.records import Configuration
from redrive.aws.lambda_.functions.execution_roles import ExecutionRoles
from redrive.aws.lambda_.functions.sealed_variables import SealedVariables, VariablesUnreadable
from redrive.aws.lambda_.invocations.metrics import InvocationMetrics
from redrive.engine.ports import Clock
from redrive.engine.resources import Documents
from redrive.model.errors import Refused
from redrive.model.function import (
    AnswerParts,
    FunctionError,
    FunctionVersion,
    Invocation,
    InvocationResult,
    Throttled,
)
from redrive.model.names import ResourceName

_TASK: Final = b"/var/task"
_READY_MAX: Final = 1_024
_READY_MS: Final = 1_000  # a policy may ask for the time, of which it knows seconds


class _Ready(NamedTuple):
    """A version that can be run at once, as long as nothing changes that was looked at to find that out."""

    configuration: Configuration  # The identical object
    changes: int  # The value of `Documents.changes`, which counts, when it was looked at
    until: int  # Moment (ms)
    function: FunctionVersion


class Executor:
    """Runs versions of functions."""

    def __init__(
        self,
        documents: Documents,
        code: CodeKeeper,
        runner: Runner,
        clock: Clock,
        metrics: InvocationMetrics,
        rounds: Rounds,
        roles: ExecutionRoles,
        variables: SealedVariables,
    ) -> None:
        self._documents = documents
        self._code = code
        self._runner = runner
        self._clock = clock
        self._metrics = metrics
        self._rounds = rounds  # Tells of how many runs in a row an invocation is the last
        self._roles = roles
        self._variables = variables
        self._live: dict[tuple[ResourceName, str], str] = {}  # of versions whose code changes in its place
        self._ready: dict[tuple[ResourceName, str], _Ready] = {}

    async def run(
        self,
        target: FunctionTarget,
        version: Configuration,
        invoked_as: str,
        payload: bytes,
        request_id: str,
        *,
        trace: str | None = None,
        client_context: str | None = None,
        parts: AnswerParts | None = None,
    ) -> InvocationResult:
        """Run one invocation of the version that a target names; parts of a streamed answer go to `parts` as they come.

        The function is told the ARN that it was `invoked_as`, and of every attempt of an event the same request id.

        Raises:
            Throttled: As many are under way as may be.
            VariablesUnreadable: The key of its variables cannot be used.
        """
        try:
            function = await self.runnable(version, target.function.reserved)
        except VariablesUnreadable:  # which is a Refused, too
            raise
        except Refused as error:
            document = {"errorType": FunctionError.ENTRYPOINT.value, "errorMessage": str(error)}
            return InvocationResult(orjson.dumps(document), failed=True)
        rounds = self._rounds.of(trace)
        invocation = Invocation(request_id, payload, invoked_as, trace, client_context, parts, rounds)
        count, result = self._metrics.begin(target, version, self._clock.now()), None
        try:
            result = await self._runner.invoke(function, invocation)
            _hide_folders(function, result)
        except Throttled:
            self._metrics.throttle(count)
            raise
        finally:
            self._metrics.end(count, result)
        return result

    def begin(
        self,
        target: FunctionTarget,
        invoked_as: str,
        payload: bytes,
        request_id: str,
        trace: str | None,
        take: Callable[[InvocationResult], None],
    ) -> bool:
        """Begin what `run` does where nothing has to be waited for: later `take` is called with the result.

        False: nothing was begun, and nothing was counted.

        Raises:
            Throttled: See `run`; it is not counted either.
        """
        version, now = target.configuration, self._clock.now()
        function = self._ready_function(version, target.function.reserved, now)
        if function is None:
            return False

        def end(result: InvocationResult) -> None:
            _hide_folders(function, result)
            self._metrics.end(count, result)
            take(result)

        invocation = Invocation(request_id, payload, invoked_as, trace, rounds=self._rounds.of(trace))
        if not self._runner.begin(function, invocation, end):
            return False
        count = self._metrics.begin(target, version, now)  # before `end`, which an answer calls later
        return True

    async def runnable(self, version: Configuration, reserved: int | None) -> FunctionVersion:
        """A version with its code and its layers on this node; `reserved` is its function's concurrency.

        Raises:
            NotFound: The code is not kept (any more).
        """
        changes, now = self._documents.changes, self._clock.now()
        function = self._ready_function(version, reserved, now)
        if function is not None:
            return function
        code = await self._code.folder(version.name, version.code)
        logs = await self._roles.may_log(version)
        revision = await self._revision(version, code)
        function = FunctionVersion(
            name=version.name,
            version=version.version,
            revision=revision if logs else f"{revision}.unlogged",  # not to run in a process that logs
            runtime=version.runtime,
            handler=version.handler,
            code=code,
            layers=await self._layers(version) if version.layers else "",
            timeout_ms=version.timeout_seconds * 1000,
            memory_mb=version.memory_mb,
            storage_mb=version.storage_mb,
            role=version.role,
            variables=await self._variables.of_run(version),
            log_group=version.logging["LogGroup"],
            log_format=version.logging["LogFormat"],
            logs=logs,
            reserved=reserved,
        )
        # Code that changes in its place, and the right to a key, are looked at before every run.
        if revision == version.revision and not version.sealed_variables:
            if len(self._ready) >= _READY_MAX:
                self._ready.clear()
            next_second = now + _READY_MS - now % _READY_MS
            ready = _Ready(version, changes, next_second, function)
            self._ready[version.name, version.version] = ready
        return function

    def _ready_function(
        self, configuration: Configuration, reserved: int | None, now: int
    ) -> FunctionVersion | None:
        """The last answer of `runnable`, if it is of this second and no document has changed since; else None."""
        ready = self._ready.get((configuration.name, configuration.version))
        if ready is None or ready.configuration is not configuration or now >= ready.until:
            return None
        is_current = ready.changes == self._documents.changes and ready.function.reserved == reserved
        return ready.function if is_current else None

    async def _revision(self, version: Configuration, code: str) -> str:
        """The revision of a version as its code is now; if the code changed, idle processes of the old one are ended."""
        stamp = await self._code.stamp(code)
        if not stamp:
            return version.revision
        revision, key = f"{version.revision}.{stamp}", (version.name, version.version)
        if self._live.get(key, revision) != revision:
            await self._runner.drop(version.name, version.version, revision=revision)
        self._live[key] = revision
        return revision

    async def _layers(self, version: Configuration) -> str:
        return await self._code.layers(
            version.name, [(layer.archive, layer.code) for layer in version.layers]
        )


def _hide_folders(function: FunctionVersion, result: InvocationResult) -> None:
    """The trace of a failure names files where AWS has them, and not this machine's folders."""
    if result.failed:
        result.payload = result.payload.replace(function.code.encode(), _TASK)
