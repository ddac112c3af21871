"""Execution: one invocation of one version, handed to whoever runs functions, and counted."""

from dataclasses import replace
from typing import Final

import orjson

from redrive.aws.gateway.rounds import Rounds
from redrive.aws.lambda_.documents.lookup import FunctionTarget
from redrive.aws.lambda_.documents.ports import CodeKeeper, Runner
from redrive.aws.lambda_.documents.records import Configuration
from redrive.aws.lambda_.functions.execution_roles import ExecutionRoles
from redrive.aws.lambda_.functions.sealed_variables import SealedVariables, VariablesUnreadable
from redrive.aws.lambda_.invocations.metrics import InvocationMetrics
from redrive.engine.ports import Clock
from redrive.model.errors import Refused
from redrive.model.function import AnswerParts, FunctionError, FunctionVersion, Invocation, InvocationResult
from redrive.model.names import ResourceName

_TASK: Final = b"/var/task"


class Executor:
    """Runs versions of functions."""

    def __init__(
        self,
        code: CodeKeeper,
        runner: Runner,
        clock: Clock,
        metrics: InvocationMetrics,
        rounds: Rounds,
        roles: ExecutionRoles,
        variables: SealedVariables,
    ) -> None:
        self._code = code
        self._runner = runner
        self._clock = clock
        self._metrics = metrics
        self._rounds = rounds  # Tells of how many runs in a row an invocation is the last
        self._roles = roles
        self._variables = variables
        self._live: dict[tuple[ResourceName, str], str] = {}  # of versions whose code changes in its place

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
        except VariablesUnreadable:
            raise
        except Refused as error:
            document = {"errorType": FunctionError.ENTRYPOINT.value, "errorMessage": str(error)}
            return InvocationResult(orjson.dumps(document), failed=True)
        rounds = self._rounds.of(trace)
        invocation = Invocation(request_id, payload, invoked_as, trace, client_context, parts, rounds)
        with self._metrics.counting(target, version, self._clock.now()) as counted:
            result = await self._runner.invoke(function, invocation)
            if result.failed:  # its trace names files where AWS has them, and not this machine's folders
                task_payload = result.payload.replace(function.code.encode(), _TASK)
                result = replace(result, payload=task_payload)
            counted.result = result
        return result

    async def runnable(self, version: Configuration, reserved: int | None) -> FunctionVersion:
        """A version with its code and its layers on this node; `reserved` is its function's concurrency.

        Raises:
            NotFound: The code is not kept (any more).
        """
        code = await self._code.folder(version.name, version.code)
        logs = await self._roles.may_log(version)
        revision = await self._revision(version, code)
        return FunctionVersion(
            name=version.name,
            version=version.version,
            revision=revision if logs else f"{revision}.unlogged",
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

    async def _revision(self, version: Configuration, code: str) -> str:
        """The revision of a version as its code is now; where that has changed, what rests with the old code is ended."""
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
