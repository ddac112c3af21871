"""Durations as ISO 8601 writes them: `PT1M`, `P1DT12H`, `P0DT23H12M`."""

import re
from typing import Final

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
