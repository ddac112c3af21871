"""Queries of Logs Insights: `fields`, `display`, `parse`, `filter`, `stats`, `sort`, `dedup` and `limit`.

Source: CloudWatch Logs user guide, "CloudWatch Logs Insights query syntax".
"""

import functools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from redrive.aws.logs.insights_terms import (
    MOMENTS,
    InsightsReader,
    Term,
    malformed,
    regex,
    tokens_of,
)
from redrive.aws.logs.insights_values import (
    STEPS_MAX,
    Compute,
    Fields,
    Value,
    moment_text,
    number_of,
    text_of,
    unquoted,
)
from redrive.model.budget import Budget
from redrive.model.language import LanguageToken

ROWS_MAX: Final = 10_000
_SHOWN: Final = ("@timestamp", "@message")
_POINTER: Final = "@ptr"
Rows = list[Fields]
Step = Callable[[Rows], Rows]


@dataclass(frozen=True, slots=True)
class Query:
    """A query that has been read."""

    row_steps: Sequence[Step]  # Steps that look at one row at a time: they run while events are read
    table_steps: Sequence[Step]  # Steps that need all rows
    columns: Sequence[str]  # Columns of the result, in order
    limit: int | None  # The number of rows that the query asks for; None: it does not say
    is_aggregated: bool  # Its rows are no events any more
    names: frozenset[str]  # The fields that it names
    weight: int  # The steps that it takes for a row, but for what functions make of texts

    def narrow(self, rows: Rows) -> Rows:
        """Some events, as far as each can be looked at by itself."""
        return functools.reduce(lambda remaining, step: step(remaining), self.row_steps, rows)

    def results(self, rows: Rows, limit: int | None) -> Iterator[list[dict[str, str]]]:
        """The answer: each row's fields, as far as it has them.

        Raises:
            OverBudgetError: To sort, group and count them takes longer than it may.
        """
        if rows:
            rows[0].budget.spend(len(rows) * self.weight)
        if not self.is_aggregated and not self.table_steps:
            rows = sorted(rows, key=_timestamp, reverse=True)
        answer = functools.reduce(lambda remaining, step: step(remaining), self.table_steps, rows)
        columns = self.columns if self.is_aggregated else [*self.columns, _POINTER]
        return (_as_cells(row, columns) for row in answer[: self.limit or limit or ROWS_MAX])


def _timestamp(row: Fields) -> float:
    return number_of(row.get("@timestamp")) or 0.0


def _as_cells(row: Fields, columns: Iterable[str]) -> list[dict[str, str]]:
    cells = ((column, row.get(column)) for column in columns)
    return [{"field": column, "value": _text(column, value)} for column, value in cells if value is not None]


def _text(column: str, value: Value) -> str:
    return moment_text(value) if column in MOMENTS and isinstance(value, int | float) else text_of(value)


def read_query(text: str) -> Query:
    """Read a query; raises AwsError (`MalformedQueryException`)."""
    return _Builder(text).query()


