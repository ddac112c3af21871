"""Moments as Event Grid writes them: UTC with seven fractional digits, of which a millisecond fills three."""

from datetime import UTC, datetime


def timestamp(at: int) -> str:
    """A moment (ms since the epoch): `2020-08-13T17:18:14.0260000Z`."""
    seconds, milliseconds = divmod(at, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{milliseconds:03d}0000Z"
