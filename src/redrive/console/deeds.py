"""Deeds: what a visitor just did, which the next page says, and how it is taken back.

A cookie of a minute carries them: a link could put any sentence into a page, and would repeat it wherever it is sent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, quote, unquote, urlencode

from redrive.console import routes, safety
from redrive.console.visit import Redirect
from redrive.model.http import Request

COOKIE: Final = "redrive-deed"
SECONDS: Final = 60
_SENTENCE_CHARS_MAX: Final = 500
_COOKIE_CHARS_MAX: Final = 3500  # browsers keep 4,096, with the name and what follows
_FIELDS_MAX: Final = 101
_UNDO: Final = " undo"  # no form has a field of this name


@dataclass(frozen=True, slots=True)
class Deed:
    """A change that a form made."""

    sentence: str  # The change in words
    undo: str = ""  # The path of the form that takes it back, below the console's own; empty: none does
    fields: Sequence[tuple[str, str]] = ()  # Fields of that form


def cookie_text(redirect: Redirect) -> str:
    """The value of the cookie; a form that is too long for one is left out."""
    sentence = quote(redirect.sentence[:_SENTENCE_CHARS_MAX])
    if redirect.undo is None:
        return sentence
    path, fields = redirect.undo
    text = f"{sentence}&{urlencode({_UNDO: path, **fields}, doseq=True)}"
    return text if len(text) <= _COOKIE_CHARS_MAX else sentence


def deed_of(request: Request, scheme: str) -> Deed | None:
    """The deed of a moment ago; None: the page has nothing to say."""
    sentence, _, form = safety.cookie_of(request, scheme, COOKIE).partition("&")
    if not sentence:
        return None
    fields = _fields(form)
    undo = fields.pop(_UNDO, [""])[-1]
    match = routes.find("POST", undo)
    if match is None or not match[0].undoes:
        return Deed(unquote(sentence))
    return Deed(unquote(sentence), undo, [(name, each) for name, values in fields.items() for each in values])


def _fields(form: str) -> dict[str, list[str]]:
    try:
        return parse_qs(form, max_num_fields=_FIELDS_MAX)
    except ValueError:
        return {}
