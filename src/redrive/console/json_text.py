"""JSON as text: indented without being read into numbers, so that 12345678901234567890 stays what it is."""

import json
import re
from typing import Any, Final

import orjson

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_INDENT: Final = "  "
_PRETTY_CHARS_MAX: Final = 1_000_000
_MEMBERS_CHARS_MAX: Final = 4_000  # of a text that a row shows the members of: fifty of them take 1 ms
_MEMBERS_MAX: Final = 8


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


def document(text: str | bytes | None) -> dict[str, Any]:
    """The members of a JSON object that somebody else wrote; of any other text none."""
    try:
        value = orjson.loads(text or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def members(text: str) -> list[tuple[str, str]]:
    """The first members of a JSON object, each with its value as it is read in a row; of any other text none."""
    if len(text) > _MEMBERS_CHARS_MAX or text[:1] != "{":
        return []
    try:
        document = json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return []
    return [(name, _in_a_row(value)) for name, value in list(document.items())[:_MEMBERS_MAX]]


def _in_a_row(value: object) -> str:
    """A value in one line: texts as they are, `{…}` and `[…]` for what has members."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "{…}"
    return "[…]" if isinstance(value, list) else json.dumps(value)


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
