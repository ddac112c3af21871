"""The form of the log: a line of text, or a JSON object, an event; times in UTC, with their zone.

An event may bring fields, `extra={"fields": {…}}`: further members of the object, or `name=value` behind the text. Values
that its text has names for, `status=%d`, are members too.
"""

import json
import logging
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from typing_extensions import override

_TEXT: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"
# A placeholder for a value in the text of an event, and the name before it.
_PLACEHOLDER: Final = re.compile(r"(?:\b(\w+)=)?%[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]")
# A value that cannot be taken for two: without blanks, quotes and equals signs.
_PLAIN: Final = re.compile(r"[!#-<>-~]+")
# What would begin another line, or speak to a terminal: names of alarms and answers of endpoints hold anything.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

#: Libraries that write signatures, tokens and headers into their log at `debug`.
_SECRET_LOGGERS: Final = ("botocore", "urllib3", "h2", "hpack")


class TextFormatter(logging.Formatter):
    """A line of text an event, and the lines of its traceback."""

    def __init__(self) -> None:
        super().__init__(_TEXT)

    @override
    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """See logging.Formatter."""
        return _time_of(record)

    @override
    def formatMessage(self, record: logging.LogRecord) -> str:
        """See logging.Formatter."""
        fields = _fields_of(record)
        line = _CONTROL.sub(_escape, super().formatMessage(record))
        return " ".join([line, *(f"{name}={_in_text(value)}" for name, value in fields.items())])


class JsonFormatter(logging.Formatter):
    """A JSON object an event, on one line: `time`, `level`, `logger`, `message`, its fields, and a `traceback`."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        """See logging.Formatter."""
        event = {
            "time": _time_of(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields = {**_fields_in_text(record), **_fields_of(record)}
        event |= {name: value for name, value in fields.items() if name not in event}
        if record.exc_info:
            event["traceback"] = self.formatException(record.exc_info)
        return json.dumps(event, ensure_ascii=False, default=str)


def set_up(level: str, log_format: str) -> None:
    """Log to standard error from this level on (in lower case), as `text` or `json`."""
    writer = logging.StreamHandler(sys.stderr)
    writer.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[writer])
    for library in _SECRET_LOGGERS:
        logging.getLogger(library).setLevel(max(logging.INFO, logging.getLogger().level))


def _time_of(record: logging.LogRecord) -> str:
    return (
        datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


def _fields_of(record: logging.LogRecord) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = getattr(record, "fields", {})
    return fields


def _fields_in_text(record: logging.LogRecord) -> Mapping[str, Any]:
    """The values of a log call, by their names in its format: `endpoint.resting subscription=%s status=%d`."""
    if not isinstance(record.args, tuple) or not isinstance(record.msg, str):
        return {}
    names = _PLACEHOLDER.findall(record.msg)
    if len(names) != len(record.args):
        return {}
    return {name: value for name, value in zip(names, record.args, strict=True) if name}


def _escape(control: re.Match[str]) -> str:
    """A control character as Python writes it in a literal."""
    return control[0].encode("unicode_escape").decode()


def _in_text(value: object) -> str:
    """A value as one word: a list with commas, None as `-`, a text with blanks, quotes or equals signs as JSON."""
    if value is None:
        return "-"
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)
