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
