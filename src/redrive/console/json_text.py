"""JSON as text: indented without being read into numbers, so that 12345678901234567890 stays what it is."""

import json
import re
from typing import Final

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_INDENT: Final = "  "
_PRETTY_CHARS_MAX: Final = 1_000_000


class NotJsonError(ValueError):
    """The text is no JSON; the message says where it ends to be, for people."""


def check(text: str) -> None:
    """Raise NotJsonError unless a text is JSON."""
    try:
        json.loads(text, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        raise NotJsonError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise NotJsonError("it is nested too deeply") from None


def pretty(text: str) -> str | None:
    """A JSON object or array over several lines, every other character unchanged; None: it is none."""
    if len(text) > _PRETTY_CHARS_MAX or text[:1] not in ("{", "["):
        return None
    try:
        check(text)
    except NotJsonError:
        return None
    out: list[str] = []
    depth = 0
    before = ""
    for part in _TOKEN.findall(text):
        if part in "}]":
            depth -= 1
            if before not in ("{", "["):
                out.append("\n" + _INDENT * depth)
        elif before in ("{", "[", ","):
            out.append("\n" + _INDENT * depth)
        out.append(": " if part == ":" else part)
        if part in "{[":
            depth += 1
        before = part
    return "".join(out)
