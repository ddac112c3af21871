"""Moments: as Event Grid writes them, and as it reads those of others."""

import re
from datetime import UTC, datetime
from typing import Final

_MOMENT: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?P<zone>[Zz]|[+-]\d\d:\d\d)?", re.ASCII
)


def timestamp(at: int) -> str:
    """A moment (ms since the epoch) in UTC with seven fractional digits: `2020-08-13T17:18:14.0260000Z`."""
    seconds, milliseconds = divmod(at, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{milliseconds:03d}0000Z"


def is_moment(text: object, *, zoned: bool = True) -> bool:
    """True if something is a moment as RFC 3339 writes it, with any number of fractional digits.

    Args:
        text: What is to be one.
        zoned: Whether it has to say in which zone; without one it is no RFC 3339.
    """
    match = _MOMENT.fullmatch(text) if isinstance(text, str) else None
    if match is None or (zoned and match["zone"] is None):
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
