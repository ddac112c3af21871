"""Invocations in real processes: answers, failures, time-outs, memory, concurrency and what is left behind."""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from redrive.functions.environment import Environment
from redrive.functions.pool import STARTS_MAX
from redrive.model.function import AnswerParts, Invocation, InvocationResult, Isolation, Throttled
from redrive.runtime.machine import SystemClock
from tests.functions.conftest import NAME, Workshop, make


def document(result: InvocationResult) -> Any:
    return json.loads(result.payload)


async def test_a_handler_answers_and_its_lines_stand_between_start_and_end(workshop: Workshop) -> None:
    result = await workshop.call(workshop.function("app.echo"), b'{"car": 1}')
    assert not result.failed
    assert document(result) == {"car": 1}
    init, start, seen, end, report = workshop.log.lines
    assert init == "INIT_START Runtime Version: python3.11\n"
    assert start == "START RequestId: 00000000-0000-4000-8000-000000000002 Version: $LATEST\n"
    assert seen == "seen {'car': 1}\n"
    assert end == "END RequestId: 00000000-0000-4000-8000-000000000002\n"
    assert "\tBilled Duration: " in report
    assert "Init Duration: " in report
    assert result.log_tail.endswith(report.encode())


async def test_an_environment_is_used_again_but_never_for_two_at_once(workshop: Workshop) -> None:
    function = workshop.function("app.count")
    assert [document(await workshop.call(function, b"0")) for _ in range(3)] == [1, 2, 3]
    at_once = await asyncio.gather(*(workshop.call(function, b"0.2") for _ in range(3)))
    assert sorted(document(result) for result in at_once) == [1, 1, 4]


async def test_an_environment_that_rests_takes_an_event_at_once(workshop: Workshop) -> None:
    function = workshop.function("app.count", reserved=1)
    invocation = Invocation("r", b"0", "arn")
    results: asyncio.Queue[InvocationResult] = asyncio.Queue()
    assert not workshop.pool.begin(function, invocation, results.put_nowait)
    assert document(await workshop.call(function, b"0")) == 1
    assert workshop.pool.begin(function, invocation, results.put_nowait)
    with pytest.raises(Throttled):
        workshop.pool.begin(function, invocation, results.put_nowait)
    assert document(await results.get()) == 2
    assert workshop.pool.running(NAME) == 0
    assert document(await workshop.call(function, b"0")) == 3


async def test_the_end_of_a_process_is_the_result_of_what_it_took_at_once(workshop: Workshop) -> None:
    function = workshop.function("app.keep", timeout_ms=300)
    assert document(await workshop.call(function, b'"look"')) is False
    results: asyncio.Queue[InvocationResult] = asyncio.Queue()
    for payload, error in ((b'"hang"', "Sandbox.Timedout"), (b'"leave"', "Runtime.ExitError")):
        assert workshop.pool.begin(function, Invocation("r", payload, "arn"), results.put_nowait)
        assert document(await results.get())["errorType"] == error
        assert workshop.pool.running(NAME) == 0
        assert not workshop.pool.begin(function, Invocation("r", b"{}", "arn"), results.put_nowait)
        assert document(await workshop.call(function, b'"look"')) is True


class LaterClock(SystemClock):
    """A clock that can be put forward."""

    ahead_ms = 0

    @override
    def now(self) -> int:
        return super().now() + self.ahead_ms


async def test_an_environment_writes_to_one_stream_past_midnight(tmp_path: Path) -> None:
    clock = LaterClock()
    workshop = make(tmp_path, Isolation.NONE, lambda _: 1000, clock)
    function = workshop.function("app.count")
    assert document(await workshop.call(function, b"0")) == 1
    clock.ahead_ms = 24 * 60 * 60 * 1000
    assert document(await workshop.call(function, b"0")) == 2
    await workshop.pool.close()
    assert len(set(workshop.log.streams)) == 1


async def test_an_environment_is_renewed_before_its_credentials_end(tmp_path: Path) -> None:
    clock = LaterClock()
    workshop = make(tmp_path, Isolation.NONE, lambda _: 1000, clock)
    function = workshop.function("app.count")
    calls = []
    for hours in (0, 29, 30):
        clock.ahead_ms = hours * 60 * 60 * 1000
        calls.append(document(await workshop.call(function, b"0")))
    await workshop.pool.close()
    assert calls == [1, 2, 1]


