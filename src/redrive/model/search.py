"""Search: the terms of a search box become a predicate over deliveries.

`text`, `"two words"`, `body.order:7001`, `body.total:>500`, `attr.event_type:rental.*`, `reason:server_error`,
`status:5xx`, `attempts:>3`, `size:>64k`, `since:2h`, `until:2026-11-22`, `id:6f1c2a9e`, `group:customer-7`. A blank means
*and*, `-` before a term means *not*, a comma within a value means *or*, and `*` at the end of a value means any ending.
"""

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, TypeVar

from redrive.model.delivery import Delivery
from redrive.model.names import id_text

T = TypeVar("T")
Predicate: TypeAlias = Callable[[Delivery], bool]
TERMS_MAX: Final = 10
ID_CHARS_MIN: Final = 8  # of an id, so many from its beginning are enough
_TERM: Final = re.compile(r'-?(?:[\w.-]+:)?(?:"[^"]*"|\S+)')
_NAME: Final = re.compile(r"[A-Za-z_][\w.-]*")
_MEMBER: Final = re.compile(r"[\w-]+", re.ASCII)
_AMOUNT: Final = re.compile(r"([<>]?)(\d{1,15}(?:\.\d{1,6})?)(k|m)?", re.IGNORECASE)
_RANGE: Final = re.compile(r"(-?\d{1,15}(?:\.\d+)?)\.\.(-?\d{1,15}(?:\.\d+)?)")
_NUMBER: Final = re.compile(r"([<>])(-?\d{1,15}(?:\.\d+)?)")
_SPAN: Final = re.compile(r"(\d{1,6})(s|m|min|h|d)")
_CLOCK: Final = re.compile(r"(\d{2}):(\d{2})(?::(\d{2}))?")
_FACTORS: Final = {"": 1, "k": 1024, "m": 1024 * 1024}
_SPANS_MS: Final = {"s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_DAY_MS: Final = 86_400_000
#: The terms, with an example and the meaning of each, as the console's help shows them.
TERMS: Final[Mapping[str, tuple[str, str]]] = {
    "body.": ("body.currency:EUR,USD", "the value at that path of a JSON body; also >500 and 1..9"),
    "attr.": ("attr.event_type:rental.*", "a message attribute"),
    "reason": ("reason:server_error", "why it became a dead letter"),
    "status": ("status:5xx", "what the endpoint answered"),
    "attempts": ("attempts:>3", "the number of attempts or receives"),
    "size": ("size:>64k", "the bytes of the body"),
    "since": ("since:2h", "sent since so long ago, a date, or a time of day (UTC)"),
    "until": ("until:05:30", "sent before"),
    "id": ("id:6f1c2a9e", "any id of the message; its first eight characters are enough"),
    "group": ("group:customer-7", "the message group of a FIFO queue"),
}


class SearchInvalidError(ValueError):
    """A search that cannot be read; the message says why, for the field that it was typed into."""


def read_search(text: str, now: int) -> Predicate:
    """The predicate of a search as it was typed: all its terms hold. `now` (ms) is what `since:2h` counts from.

    Raises:
        SearchInvalidError: There are too many terms, or one that is not known, or a value that does not suit its term.
    """
    return conjunction(text, lambda term: _read_term(term, now))


def conjunction(text: str, read_term: Callable[[str], Callable[[T], bool]]) -> Callable[[T], bool]:
    """The predicate that all terms of a text hold, or do not where a `-` stands before them, which is not read with them.

    Raises:
        SearchInvalidError: There are too many terms, or what `read_term` raises.
    """
    terms = terms_of(text)
    if len(terms) > TERMS_MAX:
        raise SearchInvalidError(f"A search has at most {TERMS_MAX} terms.")
    predicates = [_read_signed(term, read_term) for term in terms]
    return lambda value: all(holds(value) for holds in predicates)


def terms_of(text: str) -> list[str]:
    """The terms of a search, each as it was typed."""
    return _TERM.findall(text)


def asks_attempts(text: str) -> bool:
    """True if a search has a term about attempts, which `engine.tasks.searching` has to look up."""
    return any(term.removeprefix("-").startswith("attempts:") for term in terms_of(text))


def searchable_values(delivery: Delivery) -> Iterator[tuple[str, str]]:
    """The terms that find a message by what it has: `body.currency` and `EUR`, `attr.kind` and `new`, `attempts` and `4`.

    Of a body those are the plain values that its object holds itself; what a term cannot name is left out.
    """
    document = _object(delivery.body) if delivery.body.startswith("{") else {}
    for name, value in document.items():
        yield from _searchable("body", name, value)
    attributes = _headers(delivery).get("attributes")
    pairs = attributes.items() if isinstance(attributes, dict) else ()
    for name, attribute in pairs:
        for value in _scalars(attribute)[-1:]:  # its value, which stands behind its type
            yield from _searchable("attr", name, value)
    yield "attempts", str(delivery.attempts)
    if status := (delivery.failure or "").partition(" ")[2]:
        yield "status", status


def _searchable(part: str, name: str, value: object) -> Iterator[tuple[str, str]]:
    text = _text(value)
    if text is not None and '"' not in text and _MEMBER.fullmatch(name):
        yield f"{part}.{name}", text


def published_id(delivery: Delivery) -> str:
    """The id that the publisher of a message got for it: its copies carry it beside their own ids."""
    return str(_headers(delivery).get("id") or id_text(delivery.message_id))


def _read_signed(term: str, read_term: Callable[[str], Callable[[T], bool]]) -> Callable[[T], bool]:
    if term.startswith("-") and len(term) > 1:
        holds = read_term(term[1:])
        return lambda value: not holds(value)
    return read_term(term)


def _read_term(term: str, now: int) -> Predicate:
    """The predicate of one term: `name:value`, or a text in the body."""
    name, colon, value = term.partition(":")
    is_url = value.startswith("//")
    if not colon or term.startswith('"') or not _NAME.fullmatch(name) or is_url:
        text = term.strip('"')
        return lambda delivery: text in delivery.body
    part, _, path = name.partition(".")
    if part in ("body", "attr") and path:
        return _in_body(path, value) if part == "body" else _in_attributes(path, value)
    if name not in TERMS:
        raise SearchInvalidError(_unknown(name, value))
    if not value.strip('"'):
        raise SearchInvalidError(f"{name}: needs a value, as in {TERMS[name][0]}.")
    if name in _TIMES:
        return _TIMES[name](read_moment(value, now))
    return _READERS[name](value)


def _unknown(name: str, value: str) -> str:
    """The refusal of an unknown term, with the nearest known one."""
    near = difflib.get_close_matches(name, [term for term in TERMS if "." not in term], 1, 0.7)
    suggestion = f"{near[0]}:{value}" if near else f"body.{name}:{value}"
    return f"There is no term “{name}”. Did you mean {suggestion[:80]}? Quotes search for the text itself."


# ---- values ----------------------------------------------------------------------------------------------------


def _any_of(value: str) -> Callable[[str], bool]:
    """A test for the alternatives of a value; an asterisk at the end of one stands for any ending."""
    if value.startswith('"'):
        exact = value.strip('"')
        return lambda text: text == exact
    alternatives = value.split(",")
    exact_values = {each for each in alternatives if not each.endswith("*")}
    prefixes = tuple(each[:-1] for each in alternatives if each.endswith("*"))
    return lambda text: text in exact_values or (bool(prefixes) and text.startswith(prefixes))


def _value_test(value: str) -> Callable[[Any], bool]:
    """The test of a value in a body or an attribute: a range, a bound, or alternatives."""
    if (span := _RANGE.fullmatch(value)) is not None:
        least, greatest = float(span[1]), float(span[2])
        return _if_any(_number, lambda number: least <= number <= greatest)
    if (bound := _NUMBER.fullmatch(value)) is not None:
        limit = float(bound[2])
        if bound[1] == ">":
            return _if_any(_number, lambda number: number > limit)
        return _if_any(_number, lambda number: number < limit)
    return _if_any(_text, _any_of(value))


def _if_any(read: Callable[[Any], T | None], holds: Callable[[T], bool]) -> Callable[[Any], bool]:
    """A test of the number or the text that a value has; it fails where there is none."""

    def test(candidate: Any) -> bool:
        value = read(candidate)
        return value is not None and holds(value)

    return test


def _number(value: object) -> float | None:
    """The number that a value is or spells; None: neither."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else None


def _amount(number_of: Callable[[Delivery], int]) -> Callable[[str], Predicate]:
    """A reader of amounts like `3`, `>3` or `<64k`, compared with a number of the delivery."""

    def read(text: str) -> Predicate:
        match = _AMOUNT.fullmatch(text)
        if match is None:
            raise SearchInvalidError(f"“{text[:40]}” is not an amount like 3, >3 or <64k.")
        number = float(match[2]) * _FACTORS[(match[3] or "").lower()]
        if match[1] == ">":
            return lambda delivery: number_of(delivery) > number
        if match[1] == "<":
            return lambda delivery: number_of(delivery) < number
        return lambda delivery: number_of(delivery) == number

    return read


def read_moment(text: str, now: int) -> int:
    """A moment (ms) as typed: so long ago, a time of the last 24 hours, or a date with or without a time, UTC.

    Raises:
        SearchInvalidError: The text is no time.
    """
    if (ago := _SPAN.fullmatch(text)) is not None:
        return now - int(ago[1]) * _SPANS_MS[ago[2]]
    try:
        if (clock := _CLOCK.fullmatch(text)) is not None:
            today = datetime.fromtimestamp(now / 1000, UTC)
            at = today.replace(
                hour=int(clock[1]), minute=int(clock[2]), second=int(clock[3] or 0), microsecond=0
            )
            moment = round(at.timestamp() * 1000)
            return moment if moment <= now else moment - _DAY_MS
        at = datetime.fromisoformat(text)
        return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise SearchInvalidError(f"“{text[:40]}” is not a time like 05:00, 2h or 2026-11-22.") from None


# ---- terms -----------------------------------------------------------------------------------------------------


def _in_body(path: str, value: str) -> Predicate:
    """A predicate on the member at a path in a body of JSON."""
    members, fits = path.split("."), _value_test(value)
    last = members[-1]

    def holds(delivery: Delivery) -> bool:
        if last not in delivery.body:  # ten times as fast as to read it
            return False
        try:
            document: Any = json.loads(delivery.body)
        except (ValueError, RecursionError):
            return False
        for member in members:
            document = document.get(member) if isinstance(document, dict) else None
        return fits(document)

    return holds


def _in_attributes(name: str, value: str) -> Predicate:
    """A predicate on a message attribute, of which the type or the value may fit."""
    fits = _value_test(value)

    def holds(delivery: Delivery) -> bool:
        attributes = _headers(delivery).get("attributes")
        attribute = attributes.get(name) if isinstance(attributes, dict) else None
        return any(fits(each) for each in _scalars(attribute))

    return holds


def _scalars(attribute: object) -> list[object]:
    """The values in an attribute as services keep it: its type and its value, or both by name."""
    if isinstance(attribute, dict):
        return list(attribute.values())
    return attribute[1:] if isinstance(attribute, list) else [attribute]


def _headers(delivery: Delivery) -> Mapping[str, Any]:
    return _object(delivery.headers or b"{}")


def _object(text: str | bytes) -> Mapping[str, Any]:
    """The members of a JSON object; of anything else none."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _reason(value: str) -> Predicate:
    fits = _any_of(value.strip('"').replace(" ", "_").lower())
    return lambda delivery: fits((delivery.failure or "").partition(" ")[0])


def _status(value: str) -> Predicate:
    patterns = [re.compile(re.escape(each).replace("x", r"\d")) for each in value.lower().split(",")]
    return lambda delivery: any(
        each.fullmatch((delivery.failure or "").partition(" ")[2]) for each in patterns
    )


def _id(value: str) -> Predicate:
    """A predicate on a message's or its publication's id, or the beginning of one; or on its sequence number."""
    sought = value.strip('"').lower()

    def holds(delivery: Delivery) -> bool:
        ids = (id_text(delivery.message_id), published_id(delivery).lower())
        if len(sought) >= ID_CHARS_MIN and any(each.startswith(sought) for each in ids):
            return True
        return sought in ids or sought == str(delivery.seq)

    return holds


def _group(value: str) -> Predicate:
    fits = _any_of(value)
    return lambda delivery: delivery.group_id is not None and fits(delivery.group_id)


_READERS: Final[Mapping[str, Callable[[str], Predicate]]] = {
    "attempts": _amount(lambda delivery: delivery.attempts),
    "size": _amount(lambda delivery: len(delivery.body.encode("utf-8", "surrogatepass"))),
    "reason": _reason,
    "status": _status,
    "id": _id,
    "group": _group,
}
_TIMES: Final[Mapping[str, Callable[[int], Predicate]]] = {
    "since": lambda at: lambda delivery: delivery.sent_at >= at,
    "until": lambda at: lambda delivery: delivery.sent_at < at,
}
