"""Regular expressions in filter patterns: the subset that CloudWatch Logs has, at a cost that is bounded."""

import contextlib
import random
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.aws.logs.filter_pattern import read_pattern
from redrive.aws.wire.errors import AwsError
from tests.aws.cloudwatch.stage import Stage
from tests.aws.logs.test_metric_filters import put_filter


@pytest.mark.parametrize(
    ("pattern", "message", "matches"),
    [
        ("%AUTHORIZED%", "[ERROR 401] UNAUTHORIZED REQUEST", True),
        ("%AUTHORIZED%", "authorized", False),
        ("%^ERROR%", "an ERROR", False),
        ("%colou?r$%", "the color", True),
        ("%gray|grey%", "grey", True),
        (r"%10\\.10\\.0\\.1%", "10.10.0.1", True),
        (r"%10\\.10\\.0\\.1%", "10.10.001", False),
        (r"%\\d{1,3}\\.\\d{1,3}%", "at 127.0", True),
        (r"%[Ee]rror\\s[^0-4]%", "Error 5", True),
        ("{ $.status = %4[0-9]{2}% }", '{"status": 404}', True),
        ("{ $.status = %4[0-9]{2}% }", '{"status": 504}', False),
        ("{ $.status = %4[0-9]{2}% }", '{"status": null}', False),
        ("{ $.event = %Trail|Bucket% && $.n > 1 }", '{"event": "UpdateTrail", "n": 2}', True),
        ("{ $.event != %Trail% }", '{"event": "UpdateTrail"}', False),
        ("{ $.event != %Trail% }", '{"event": "Update"}', True),
        ("{ $.event != %Trail% }", "{}", False),
        ("[ip=%^10,?%, ..., status=%^[45][0-9]{1,2}$% || status=200]", "10.0.0.1 - 503", True),
        ("[ip=%^10,?%, ..., status=%^[45][0-9]{1,2}$% || status=200]", "10.0.0.1 - 200", True),
        ("[ip=%^10,?%, ..., status=%^[45][0-9]{1,2}$% || status=200]", "10.0.0.1 - 303", False),
    ],
)
def test_expressions_are_found(pattern: str, message: str, matches: bool) -> None:
    assert read_pattern(pattern.replace("\\\\", "\\")).matches(message) is matches


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "%something!%",
            "%(a|b)%",
            "%a b%",
            "%é%",
            "%[%",
            "%*a%",
            "%%",
            "%a",
            "%a%b%",
            "%a{2000}%",
            "%[ab]*a[ab]{260}c%",
        ),
        *("{ $.a > %4% }", "{ $.a = %(4)% }", "[a=%(4)%]", "[a>%4%]", "ERROR %a%"[6:] + " ERROR"),
        "{ $.a = %1% && $.b = %2% && $.c = %3% }",
        "[a=%1%, b=%2%, c=%3%]",
    ],
)
def test_others_are_refused(pattern: str) -> None:
    with pytest.raises(AwsError, match="Invalid filter pattern"):
        read_pattern(pattern)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    for pattern in (f"%{text}%", f"{{ $.a = %{text}% }}", f"[a=%{text}%, b]"):
        with contextlib.suppress(AwsError):
            read_pattern(pattern).matches("a b")


@pytest.mark.parametrize("pattern", ["%" + "a*" * 80 + "c%", "%[ab]*a[ab]{15}c%", "%[ab]*a[ab]{240}c%"])
def test_a_large_event_takes_no_longer_than_its_size_asks(pattern: str) -> None:
    """Backtracking would take longer than the universe has; the slowest expression takes a second for a mebibyte."""
    rng = random.Random(1)
    slow = "".join(rng.choice("ab") for _ in range(100_000))
    read = read_pattern(pattern)
    began = time.process_time()
    assert not read.matches(slow)
    assert time.process_time() - began < 1


async def test_a_group_has_five_filters_with_expressions(stage: Stage) -> None:
    for number in range(5):
        await put_filter(stage, "%a%", name=f"f{number}")
    await put_filter(stage, "%b%", name="f4")
    await put_filter(stage, "plain", name="plain")
    with pytest.raises(AwsError, match="Resource limit exceeded") as refused:
        await put_filter(stage, "[a=%b%]", name="f5")
    assert refused.value.code == "LimitExceededException"
    await stage.call("logs", "DeleteMetricFilter", logGroupName="g", filterName="f0")
    await put_filter(stage, "[a=%b%]", name="f5")


async def test_expressions_find_events_of_a_group(stage: Stage) -> None:
    events: list[dict[str, Any]] = [{"timestamp": stage.now, "message": text} for text in ("a1", "b", "a2")]
    await stage.call("logs", "PutLogEvents", logGroupName="g", logStreamName="s", logEvents=events)
    found = await stage.call("logs", "FilterLogEvents", logGroupName="g", filterPattern="%^a[0-9]%")
    assert [event["message"] for event in found["events"]] == ["a1", "a2"]
