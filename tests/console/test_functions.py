"""Functions on pages: their figures, their log, their sources, and a test invocation."""

import pytest

from redrive.console.charts import figure, time_chart, with_zeros
from redrive.console.pages.invocations import InvocationCall, event_rows, invocations
from redrive.model.log import LogEvent
from tests.console.services import REQUEST, Services, arn, make_function, make_services
from tests.console.world import ROOM, visiting


async def test_functions_are_listed_with_their_errors_and_waiting_events() -> None:
    async with visiting(functions="on", clock="simulated") as visitor:
        services = await make_services(visitor)
        assert "</svg>Idle</span>" in (await visitor.get(f"{ROOM}/functions")).body.decode()
        visitor.server.core.engine.operations.inject_fault(f"{arn('lambda', 'function:bill')}:$LATEST", 503)
        await services.call("lambda", "Invoke", FunctionName="bill", InvocationType="Event", Payload=b"{}")
        assert (
            'data-label="Waiting" class="num">1</td><td class="wide"><time'
            in (await visitor.get(f"{ROOM}/functions?new")).body.decode()
        )
        page = (await visitor.get(f"{ROOM}/functions/bill")).body.decode()
        assert "oldest sent <time" in page
        assert "<dd>1</dd><dd>oldest sent" in page


async def test_a_function_shows_its_invocations_sources_and_ends() -> None:
    async with visiting(functions="on") as visitor:
        await make_function(Services(visitor))
        page = (await visitor.get(f"{ROOM}/functions/bill")).body.decode()
        assert "MARKED text" in page
        assert "12.5 ms" in page
        assert f"pattern=%22{REQUEST}%22" in page
        assert f"{ROOM}/queues/work" in page
        assert f"{ROOM}/dead-letters/work-dead" in page
        assert f"{ROOM}/dead-letters/lost" in page
        assert "VARIABLE text" in page
        gone = await visitor.get(f"{ROOM}/functions/absent")
        assert gone.status == 404
        assert "Function not found" in gone.body.decode()


async def test_a_mapping_is_switched_on_and_off() -> None:
    async with visiting(functions="on", clock="simulated") as visitor:
        services = await make_services(visitor)
        (mapping,) = (await services.call("lambda", "ListEventSourceMappings"))["EventSourceMappings"]
        assert mapping["State"] == "Disabled"
        path = f"{ROOM}/functions/bill/mappings/{mapping['UUID']}"
        moved = await visitor.post(path, {"do": "enable"})
        assert b"work is consumed from now on" in (await visitor.get(moved.headers["Location"])).body
        (mapping,) = (await services.call("lambda", "ListEventSourceMappings"))["EventSourceMappings"]
        assert mapping["State"] == "Enabled"
        page = (await visitor.get(f"{ROOM}/functions/bill")).body.decode()
        assert "work is consumed from now on" not in page
        undone = await visitor.post(path, {"do": "disable"})
        back = (await visitor.get(undone.headers["Location"])).body.decode()
        assert (
            f'action="{path}"><input type="hidden" name="do" value="enable"><button type="submit">Undo'
            in back
        )
        assert ">Disabled</span>" in (await visitor.get(f"{ROOM}/functions/bill")).body.decode()


async def test_a_function_is_invoked_and_its_answer_and_figures_are_shown() -> None:
    async with visiting(functions="on") as visitor:
        await make_function(Services(visitor))
        path = f"{ROOM}/functions/bill/invoke"
        answer = (await visitor.post(path, {"payload": '{"order": 7001}', "kind": "wait"})).body.decode()
        assert "Succeeded</span>" in answer
        assert "got {&#39;order&#39;: 7001}" in answer
        refused = await visitor.post(path, {"payload": "{", "kind": "wait"})
        assert refused.status == 400
        assert "Could not parse" in refused.body.decode()
        assert (await visitor.post(path, {"payload": "{}", "kind": "x"})).status == 400
        assert (
            "The event is queued"
            in (await visitor.post(path, {"payload": "{}", "kind": "event"})).body.decode()
        )
        page = (await visitor.get(f"{ROOM}/functions")).body.decode()
        assert "</svg>Healthy</span>" in page
        assert 'class="line s1"' in (await visitor.get(f"{ROOM}/functions/bill")).body.decode()


