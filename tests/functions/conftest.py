"""A pool of functions whose code tests write, and what it logged."""

import os
import random
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from redrive.engine.ports import Runtime
from redrive.functions.gateway import ServerAddress
from redrive.functions.isolation import Tools
from redrive.functions.pool import FunctionPool
from redrive.functions.setting import Setting
from redrive.model.function import FunctionVersion, Invocation, InvocationResult, Isolation
from redrive.model.names import ResourceName
from redrive.runtime.machine import SystemClock

CODE = Path(__file__).with_name("code")
HOSTILE = Path(__file__).with_name("hostile")
#: Those that this run can try: only root gives functions users of their own.
LEVELS = [each for each in Isolation if each is not Isolation.USER or os.geteuid() == 0]
#: An interpreter that every user of the machine can run; the tests' own may be in somebody's home.
_PYTHON = "/usr/bin/python3"
_NOBODY = "--reuid=65534 --regid=65534 --clear-groups"
NAME = ResourceName("000000000000", "us-east-1", "orders")


@dataclass
class Log:
    """A LogSink that keeps lines.

    Attributes:
        lines: In order, of all streams.
        streams: Whose lines they are, in the same order.
    """

    lines: list[str] = field(default_factory=list)
    streams: list[str] = field(default_factory=list)

    def write(self, group: ResourceName, stream: str, at: int, message: str, rounds: int = 0) -> None:
        self.lines.append(message)
        self.streams.append(stream)


@dataclass
class Workshop:
    """Makes functions of the tests' code and calls them."""

    pool: FunctionPool
    log: Log
    isolation: Isolation
    calls: int = 0

    def function(self, handler: str, **changes: Any) -> FunctionVersion:
        """A function of the tests' code, unlike every other one."""
        self.calls += 1
        made = FunctionVersion(
            NAME,
            "$LATEST",
            f"r{self.calls}",
            "python3.11",
            handler,
            str(CODE),
            log_group="/aws/lambda/orders",
        )
        return replace(made, **{"timeout_ms": 20_000, **changes})

    def hostile(self, attack: str, name: str = "hostile", **changes: Any) -> FunctionVersion:
        """A function that carries out one of the attacks."""
        whose = {"name": NAME._replace(name=name), "code": str(HOSTILE), "runtime": "provided.al2023"}
        return self.function(attack, **{**whose, **changes})

    async def call(self, function: FunctionVersion, payload: bytes = b"{}", **more: Any) -> InvocationResult:
        """Invoke a function once."""
        self.calls += 1
        request_id = f"00000000-0000-4000-8000-{self.calls:012d}"
        invocation = Invocation(
            request_id, payload, "arn:aws:lambda:us-east-1:000000000000:function:orders", **more
        )
        return await self.pool.invoke(function, invocation)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user of the machine can enter."""
    with tempfile.TemporaryDirectory(prefix="redrive-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(params=LEVELS, ids=lambda level: level.value)
async def walled(open_folder: Path, request: pytest.FixtureRequest) -> AsyncIterator[Workshop]:
    """A workshop of each isolation."""
    workshop = make(open_folder, request.param, lambda _: 1000)
    yield workshop
    await workshop.pool.close()


@pytest.fixture
async def workshop(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Workshop]:
    isolation: Isolation = getattr(request, "param", Isolation.NONE)
    workshop = make(tmp_path, isolation, lambda _: 1000)
    yield workshop
    await workshop.pool.close()


def tools_for(isolation: Isolation, folder: Path) -> Tools:
    """The machine's tools. What a server of root would refuse to start is started as a user without rights."""
    tools = Tools("/usr/bin/prlimit", "/usr/bin/setpriv", "/usr/bin/bwrap", _PYTHON)
    if isolation is not Isolation.BUBBLEWRAP or os.geteuid() != 0:
        return tools
    first = folder / "prlimit-as-nobody"
    first.write_text(f'#!/bin/sh\nexec {tools.setpriv} {_NOBODY} {tools.prlimit} "$@"\n')
    first.chmod(0o755)
    return replace(tools, prlimit=str(first))


def make(
    folder: Path,
    isolation: Isolation,
    most: Callable[[str], int],
    clock: SystemClock | None = None,
    processes_max: int = 742,
    server: str = "http://127.0.0.1:4566",
    **tools: str,
) -> Workshop:
    """A workshop with other limits."""
    folder.mkdir(exist_ok=True)
    log = Log()
    clock = clock or SystemClock()

    async def variables(_: FunctionVersion) -> dict[str, str]:
        return {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}

    setting = Setting(
        clock,
        lambda: time.perf_counter() * 1000,
        isolation,
        replace(tools_for(isolation, folder), **tools),
        ServerAddress.of(server),
        "",
        b"key",
        variables,
        processes_max,
    )
    runtime = Runtime(
        clock, random.Random(os.getpid()), "node"
    )  # processes are found by their mark, on the whole machine
    return Workshop(FunctionPool(setting, runtime, log, folder / "functions", most), log, isolation)
