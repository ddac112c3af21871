"""JSON in and out of events, without changing a number.

orjson reads what does not fit into 64 bits as a float, and an order's number is then another one. Texts that have such
a number are read and written by the standard library, which takes ten times as long and keeps every digit of it.
"""

import json
import re
from typing import Any, Final

import orjson

# 2^63 has 19 digits; a comma, colon or bracket before it, so that a number within a text does not count.
_LONG_NUMBER: Final = re.compile(rb"[:\[,]\s*-?\d{19,}")


def read(content: bytes) -> Any:
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


def written(value: object) -> str:
    """A value as a JSON document, without blanks.

    Raises:
        ValueError: It is nested a thousand deep.
    """
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # an integer beyond 64 bits, or nested more than 254 deep
        try:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        except RecursionError:
            raise ValueError("It is nested too deep") from None