async def test_a_server_without_functions_says_how_to_get_them() -> None:
    async with visiting(functions="off") as visitor:
        assert "--functions on" in (await visitor.get(f"{ROOM}/functions")).body.decode()
        assert (await visitor.get(f"{ROOM}/functions/bill")).status == 404
        assert (await visitor.post(f"{ROOM}/functions/bill/invoke", {"payload": "{}"})).status == 400


def _events(*lines: tuple[int, int, str]) -> list[LogEvent]:
    return [LogEvent(1, stream, at, at, message) for at, stream, message in reversed(lines)]


def _report(request: str) -> str:
    return (
        f"REPORT RequestId: {request}\tDuration: 3.00 ms\tBilled Duration: 3 ms\tMemory Size: 128 MB\t"
        "Max Memory Used: 30 MB\t\n"
    )


def test_a_failure_is_the_one_of_the_invocation_that_ran_in_its_stream() -> None:
    events = _events(
        (1, 7, "START RequestId: a Version: $LATEST\n"),
        (2, 8, "START RequestId: b Version: $LATEST\n"),
        (3, 7, "[ERROR] in a"),
        (4, 8, _report("b")),
        (5, 7, _report("a")),
        (6, 7, "[ERROR] of nobody"),
    )
    a = InvocationCall(5, "a", 3.0, 30, None, "[ERROR] in a")
    b = InvocationCall(4, "b", 3.0, 30, None, "")
    assert invocations(events, 9) == [a, b]
    assert invocations(events, 1) == [a._replace(trouble="")]


def test_each_try_of_an_event_is_an_invocation_in_the_order_of_their_ends() -> None:
    events = _events(
        (1, 7, "START RequestId: a Version: $LATEST\n"),
        (2, 7, "[ERROR] first"),
        (3, 7, _report("a")),
        (4, 8, _report("b")),
        (5, 7, "START RequestId: a Version: $LATEST\n"),
        (6, 7, "[ERROR] second"),
        (7, 7, _report("a")),
    )
    shown = [(each.at, each.id, each.trouble) for each in invocations(events, 9)]
    assert shown == [(7, "a", "[ERROR] second"), (4, "b", ""), (3, "a", "[ERROR] first")]


@pytest.mark.parametrize(
    ("points", "threshold", "top", "paths", "dots"),
    [
        ([], None, 1.0, [], []),
        ([(0, 4.0)], None, 5.0, [], ["M0 32h0"]),
        ([(0, 0.0), (60, 10.0), (240, 5.0)], None, 10.0, ["M0 160L150 0"], ["M600 80h0"]),
        ([(0, 1.0)], 30.0, 30.0, [], ["M0 154.7h0"]),
    ],
)
def test_a_chart_ends_at_a_round_number_and_has_gaps_where_nothing_was_measured(
    points: list[tuple[int, float]], threshold: float | None, top: float, paths: list[str], dots: list[str]
) -> None:
    chart = time_chart({"m": points}, 0, 240, 60, threshold)
    assert chart.top == top
    assert chart.lines == [("m", 1, paths, dots)]
    assert [row[0] for row in chart.rows] == sorted((moment for moment, _ in points), reverse=True)


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (12_000.0, "12,000"), (0.25, "0.25"), (1234.5, "1,234")]
)
def test_values_are_shown_as_people_read_them(value: float, text: str) -> None:
    assert figure(value) == text


def test_periods_in_which_nothing_was_counted_are_zero() -> None:
    assert with_zeros([(60, 2.0)], 0, 180, 60) == [(0, 0.0), (60, 2.0), (120, 0.0)]


def test_the_attempts_of_an_event_are_drawn_after_each_other_and_the_waits_named() -> None:
    failed = InvocationCall(10_000, "one", 100.0, 40, 300.0, "ValueError")
    again = InvocationCall(70_200, "one", 200.0, 40, None, "")
    alone = InvocationCall(80_000, "two", 1.0, 40, None, "")
    first, second = event_rows([alone, again, failed])
    assert first.attempts == [alone]
    assert (first.bars[0].colour, first.bars[0].width, first.waits) == (2, 0.6, [])
    assert second.attempts == [failed, again]
    assert [bar.colour for bar in second.bars] == [4, 3, 2]
    assert second.waits == [(57.33, 71.33, "1 min")]
    assert max(bar.x + bar.width for bar in second.bars) <= 100.1
    assert second.text == "cold start 300 ms; failed 100 ms; handler 200 ms; 1 min between two attempts"
