"""The form of the log: a line of text, or a JSON object, an event; times in UTC, with their zone."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final

from typing_extensions import override

_TEXT: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"


class TextFormatter(logging.Formatter):
    """A line of text an event, and the lines of its traceback."""

    def __init__(self) -> None:
        """Begin each line with the time."""
        super().__init__(_TEXT)

    @override
    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """See logging.Formatter."""
        return _time_of(record)


class JsonFormatter(logging.Formatter):
    """A JSON object an event, on one line: `time`, `level`, `logger`, `message`, and `traceback` where there is one."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        """See logging.Formatter."""
        event = {
            "time": _time_of(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            event["traceback"] = self.formatException(record.exc_info)
        return json.dumps(event, ensure_ascii=False)


def set_up(level: str, log_format: str) -> None:
    """Log to standard error.

    Args:
        level: The lowest that is written, in lower case.
        log_format: `text` or `json`.
    """
    writer = logging.StreamHandler(sys.stderr)
    writer.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[writer])


def _time_of(record: logging.LogRecord) -> str:
    return (
        datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )
