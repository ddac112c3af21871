"""Replacements for values: texts, numbers and documents that no client sends, put where others were."""

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote_plus

from hypothesis import settings
from hypothesis import strategies as st

NASTY_TEXTS = [
    "",
    " ",
    "\0",
    "\ud800",
    "\udfff\ud800",
    "\ufffe",
    "\u0660",
    "\u0130",
    "\U0010ffff",
    "a" * 3000,
    "-1",
    "9" * 30,
    "1e400",
    "NaN",
    "true",
    "None",
    "../..",
    "%00%ff",
    "/",
    "//",
    "'; --",
    "<&>]]>",
    "[[[[[",
    "{}",
    "[]",
    "null",
    '{"a":' * 200,
    "arn:aws:sqs:us-east-1:000000000000:",
    "arn:aws:sqs:::",
    "http://localhost/000000000000/",
    "eyJ0YXNrSWQiOm51bGx9",
]
#: Half the examples of other tests: each has a world built, and `python -m tests.fuzz` asks for hours.
HALF = settings(max_examples=settings().max_examples // 2)
TEXTS = st.sampled_from(NASTY_TEXTS) | st.text(st.characters(), max_size=30)
_NUMBERS = st.integers(-(2**70), 2**70) | st.sampled_from(
    [0, -1, 2**31, -(2**31) - 1, 2**63, 2**64, 1.5, 1e308, float("inf")]
)
JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | _NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=4,
)


def plain(value: Any) -> Any:
    """A copy, with bytes as JSON has them."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return b64encode(value).decode() if isinstance(value, bytes) else value


def spoilt(draw: st.DrawFn, document: Any) -> Any:
    """The document with one of its values spoilt."""
    places = list(_places(document))
    if not places:
        return draw(JUNK)
    holder, key = draw(st.sampled_from(places))
    match draw(st.sampled_from(["junk", "junk", "inside", "gone", "more", "wrapped"])):
        case "junk":
            holder[key] = draw(JUNK)
        case "inside":
            holder[key] = _spoilt_inside(draw, holder[key])
        case "gone":
            del holder[key]
        case "more" if isinstance(holder, dict):
            holder[draw(TEXTS)] = draw(JUNK)
        case "more":
            holder.extend(holder[:1] * draw(st.integers(1, 12)))
        case _:
            holder[key] = [holder[key]]
    return document


def _spoilt_inside(draw: st.DrawFn, value: Any) -> Any:
    """A document within a text, spoilt like any other; other texts get more letters."""
    if not isinstance(value, str):
        return draw(JUNK)
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        return value + draw(TEXTS)
    return json.dumps(spoilt(draw, document))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


@st.composite
def spoilt_forms(draw: st.DrawFn, form: bytes) -> bytes:
    """A form with up to three of its fields spoilt."""
    fields = [tuple(field.split("=", 1)) for field in form.decode().split("&")]
    for _ in range(draw(st.integers(0, 3))):
        fields = draw(_spoilt_fields(fields))
    return "&".join(f"{name}={value}" for name, value in fields).encode(errors="surrogatepass")


@st.composite
def _spoilt_fields(draw: st.DrawFn, fields: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The fields of a form, of which one is spoilt."""
    if not fields:
        return [(_quoted(draw(TEXTS)), _quoted(draw(TEXTS)))]
    at = draw(st.integers(0, len(fields) - 1))
    name, value = fields[at]
    exchanged = draw(
        st.sampled_from(
            [
                [],
                [(name, _quoted(draw(TEXTS)))],
                [(name, str(draw(_NUMBERS)))],
                [(name.replace("1", draw(_INDEXES)), value)],
                [(f"{name}.{draw(_INDEXES)}", value)],
                [(name, value), (name, _quoted(draw(TEXTS)))],
                [(f"{name}.1.{_quoted(draw(TEXTS))}", value)],
                [(name, value + "%zz%c3%28")],
            ]
        )
    )
    return [*fields[:at], *exchanged, *fields[at + 1 :]]


_INDEXES = st.sampled_from(["0", "-1", "2", "1000000", "9" * 25, "x", "", "1.1", "\u0661"])


def _quoted(text: str) -> str:
    """A text as a form has it, surrogates included."""
    return quote_plus(text.encode(errors="surrogatepass"))
