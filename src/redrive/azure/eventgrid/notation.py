"""Values as events and their settings write them: JSON, moments and durations.

JSON goes in and out without a changed number. orjson reads what does not fit into 64 bits as a float, and an order's
number is then another one. Texts that have such a number are read and written by the standard library, which takes ten
times as long and keeps every digit of it.
"""

import json
import re
from datetime import UTC, datetime
from typing import Any, Final

import orjson

# 2^63 has 19 digits; a comma, colon or bracket before it, so that a number within a text does not count.
_LONG_NUMBER: Final = re.compile(rb"[:\[,]\s*-?\d{19,}")


def read_text(content: bytes) -> Any:
    """The value of a JSON document.

    Raises:
        ValueError: Not JSON, is nested a thousand deep, or has a number that is more than any float: who delivers it
            could not read it.
    """
    value = orjson.loads(content)
    if not _LONG_NUMBER.search(content):
        return value
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("It is nested too deep") from None


def written_text(value: object) -> str:
    """A value as a JSON document, without blanks; raises ValueError if it is nested a thousand deep."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # an integer beyond 64 bits, or nested more than 254 deep
        try:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        except RecursionError:
            raise ValueError("It is nested too deep") from None


_MOMENT: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?P<zone>[Zz]|[+-]\d\d:\d\d)?", re.ASCII
)


def timestamp(at: int) -> str:
    """A moment (ms since the epoch) in UTC with seven fractional digits: `2020-08-13T17:18:14.0260000Z`."""
    seconds, milliseconds = divmod(at, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{milliseconds:03d}0000Z"


def is_moment(text: object, *, needs_zone: bool = True) -> bool:
    """True if something is a moment as RFC 3339 writes it, with any number of fractional digits.

    Unless `needs_zone`, it need not say in which zone.
    """
    match = _MOMENT.fullmatch(text) if isinstance(text, str) else None
    if match is None or (needs_zone and match["zone"] is None):
        return False
    try:
        datetime.fromisoformat(match[0].upper())
    except ValueError:  # the 30th of February
        return False
    return True


# Durations as ISO 8601 writes them: `PT1M`, `P1DT12H`, `P0DT23H12M`.

_DURATION: Final = re.compile(
    r"P(?=.)(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?=.)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)
_SECONDS: Final = {"weeks": 604_800, "days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}
_CHARS_MAX: Final = 99  # more than any meaningful duration has


def duration_ms(text: str) -> int | None:
    """A duration in milliseconds; None: malformed, or with years or months, whose length varies."""
    match = _DURATION.fullmatch(text) if len(text) <= _CHARS_MAX else None
    if match is None:
        return None
    parts = ((match[name], seconds) for name, seconds in _SECONDS.items())
    return round(sum(float(number) * seconds for number, seconds in parts if number is not None) * 1000)
