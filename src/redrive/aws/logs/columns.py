"""Filter patterns for columns: `[ip, user, ..., status = 4*, size > 1000]`, for messages of words apart by spaces.

A text in quotes or square brackets is one word. `...` stands for as many columns as there are.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from redrive.aws.logs.json_expression import Test, comparison, refuse
from redrive.aws.logs.regexes import BETWEEN_PERCENTS

_WORD: Final = re.compile(r'"([^"]*)"|\[([^\]]*)\]|(\S+)')
_COLUMN: Final = re.compile(r"\s*([A-Za-z_][\w.-]*|\.\.\.)?\s*(.*?)\s*", re.DOTALL)
_CONDITION: Final = re.compile(
    r'\s*(!=|>=|<=|=|<|>)\s*(?:"(?P<string>(?:[^"\\]|\\.)*)"|(?P<word>[^\s"&|%]+)|'
    + BETWEEN_PERCENTS
    + r")\s*"
)
_JOIN: Final = re.compile(r"(&&|\|\|)\s*([A-Za-z_][\w.-]*)?")
_COLUMNS_MAX: Final = 100
ANY: Final = "..."


@dataclass(frozen=True, slots=True)
class LogColumn:
    """One column."""

    name: str  # Empty if the pattern gives none; `...` for any number of columns
    tests: Sequence[Sequence[Test]]  # Every one of a group has to hold, for one of the groups
    regexes: int = 0  # The number of regular expressions among them

    def holds(self, word: str) -> bool:
        """True if a word may stand in the column."""
        value = _value(word)
        return not self.tests or any(all(test(value) for test in group) for group in self.tests)


class Columns:
    """A pattern for columns.

    Attributes:
        regexes: The number of regular expressions in it.
    """

    def __init__(self, columns: Sequence[LogColumn]) -> None:
        self._columns = columns
        self.regexes = sum(column.regexes for column in columns)
        names = [column.name for column in columns]
        self._gap = names.index(ANY) if ANY in names else None

    def words(self, message: str) -> dict[str, str] | None:
        """The words of a message by their columns, `$name`; None if it does not match."""
        words = [match[1] or match[2] or match[3] or "" for match in _WORD.finditer(message)]
        columns = self._columns
        if self._gap is not None:
            extra = len(words) - len(columns) + 1
            if extra < 0:
                return None
            gap = [LogColumn("", ())] * extra
            columns = [*columns[: self._gap], *gap, *columns[self._gap + 1 :]]
        if len(words) != len(columns):
            return None
        if not all(column.holds(word) for column, word in zip(columns, words, strict=True)):
            return None
        pairs = zip(columns, words, strict=True)
        return {f"${column.name or position}": word for position, (column, word) in enumerate(pairs, 1)}


def read_columns(text: str) -> Columns:
    """Read what stands between the brackets.

    Raises:
        AwsError: `InvalidParameterException`.
    """
    columns = [_column(part) for part in _parts(text)]
    if not columns or len(columns) > _COLUMNS_MAX or sum(column.name == ANY for column in columns) > 1:
        refuse()
    return Columns(columns)


def _parts(text: str) -> list[str]:
    """The parts between commas that stand neither in quotes nor between percent signs."""
    parts, within, escaped = [""], "", False
    for character in text:
        if character in '"%' and within in ("", character) and not escaped:
            within = "" if within else character
        escaped = character == "\\" and bool(within) and not escaped
        if character == "," and not within:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _column(part: str) -> LogColumn:
    match = _COLUMN.fullmatch(part)
    if match is None:
        refuse()
    name, rest = match[1] or "", match[2]
    groups: list[list[Test]] = [[]]
    regexes = 0
    while rest:
        condition = _CONDITION.match(rest)
        if condition is None:
            refuse()
        kind = next(kind for kind in ("string", "word", "regex") if condition[kind] is not None)
        groups[-1].append(comparison(condition[1], kind, condition[kind]))
        regexes += kind == "regex"
        rest = rest[condition.end() :]
        if rest:
            join = _JOIN.match(rest)
            if join is None or join[2] not in (None, name):
                refuse()
            if join[1] == "||":
                groups.append([])
            rest = rest[join.end() :]
            if not rest.strip():
                refuse()
    return LogColumn(name, [group for group in groups if group], regexes)


def _value(word: str) -> str | float:
    """A word as comparisons see it: a number where it is one."""
    try:
        return (int if word.isdecimal() else float)(word) if word and word[0] in "-.0123456789" else word
    except ValueError:
        return word