async def test_an_exception_is_the_payload_and_the_environment_lives_on(workshop: Workshop) -> None:
    function = workshop.function("app.fail")
    for number in (1, 2):
        result = await workshop.call(function)
        assert result.failed
        assert document(result)["errorType"] == "ValueError"
        assert document(result)["errorMessage"] == f"boom {number}"


async def test_a_handler_past_its_time_is_killed_and_its_tmp_stays(workshop: Workshop) -> None:
    function = workshop.function("app.keep", timeout_ms=1000)
    result = await workshop.call(function, b'"hang"')
    assert document(result) == {
        "errorType": "Sandbox.Timedout",
        "errorMessage": "RequestId: 00000000-0000-4000-8000-000000000002 Error: Task timed out after 1.00 seconds",
    }
    assert document(await workshop.call(function, b'"look"')) is True


@pytest.mark.parametrize(
    ("status", "text"), [(0, "without providing a reason"), (3, "with error: exit status 3")]
)
async def test_a_process_that_exits_is_told_by_its_status(workshop: Workshop, status: int, text: str) -> None:
    result = document(await workshop.call(workshop.function("app.leave"), str(status).encode()))
    assert result["errorType"] == "Runtime.ExitError"
    assert result["errorMessage"].endswith(f"Error: Runtime exited {text}")


async def test_a_process_that_eats_memory_is_killed(workshop: Workshop) -> None:
    result = await workshop.call(workshop.function("app.eat"))
    assert document(result)["errorMessage"].endswith("Runtime exited with error: signal: killed")
    assert result.memory_mb <= 128


async def test_an_answer_that_is_too_large_is_an_error_and_the_next_one_is_served(workshop: Workshop) -> None:
    function = workshop.function("app.long_answer")
    assert document(await workshop.call(function, b"7000000")) == {
        "errorMessage": "Response payload size exceeded maximum allowed payload size (6291556 bytes).",
        "errorType": "Function.ResponseSizeTooLarge",
    }
    assert document(await workshop.call(function, b"1")) == "x"


async def test_output_without_end_is_cut(workshop: Workshop) -> None:
    assert document(await workshop.call(workshop.function("app.print_much"), b"3000")) == 1
    lines = workshop.log.lines
    assert sum(map(len, lines)) < 1_100_000
    assert any("bytes of output were left out" in line for line in lines)


async def test_a_module_that_cannot_be_loaded_is_the_payload(workshop: Workshop) -> None:
    result = document(await workshop.call(workshop.function("broken.handler")))
    assert result["errorType"] == "Runtime.ImportModuleError"
    assert result["errorMessage"] == "Unable to import module 'broken': No module named 'nothing_like_it'"


