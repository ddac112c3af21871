"""Lists of messages: a page of a queue, what a slice of a search found in it, and the values that its messages share."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from redrive.console.visit import PAGE_ROWS, Visit, searched
from redrive.engine.ports import Cause, LookRequest
from redrive.model.delivery import Delivery
from redrive.model.queue import Queue
from redrive.model.search import (
    TERMS,
    Predicate,
    SearchInvalidError,
    asks_attempts,
    searchable_values,
    terms_of,
)

SLICE: Final = 2000  # messages that one request of a search looks at: under 20 ms
FACETS_OF: Final = 1000  # the newest messages: their values take 18 ms
_FACETS_MAX: Final = 6
_VALUES_MAX: Final = 5  # of each facet
_VALUE_CHARS_MAX: Final = 60
_BODY_CHARS_MAX: Final = 2 << 20  # of all bodies that are read for facets
_PLAIN: Final = re.compile(r"[A-Za-z_][\w-]*|-?\d+(\.\d+)?")  # needs no quotes as the value of a term


@dataclass(frozen=True, slots=True)
class Choice:
    """The messages that a page lists."""

    queue: Queue  # Whose messages
    here: tuple[str, ...]  # The parts of the page's own link
    chosen: Mapping[str, str]  # What its links keep beside the search and the order
    newest: bool  # Whether the newest come first
    cause: Cause | None = None  # What they died of; None: of anything
    fits: Predicate | None = None  # What they are beside what was typed; None: anything
    usual: str = ""  # The order that a link need not name


@dataclass(frozen=True, slots=True)
class Look:
    """A page of messages, or what a slice of a search found."""

    page: Sequence[Delivery]  # At most a page of deliveries
    values: Mapping[str, Any]  # Values for the template


async def look(visit: Visit, choice: Choice) -> Look:
    """The page that an address asks for; of a search, or of a part of the queue, what one slice has."""
    after, newest = visit.number("after"), choice.newest
    text = visit.parameter("q").strip()
    holds, refusal = _read(visit, text)
    narrows = bool(text and not refusal) or choice.fits is not None
    looks_max = SLICE if narrows else PAGE_ROWS + 1
    before = (after or None) if newest else None
    request = LookRequest(
        choice.queue.id, looks_max, 0 if newest else after, before, newest_first=newest, cause=choice.cause
    )
    peek = visit.engine.operations.dead_letters.peek
    deliveries = await peek(request, with_attempts=asks_attempts(text))
    hits = [each for each in deliveries if holds(each) and (choice.fits is None or choice.fits(each))]
    page = hits[:PAGE_ROWS]
    is_full = len(hits) > PAGE_ROWS
    more = is_full or len(deliveries) == looks_max
    passed = page if is_full else deliveries  # the next page begins behind the last of these
    last = passed[-1].seq if passed else 0
    looked = visit.number("looked")
    if text:
        looked += sum(_passed(each, last, newest=newest) for each in deliveries)
    order, other_order = ("newest", "oldest") if newest else ("oldest", "newest")
    filters = {**choice.chosen, "q": text, "order": "" if order == choice.usual else order}
    values = {
        "q": text,
        "refused": refusal,
        "terms": TERMS,
        "more": more,
        "newest": newest,
        "order": order,
        "looked": looked,
        "next": visit.link(*choice.here, **filters, after=last, looked=looked or None) if more else "",
        "slice": visit.link(*choice.here, "search", **filters, after=last, looked=looked)
        if more and text
        else "",
        "search_from": visit.link(*choice.here, "search", **{**filters, "q": ""}),
        "facets_from": visit.link(*choice.here, "facets", **filters),
        "first": visit.link(*choice.here, **filters) if after else "",
        "clear": visit.link(*choice.here, **{**filters, "q": ""}),
        "turned": visit.link(
            *choice.here, **{**filters, "order": "" if other_order == choice.usual else other_order}
        ),
    }
    return Look(page, values)


def _read(visit: Visit, text: str) -> tuple[Predicate, str]:
    """The predicate of a search, or why it is refused: then nothing is searched, and the page stays as it was."""
    try:
        return searched(visit, text), ""
    except SearchInvalidError as error:
        return (lambda _: True), str(error)


def _passed(delivery: Delivery, last: int, *, newest: bool) -> bool:
    """True for what the next slice does not look at again."""
    return delivery.seq >= last if newest else delivery.seq <= last


# ---- facets ------------------------------------------------------------------------------------------------------


class Facet(NamedTuple):
    """A term of the search, with the values that most messages have."""

    name: str  # `body.currency`
    # A value each: the number of messages, the link that adds or removes the term, whether the search has it.
    rows: Sequence[tuple[str, int, str, bool]]


async def facets(visit: Visit, choice: Choice) -> Mapping[str, Any]:
    """Values that the newest messages of a choice share, for a page beside its list."""
    request = LookRequest(choice.queue.id, FACETS_OF, newest_first=True, cause=choice.cause)
    peek = visit.engine.operations.dead_letters.peek
    deliveries = await peek(request, with_attempts=True) if visit.bodies_shown else []
    text = visit.parameter("q").strip()
    holds, refused = _read(visit, text)
    hits = [each for each in deliveries if holds(each) and (choice.fits is None or choice.fits(each))]
    query = {**choice.chosen, "order": visit.parameter("order")}

    def row(name: str, value: str, number: int) -> tuple[str, int, str, bool]:
        term = f"{name}:{value}" if _PLAIN.fullmatch(value) else f'{name}:"{value}"'
        terms = terms_of(text)
        rest = [each for each in terms if each != term]
        is_applied = len(rest) < len(terms)
        link = visit.link(*choice.here, **query, q=" ".join(rest if is_applied else [*terms, term]))
        return value, number, link, is_applied

    rows = [
        Facet(name, [row(name, value, number) for value, number in numbers.most_common(_VALUES_MAX)])
        for name, numbers in _distinguishing_terms(hits)
    ]
    return {"facets": rows, "number": len(hits), "looked": len(deliveries), "refused": refused}


def _distinguishing_terms(deliveries: Iterable[Delivery]) -> list[tuple[str, Counter[str]]]:
    """The terms whose values tell messages apart: of bodies and attributes first, with the fewest values first."""
    values: dict[str, Counter[str]] = {}
    chars = 0
    number = 0
    for delivery in deliveries:
        chars += len(delivery.body)
        if chars > _BODY_CHARS_MAX:
            break
        number += 1
        for name, value in searchable_values(delivery):
            if len(value) <= _VALUE_CHARS_MAX:
                values.setdefault(name, Counter())[value] += 1
    names = [name for name, counts in values.items() if 1 < len(counts) <= max(4, number // 8)]
    names.sort(key=lambda name: ("." not in name, len(values[name]), name))
    return [(name, values[name]) for name in names[:_FACETS_MAX]]
