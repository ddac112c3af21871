"""Spans of time as people write them: `1h30m` in, `1 h 30 min` out."""

import re
from typing import Final

SECOND_MS: Final = 1000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|min|s|m|h|d)\s*")
_UNITS_SHOWN: Final = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def read_duration(text: str) -> int:
    """Milliseconds of a span such as `4h`, `90s`, `1h30m` or `1.5 d`; raises ValueError if it is not one."""
    at, total_ms = 0, 0.0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            break
        total_ms += float(part[1]) * _UNITS_MS[part[2]]
        at = part.end()
    if not text or at < len(text):
        raise ValueError(f"{text!r} is not a span of time like 90s, 15m, 4h, 1h30m or 2d")
    return round(total_ms)


def show_duration(duration_ms: int) -> str:
    """A span for people: to the millisecond below a minute, to the second above."""
    if duration_ms < MINUTE_MS:
        return f"{duration_ms / 1000:.3f}".rstrip("0").rstrip(".") + " s"
    seconds = round(duration_ms / 1000)
    parts = []
    for unit, size in _UNITS_SHOWN:
        number, seconds = divmod(seconds, size)
        if number:
            parts.append(f"{number} {unit}")
    return " ".join(parts)