async def test_a_function_sees_nothing_of_the_servers_environment(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_SERVER", "x")
    variables = document(await workshop.call(workshop.function("app.variables", variables={"MINE": "1"})))
    assert "SECRET_OF_THE_SERVER" not in variables
    assert variables["MINE"] == "1"
    assert variables["AWS_ENDPOINT_URL"] == "http://127.0.0.1:4566"
    assert variables["_HANDLER"] == "app.variables"


async def test_a_process_that_left_its_session_is_ended_by_close(tmp_path: Path) -> None:
    workshop = make(tmp_path, Isolation.NONE, lambda _: 1000)
    child = document(await workshop.call(workshop.function("app.flee")))
    assert is_running(child)
    await workshop.pool.close()
    assert not is_running(child)


def is_running(process: int) -> bool:
    """True if a process runs; one that ended may still wait for its parent to ask how."""
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False


async def test_reserved_and_account_concurrency_throttle(tmp_path: Path) -> None:
    workshop = make(tmp_path, Isolation.NONE, lambda _: 2)
    reserved, free = workshop.function("app.count", reserved=1), workshop.function("app.count")
    running = [asyncio.ensure_future(workshop.call(reserved, b"1"))]
    await asyncio.sleep(0)
    with pytest.raises(Throttled) as refused:
        await workshop.call(reserved, b"1")
    assert refused.value.by_function
    running += [asyncio.ensure_future(workshop.call(free, b"1")) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Throttled) as refused:
        await workshop.call(free, b"1")
    assert not refused.value.by_function
    assert not any(result.failed for result in await asyncio.gather(*running))
    await workshop.pool.close()


async def test_an_account_starts_few_environments_at_once(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixty at once kept the server from its own work; another account's start waits for none of them."""
    under_way: Counter[str] = Counter()
    most: Counter[str] = Counter()
    let = asyncio.Event()

    async def start(environment: Environment) -> InvocationResult:
        account = environment.function.name.account
        under_way[account] += 1
        most[account] = max(most[account], under_way[account])
        await let.wait()
        under_way[account] -= 1
        return InvocationResult(b"{}", failed=True)

    monkeypatch.setattr(Environment, "start", start)
    functions = [workshop.function("app.echo") for _ in range(20)]
    other = workshop.function("app.echo", name=NAME._replace(account="222222222222"))
    calls = [asyncio.ensure_future(workshop.call(function)) for function in [*functions, other]]
    for _ in calls:
        await asyncio.sleep(0)
    assert under_way["000000000000"] == STARTS_MAX
    let.set()
    assert len(await asyncio.gather(*calls)) == 21
    assert most == {"000000000000": STARTS_MAX, "222222222222": 1}


async def test_node_answers_by_promise_and_by_callback(workshop: Workshop) -> None:
    function = workshop.function("index.promised", runtime="nodejs20.x")
    assert document(await workshop.call(function, b"7")) == {"event": 7, "name": "orders"}
    function = workshop.function("index.calledBack", runtime="nodejs20.x")
    assert document(await workshop.call(function, b"7")) == 14


async def test_nodes_errors_and_missing_handlers_are_the_payload(workshop: Workshop) -> None:
    result = await workshop.call(workshop.function("index.fails", runtime="nodejs20.x"))
    assert result.failed
    assert document(result)["errorType"] == "TypeError"
    result = await workshop.call(workshop.function("index.none", runtime="nodejs20.x"))
    assert document(result)["errorType"] == "Runtime.HandlerNotFound"


class Answer(AnswerParts):
    """A streamed answer, with the type it said it has."""

    def __init__(self) -> None:
        self.content_type = ""
        self.parts: list[bytes] = []

    @override
    def begin(self, content_type: str) -> None:
        self.content_type = content_type

    @override
    def add(self, part: bytes, resume: Callable[[], None]) -> bool:
        """Take one part at a time, as a slow reader does."""
        self.parts.append(part)
        asyncio.get_running_loop().call_soon(resume)
        return False


async def test_node_streams_an_answer_part_by_part(workshop: Workshop) -> None:
    answer = Answer()
    result = await workshop.call(workshop.function("index.streams", runtime="nodejs20.x"), parts=answer)
    assert (result.streamed, answer.content_type) == (True, "application/octet-stream")
    assert b"".join(answer.parts) == b"ab"


async def test_an_error_in_the_middle_of_a_stream_is_the_payload(workshop: Workshop) -> None:
    answer = Answer()
    result = await workshop.call(workshop.function("index.breaks", runtime="nodejs20.x"), parts=answer)
    assert (result.failed, b"".join(answer.parts)) == (True, b"a")
    assert document(result)["errorMessage"] == "broken"


async def test_a_log_entry_of_several_lines_is_one_event(workshop: Workshop) -> None:
    await workshop.call(workshop.function("index.logs", runtime="nodejs20.x"))
    assert workshop.log.lines[2].endswith("\tINFO\ttwo\rlines\n")


async def test_a_bootstrap_in_a_shell_speaks_the_runtime_api(workshop: Workshop) -> None:
    function = workshop.function("any", runtime="provided.al2023")
    assert document(await workshop.call(function, b"5")) == {"got": 5}


async def test_a_missing_bootstrap_and_an_unknown_runtime_are_told(
    workshop: Workshop, tmp_path: Path
) -> None:
    function = workshop.function("any", runtime="provided.al2023", code=str(tmp_path))
    assert document(await workshop.call(function))["errorType"] == "Runtime.InvalidEntrypoint"
    function = workshop.function("any", runtime="cobol7")
    assert "does not run cobol7" in document(await workshop.call(function))["errorMessage"]


async def test_resting_environments_end_when_their_function_changes(workshop: Workshop) -> None:
    function = workshop.function("app.process")
    process = document(await workshop.call(function))
    await workshop.pool.drop(function.name, revision="another")
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
