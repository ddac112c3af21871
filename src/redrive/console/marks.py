"""Marks: what people changed meanwhile, numbered on the charts of a page and told beneath them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from redrive.console.charts import TimeChart
from redrive.console.visit import Visit
from redrive.console.words import moment

MARKS_MAX: Final = 5
_LOOKED_AT: Final = 200  # entries of the audit: one read
#: Changes that no chart shows anything of.
_QUIET: Final = frozenset(
    {"change-views", "create-access-key", "change-access-key", "rehearse", "send", "publish", "invoke"}
)


class Mark(NamedTuple):
    """A change that may explain what a chart shows."""

    number: int  # Of this and the others, in order of time, from 1
    at: int  # When (ms)
    who: str  # Access key; empty: without authentication
    what: str  # The change in words
    on: str  # The thing that was changed
    link: str  # Its entry of the audit


async def marks_of(visit: Visit, since: int, until: int, of: str) -> list[Mark]:
    """The last changes of a time, in order: of things whose names contain a text, or of all (empty)."""
    entries = await visit.installation.audit.entries(visit.scope, _LOOKED_AT, (until + 1, 0))
    matches = [
        each.entry
        for each in entries
        if each.entry.at >= since
        and each.entry.action not in _QUIET
        and of.lower() in f"{each.entry.on} {each.entry.what}".lower()
    ]
    return [
        Mark(
            number,
            entry.at,
            entry.who.rpartition(":")[2] or "anybody",
            entry.what,
            entry.on,
            # The entries of its millisecond; moments are searched for without the Z.
            visit.link("audit", q=f"since:{moment(entry.at)[:-1]} until:{moment(entry.at + 1)[:-1]}"),
        )
        for number, entry in enumerate(reversed(matches[:MARKS_MAX]), 1)
    ]


def with_marks(chart: TimeChart, marks: Sequence[Mark]) -> TimeChart:
    """A chart with a line at each mark, and its number."""
    since, until = chart.moments[0], chart.moments[-1]
    span_ms = max(1, until - since)
    shares = [(min(1, max(0, (each.at - since) / span_ms)), each.number) for each in marks]
    return replace(chart, marks=[(round(100 * share, 2), number) for share, number in shares])
