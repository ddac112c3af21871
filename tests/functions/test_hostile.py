"""Handlers that mean harm, or do it: each ends with its error, the next one is served, and no process is left."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from redrive.functions.processes import OWNER, this_server
from redrive.model.function import InvocationResult, Isolation
from tests.functions.conftest import Workshop, make

_KILLED = "Runtime exited with error: signal: killed"


def document(result: InvocationResult) -> Any:
    return json.loads(result.payload)


def processes_left() -> list[str]:
    """The processes of functions that this process started."""
    mark = f"{OWNER}={this_server()}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes()
        except OSError:
            continue
        if mark in variables:
            found.append(process.name)
    return found


async def test_one_that_works_for_ever_is_ended_at_its_time(workshop: Workshop) -> None:
    function = workshop.function("app.spin", timeout_ms=1000)
    result = await workshop.call(function)
    assert document(result)["errorType"] == "Sandbox.Timedout"
    assert result.duration_ms < 5000
    assert processes_left() == []


async def test_one_that_forks_without_end_is_killed_with_all_its_children(tmp_path: Path) -> None:
    workshop = make(tmp_path, Isolation.NONE, lambda _: 1000, processes_max=40)
    result = document(await workshop.call(workshop.function("app.multiply"), b"200"))
    assert result["errorType"] == "Runtime.ExitError"
    assert result["errorMessage"].endswith(_KILLED)
    assert processes_left() == []
    await workshop.pool.close()


async def test_a_gigabyte_of_output_is_counted_and_not_kept(workshop: Workshop) -> None:
    """A sixteenth of it; the whole takes 2 s of both processes."""
    size = 64 * 1024 * 1024
    assert document(await workshop.call(workshop.function("app.shout"), str(size).encode())) == size
    assert sum(map(len, workshop.log.lines)) < 1_100_000
    (told,) = [line for line in workshop.log.lines if "bytes of output were left out" in line]
    assert int(told.split()[1]) > size - 1_100_000


async def test_output_that_goes_on_after_the_answer_holds_nobody_up(workshop: Workshop) -> None:
    function = workshop.function("app.leave_shouting")
    async with asyncio.timeout(20):
        child = document(await workshop.call(function))
        assert document(await workshop.call(workshop.function("app.echo"), b"1")) == 1
    os.kill(child, 0)
    await workshop.pool.close()
    assert processes_left() == []


async def test_one_that_closes_its_sockets_answers_by_new_ones(workshop: Workshop) -> None:
    """AWS's client connects again; one that does not is gone, or past its time."""
    function = workshop.function("app.hang_up")
    assert document(await workshop.call(function, b"true")) is True
    assert document(await workshop.call(function, b"false")) is False


async def test_an_answer_with_somebody_elses_request_id_is_refused(workshop: Workshop) -> None:
    assert document(await workshop.call(workshop.function("app.meddle"))) == [
        400,
        {"errorMessage": "Invalid request ID", "errorType": "InvalidRequestID"},
    ]
