"""The log in its two forms, with times that say their zone."""

import json
import logging

import pytest

from redrive.cli.log_format import JsonFormatter, TextFormatter, set_up


def event(message: str, *values: object) -> logging.LogRecord:
    record = logging.LogRecord("redrive.app", logging.WARNING, "app.py", 1, message, values, None)
    record.created = 1_767_225_600.25
    return record


def test_a_line_of_text_begins_with_the_time_in_utc() -> None:
    line = TextFormatter().format(event("store.tightened file=%s", "redrive.db"))
    assert line == "2026-01-01T00:00:00.250Z WARNING redrive.app store.tightened file=redrive.db"


def test_no_name_begins_another_line_or_speaks_to_a_terminal() -> None:
    name = "a\r\n2026-01-01T00:00:00.000Z WARNING redrive.app b\x1b[2J\x7f\x85\u2028"
    line = TextFormatter().format(event("alarm.changed alarm=%s", name)).partition("alarm=")[2]
    assert line == r"a\r\n2026-01-01T00:00:00.000Z WARNING redrive.app b\x1b[2J\x7f\x85\u2028"


def test_a_json_event_is_one_line_whatever_is_in_it() -> None:
    line = JsonFormatter().format(event('said "%s"', "one\ntwo ä"))
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2026-01-01T00:00:00.250Z",
        "level": "WARNING",
        "logger": "redrive.app",
        "message": 'said "one\ntwo ä"',
    }


def test_a_json_event_has_its_traceback() -> None:
    record = event("upkeep.failed")
    error = ValueError("broken")
    record.exc_info = (ValueError, error, None)
    shown = json.loads(JsonFormatter().format(record))
    assert shown["traceback"].endswith("ValueError: broken")


def test_fields_stand_behind_the_text_and_cannot_be_taken_for_others() -> None:
    record = event("request")
    record.fields = {
        "status": 200,
        "names": ["a", "b"],
        "operation": 'x status=500 "\n',
        "empty": "",
        "none": None,
    }
    line = TextFormatter().format(record).partition(" request ")[2]
    assert line == 'status=200 names=a,b operation="x status=500 \\"\\n" empty="" none=-'


def test_fields_are_members_of_the_json_object() -> None:
    record = event("request")
    record.fields = {"status": 200, "names": ["a", "b"]}
    shown = json.loads(JsonFormatter().format(record))
    assert (shown["message"], shown["status"], shown["names"]) == ("request", 200, ["a", "b"])


@pytest.mark.parametrize(
    "library", ["botocore.auth", "urllib3.connectionpool", "h2.connection", "hpack.hpack"]
)
def test_libraries_tell_no_signatures_and_headers_at_debug(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    before = root.level
    try:
        set_up("debug", "text")
        assert logging.getLogger("redrive.app").isEnabledFor(logging.DEBUG)
        assert not logging.getLogger(library).isEnabledFor(logging.DEBUG)
        assert logging.getLogger(library).isEnabledFor(logging.INFO)
    finally:
        root.setLevel(before)


def test_named_values_of_a_line_are_members_of_its_json() -> None:
    shown = json.loads(
        JsonFormatter().format(
            event("circuit.opened subscription=%s status=%d seconds=%+.1f: %s", "s", 503, 1.5, "x")
        )
    )
    assert shown["message"] == "circuit.opened subscription=s status=503 seconds=+1.5: x"
    assert (shown["subscription"], shown["status"], shown["seconds"]) == ("s", 503, 1.5)


def test_a_value_that_is_no_json_is_its_text() -> None:
    shown = json.loads(JsonFormatter().format(event("store.lost error=%s", ValueError("away"))))
    assert shown["error"] == "away"


def test_no_field_takes_the_place_of_what_every_event_has() -> None:
    shown = json.loads(JsonFormatter().format(event("dispatch.late message=%s level=%s", "m-1", "high")))
    assert shown["message"] == "dispatch.late message=m-1 level=high"
    assert shown["level"] == "WARNING"


@pytest.mark.parametrize(("text", "values"), [("100%% of %s", ("v",)), ("%(a)s=%(b)s", ({"a": 1, "b": 2},))])
def test_a_text_with_other_places_than_values_has_no_members(text: str, values: tuple[object, ...]) -> None:
    shown = json.loads(JsonFormatter().format(event(text, *values)))
    assert shown.keys() == {"time", "level", "logger", "message"}
