"""Reading the fields of a document: each is there in the right form, or refused by name."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from redrive.protocols.azure.wire.errors import invalid

Document = Mapping[str, Any]
T = TypeVar("T")


def text(document: Document, name: str) -> str | None:
    """A text, or None where there is none.

    Raises:
        AzureError: It is something else.
    """
    return _typed(document, name, str, "a text")


def one_of(document: Document, name: str, allowed: Sequence[str]) -> str | None:
    """One of some words, spelt as they are here whatever the case it came in; None where there is none.

    Raises:
        AzureError: It is another.
    """
    value = text(document, name)
    if value is None:
        return None
    for word in allowed:
        if word.lower() == value.lower():
            return word
    raise invalid(f"The property '{name}' is '{value}'; it must be one of {', '.join(allowed)}.")


def number(document: Document, name: str, least: int, most: int | None) -> int | None:
    """A whole number within a range, or None where there is none.

    Raises:
        AzureError: It is something else, or outside.
    """
    value = document.get(name)
    if value is None:
        return None
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0
    if not whole or value < least or (most is not None and value > most):
        range_text = f"between {least} and {most}" if most is not None else f"of {least} or more"
        raise invalid(f"The property '{name}' is '{value}'; it must be a number {range_text}.")
    return int(value)


def flag(document: Document, name: str) -> bool | None:
    """True, false, or None where there is none.

    Raises:
        AzureError: It is something else.
    """
    return _typed(document, name, bool, "true or false")


def part(document: Document, name: str) -> Document | None:
    """A document within, or None where there is none.

    Raises:
        AzureError: It is something else.
    """
    return _typed(document, name, dict, "an object")


def items(document: Document, name: str) -> list[Any] | None:
    """A list, or None where there is none.

    Raises:
        AzureError: It is something else.
    """
    return _typed(document, name, list, "a list")


def texts(document: Document, name: str) -> list[str] | None:
    """A list of texts, or None where there is none.

    Raises:
        AzureError: It is something else.
    """
    found = items(document, name)
    if found is not None and not all(isinstance(one, str) for one in found):
        raise invalid(f"The property '{name}' must be a list of texts.")
    return found


def merged(before: Document, change: Document) -> dict[str, Any]:
    """A document with what a PATCH says: what is null goes, documents within are merged likewise.

    The rule is RFC 7396's.
    """
    made = {name: value for name, value in before.items() if name not in change or change[name] is not None}
    for name, value in change.items():
        if isinstance(value, dict):
            within = made.get(name)
            made[name] = merged(within if isinstance(within, dict) else {}, value)
        elif value is not None:
            made[name] = value
    return made


def present(document: Document) -> dict[str, Any]:
    """The fields that have a value: clients write null for what they leave out."""
    return {name: value for name, value in document.items() if value is not None}


def _typed(document: Document, name: str, form: type[T], called: str) -> T | None:
    value = document.get(name)
    if value is not None and not isinstance(value, form):
        raise invalid(f"The property '{name}' must be {called}.")
    return value
