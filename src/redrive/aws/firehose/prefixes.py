"""Prefixes of objects: expressions in them are evaluated for each object.

https://docs.aws.amazon.com/firehose/latest/dev/s3-prefixes.html: `!{timestamp:PATTERN}` in the letters of Java's
`DateTimeFormatter`, `!{firehose:random-string}`, and in the prefix of errors `!{firehose:error-output-type}`.
"""

import re
from datetime import UTC, datetime, tzinfo
from random import Random
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from redrive.aws.firehose.errors import invalid, unoffered

PROCESSING_FAILED: Final = "processing-failed"
_EXPRESSION: Final = re.compile(r"!\{([^:{}]*):([^{}]*)\}")
_ERROR_TYPE: Final = "error-output-type"
_RANDOM: Final = "random-string"
_DEFAULT: Final = "!{timestamp:yyyy/MM/dd/HH}/"
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_RANDOM_CHARS: Final = 11
_TOKEN: Final = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+")
# Of each letter of a pattern that is understood: the directive for a lone one, and for several.
_NUMBERS: Final = {"M": "%m", "d": "%d", "H": "%H", "h": "%I", "m": "%M", "s": "%S", "D": "%j"}
_NAMES: Final = {"MMM": "%b", "MMMM": "%B", "E": "%a", "EE": "%a", "EEE": "%a", "EEEE": "%A", "a": "%p"}
_NUMBER_CHARS: Final = {"D": 3}
_SHORT_YEAR_CHARS: Final = 2


def check(prefix: str, error_prefix: str) -> None:
    """Refuse prefixes that cannot be evaluated.

    Raises:
        AwsError: An expression is not known, or stands where it may not.
    """
    for text, in_errors in ((prefix, False), (error_prefix, True)):
        for namespace, value in _EXPRESSION.findall(text):
            _check_expression(namespace, value, in_errors=in_errors)
        if "!{" in _EXPRESSION.sub("", text):
            raise invalid(f"The prefix {text} has an expression that is not closed.")
    if _EXPRESSION.search(prefix) and _ERROR_TYPE not in error_prefix:
        raise invalid(
            "ErrorOutputPrefix must contain !{firehose:error-output-type} when Prefix contains expressions."
        )


def _check_expression(namespace: str, value: str, *, in_errors: bool) -> None:
    if namespace.startswith("partitionKeyFrom"):
        raise unoffered(f"the expression !{{{namespace}:…}}, since it does not offer dynamic partitioning")
    if namespace == "timestamp":
        formatted(value, datetime(2000, 1, 1, tzinfo=UTC))
    elif namespace != "firehose" or value not in (_RANDOM, _ERROR_TYPE):
        raise invalid(f"The expression !{{{namespace}:{value}}} is not valid.")
    elif value == _ERROR_TYPE and not in_errors:
        raise invalid("!{firehose:error-output-type} is valid in ErrorOutputPrefix only.")


def zone_of(name: str) -> tzinfo:
    """The time zone of a name; empty: UTC.

    Raises:
        AwsError: No time zone has that name.
    """
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise invalid(f"CustomTimeZone {name} is not valid.") from None


def evaluated(prefix: str, oldest: datetime, rng: Random) -> str:
    """The prefix of an object.

    Args:
        prefix: As it was given; without a timestamp the hour is added.
        oldest: When the oldest record of the object came, in the stream's time zone.
        rng: For random strings.
    """
    if "!{timestamp:" not in prefix:
        prefix += _DEFAULT
    return _evaluated(prefix, oldest, rng)


def evaluated_for_errors(prefix: str, error_prefix: str, kind: str, oldest: datetime, rng: Random) -> str:
    """The prefix of an object with what could not be processed.

    Args:
        prefix: Of whole records: without their own prefix, errors are in a folder of it.
        error_prefix: As it was given; empty: none was.
        kind: Of the error: `processing-failed`.
        oldest: See `evaluated`.
        rng: See `evaluated`.
    """
    text = error_prefix or f"{prefix}!{{firehose:{_ERROR_TYPE}}}/{_DEFAULT}"
    if _ERROR_TYPE not in text:
        text += f"{kind}/{_DEFAULT}"
    return _evaluated(text.replace(f"!{{firehose:{_ERROR_TYPE}}}", kind), oldest, rng)


def _evaluated(text: str, oldest: datetime, rng: Random) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] == "timestamp":
            return formatted(match[2], oldest)
        return "".join(rng.choice(_LETTERS) for _ in range(_RANDOM_CHARS))

    return _EXPRESSION.sub(value, text)


def formatted(pattern: str, moment: datetime) -> str:
    """A moment by a pattern of Java's `DateTimeFormatter`, as far as its letters are of dates and times.

    Raises:
        AwsError: The pattern has another letter.
    """
    tokens = list(_TOKEN.finditer(pattern))
    if sum(len(token[0]) for token in tokens) != len(pattern):
        raise invalid(f"The timestamp pattern {pattern} is not valid.")
    return "".join(_token(token[0], token[1], moment) for token in tokens)


def _token(text: str, letter: str | None, moment: datetime) -> str:
    if letter is None:
        return text[1:-1].replace("''", "'") or "'" if text[0] == "'" else text
    if letter in "yu":
        return (
            f"{moment.year % 100:02d}" if len(text) == _SHORT_YEAR_CHARS else f"{moment.year:0{len(text)}d}"
        )
    if text in _NAMES:
        return moment.strftime(_NAMES[text])
    if letter == "S":
        return f"{moment.microsecond:06d}".ljust(len(text), "0")[: len(text)]
    if letter not in _NUMBERS or len(text) > _NUMBER_CHARS.get(letter, 2):
        raise invalid(f"The letters {text} of a timestamp pattern are not supported.")
    return f"{int(moment.strftime(_NUMBERS[letter])):0{len(text)}d}"
