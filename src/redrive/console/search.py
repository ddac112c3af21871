"""Search: the terms that somebody types become a predicate over deliveries."""

import re
from collections.abc import Callable
from typing import Any, Final

import orjson

from redrive.console.visit import Unusable
from redrive.model.delivery import Delivery
from redrive.model.ids import id_text

Predicate = Callable[[Delivery], bool]
TERMS_MAX: Final = 10
_TERM: Final = re.compile(r'-?(?:[\w.]+:)?(?:"[^"]*"|\S+)')
_AMOUNT: Final = re.compile(r"([<>]?)(\d{1,15})(k|m)?", re.IGNORECASE)
_FACTORS: Final = {"": 1, "k": 1024, "m": 1024 * 1024}


def read(text: str) -> Predicate:
    """The predicate of a search: all terms hold; a minus before one turns it round.

    `text`, `"two words"`, `body.order:7001`, `id:6f1c…`, `attempts:>3`, `size:>64k`, `group:customer-7`.

    Raises:
        Unusable: There are too many terms, or an amount is none.
    """
    terms = _TERM.findall(text)
    if len(terms) > TERMS_MAX:
        raise Unusable(f"A search has at most {TERMS_MAX} terms.")
    predicates = [_signed(term) for term in terms]
    return lambda delivery: all(holds(delivery) for holds in predicates)


def _signed(term: str) -> Predicate:
    if term.startswith("-") and len(term) > 1:
        holds = _read_term(term[1:])
        return lambda delivery: not holds(delivery)
    return _read_term(term)


def _read_term(term: str) -> Predicate:
    name, colon, value = term.partition(":")
    value = value.strip('"')
    if colon and name == "attempts":
        return _amount(value, lambda delivery: delivery.attempts)
    if colon and name == "size":
        return _amount(value, lambda delivery: len(delivery.body.encode("utf-8", "surrogatepass")))
    if colon and name == "id":
        return lambda delivery: id_text(delivery.message_id) == value.lower() or str(delivery.seq) == value
    if colon and name == "group":
        return lambda delivery: delivery.group_id == value
    if colon and name.startswith("body.") and len(name) > len("body."):
        return _in_body(name.removeprefix("body.").split("."), value)
    wanted = term.strip('"')
    return lambda delivery: wanted in delivery.body


def _amount(text: str, of: Callable[[Delivery], int]) -> Predicate:
    found = _AMOUNT.fullmatch(text)
    if found is None:
        raise Unusable(f"{text[:40]!r} is not an amount like 3, >3 or <64k.")
    number = int(found[2]) * _FACTORS[(found[3] or "").lower()]
    if found[1] == ">":
        return lambda delivery: of(delivery) > number
    if found[1] == "<":
        return lambda delivery: of(delivery) < number
    return lambda delivery: of(delivery) == number


def _in_body(path: list[str], wanted: str) -> Predicate:
    last = path[-1]

    def holds(delivery: Delivery) -> bool:
        if last not in delivery.body or wanted not in delivery.body:  # ten times as fast as to read it
            return False
        try:
            value: Any = orjson.loads(delivery.body)
        except ValueError:
            return False
        for member in path:
            value = value.get(member) if isinstance(value, dict) else None
        return _text(value) == wanted

    return holds


def _text(value: object) -> str | None:
    if isinstance(value, bool) or value is None:
        return str(value).lower() if value is not None else None
    return str(value) if isinstance(value, str | int | float) else None
