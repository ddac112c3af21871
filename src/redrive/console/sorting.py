"""Sorting: the rows of a page by one of its columns, chosen by a link in the column's head."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from redrive.console.visit import PAGE_ROWS, Visit

Row = Mapping[str, Any]
_FIRST: Final = "from"  # of the query: the index of a page's first row among all of them


class Head(NamedTuple):
    """The head of a column that rows are sorted by."""

    link: str  # The page sorted by it, or the other way round where it is already
    order: str  # `ascending` or `descending`; empty: it is sorted by another, or by none


def sort_rows(
    visit: Visit, rows: Sequence[Row], columns: Mapping[str, Callable[[Row], Any]], *parts: str, **query: Any
) -> tuple[list[Row], dict[str, Head]]:
    """The rows of a page in the order that its address asks for, and the heads of the columns.

    Numbers begin with the greatest, names with the first; a hyphen before the column turns that round.

    Args:
        visit: Whose address names the column as `sort`.
        rows: In the order that holds where it names none.
        columns: The value of a row by each.
        parts: Of the page's own link.
        query: What the heads' links keep.
    """
    key = visit.parameter("sort")
    column, is_reversed = key.removeprefix("-"), key.startswith("-")
    if column not in columns:
        column = ""
    records = list(rows)
    orders = dict.fromkeys(columns, "")
    if column and records:
        is_text = isinstance(columns[column](records[0]), str)
        is_descending = is_reversed if is_text else not is_reversed
        records.sort(key=columns[column], reverse=is_descending)
        orders[column] = "descending" if is_descending else "ascending"
    heads = {
        name: Head(
            visit.link(*parts, **query, sort=f"-{name}" if name == column and not is_reversed else name),
            order,
        )
        for name, order in orders.items()
    }
    return records, heads


class SortedPage(NamedTuple):
    """A page of rows that were sorted as a whole."""

    rows: Sequence[Row]  # Those of the page
    heads: Mapping[str, Head]  # Column heads
    number: int  # Number of rows on all pages
    first: str  # The link to the first page; empty: this is it
    next: str  # The link to the next one; empty: this is the last


def sorted_page(
    visit: Visit, rows: Sequence[Row], columns: Mapping[str, Callable[[Row], Any]], *parts: str, **query: Any
) -> SortedPage:
    """The page that an address asks for of rows that are all known: sorted first, and cut then (`sort_rows`)."""
    ordered, heads = sort_rows(visit, rows, columns, *parts, **query)
    begin = visit.number(_FIRST)
    own_query = {**query, "sort": visit.parameter("sort")}
    end = begin + PAGE_ROWS
    return SortedPage(
        ordered[begin:end],
        heads,
        len(ordered),
        visit.link(*parts, **own_query) if begin else "",
        visit.link(*parts, **own_query, **{_FIRST: end}) if end < len(ordered) else "",
    )