class _Builder:
    """Puts the commands of a query together."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._row_steps: list[Step] = []
        self._table_steps: list[Step] = []
        self._as_cells: list[str] = []
        self._has_display = False
        self._limit: int | None = None
        self._is_aggregated = False

    def query(self) -> Query:
        """Read the whole query, command by command."""
        every = tokens_of(self._text)
        for tokens in _commands(every):
            if not tokens:
                raise malformed("a command is missing between two pipes")
            command = tokens[0].sign
            build = _COMMANDS.get(command)
            if build is None:
                raise malformed(f"the command {tokens[0].text} is not available")
            reader = InsightsReader(self._text, tokens[1:])
            build(self, reader)
            reader.finish()
        columns = self._as_cells or list(_SHOWN)
        return Query(
            self._row_steps,
            self._table_steps,
            list(dict.fromkeys(columns)),
            self._limit,
            self._is_aggregated,
            names=frozenset(token.text for token in every if token.kind in ("word", "quoted")),
            weight=sum(_weight(token) for token in every),
        )

    def _step(self, step: Step, *, whole: bool = False) -> None:
        (self._table_steps if whole or self._table_steps else self._row_steps).append(step)

    def fields(self, reader: InsightsReader) -> None:
        """`fields a, b + 1 as c`: more columns."""
        terms: list[Term] = reader.several(reader.term, ",")
        self._step(functools.partial(_with, terms))
        if not self._has_display:
            self._as_cells += [term.name for term in terms]

    def display(self, reader: InsightsReader) -> None:
        """`display a, b`: no other columns."""
        terms: list[Term] = reader.several(reader.term, ",")
        self._step(functools.partial(_with, terms))
        self._as_cells, self._has_display = [term.name for term in terms], True

    def filter(self, reader: InsightsReader) -> None:
        """`filter status = "FAILURE" and attempts > 1`."""
        holds = reader.either()
        self._step(lambda rows: [row for row in rows if holds(row)])

    def parse(self, reader: InsightsReader) -> None:
        """`parse @message "user=* took * ms" as user, ms`; without a source it is the message."""
        has_source = reader.next.kind not in ("text", "regex")
        source: Compute = reader.either() if has_source else (lambda row: row.get("@message"))
        if reader.next.kind == "regex":
            self._step(functools.partial(_add_searched, source, regex(reader.expect("regex").text)))
            return
        pattern = unquoted(reader.expect("text").text)
        reader.need("as")
        names = reader.several(lambda: reader.expect("word", "quoted").text, ",")
        if pattern.count("*") != len(names):
            raise malformed(f"the pattern has {pattern.count('*')} asterisks, and {len(names)} names follow")
        self._step(functools.partial(_add_parsed, source, pattern.split("*"), names))

    def stats(self, reader: InsightsReader) -> None:
        """`stats count(*) as n, avg(ms) by bin(5m), user`."""
        aggregates = reader.several(functools.partial(_aggregate, reader), ",")
        groups: list[Term] = reader.several(reader.term, ",") if reader.take("by") else []
        self._step(functools.partial(_aggregate_groups, aggregates, groups), whole=True)
        self._as_cells = [*(term.name for term in groups), *(name for name, _ in aggregates)]
        self._is_aggregated = self._has_display = True

    def sort(self, reader: InsightsReader) -> None:
        """`sort @timestamp desc, a`."""
        keys = reader.several(functools.partial(_sort_key, reader), ",")
        self._step(functools.partial(_sort, keys), whole=True)

    def dedup(self, reader: InsightsReader) -> None:
        """`dedup a, b`: the first row of each."""
        terms: list[Term] = reader.several(reader.term, ",")
        self._step(functools.partial(_distinct, terms), whole=True)

    def limit(self, reader: InsightsReader) -> None:
        """`limit 20`."""
        limit = int(float(reader.expect("number").text))
        if not 0 < limit <= ROWS_MAX:
            raise malformed(f"limit takes 1 to {ROWS_MAX}")
        self._limit = min(limit, self._limit or limit)


_COMMANDS: Final[Mapping[str, Callable[[_Builder, InsightsReader], None]]] = {
    "dedup": _Builder.dedup,
    "display": _Builder.display,
    "fields": _Builder.fields,
    "filter": _Builder.filter,
    "limit": _Builder.limit,
    "parse": _Builder.parse,
    "sort": _Builder.sort,
    "stats": _Builder.stats,
}


def _weight(token: LanguageToken) -> int:
    """The steps of a token for one row; a regular expression takes as many for a character as it has instructions."""
    return 1 + (int(regex(token.text).programsize) if token.kind == "regex" else 0)


def _commands(tokens: Sequence[LanguageToken]) -> list[list[LanguageToken]]:
    """The tokens of each command, between the pipes."""
    commands: list[list[LanguageToken]] = [[]]
    for token in tokens:
        if token.sign == "|":
            commands.append([])
        else:
            commands[-1].append(token)
    return commands


# ---- steps ------------------------------------------------------------------------------------------------------


def _with(terms: Sequence[Term], rows: Rows) -> Rows:
    for row in rows:
        row.update({term.name: term.value(row) for term in terms})
    return rows


def _add_parsed(source: Compute, parts: Sequence[str], names: Sequence[str], rows: Rows) -> Rows:
    """Add to each row what stands between the parts of a pattern, by the names for it."""
    for row in rows:
        value = source(row)
        row.spend(value)
        values = None if value is None else _between(text_of(value), parts)
        if values is not None:
            row.update(zip(names, values, strict=True))
    return rows


def _add_searched(source: Compute, pattern: Any, rows: Rows) -> Rows:
    """Add what the named groups of a regular expression find."""
    for row in rows:
        value = source(row)
        row.spend(value)
        match = None if value is None else pattern.search(text_of(value))
        if match is not None:
            row.update({name: text for name, text in match.groupdict().items() if text is not None})
    return rows


def _between(text: str, literals: Sequence[str]) -> list[str] | None:
    """The texts that stand for the asterisks between some parts, each as short as it can be."""
    at = text.find(literals[0])
    if at < 0:
        return None
    at, texts = at + len(literals[0]), []
    for number, literal in enumerate(literals[1:], 1):
        is_open_end = not literal and number == len(literals) - 1  # the last asterisk takes all the rest
        end = len(text) if is_open_end else text.find(literal, at)
        if end < 0:
            return None
        texts.append(text[at:end])
        at = end + len(literal)
    return texts


def _sort_key(reader: InsightsReader) -> tuple[Compute, bool]:
    """A field or expression to sort by, and True if `desc` follows it."""
    value = reader.either()
    descending = bool(reader.take("desc"))
    if not descending:
        reader.take("asc")
    return value, descending


def _sort(keys: Sequence[tuple[Compute, bool]], rows: Rows) -> Rows:
    for value, descending in reversed(keys):
        rows = sorted(rows, key=lambda row: _order(value(row)), reverse=descending)
    return rows


def _order(value: Value) -> tuple[int, float, str]:
    """The place of a value among others: nothing first, then numbers, then texts."""
    number = number_of(value)
    if value is None:
        return 0, 0.0, ""
    return (2, 0.0, text_of(value)) if number is None else (1, number, "")


def _distinct(terms: Sequence[Term], rows: Rows) -> Rows:
    first_of: dict[tuple[str, ...], Fields] = {}
    for row in rows:
        first_of.setdefault(tuple(text_of(term.value(row)) for term in terms), row)
    return list(first_of.values())


# ---- aggregates -------------------------------------------------------------------------------------------------

Aggregate = Callable[[Rows], Value]


def _aggregate(reader: InsightsReader) -> tuple[str, Aggregate]:
    """Read an aggregate, such as `pct(ms, 99) as slow`; with the name of its column, which may be its own text."""
    function = reader.expect("word").text.lower()
    reader.need("(")
    argument: Compute | None = None
    label = "*"
    if not reader.take("*") and reader.next.sign != ")":
        term = reader.term()
        argument, label = term.value, term.name
    percent = None
    if reader.take(","):
        percent = float(reader.expect("number").text)
        label = f"{label}, {text_of(percent)}"
    reader.need(")")
    name = f"{function}({label})"
    aggregate = _aggregate_of(function, argument, percent)
    if reader.take("as"):
        name = reader.expect("word", "quoted").text
    return name, aggregate


def _aggregate_of(function: str, argument: Compute | None, percent: float | None) -> Aggregate:
    """The aggregate of a function; without rows, counts are 0 and all others None."""
    if function == "count" and percent is None:
        if argument is None:
            return lambda rows: float(len(rows))
        return lambda rows: float(sum(argument(row) is not None for row in rows))
    is_percentile = function in ("pct", "percentile")
    if argument is None or is_percentile != (percent is not None):
        raise malformed(f"there is no function {function} of these arguments")
    if is_percentile:
        return lambda rows: _percentile(_numbers(argument, rows), percent or 0.0)
    if function == "count_distinct":
        return lambda rows: float(len({text_of(argument(row)) for row in rows if argument(row) is not None}))
    if function in ("earliest", "latest"):
        pick = min if function == "earliest" else max
        return lambda rows: argument(pick(rows, key=_timestamp)) if rows else None
    if function not in _SUMMARIES:
        raise malformed(f"there is no function {function}")
    summarize = _SUMMARIES[function]
    return lambda rows: summarize(numbers) if (numbers := _numbers(argument, rows)) else None


_SUMMARIES: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "avg": statistics.fmean,
    "max": max,
    "median": statistics.median,
    "min": min,
    "stddev": statistics.pstdev,
    "sum": math.fsum,
}


def _numbers(argument: Compute, rows: Rows) -> list[float]:
    numbers = (number_of(argument(row)) for row in rows)
    return [number for number in numbers if number is not None]


def _percentile(numbers: Sequence[float], percent: float) -> Value:
    if not numbers:
        return None
    rank = math.ceil(min(max(percent, 0.0), 100.0) / 100 * len(numbers))
    return sorted(numbers)[max(rank - 1, 0)]


def _aggregate_groups(
    aggregates: Sequence[tuple[str, Aggregate]], groups: Sequence[Term], rows: Rows
) -> Rows:
    """A row for each group, or one for all rows, even if there are none."""
    rows_by_key: dict[tuple[Value, ...], Rows] = {} if groups else {(): []}
    for row in rows:
        rows_by_key.setdefault(tuple(term.value(row) for term in groups), []).append(row)
    budget = rows[0].budget if rows else Budget(STEPS_MAX)
    group_names = [term.name for term in groups]
    results = []
    for key, members in rows_by_key.items():
        group = dict(zip(group_names, key, strict=True))
        results.append(Fields(group | {name: aggregate(members) for name, aggregate in aggregates}, budget))
    return results
