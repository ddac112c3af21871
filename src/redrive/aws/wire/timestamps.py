"""Points in time on the wire: text and numbers outside, milliseconds since the epoch inside."""

from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Final

#: The format of a model whose moments are numbers that always have a fraction; no published model says so.
FRACTIONAL_SECONDS: Final = "fractionalSeconds"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MS: Final = -62_135_596_800_000  # the year 1 begins: what is read must be printable, by a datetime
_LAST_MS: Final = 253_402_300_799_999  # the year 9999 ends


def from_seconds(seconds: float) -> int:
    """Return milliseconds for seconds since the epoch; raises ValueError beyond the years 1 to 9999."""
    if not _FIRST_MS <= seconds * 1000 <= _LAST_MS:  # written so that NaN fails too
        raise ValueError(f"{seconds} is no time")
    return round(seconds * 1000)


def from_text(text: str) -> int:
    """Return milliseconds for an ISO 8601 or RFC 822 date, or for a number of seconds; UTC where none is named.

    Raises:
        ValueError: None of these.
    """
    for parse in (_from_iso8601, _from_number, _from_rfc822):
        try:
            return parse(text)
        except ValueError:
            continue
    raise ValueError(f"{text!r} is no time")


def to_fractional_seconds(timestamp_ms: int) -> float:
    """Return seconds since the epoch, `1765977780.0` where they are whole."""
    return timestamp_ms / 1000


def to_seconds(timestamp_ms: int) -> float:
    """Return seconds since the epoch: whole ones as an integer, as most JSON answers print them."""
    seconds, rest_ms = divmod(timestamp_ms, 1000)
    return timestamp_ms / 1000 if rest_ms else seconds


def to_iso8601(timestamp_ms: int) -> str:
    """Return `2026-01-02T03:04:05.678Z`, without the fraction for a whole second."""
    seconds, rest_ms = divmod(timestamp_ms, 1000)
    text = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()
    return f"{text}.{rest_ms:03d}Z" if rest_ms else f"{text}Z"


def to_offset_iso8601(timestamp_ms: int) -> str:
    """Return `2026-01-02T03:04:05.678+0000`, as Lambda's answers and the data of alarms have it."""
    moment = datetime.fromtimestamp(timestamp_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{timestamp_ms % 1000:03d}+0000"


def to_rfc822(timestamp_ms: int) -> str:
    """Return `Fri, 02 Jan 2026 03:04:05 GMT`; fractions of a second are lost."""
    return format_datetime(datetime.fromtimestamp(timestamp_ms // 1000, UTC), usegmt=True)


def _from_iso8601(text: str) -> int:
    return _milliseconds(datetime.fromisoformat(text))


def _from_number(text: str) -> int:
    return from_seconds(float(text))


def _from_rfc822(text: str) -> int:
    return _milliseconds(parsedate_to_datetime(text))


def _milliseconds(moment: datetime) -> int:
    """The milliseconds since the epoch of a moment, in UTC if it has no zone; raises ValueError."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = aware - _EPOCH
    timestamp_ms = (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
    if not _FIRST_MS <= timestamp_ms <= _LAST_MS:  # a zone can lead out of the calendar
        raise ValueError(f"{moment} is no time")
    return timestamp_ms
