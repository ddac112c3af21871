"""Executions begun at once: what was found out of a version a moment ago, and what makes it be looked at anew."""

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from redrive.aws.lambda_.documents.lookup import FunctionTarget
from redrive.aws.lambda_.invocations.execution import Executor
from redrive.aws.lambda_.invocations.metrics import InvocationMetrics
from redrive.model.function import FunctionVersion, Invocation, InvocationResult
from redrive.model.metric import SeriesGroup
from redrive.model.names import ResourceName

NAME = ResourceName("000000000000", "us-east-1", "orders")
VERSION: dict[str, Any] = {
    "name": NAME,
    "version": "$LATEST",
    "revision": "r",
    "runtime": "python3.11",
    "handler": "app.echo",
    "code": "digest",
    "layers": (),
    "timeout_seconds": 3,
    "memory_mb": 128,
    "storage_mb": 512,
    "role": "role",
    "logging": {"LogGroup": "g", "LogFormat": "Text"},
    "sealed_variables": "",
}


class World:
    """All that an executor asks, as plain values; it is its own documents, clock, code, runner, roles and variables."""

    def __init__(self) -> None:
        self.changes, self.at, self.live, self.rests = 0, 5_000, "", True
        self.asked: Counter[str] = Counter()
        self.counted: Counter[str] = Counter()
        self.taken: list[Callable[[InvocationResult], None]] = []
        metrics = InvocationMetrics(self._add, self.now)
        rounds = SimpleNamespace(of=lambda trace: 0)
        parts: list[Any] = [self, self, self, self, metrics, rounds, self, self]
        self.executor = Executor(*parts)
        self.version: Any = SimpleNamespace(**VERSION)

    def now(self) -> int:
        return self.at

    def _add(self, group: SeriesGroup, value: float, at: int) -> None:
        self.counted[group.series[0].name] += int(value)

    async def folder(self, name: ResourceName, digest: str) -> str:
        self.asked["folder"] += 1
        return "/code"

    async def stamp(self, folder: str) -> str:
        return self.live

    async def may_log(self, version: Any) -> bool:
        self.asked["rights"] += 1
        return True

    async def of_run(self, version: Any) -> dict[str, str]:
        return {}

    def begin(
        self, function: FunctionVersion, invocation: Invocation, take: Callable[[InvocationResult], None]
    ) -> bool:
        self.taken += [take] * self.rests
        return self.rests

    def begins(self, reserved: int | None = None) -> bool:
        """Begin an event at once, if that can be."""
        function: Any = SimpleNamespace(reserved=reserved)
        target = FunctionTarget(function, self.version)
        return self.executor.begin(target, "arn", b"{}", "r", None, lambda _: None)


@pytest.fixture
def world() -> World:
    return World()


async def test_a_version_is_ready_until_the_second_ends(world: World) -> None:
    assert not world.begins()
    await world.executor.runnable(world.version, None)
    await world.executor.runnable(world.version, None)
    assert world.begins()
    assert world.asked == {"folder": 1, "rights": 1}
    world.at = 5_999
    assert world.begins()
    world.at = 6_000
    assert not world.begins()


@pytest.mark.parametrize(
    "change",
    [
        lambda world: setattr(world, "changes", 1),
        lambda world: setattr(world, "version", SimpleNamespace(**VERSION)),
        lambda world: setattr(world, "rests", False),
    ],
    ids=["a document changed", "another version", "no environment rests"],
)
async def test_a_version_that_may_have_changed_begins_nothing_at_once(
    world: World, change: Callable[[World], None]
) -> None:
    await world.executor.runnable(world.version, None)
    change(world)
    assert not world.begins()
    assert not world.counted


async def test_another_reservation_begins_nothing_at_once(world: World) -> None:
    await world.executor.runnable(world.version, None)
    assert not world.begins(reserved=1)


async def test_code_in_a_live_folder_is_never_ready(world: World) -> None:
    world.live = "1-1"
    await world.executor.runnable(world.version, None)
    assert not world.begins()


async def test_sealed_variables_are_never_ready(world: World) -> None:
    world.version.sealed_variables = "sealed"
    await world.executor.runnable(world.version, None)
    assert not world.begins()


async def test_an_invocation_begun_at_once_is_counted_by_its_result(world: World) -> None:
    await world.executor.runnable(world.version, None)
    assert world.begins()
    assert world.begins()
    assert not world.counted
    for take in world.taken:
        take(InvocationResult(b"/code/app.py failed", failed=True, duration_ms=5))
    assert world.counted["Invocations"] == 2
    assert world.counted["Errors"] == 2
    assert world.counted["Duration"] == 10
    assert world.counted["ConcurrentExecutions"] == 3  # two at the first one's end, and one
