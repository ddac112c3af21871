"""Words: numbers, spans and moments as people read them."""

from datetime import UTC, datetime
from typing import Final

from redrive.model.durations import MINUTE_MS, SECOND_MS
from redrive.model.names import ResourceName

_MINUTES_ALONE_MS: Final = 10 * MINUTE_MS  # from there on seconds say nothing
_DAY_MS: Final = 24 * 60 * MINUTE_MS
_KIB: Final = 1024
_WHOLE_FROM: Final = 100  # from there on a tenth of one says nothing
_A_SECOND_MIN: Final = 0.01  # below that it is said by the minute
_FAILURES: Final = {
    "source": "the queue that it emptied is gone",
    "destination": "the queue that it sent to is gone",
}


def many(count: int, one: str, others: str = "") -> str:
    """The word for so many: `message`, or `messages`."""
    return one if count == 1 else others or f"{one}s"


#: The reasons for which deliveries fail, in words; each has one name on every page.
_REASONS: Final = {
    "exhausted": "Receives exhausted",
    "connection": "Connection failed",
    "name_not_resolved": "Name not found",
    "tls": "TLS failed",
}


def failure_words(failure: str | None) -> str:
    """`Server error 503` of `server_error 503`; `Receives exhausted` of `exhausted`."""
    reason, _, status = (failure or "").partition(" ")
    if not reason:
        return "No reason known"
    words = _REASONS.get(reason, reason.replace("_", " ").capitalize())
    return f"{words} {status}".strip()


def why_stopped(why: str) -> str:
    """`10 of 10 failed their first attempt: Server error 503`: the reason that a redrive task stopped itself for."""
    begin, colon, failure = why.rpartition(": ")
    return f"{begin}{colon}{failure_words(failure)}" if colon else why


def receiver(endpoint: str) -> str:
    """`billing.example.com/hook` of a web address, `audit-copy` of a queue's or a function's ARN."""
    if endpoint.startswith("arn:"):
        return endpoint.rpartition(":")[2]
    return endpoint.removeprefix("https://").removeprefix("http://")


def number(value: int | None) -> str:
    """`40,012`; a hyphen where nothing was counted."""
    return "-" if value is None else f"{value:,}"


def counted(value: int, at_most: int) -> str:
    """A count that stopped: `100,000+`."""
    return f"{at_most:,}+" if value >= at_most else f"{value:,}"


def rate(a_second: float) -> str:
    """`1,204/s`, `12.5/s`, `0.3/s`, `0.02/s`, `0.2/min`: no more digits than say something."""
    if a_second >= _WHOLE_FROM or a_second == 0:
        return f"{a_second:,.0f}/s"
    if a_second < _A_SECOND_MIN:
        return f"{a_second * 60:.1g}/min"
    digits = 1 if a_second >= 1 else 2
    return f"{a_second:.{digits}f}".rstrip("0").rstrip(".") + "/s"


def size(length: int) -> str:
    """`912 B`, `64.0 KiB`, `1.2 GiB`."""
    if length < _KIB:
        return f"{length} B"
    value, units = length / _KIB, ["KiB", "MiB", "GiB"]
    while value >= _KIB and len(units) > 1:
        value, units = value / _KIB, units[1:]
    return f"{value:,.1f} {units[0]}"


def span(ms: int) -> str:
    """`23 ms`, `9 s`, `1 min 46 s`, `2 h 5 min`, `3 d 4 h`: the two largest units."""
    if ms < SECOND_MS:
        return f"{ms} ms"
    parts: list[str] = []
    seconds = ms // 1000
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        many, seconds = divmod(seconds, length)
        if many or (unit == "s" and not parts):
            parts.append(f"{many} {unit}")
    return " ".join(parts[:2])


def ago(at: int, now: int) -> str:
    """`29 min ago`, `in 9 min`, and the date of what is more than a day away."""
    distance_ms = abs(now - at)
    if distance_ms >= _DAY_MS:
        return moment(at)[:16].replace("T", " ") + "Z"
    if distance_ms < SECOND_MS:
        return "now"
    words = span(distance_ms - distance_ms % MINUTE_MS if distance_ms >= _MINUTES_ALONE_MS else distance_ms)
    return f"{words} ago" if at <= now else f"in {words}"


def moment(at: int) -> str:
    """`2026-11-22T05:02:11.214Z`."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at % 1000:03d}Z"


def clock_time(at: int) -> str:
    """`05:02:11Z`."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%H:%M:%SZ")


def one_line(text: str, most: int = 160) -> str:
    """The beginning of a text in one line, with lone surrogates written out: nothing else can encode them."""
    return " ".join(printable(text[: most * 2]).split())[:most]


def printable(text: str) -> str:
    """A text that can be encoded: of a lone surrogate its number is written."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def why_failed(failure: str | None) -> str:
    """The reason that a redrive task failed for: the engine names what it did not find by one word."""
    return _FAILURES.get(failure or "", failure or "for no known reason")


def scope_text(name: ResourceName) -> str:
    """The account and region of a thing."""
    return f"{name.account} · {name.region}"
